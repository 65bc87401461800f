"""``labharness plan``: what a task would do, flown on the nominal plant and not submitted."""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from labharness.core.vocabulary.durations import clock_text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.run import read_submit
from labharness.faces.cli.show import chosen_lab, complain, say
from labharness.faces.report.comm_loss import comm_loss
from labharness.faces.report.words import phase_text, plain
from labharness.journal import JournalFailed
from labharness.lab.wiring.forecast import Forecast, forecast
from labharness.protocols.hcp.codec import BadPayload
from labharness.protocols.hcp.terms import Rejected

__all__ = ["plan", "prediction_lines"]


def plan(chosen: argparse.Namespace) -> int:
    """Fly one task; return the exit code that its submission would begin with."""
    try:
        _, payload = read_submit(Path(chosen.task))
        found = forecast(chosen_lab(chosen.lab), payload)
    except BadPayload as why:
        return _rejected(why.rejected())
    except (JournalFailed, FileNotFoundError) as why:  # no room for a flight's own files
        complain(f"labharness plan: nothing can be flown: {why}")
        return EXIT_FAILED
    if isinstance(found, Rejected):
        return _rejected(found)
    if found.unknown:
        complain(f"labharness plan: {found.unknown}")
    prediction = found.prediction.to_json()
    if chosen.json:
        more = {"asks": found.asks, "risk_level": found.risk_level}
        say(json.dumps({**prediction, **more}, ensure_ascii=False))
        return EXIT_COMPLETED
    takes, *rest = prediction_lines(prediction)
    say(takes)
    say(f"risk {found.risk_level}: {_who(found)}")
    for line in rest:
        say(line)
    return EXIT_COMPLETED


def _who(found: Forecast) -> str:
    if found.asks:
        return f"a person has to approve it ({found.asks})"
    return f"approved beforehand by {found.approved}" if found.approved else "it needs no approval"


def _rejected(why: Rejected) -> int:
    say(f"would be rejected ({why.reason_code}): {why.reason_message}")
    if why.suggestion:
        say(f"suggestion: {why.suggestion}")
    return EXIT_REJECTED


def prediction_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Return what a prediction (as JSON) comes to, for planner and approver."""
    takes = clock_text(math.ceil(found["duration_s"]))
    yield f"takes {takes} and stays within every limit on the nominal plant"
    for channel, points in found["trajectory"].items():
        if points:
            values = [value for _, value in points]
            unit = found["units"][channel]
            relative, absolute = found["bands"].get(unit, (0.0, 0.0))
            band = relative * max(values) + absolute
            span = f"{min(values):8.1f} to {max(values):8.1f} {unit}"
            yield f"  {channel:26} {span} (within {band:.1f})"
    for gas, volume_cm3 in found["gas_used_cm3"].items():
        yield f"  {gas:26} {volume_cm3 / 1000:8.1f} standard litres"
    stage = ""
    for step in found["steps"]:
        if step["stage"] != stage:
            stage = step["stage"]
            yield f"{clock_text(step['started_s']):>9}  {phase_text(stage)}"
    hottest = _hottest(found)
    if hottest is not None:
        yield plain("killed_at", phase=phase_text(hottest["stage"]), step=hottest["instruction"])
        yield from _killed(hottest, found.get("hardware", ()))


def _killed(step: Mapping[str, Any], hardware: Sequence[str]) -> Iterator[str]:
    """Say first what a person must know, then what it is made of."""
    if "stays" in step:  # a request that waits may be of an older version
        for key, fields in comm_loss(step["stays"], hardware):
            yield f"  {plain(key, **fields)}"
    if hardware:
        yield f"  {plain('killed_hardware', rows='; '.join(hardware))}"
    for at, each in enumerate(step["if_killed"]):
        yield f"  {'by channel' if not at else '':10}  {each}"


def _hottest(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the heated step in which the highest temperature is predicted.

    A reading stands until the next coarse poll, and so beyond the step in which it was taken.
    """
    points = [
        (value, at_s)
        for channel, pairs in found["trajectory"].items()
        if found["units"][channel] == "degC"
        for at_s, value in pairs
    ]

    def highest_c(step: Mapping[str, Any]) -> float:
        within = (value for value, at_s in points if step["started_s"] <= at_s <= step["ended_s"])
        return max(within, default=-math.inf)

    steps = [step for step in found["steps"] if step["if_killed"]]
    heated = [
        step for step in steps if any(row["what"] == "heats" for row in step.get("stays", ()))
    ]
    return max(heated or steps, key=highest_c, default=None)
