"""``labharness plan``: predict a task by a flight on the nominal plant, without submitting it."""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.texts import Text
from labharness.core.vocabulary.units import CELSIUS, TEMPERATURES, temperature_in
from labharness.faces.cli import EXIT_COMPLETED, EXIT_REJECTED
from labharness.faces.cli.answer_said import rejection
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import CommandFailed, chosen_lab, say, say_each, say_json, warn
from labharness.faces.cli.submission import read_submit
from labharness.faces.report.comm_loss import comm_loss
from labharness.faces.report.words import phase_text, plain
from labharness.journal import JournalFailed
from labharness.lab.wiring.forecast import Forecast, forecast
from labharness.protocols.hcp.codec import BadPayload
from labharness.protocols.hcp.terms import Rejected


def plan(chosen: argparse.Namespace) -> int:
    """Fly one task; return the exit code that its submission would begin with."""
    try:
        _, payload = read_submit(Path(chosen.task))
        found = forecast(chosen_lab(chosen.lab), payload)
    except BadPayload as why:
        return _rejected(why.rejected())
    except (JournalFailed, FileNotFoundError) as why:  # no room for a flight's own files
        raise CommandFailed("cli.cannot_fly", why=str(why)) from None
    if isinstance(found, Rejected):
        return _rejected(found)
    if found.unknown:
        warn(found.unknown)
    prediction = found.prediction.to_json()
    if chosen.json:
        names = ("asks", "risk_level", "risk_reasons")
        say_json(prediction | {name: getattr(found, name) for name in names})
        return EXIT_COMPLETED
    takes, *rest = prediction_lines(prediction)
    say(takes)
    reasons = list(found.risk_reasons)
    say(Text("cli.risk", level=found.risk_level, reasons=reasons, approval=_approval(found)))
    say_each(rest)
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
    yield Text("cli.takes", took=clock_text(math.ceil(found["duration_s"])))
    for channel, points in found["trajectory"].items():
        if points:
            values = [value for _, value in points]
            unit = found["units"][channel]
            relative, absolute = found["bands"].get(unit, (0.0, 0.0))
            band = relative * max(values) + absolute
            yield Text(
                "cli.predicted",
                channel=f"{channel:26}",
                low=min(values),
                high=max(values),
                unit=unit,
                band=band,
            )
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
