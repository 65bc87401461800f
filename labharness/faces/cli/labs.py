"""``labharness lab``, ``envelope`` and ``reset``: a lab's files, wires and latch."""

import argparse

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.rules import rules
from labharness.faces.cli.show import chosen_lab, complain, say
from labharness.lab import LabPlan
from labharness.lab.config.lab_facts import house_facts
from labharness.lab.config.usable import unsigned, unusable
from labharness.lab.config.wires import Finding, port_costs
from labharness.lab.operate.idle_line import identify, reset

__all__ = ["labs", "told_count"]


def labs(chosen: argparse.Namespace) -> int:
    """Carry out one of the three commands."""
    try:
        plan = chosen_lab(chosen.lab)
        if chosen.command == "reset":
            return _reset(plan, chosen.name, chosen.reason)
        if chosen.command == "envelope" and chosen.verb == "show":
            for line in rules(plan):
                say(line)
            return EXIT_COMPLETED
        house_facts(plan)  # reads callers and approvals
        return _check(plan, connect=chosen.command == "lab" and chosen.connect)
    except (BrokenPipeError, LabError):
        raise  # the command line's own matter
    except OSError as why:
        where = why.filename or plan.state_dir  # a write to a full disk names no file
        complain(f"labharness {chosen.command}: state directory {where}: {why.strerror}")
        return EXIT_USAGE


def _check(plan: LabPlan, *, connect: bool) -> int:
    say(
        Text(
            "doctor.lab",
            path=str(plan.path),
            instrument=len(plan.instruments),
            port=len(plan.file.port),
        )
    )
    say(Text("check.lab", lab_digest=plan.lab_digest))
    say(Text("check.envelope", envelope_digest=plan.envelope_digest))
    say(Text("check.port"))
    for cost in port_costs(plan.instruments, plan.timings, plan.procedures()):
        say(
            f"{cost.port:14} {cost.poll_s:6.3f} s   {cost.longest_s:13.3f} s   {cost.safe_s:9.3f} s"
        )
    for warning in plan.warnings():
        say(Text("check.warning", warning=warning))
    findings = [*plan.check(), *unusable(plan)]
    findings += [
        Finding("approvals", Text("doctor.gone", path=str(plan.beside(path))))
        for path in unsigned(plan)
    ]
    if connect:
        for name, found, trouble in identify(plan):
            if trouble:
                findings.append(Finding(name, trouble))
            else:
                say(f"{name:14} {found}")
    for finding in findings:
        say(Text("check.finding", finding=str(finding)))
        for line in in_language(finding.paste, TERMINAL.language).splitlines():
            say(f"    {line}")
    say(told_count(len(findings)))
    return EXIT_FAILED if findings else EXIT_COMPLETED


def told_count(findings: int) -> Text:
    """Return how many findings there are."""
    if findings > 1:
        return Text("check.many", count=findings)
    return Text("check.one" if findings else "check.none")


def _reset(plan: LabPlan, name: str, reason: str) -> int:
    trip = reset(plan, name, reason)
    say(
        Text("check.not_latched")
        if trip is None
        else Text("check.reset", name=name, detail=trip.detail)
    )
    return EXIT_COMPLETED
