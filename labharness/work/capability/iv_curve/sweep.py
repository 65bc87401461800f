"""The plan of a sweep, and the verb that steps through its voltages."""

from collections.abc import Mapping
from typing import Any

from labharness.work.capability import LineFacts, Planned, Settings
from labharness.work.plan import Instruction, InstructionSet, RunningStep

__all__ = ["SweepSettings", "plan_sweep", "sweep"]

COMPLIANCE_A = 0.01
JUNCTION_C = 25.0
POINT_S = 1.0
"""A command with its read-back, the settling, and a reading."""

SLACK, SWITCH_S = 3.0, 30.0


class SweepSettings(Settings):
    """The table ``[capability.iv-curve]``.

    Attributes:
        meter: Name of the source meter.
    """

    meter: str = "smu"

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that a sweep sets."""
        return tuple(f"{self.meter}.{each}" for each in ("voltage", "compliance", "output"))


def plan_sweep(inputs: Mapping[str, Any], facts: LineFacts) -> Planned:
    """Return the instructions of one sweep; the gate's limits are held against each of them."""
    settings = facts.settings
    if not isinstance(settings, SweepSettings):
        raise ValueError("the lab states nothing of its source meter")
    voltage, compliance, output = settings.channels
    recipe = {
        "compliance_a": COMPLIANCE_A,
        "junction_c": JUNCTION_C,
        **{name: float(value) for name, value in inputs.items()},
    }
    start_v, stop_v, points = recipe["start_v"], recipe["stop_v"], int(recipe["points"])
    asked = {
        "voltages_v": [
            round(start_v + (stop_v - start_v) * at / (points - 1), 4) for at in range(points)
        ],
        "voltage": voltage,
        "current": f"{settings.meter}.current",
        "junction_c": recipe["junction_c"],
        "compliance_a": recipe["compliance_a"],
        "sets": [[voltage, start_v, "V"], [voltage, stop_v, "V"], [voltage, 0.0, "V"]],
    }
    limit = {"channel": compliance, "value": recipe["compliance_a"], "unit": "A"}
    rows: tuple[tuple[str, str, str, Mapping[str, Any], float], ...] = (
        ("zero", "set", "Source 0 V", {"channel": voltage, "value": 0.0, "unit": "V"}, 1.0),
        ("limit", "set", f"Let {recipe['compliance_a']:g} A flow at most", limit, 1.0),
        ("on", "set", "Output on", {"channel": output, "value": 1, "unit": ""}, 1.0),
        ("sweep", "sweep", f"Sweep {start_v:g} to {stop_v:g} V", asked, POINT_S * points),
        ("off", "set", "Output off", {"channel": output, "value": 0, "unit": ""}, 1.0),
    )
    made: list[Instruction] = []
    for name, action, text, parameters, expected_s in rows:
        made.append(
            Instruction(
                instruction_id=name,
                action=action,
                stage="sweep",
                description=text,
                parameters=parameters,
                dependencies=tuple(each.instruction_id for each in made[-1:]),
                timeout_s=SLACK * expected_s + SWITCH_S,
                expected_s=expected_s,
            )
        )
    return Planned(
        instructions=InstructionSet(tuple(made)),
        duration_s=sum(each.expected_s for each in made),
        process_gases=(),
        temperature_c_max=None,
        recipe=recipe,
    )


async def sweep(step: RunningStep) -> Mapping[str, Any]:
    """Set ``voltage`` to each of ``voltages_v`` and measure ``current``; end at 0 V."""
    asked = step.parameters
    currents_a = []
    for volts in asked["voltages_v"]:
        await step.perform(asked["voltage"], volts, "V")
        currents_a.append(await step.operations.read(asked["current"]))
    await step.perform(asked["voltage"], 0.0, "V")
    return {"voltages_v": list(asked["voltages_v"]), "currents_a": currents_a}
