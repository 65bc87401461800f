"""``labharness plan``: what a task would do, flown on the nominal plant and not submitted."""

import argparse
import json
from pathlib import Path

from labharness.admission.audit import Rejected
from labharness.cli import EXIT_COMPLETED, EXIT_REJECTED, EXIT_USAGE
from labharness.cli.run import read_submit
from labharness.cli.show import chosen_lab, clock_text, complain, say
from labharness.hcp.codec import BadPayload, NotHcp
from labharness.lab import BadLabFile
from labharness.lab.tasks import forecast
from labharness.plan import PredictedStep, Prediction

__all__ = ["plan"]


def plan(chosen: argparse.Namespace) -> int:
    """Fly one task; give the exit code that its submission would begin with."""
    try:
        _, payload = read_submit(Path(chosen.task))
        found = forecast(chosen_lab(chosen.lab), payload)
    except BadPayload as why:
        complain(f"labharness plan: {why}")
        return EXIT_REJECTED
    except (NotHcp, BadLabFile) as why:
        complain(f"labharness plan: {why}")
        return EXIT_USAGE
    if isinstance(found, Rejected):
        say(f"would be rejected ({found.reason_code}): {found.reason_message}")
        if found.suggestion:
            say(f"suggestion: {found.suggestion}")
        return EXIT_REJECTED
    if chosen.json:
        say(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        _show(found)
    return EXIT_COMPLETED


def _show(prediction: Prediction) -> None:
    say(f"takes {clock_text(prediction.duration_s)}, and passes no limit on the nominal plant")
    for channel, points in prediction.trajectory.items():
        if points:
            values = [value for _, value in points]
            unit = prediction.units[channel]
            relative, absolute = prediction.bands.get(unit, (0.0, 0.0))
            band = relative * max(values) + absolute
            span = f"{min(values):8.1f} to {max(values):8.1f} {unit}"
            say(f"  {channel:26} {span} (within {band:.1f})")
    for gas, volume_cm3 in prediction.gas_used_cm3.items():
        say(f"  {gas:26} {volume_cm3 / 1000:8.1f} standard litres")
    stage = ""
    for step in prediction.steps:
        if step.stage != stage:
            stage = step.stage
            say(f"{clock_text(step.started_s):>9}  {stage}")
    hottest = _hottest(prediction)
    if hottest is not None:
        where = hottest.instruction_id
        say(f"if everything that talks to the line dies at its hottest, in {where}:")
        for each in hottest.if_killed:
            say(f"  {each}")


def _hottest(prediction: Prediction) -> PredictedStep | None:
    """Give the step in which the highest temperature is predicted."""
    points = [
        (value, at_s)
        for channel, pairs in prediction.trajectory.items()
        if prediction.units[channel] == "degC"
        for at_s, value in pairs
    ]
    at_s = max(points, default=(0.0, 0.0))[1]
    within = [s for s in prediction.steps if s.started_s <= at_s <= s.ended_s and s.if_killed]
    return within[0] if within else None
