"""What an annealing reached, from what its steps measured."""

from collections.abc import Sequence

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Answer, NoAnswer
from labharness.work.capability.recorded import curve_of
from labharness.work.plan import StepRecord

__all__ = ["compose"]

DWELL_TOLERANCE_C = 5.0


def compose(records: Sequence[StepRecord]) -> Answer | NoAnswer:
    """Return highest temperature, dwell and curve, or why there are none."""
    curve = curve_of(records, "curve")
    steps = {each.instruction.instruction_id: each for each in records}
    heat, dwell = steps["heat"], steps["dwell"]
    ramp, dwell_s = heat.instruction.parameters, dwell.instruction.parameters["duration_s"]
    temperature, wanted_c = ramp["process"], ramp["to"]
    measured = {} if dwell.result is None else dwell.result["measured"].get(temperature, {})
    if not measured:
        return NoAnswer(Text("anneal.nothing"), {}, (curve,))
    reached = all(abs(measured[end] - wanted_c) <= DWELL_TOLERANCE_C for end in ("min", "max"))
    highest = max(
        row[temperature]
        for each in records
        if each.result is not None
        for row in each.result["recorded"]
        if row[temperature] is not None
    )
    outputs = {
        "max_temperature_c": round(highest, 2),
        "dwell_mean_c": round(measured["mean"], 2),
        "dwell_reached": reached,
    }
    code = "anneal.kept" if reached else "anneal.not_kept"
    finding = Text(code, at_c=wanted_c, within_c=DWELL_TOLERANCE_C)
    warnings = () if reached else (finding,)
    return Answer(
        outputs, (curve,), warnings, Text("anneal.found", finding=finding, duration_s=dwell_s)
    )
