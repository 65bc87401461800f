"""A curve of current against voltage, by a source meter, and the junction that it shows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import linear_regression
from typing import Any

from labharness.core.vocabulary.texts import Text, several
from labharness.core.vocabulary.units import ZERO_CELSIUS_K
from labharness.work.capability import (
    Answer,
    ArtifactContent,
    LineFacts,
    NoAnswer,
    Planned,
    declared,
)
from labharness.work.capability.channels import ChannelCapability, ChannelSettings, Limits
from labharness.work.capability.steps import Steps
from labharness.work.plan import PHYSICAL_VERBS, RunningStep, StepRecord, Verb

LEFT_OUT = {"compliance_a": 0.01, "junction_c": 25.0}
POINT_S = 1.0
"""A command with its read-back, the settling, and a reading."""

BOLTZMANN_PER_CHARGE = 1.380649e-23 / 1.602176634e-19  # V/K; SI, exact
FORWARD_A = 1e-6
"""Less is saturation current, leakage and offset of the meter."""

PAIRS_MIN = 4


class SweepSettings(ChannelSettings):
    """The table ``[capability.iv-curve]``.

    Attributes:
        meter: Name of the source meter.
    """

    meter: str = "smu"

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that a sweep sets."""
        return tuple(f"{self.meter}.{each}" for each in ("voltage", "compliance", "output"))


async def sweep(step: RunningStep) -> Mapping[str, Any]:
    """Set ``voltage`` to each of ``voltages_v`` and measure both at the terminals; end at 0 V."""
    asked, line = step.parameters, step.operations
    measured_v, currents_a, limited = [], [], []
    for volts in asked["voltages_v"]:
        await step.perform(asked["voltage"], volts, "V")
        limited.append(int(await line.read(asked["limited"])))
        currents_a.append(await line.read(asked["current"]))
        measured_v.append(line.latest(asked["measured"]))  # of the same reply: no await between
    await step.perform(asked["voltage"], 0.0, "V")
    set_v = list(asked["voltages_v"])
    return {"set_v": set_v, "voltages_v": measured_v, "currents_a": currents_a, "limited": limited}


class IvCurve(ChannelCapability[SweepSettings]):
    """The capability ``iv-curve``."""

    declaration = declared(__file__)
    settings = SweepSettings
    verbs: Mapping[str, Verb] = {**PHYSICAL_VERBS, "sweep": sweep}

    def planned(
        self, inputs: Mapping[str, Any], settings: SweepSettings, limits: Limits
    ) -> Planned:
        """Return the instructions of one sweep; the gate holds each against its limits."""
        voltage, compliance, output = settings.channels
        recipe = {name: float(value) for name, value in {**LEFT_OUT, **inputs}.items()}
        start_v, stop_v, points = recipe["start_v"], recipe["stop_v"], int(recipe["points"])
        most_a = recipe["compliance_a"]
        asked = {
            "voltages_v": [
                round(start_v + (stop_v - start_v) * at / (points - 1), 4) for at in range(points)
            ],
            "voltage": voltage,
            "current": f"{settings.meter}.current",
            "measured": f"{settings.meter}.terminal_voltage",
            "limited": f"{settings.meter}.in_compliance",
            "junction_c": recipe["junction_c"],
            "compliance_a": most_a,
            "sets": [[voltage, start_v, "V"], [voltage, stop_v, "V"], [voltage, 0.0, "V"]],
        }
        steps = Steps(slack=3.0, spare_s=30.0, switch_s=33.0)
        steps.stage = "sweep"
        steps.set("zero", voltage, 0.0, "V", Text("sweep.zero"))
        steps.set("limit", compliance, most_a, "A", Text("sweep.limit", most_a=most_a))
        steps.set("on", output, 1, "", Text("sweep.on"))
        text = Text("sweep.sweep", start_v=start_v, stop_v=stop_v)
        steps.add("sweep", "sweep", text, asked, expected_s=POINT_S * points)
        steps.set("off", output, 0, "", Text("sweep.off"))
        return steps.planned(recipe)

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return the same sweep within the limits of the line."""
        if isinstance(facts.settings, SweepSettings):
            low, high, _ = facts.limits[facts.settings.channels[0]]
            within = {name: min(max(inputs[name], low), high) for name in ("start_v", "stop_v")}
            yield {**inputs, **within}

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Return the curve as a table, with ideality and series resistance if it shows them."""
        swept = next(each for each in records if each.instruction.action == "sweep")
        if swept.result is None:
            return NoAnswer(Text("sweep.nothing"), {})
        volts, amps = swept.result["voltages_v"], swept.result["currents_a"]
        limited = swept.result["limited"]
        points = tuple(zip(swept.result["set_v"], volts, amps, limited, strict=True))
        rows = "".join(f"{u:.6g},{v:.6g},{a:.6g},{held}\n" for u, v, a, held in points)
        head = "set voltage [V],voltage [V],current [A],in compliance\n"
        table = ArtifactContent("iv_curve", "text/csv", f"{head}{rows}".encode())
        asked = swept.instruction.parameters
        most_a = asked["compliance_a"]
        warnings: tuple[Text, ...] = ()
        if held := sum(limited):
            warnings = (Text("sweep.limited", count=held, points=len(points), most_a=most_a),)
        forward = [(v, a) for _, v, a, held in points if not held and a >= FORWARD_A]
        outputs = {"points": len(volts), "max_current_a": max(map(abs, amps))}
        found = junction_of(forward, asked["junction_c"])
        if found is None:
            outputs |= {"ideality": None, "series_ohm": None}
            said = Text("sweep.too_few")
            warnings = (said, *warnings)
        else:
            ideality, series_ohm = found
            said = Text("sweep.found", ideality=ideality, series_ohm=series_ohm)
            outputs |= {"ideality": round(ideality, 3), "series_ohm": round(series_ohm, 3)}
        return Answer(outputs, (table,), warnings, several(said, *warnings[-1:] if held else ()))


def junction_of(
    points: Sequence[tuple[float, float]], junction_c: float
) -> tuple[float, float] | None:
    """Return ideality and series resistance (ohm) of a forward curve; None where it has too few.

    Of V = n kT/q ln(I / Is) + I Rs the slope dV / d(ln I) = n kT/q + I Rs is a straight line in I
    (S. K. Cheung and N. W. Cheung, Appl. Phys. Lett. 49 (1986) 85, doi:10.1063/1.97359).
    """
    slopes = [
        ((a + b) / 2, (v - u) / math.log(b / a))
        for (u, a), (v, b) in pairwise(sorted(points))
        if b > a
    ]
    if len(slopes) < PAIRS_MIN:
        return None
    line = linear_regression(*zip(*slopes, strict=True))
    return line.intercept / (BOLTZMANN_PER_CHARGE * (junction_c + ZERO_CELSIUS_K)), line.slope


CAPABILITY = IvCurve()
