"""``labharness hazards``: what hardware stands before each hazard, and its proof tests."""

import argparse
from datetime import date

from labharness.core.clock import VIRTUAL_EPOCH, wall_clock_utc
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import chosen_lab, say
from labharness.lab import LabPlan
from labharness.lab.config.hazards import record_proof

__all__ = ["hazards"]


def hazards(chosen: argparse.Namespace) -> int:
    """List the hazards and their hardware safeguards, or record a proof test of one."""
    plan = chosen_lab(chosen.lab)
    today = wall_clock_utc().date()
    if chosen.verb == "proof":
        proof = record_proof(
            plan.hazards,
            chosen.hazard,
            day=chosen.date or today,
            today=today,
            by=chosen.name,
            reason=chosen.reason,
            passed=not chosen.failed,
        )
        result = "passed" if proof.passed else "FAILED"
        say(f"{proof.hazard}: {result} on {proof.day}, {proof.by}")
        rows = chosen_lab(chosen.lab).hazards.hazard  # as the next run reads them
        still = next(row.missing(today) for row in rows if row.name == proof.hazard)
        if still and proof.passed:
            say(f"  MISSING    {still}")
            return EXIT_FAILED
        return EXIT_COMPLETED
    return _list(plan, today)


def _list(plan: LabPlan, today: date) -> int:
    missing = 0
    for row in plan.hazards.hazard:
        why = row.missing(today)
        missing += bool(why)
        last = row.last_proof(today)
        tested = "never" if last is None else f"{last.day} by {last.by or 'the table'}"
        say(f"{row.name}: {row.hazard}")
        say(f"  safeguard  {row.safeguard or 'NONE'}")
        say(f"  tested     {tested}, counts {row.proof_days} d")
        say(f"  {'MISSING    ' + why if why else 'in force'}")
    if plan.links == ("loopback",):
        day = VIRTUAL_EPOCH.date()
        late = ", ".join(row.name for row in plan.hazards.hazard if row.missing(day)) or "nothing"
        are = "are" if ", " in late else "is"
        say(f"in virtual time it is {day}: {late} {are} missing or late")
    return EXIT_FAILED if missing else EXIT_COMPLETED
