"""Annealing under inert gas: heat, dwell, cool, and the curve of the readings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field, StrictFloat

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Answer, CannotDo, LineFacts, NoAnswer, Planned, declared
from labharness.work.capability.channels import ChannelCapability, ChannelSettings, Limits
from labharness.work.capability.recorded import curve_of, recorded
from labharness.work.capability.steps import Steps
from labharness.work.plan import PHYSICAL_VERBS, StepRecord, Verb

LEFT_OUT = {"ramp_c_per_min": 10.0, "flow_sccm": 100.0}
LAST_C, LAST_C_PER_MIN = 30.0, 3.0
"""The last degrees are heated slowly, against the controller's overshoot."""

DWELL_TOLERANCE_C = 5.0
ROOM_C = 25.0
COOL_S_PER_C = 60.0
"""A tube furnace with its lid shut takes two to three hours from 750 degC."""


class AnnealingSettings(ChannelSettings):
    """The table ``[capability.annealing]``; each key has a default.

    Attributes:
        furnace: Name of the temperature controller.
        gas: Name of the flow controller of the inert gas.
        gas_name: The inert gas.
        flush_s: Time for which the gas flows before anything is heated.
        cold_c: Below it the sample may be taken out, degC.
    """

    furnace: str = "furnace"
    gas: str = "gas"
    gas_name: str = "argon"
    flush_s: StrictFloat = Field(default=300.0, ge=0)
    cold_c: StrictFloat = Field(default=60.0, gt=30)

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that an annealing sets."""
        return (f"{self.furnace}.setpoint", f"{self.furnace}.setpoint_rate", f"{self.gas}.setpoint")


class Annealing(ChannelCapability[AnnealingSettings]):
    """The capability ``annealing``."""

    declaration = declared(__file__)
    settings = AnnealingSettings
    verbs: Mapping[str, Verb] = {name: recorded(verb) for name, verb in PHYSICAL_VERBS.items()}

    def planned(
        self, inputs: Mapping[str, Any], settings: AnnealingSettings, limits: Limits
    ) -> Planned | CannotDo:
        """Return the instructions of one annealing, or the limit that it would pass."""
        stated = {**LEFT_OUT, **inputs}
        recipe = {name: float(stated[name]) for name in self.declaration.input_schema["properties"]}
        asked = (recipe["temperature_c"], recipe["ramp_c_per_min"], recipe["flow_sccm"])
        for channel, value in zip(settings.channels, asked, strict=True):
            low, high, unit = limits[channel]
            if not low <= value <= high:
                why = Text(
                    "anneal.outside", channel=channel, value=value, unit=unit, low=low, high=high
                )
                way_out = Text("anneal.ask", low=low, high=high, unit=unit)
                return CannotDo("safety_violation", why, way_out)
        steps = _steps(recipe, settings, limits[settings.channels[1]][1])
        return steps.planned(recipe, (settings.gas_name,), recipe["temperature_c"])

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return a slower one and a cooler one."""
        yield {**inputs, "ramp_c_per_min": min(inputs.get("ramp_c_per_min", 10.0), 5.0)}
        yield {**inputs, "temperature_c": inputs["temperature_c"] - 50.0}

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Return highest temperature, dwell and curve, or why there are none."""
        curve = curve_of(records, "curve")
        steps = {each.instruction.instruction_id: each for each in records}
        ramp, dwell = steps["heat"].instruction.parameters, steps["dwell"]
        temperature, wanted_c = ramp["process"], ramp["to"]
        measured = {} if dwell.result is None else dwell.result["measured"].get(temperature, {})
        if not measured:
            return NoAnswer(Text("anneal.nothing"), {}, (curve,))
        reached = all(abs(measured[end] - wanted_c) <= DWELL_TOLERANCE_C for end in ("min", "max"))
        rows = [row for each in records if each.result for row in each.result["recorded"]]
        outputs = {
            "max_temperature_c": round(
                max(row[temperature] for row in rows if row[temperature] is not None), 2
            ),
            "dwell_mean_c": round(measured["mean"], 2),
            "dwell_reached": reached,
        }
        code = "anneal.kept" if reached else "anneal.not_kept"
        finding = Text(code, at_c=wanted_c, within_c=DWELL_TOLERANCE_C)
        dwell_s = dwell.instruction.parameters["duration_s"]
        found = Text("anneal.found", finding=finding, duration_s=dwell_s)
        return Answer(outputs, (curve,), () if reached else (finding,), found)


def _steps(recipe: Mapping[str, float], settings: AnnealingSettings, fastest: float) -> Steps:
    """Write the steps of an annealing; ``fastest`` is the highest rate of the setpoint."""
    setpoint, rate, gas = settings.channels
    temperature, flow = f"{settings.furnace}.temperature", f"{settings.gas}.flow"
    to_c, dwell_s = recipe["temperature_c"], recipe["duration_s"]
    sccm, c_per_min = recipe["flow_sccm"], recipe["ramp_c_per_min"]
    steps = Steps(slack=2.0, spare_s=3600.0, switch_s=32.0, recorded=(temperature, flow))
    steps.stage = "flush"
    steps.set("flow", gas, sccm, "sccm", Text("anneal.flow", flow=sccm, gas=settings.gas_name))
    held = {"duration_s": settings.flush_s, "channels": [flow]}
    steps.add("flush", "hold", Text("anneal.flush"), held, expected_s=settings.flush_s)
    cold_now = {temperature: (None, settings.cold_c)}
    steps.may_resume(Text("checkpoint.before_heating"), cold_now, ("flow", "flush"))
    steps.stage = "heating"
    near_c, slowly = to_c - LAST_C, min(c_per_min, LAST_C_PER_MIN)
    steps.heat("near", settings.furnace, "anneal.heat", ROOM_C, near_c, c_per_min)
    steps.heat("heat", settings.furnace, "anneal.heat", max(near_c, ROOM_C), to_c, slowly)
    steps.stage = "dwell"
    held = {"duration_s": dwell_s, "channels": [temperature, flow]}
    text = Text("anneal.keep", at_c=to_c, duration_s=dwell_s)
    steps.add("dwell", "hold", text, held, expected_s=dwell_s)
    steps.stage = "cooling"
    steps.set("cool_rate", rate, fastest, "degC/min", Text("anneal.fall", rate=fastest))
    steps.set("heat_off", setpoint, 0.0, "degC", Text("anneal.off"))
    cold = {"channel": temperature, "at_most": settings.cold_c}
    cooling_s = (to_c - ROOM_C) * COOL_S_PER_C
    text = Text("anneal.wait", below_c=settings.cold_c)
    steps.add("cold", "wait", text, cold, expected_s=cooling_s)
    steps.may_resume(Text("checkpoint.cooled"), cold_now)
    return steps


CAPABILITY = Annealing()
