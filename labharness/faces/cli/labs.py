"""``labharness lab``, ``envelope`` and ``reset``: a lab's files, wires and latch."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labharness.core.files.data_key import make_data_key, read_data_key
from labharness.core.files.signing_key import BadKey
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.rules import rules
from labharness.faces.cli.show import chosen_lab, counted, looking, say, say_each
from labharness.lab import LabPlan
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.usable import unsigned, unusable
from labharness.lab.config.wires import Finding, port_costs
from labharness.lab.operate import idle_line


def lab_check(chosen: argparse.Namespace) -> int:
    """Check a lab's files; with ``--connect`` also whether its instruments answer."""
    with _lab_of(chosen) as plan:
        lab_facts_of(plan)  # reads callers and approvals
        return _check(plan, connect=chosen.command == "lab" and chosen.connect)


envelope_check = lab_check


def envelope_show(chosen: argparse.Namespace) -> None:
    """Print each row of an envelope."""
    with _lab_of(chosen) as plan:
        say_each(rules(plan))


def reset(chosen: argparse.Namespace) -> None:
    """Open the latch of a line."""
    with _lab_of(chosen) as plan:
        trip = idle_line.reset(plan, chosen.name, chosen.reason)
        done = trip and Text("cli.reset", name=chosen.name, why=trip.detail)
        say(done or Text("cli.not_latched"))


@contextmanager
def _lab_of(chosen: argparse.Namespace) -> Iterator[LabPlan]:
    plan = chosen_lab(chosen.lab)
    with looking(plan.state_dir, code="cli.state_at"):
        yield plan


def lab_key(chosen: argparse.Namespace) -> None:
    """Make the key for confidential data, and print the table of the lab file that names it."""
    path = Path(chosen.out)
    make_data_key(path)
    say(Text("key.data_made", path=str(path)))
    say(f"[data]\nkey = {json.dumps(str(path.absolute()), ensure_ascii=False)}")


def _key_faults(plan: LabPlan) -> Iterator[Finding]:
    if plan.data_key is not None:
        try:
            read_data_key(plan.data_key)
        except BadKey as why:
            yield Finding("data", str(why))


def _check(plan: LabPlan, *, connect: bool) -> int:
    instruments, ports = len(plan.instruments), len(plan.file.port)
    say(Text("cli.lab", path=str(plan.path), instruments=instruments, ports=ports))
    say(Text("cli.lab_digest", digest=plan.lab_digest))
    say(Text("cli.envelope_digest", digest=plan.envelope_digest))
    say(Text("cli.port_columns"))
    for cost in port_costs(plan.instruments, plan.timings, plan.procedures()):
        say(
            f"{cost.port:14} {cost.poll_s:6.3f} s   {cost.longest_s:13.3f} s   {cost.safe_s:9.3f} s"
        )
    for warning in plan.warnings():
        say(Text("cli.warning", what=warning))
    if plan.names_on_trust:
        say(Text("cli.warning", what=Text("approvers.only_names")))
    findings = [*plan.check(), *unusable(plan), *_key_faults(plan)]
    findings += [
        Finding("approvals", Text("cli.not_there", path=str(plan.beside(path))))
        for path in unsigned(plan)
    ]
    if connect:
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
