"""From what a caller asks of an annealing to its instructions."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, StrictFloat

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import CannotDo, LineFacts, Planned, Settings
from labharness.work.plan import Instruction, InstructionSet

__all__ = ["AnnealingSettings", "plan_annealing"]

RAMP_C_PER_MIN = 10.0
LAST_C, LAST_C_PER_MIN = 30.0, 3.0
"""The last degrees are heated slowly, against the controller's overshoot."""

FLOW_SCCM = 100.0
TOLERANCE_C = 3.0
ROOM_C = 25.0
COOL_S_PER_C = 60.0
"""A tube furnace with its lid shut takes two to three hours from 750 degC."""

SLACK, SPARE_S, SWITCH_S = 2.0, 3600.0, 30.0


class AnnealingSettings(Settings):
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


class _Steps:
    """A growing chain of steps, each of which records what is measured meanwhile."""

    def __init__(self, watched: Sequence[str]) -> None:
        self.made: list[Instruction] = []
        self.stage = ""
        self._watched = list(watched)

    def add(
        self, name: str, action: str, text: str, asked: Mapping[str, Any], expected_s: float = 1.0
    ) -> None:
        """Add a step after all others."""
        self.made.append(
            Instruction(
                instruction_id=name,
                action=action,
                stage=self.stage,
                description=text,
                parameters={**asked, "recorded": self._watched},
                dependencies=tuple(each.instruction_id for each in self.made[-1:]),
                timeout_s=SLACK * expected_s + (SWITCH_S if action == "set" else SPARE_S),
                expected_s=expected_s,
            )
        )

    def set(self, name: str, channel: str, value: float, unit: str, text: str) -> None:
        """Add a step that sets a channel."""
        self.add(name, "set", text, {"channel": channel, "value": value, "unit": unit})


def plan_annealing(inputs: Mapping[str, Any], facts: LineFacts) -> Planned | CannotDo:
    """Return the instructions of one annealing, or why the line cannot do it."""
    settings = facts.settings
    if not isinstance(settings, AnnealingSettings):
        raise ValueError(Text("anneal.unstated"))
    recipe = {
        "temperature_c": float(inputs["temperature_c"]),
        "duration_s": float(inputs["duration_s"]),
        "ramp_c_per_min": float(inputs.get("ramp_c_per_min", RAMP_C_PER_MIN)),
        "flow_sccm": float(inputs.get("flow_sccm", FLOW_SCCM)),
    }
    asked = (recipe["temperature_c"], recipe["ramp_c_per_min"], recipe["flow_sccm"])
    for channel, value in zip(settings.channels, asked, strict=True):
        low, high, unit = facts.limits[channel]
        if not low <= value <= high:
            message = Text(
                "anneal.outside", channel=channel, value=value, unit=unit, low=low, high=high
            )
            return CannotDo(
                "safety_violation", message, Text("anneal.ask", low=low, high=high, unit=unit)
            )
    made = _steps(recipe, settings, facts.limits[settings.channels[1]][1])
    return Planned(
        instructions=InstructionSet(tuple(made)),
        duration_s=sum(each.expected_s for each in made),
        process_gases=(settings.gas_name,),
        temperature_c_max=recipe["temperature_c"],
        recipe=recipe,
    )


def _steps(
    recipe: Mapping[str, float], settings: AnnealingSettings, fastest: float
) -> list[Instruction]:
    """Write the steps of an annealing; ``fastest`` is the highest rate of the setpoint."""
    setpoint, rate, gas = settings.channels
    temperature, flow = f"{settings.furnace}.temperature", f"{settings.gas}.flow"
    to_c, dwell_s = recipe["temperature_c"], recipe["duration_s"]
    sccm, c_per_min = recipe["flow_sccm"], recipe["ramp_c_per_min"]
    steps = _Steps((temperature, flow))
    steps.stage = "flush"
    steps.set("flow", gas, sccm, "sccm", Text("anneal.flow", flow=sccm, gas=settings.gas_name))
    held = {"duration_s": settings.flush_s, "channels": [flow]}
    steps.add("flush", "hold", Text("anneal.flush"), held, settings.flush_s)
    steps.stage = "heating"
    near_c, slowly = to_c - LAST_C, min(c_per_min, LAST_C_PER_MIN)
    for name, from_c, until_c, how in (
        ("near", ROOM_C, near_c, c_per_min),
        ("heat", max(near_c, ROOM_C), to_c, slowly),
    ):
        ramp = {
            "setpoint": setpoint,
            "process": temperature,
            "unit": "degC",
            "to": until_c,
            "rate_channel": rate,
            "rate": how,
            "rate_unit": "degC/min",
            "tolerance": TOLERANCE_C,
        }
        heating_s = max(until_c - from_c, 0.0) / how * 60.0
        steps.add(name, "ramp", Text("anneal.heat", to_c=until_c, rate=how), ramp, heating_s)
    steps.stage = "dwell"
    held = {"duration_s": dwell_s, "channels": [temperature, flow]}
    steps.add("dwell", "hold", Text("anneal.keep", at_c=to_c, duration_s=dwell_s), held, dwell_s)
    steps.stage = "cooling"
    steps.set("cool_rate", rate, fastest, "degC/min", Text("anneal.fall", rate=fastest))
    steps.set("heat_off", setpoint, 0.0, "degC", Text("anneal.off"))
    cold = {"channel": temperature, "at_most": settings.cold_c}
    cooling_s = (to_c - ROOM_C) * COOL_S_PER_C
    steps.add("cold", "wait", Text("anneal.wait", below_c=settings.cold_c), cold, cooling_s)
    return steps.made
