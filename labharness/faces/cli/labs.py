"""``labharness lab``, ``envelope``, ``arm``, ``doctor``, ``hazards``, ``reset``: before a run."""

import argparse
import json
from pathlib import Path

from labharness.core.clock import VIRTUAL_EPOCH, wall_clock_utc
from labharness.core.files.data_key import make_data_key, read_data_key
from labharness.core.files.named import is_there
from labharness.core.files.signing_key import BadKey
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.rules import rules
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    chosen_lab,
    complain,
    counted,
    looking,
    say,
    say_each,
    warn,
    with_lab,
)
from labharness.lab import read_lab
from labharness.lab.config.hazards import Proof, record_proof
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.usable import unsigned, unusable
from labharness.lab.config.wires import Finding, port_costs
from labharness.lab.doctor.findings import examine
from labharness.lab.doctor.machine import look
from labharness.lab.operate import idle_line
from labharness.lab.wiring.arming import GUARDED, armed_of, write_armed
from labharness.safety.guard.latch import MARKER_FILE


def lab_check(chosen: argparse.Namespace) -> int:
    """Check a lab's files; with ``--connect`` also whether its instruments answer."""
    with with_lab(chosen, "cli.state_at") as plan:
        lab_facts_of(plan)  # reads callers and approvals
        instruments, ports = len(plan.instruments), len(plan.file.port)
        say(Text("cli.lab", path=str(plan.path), instruments=instruments, ports=ports))
        say(Text("cli.lab_digest", digest=plan.lab_digest))
        say(Text("cli.envelope_digest", digest=plan.envelope_digest))
        say(Text("cli.port_columns"))
        for cost in port_costs(plan.instruments, plan.timings, plan.procedures()):
            each_s = f"{cost.poll_s:6.3f} s   {cost.longest_s:13.3f} s   {cost.safe_s:9.3f} s"
            say(f"{cost.port:14} {each_s}")
        for warning in plan.warnings():
            say(Text("cli.warning", what=warning))
        if plan.names_on_trust:
            say(Text("cli.warning", what=Text("approvers.only_names")))
        findings = [*plan.check(), *unusable(plan)]
        if plan.data_key is not None:
            try:
                read_data_key(plan.data_key)
            except BadKey as why:
                findings.append(Finding("data", str(why)))
        findings += [
            Finding("approvals", Text("cli.not_there", path=str(plan.beside(path))))
            for path in unsigned(plan)
        ]
        if chosen.command == "lab" and chosen.connect:
            for name, found, trouble in idle_line.identify(plan):
                if trouble:
                    findings.append(Finding(name, trouble))
                else:
                    say(f"{name:14} {found}")
        for finding in findings:
            say(Text("cli.finding", where=finding.where, what=finding.what))
            for line in in_language(finding.paste, TERMINAL.language).splitlines():
                say(f"    {line}")
        say(counted(len(findings)))
        return EXIT_FAILED if findings else EXIT_COMPLETED


envelope_check = lab_check


def envelope_show(chosen: argparse.Namespace) -> None:
    """Print each row of an envelope."""
    with with_lab(chosen, "cli.state_at") as plan:
        say_each(rules(plan))


def reset(chosen: argparse.Namespace) -> None:
    """Open the latch of a line."""
    with with_lab(chosen, "cli.state_at") as plan:
        trip = idle_line.reset(plan, chosen.name, chosen.reason)
        done = trip and Text("cli.reset", name=chosen.name, why=trip.detail)
        say(done or Text("cli.not_latched"))


def lab_key(chosen: argparse.Namespace) -> None:
    """Make the key for confidential data, and print the table of the lab file that names it."""
    path = Path(chosen.out)
    make_data_key(path)
    say(Text("key.data_made", path=str(path)))
    say(f"[data]\nkey = {json.dumps(str(path.absolute()), ensure_ascii=False)}")


def arm(chosen: argparse.Namespace) -> int:
    """Write armed.json, unless a check of the lab finds something, or the line has an owner."""
    plan = read_lab(Path(chosen.lab))
    findings = plan.check()
    for finding in findings:
        warn(Text("pair", what=finding.where, why=finding.what))
        for line in finding.paste.splitlines():
            complain(f"    {line}")
    if findings:
        return EXIT_FAILED
    armed = armed_of(plan, plan.procedures(), plan.safe_procedure)
    if armed is None:
        raise BadUse("cli.arm_no_port", lab=chosen.lab, kinds=GUARDED)
    with looking(plan.state_dir):
        plan.make_state_dir()
        with plan.lock(does="arms the line"):
            if is_there(plan.state_dir / MARKER_FILE):
                raise CommandFailed("cli.arm_armed")
            path = write_armed(plan.state_dir, armed)
    say(str(path))
    frames = [frame.port for each in armed.procedures.values() for frame in each]
    for port in armed.ports:
        told = Text(
            "cli.arm_port",
            port=f"{port.name:14}",
            reads=len(port.reads),
            frames=frames.count(port.name),
            procedures=len(armed.procedures),
            most_s=port.exchange_s_max,
        )
        say(told)
    return EXIT_COMPLETED


RUNS = Path("runs")  # where `run` makes its folder by default


def doctor(chosen: argparse.Namespace) -> int:
    """Examine, and print one line a check."""
    plan = chosen_lab(chosen.lab)
    checks = examine(plan, look(plan, RUNS))
    findings = sum(check.state == "finding" for check in checks)
    code = EXIT_FAILED if findings else EXIT_COMPLETED
    if chosen.json:
        names = ("state", "about", "said", "fix")
        fields = [{name: getattr(check, name) for name in names} for check in checks]
        say(json.dumps(fields, ensure_ascii=False, indent=2))
        return code
    for check in checks:
        fix = Text("doctor.do", fix=check.fix) if check.fix else ""
        cells = (check.state, check.about, check.said, fix)
        state, about, said, do = (in_language(each, TERMINAL.language) for each in cells)
        say(f"{state:8} {about:18} {said}{do}")
    say(counted(findings))
    return code


def hazards_proof(chosen: argparse.Namespace) -> int:
    """Record a proof test of a hardware safeguard; return 1 if something is still missing."""
    today = wall_clock_utc().date()
    proof = Proof(
        hazard=chosen.hazard,
        day=chosen.date or today,
        by=chosen.name,
        reason=chosen.reason,
        passed=not chosen.failed,
    )
    record_proof(chosen_lab(chosen.lab).hazards, proof, today)
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
        tested, last = Text("cli.never"), row.last_proof(today)
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
