"""``labharness policy``: who may ask for what, and how admission would decide on one task."""

import argparse
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from labharness.core.clock import wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.answer_said import rejection
from labharness.faces.cli.show import chosen_lab, say, say_each, say_json
from labharness.faces.cli.submission import read_submit
from labharness.lab.config.lab_facts import lab_facts_of, policy_faults
from labharness.protocols.hcp.codec import BadPayload
from labharness.work.admission.callers import Caller
from labharness.work.desk.admitting import LineOnFile
from labharness.work.desk.explained import Explained, explained

GATES = {
    "caller": "policy.caller_gate",
    "capability": "policy.capability_gate",
    "data": "policy.data_gate",
    "task": "policy.task_gate",
    "risk": "policy.risk_gate",
    "hours": "policy.hours_gate",
    "instruments": "policy.instruments_gate",
    "approval": "policy.approval_gate",
}
RULES = {
    "no side effects": "policy.no_effects",
    "sandboxed": "policy.sandboxed",
    "physical resources": "policy.physical",
    "high temperature": "policy.hot",
    "hazardous gas": "policy.gas",
    "unattended": "policy.unattended",
    "shared instrument": "policy.shared",
    "missing safeguard": "policy.unguarded",
}


def policy_check(chosen: argparse.Namespace) -> int:
    """Print each caller, and what is wrong in the callers file."""
    plan = chosen_lab(chosen.lab)
    callers = lab_facts_of(plan).callers
    if callers is None:
        say(Text("policy.anybody"))
        return EXIT_COMPLETED
    say_each(map(_line, callers.values()))
    faults = tuple(policy_faults(plan, tuple(callers.values())))
    say_each(faults)
    return EXIT_FAILED if faults else EXIT_COMPLETED


def _line(caller: Caller) -> str:
    known = caller.instruments
    return Text(
        "policy.caller",
        caller=caller.id,
        capabilities=list(caller.capabilities) or "-",
        risk=caller.risk_max,
        data=caller.data_class_max,
        hours=caller.hours.text,
        instruments=Text("policy.all") if known is None else list(known),
    )


def policy_explain(chosen: argparse.Namespace) -> int:
    """Print how admission would decide on one task, gate by gate."""
    plan = chosen_lab(chosen.lab)
    try:
        _, payload = read_submit(Path(chosen.task))
    except BadPayload as why:
        say_each(rejection(replace(why.rejected(), suggestion=None)))
        return EXIT_REJECTED
    if chosen.caller:
        payload = payload.model_copy(update={"caller_id": chosen.caller})
    facts = replace(lab_facts_of(plan), predict=None)
    found = explained(payload, facts, LineOnFile(plan.envelope), wall_clock_utc)
    if chosen.json:
        say_json(asdict(found))
    else:
        say_each(_lines(found))
    return EXIT_COMPLETED if found.verdict is None else EXIT_REJECTED


def _lines(found: Explained) -> Iterable[str]:
    for gate in found.gates:
        mark = Text("policy.passes") if gate.passed else Text("policy.stops")
        yield Text("policy.gate", gate=Text(GATES[gate.name]), mark=mark, found=gate.found)
        if gate.name == "risk":
            for name, reason in found.rules:
                why = reason or Text("policy.not_so")
                yield Text("policy.rule", rule=Text(RULES[name]), why=why)
    if found.verdict is None:
        yield Text("policy.would_accept")
    else:
        yield from rejection(found.verdict)
