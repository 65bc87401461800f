"""``labharness plan`` and ``policy``: the prediction for a task, and how admission would decide."""

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from labharness.core.clock import wall_clock_utc
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.texts import Text
from labharness.core.vocabulary.units import CELSIUS, TEMPERATURES, temperature_in
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.answer_said import rejection
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import CommandFailed, chosen_lab, say, say_each, say_either, warn
from labharness.faces.cli.submission import read_submit
from labharness.faces.report.comm_loss import comm_loss
from labharness.faces.report.words import phase_text, plain
from labharness.journal import JournalFailed
from labharness.lab.config.lab_facts import lab_facts_of, policy_faults
from labharness.lab.wiring.preflight import Forecast, forecast, instructions_of
from labharness.protocols.hcp.codec import BadPayload
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.callers import Caller
from labharness.work.desk.explained import Explained, explained
from labharness.work.desk.facts import facts_for
from labharness.work.plan import InstructionSet
from labharness.work.plan.drawing import DRAWINGS


def plan(chosen: argparse.Namespace) -> int:
    """Fly one task, or draw its plan; return the exit code that its submission would begin with."""
    try:
        _, payload = read_submit(Path(chosen.task))
        lab = chosen_lab(chosen.lab)
        found = instructions_of(lab, payload) if chosen.draw else forecast(lab, payload)
    except BadPayload as why:
        return _rejected(why.rejected())
    except (JournalFailed, FileNotFoundError) as why:  # no room for a flight's own files
        raise CommandFailed("cli.cannot_fly", why=str(why)) from None
    if isinstance(found, Rejected):
        return _rejected(found)
    if isinstance(found, InstructionSet):
        say_each(DRAWINGS[chosen.draw](found))
        return EXIT_COMPLETED
    for each in filter(None, (found.unknown, *found.warnings)):
        warn(each)
    prediction = found.prediction.to_json()
    told = {name: getattr(found, name) for name in ("asks", "risk_level", "risk_reasons")}
    takes, *rest = prediction_lines(prediction)
    reasons = list(found.risk_reasons)
    risk = Text("cli.risk", level=found.risk_level, reasons=reasons, approval=_approval(found))
    say_either(chosen.json, prediction | told, (takes, risk, *rest))
    return EXIT_COMPLETED


def _approval(found: Forecast) -> str:
    if found.asks:
        return Text("cli.person_approves", why=found.asks)
    return Text("cli.approved", by=found.approved) if found.approved else Text("cli.no_approval")


def _rejected(why: Rejected) -> int:
    say_each(rejection(why))
    return EXIT_REJECTED


def prediction_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Return the lines about a prediction (as JSON), for planner and approver."""
    took = clock_text(math.ceil(found["duration_s"]))
    yield Text("cli.takes", took=took) if found["steps"] else Text("cli.takes_alone", took=took)
    for channel, points in found["trajectory"].items():
        if points:
            values = [value for _, value in points]
            unit = found["units"][channel]
            relative, absolute = found["bands"].get(unit, (0.0, 0.0))
            low, high, name = min(values), max(values), f"{channel:26}"
            band = relative * high + absolute
            yield Text("cli.predicted", channel=name, low=low, high=high, unit=unit, band=band)
    for gas, volume_cm3 in found["gas_used_cm3"].items():
        yield Text("cli.gas_used", gas=f"{gas:26}", litres=volume_cm3 / 1000)
    language, stage = TERMINAL.language, ""
    for step in found["steps"]:
        if step["stage"] != stage:
            stage = step["stage"]
            yield f"{clock_text(step['started_s']):>9}  {phase_text(stage, language)}"
    hottest = _hottest(found)
    if hottest is not None:
        phase = phase_text(hottest["stage"], language)
        yield plain("killed_at", language, phase=phase, step=hottest["instruction"])
        yield from _killed(hottest, found.get("hardware", ()))


def _killed(step: Mapping[str, Any], hardware: Sequence[str]) -> Iterator[str]:
    """Return the consequence for a person first, then the channels that it follows from."""
    if "stays" in step:  # a waiting request may be of an older version
        for key, fields in comm_loss(step["stays"], hardware):
            yield f"  {plain(key, TERMINAL.language, **fields)}"
    if hardware:
        yield f"  {plain('killed_hardware', TERMINAL.language, rows='; '.join(hardware))}"
    for at, each in enumerate(step["if_killed"]):
        yield f"{' ' * 14}{each}" if at else Text("cli.by_channel", row=each)


def _hottest(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the heated step in which the highest temperature is predicted.

    A reading stays until the next coarse poll, and thus beyond the step in which it was taken.
    """
    points = [
        (temperature_in(CELSIUS, value, found["units"][channel]), at_s)
        for channel, pairs in found["trajectory"].items()
        if found["units"][channel] in TEMPERATURES
        for at_s, value in pairs
    ]

    def highest_c(step: Mapping[str, Any]) -> float:
        within = (value for value, at_s in points if step["started_s"] <= at_s <= step["ended_s"])
        return max(within, default=-math.inf)

    steps = [step for step in found["steps"] if step["if_killed"]]
    heats = [[row["what"] for row in step.get("stays", ())].count("heats") for step in steps]
    heated = [step for step, count in zip(steps, heats, strict=True) if count]
    return max(heated or steps, key=highest_c, default=None)


def policy_check(chosen: argparse.Namespace) -> int:
    """Print each caller, and what is wrong in the callers file."""
    plan = chosen_lab(chosen.lab)
    callers = lab_facts_of(plan).callers
    if callers is None:
        say(Text("policy.anybody"))
        return EXIT_COMPLETED
    say_each(map(_caller, callers.values()))
    faults = tuple(policy_faults(plan, tuple(callers.values())))
    say_each(faults)
    return EXIT_FAILED if faults else EXIT_COMPLETED


def _caller(caller: Caller) -> str:
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
    facts = facts_for(replace(lab_facts_of(plan), predict=None), payload)
    found = explained(payload, facts, plan.envelope, wall_clock_utc)
    say_either(chosen.json, asdict(found), _gates(found))
    return EXIT_COMPLETED if found.verdict is None else EXIT_REJECTED


def _gates(found: Explained) -> Iterable[str]:
    for gate in found.gates:
        mark = Text("policy.passes") if gate.passed else Text("policy.stops")
        yield Text(
            "policy.gate", gate=Text(f"policy.{gate.name}_gate"), mark=mark, found=gate.found
        )
        if gate.name == "risk":
            for name, reason in found.rules:
                why = reason or Text("policy.not_so")
                yield Text("policy.rule", rule=name, why=why)
    if found.verdict is None:
        yield Text("policy.would_accept")
    else:
        yield from rejection(found.verdict)
