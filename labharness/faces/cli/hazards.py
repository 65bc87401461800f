"""``labharness hazards``: the hardware safeguard of each hazard, and its proof tests."""

import argparse

from labharness.core.clock import VIRTUAL_EPOCH, wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import chosen_lab, say
from labharness.lab.config.hazards import record_proof


def hazards_proof(chosen: argparse.Namespace) -> int:
    """Record a proof test of a hardware safeguard; return 1 if something is still missing."""
    today = wall_clock_utc().date()
    proof = record_proof(
        chosen_lab(chosen.lab).hazards,
        chosen.hazard,
        day=chosen.date or today,
        today=today,
        by=chosen.name,
        reason=chosen.reason,
        passed=not chosen.failed,
    )
    code = "cli.proof_passed" if proof.passed else "cli.proof_failed"
    say(Text(code, hazard=proof.hazard, day=str(proof.day), by=proof.by))
    rows = chosen_lab(chosen.lab).hazards.hazard  # like the next run reads them
    still = next(row.missing(today) for row in rows if row.name == proof.hazard)
    if still and proof.passed:
        say(Text("cli.hazard_missing", why=still))
        return EXIT_FAILED
    return EXIT_COMPLETED


def hazards_list(chosen: argparse.Namespace) -> int:
    """List the hazards and their hardware safeguards; return 1 if something is missing."""
    plan, today = chosen_lab(chosen.lab), wall_clock_utc().date()
    missing = 0
    for row in plan.hazards.hazard:
        why = row.missing(today)
        missing += bool(why)
        tested: str = Text("cli.never")
        last = row.last_proof(today)
        if last:
            by = last.by or Text("cli.by_table")
            tested = Text("cli.tested_by", day=str(last.day), by=by)
        say(Text("pair", what=row.name, why=row.hazard))
        say(Text("cli.safeguard", what=row.safeguard or Text("cli.no_safeguard")))
        exempt = row.never_due and not last  # no days are counted
        counted = Text("cli.hazard_tested", tested=tested, days=row.proof_days)
        say(Text("cli.hazard_simulated") if exempt else counted)
        say(Text("cli.hazard_missing", why=why) if why else Text("cli.in_force"))
    if plan.links == ("loopback",) and not plan.hazards.proof:
        day = VIRTUAL_EPOCH.date()
        late = [row.name for row in plan.hazards.hazard if row.missing(day)]
        code = "cli.virtual_late" if len(late) > 1 else "cli.virtual_one_late"
        say(Text(code, day=str(day), late=late or Text("cli.nothing")))
    return EXIT_FAILED if missing else EXIT_COMPLETED
