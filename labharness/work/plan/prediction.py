"""What a plan is expected to do, as it was run on the nominal simulated plant beforehand."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["BANDS", "PredictedStep", "PredictedViolation", "Prediction", "Stays"]

BANDS: Mapping[str, tuple[float, float]] = {
    # relative and absolute half-width by unit: the instruments' tolerances, nothing of the plant
    "degC": (0.0075, 2.2),  # thermocouple type K, standard class
    "sccm": (0.008, 1.0),  # thermal mass flow: 0.8 % of reading and 0.2 % of 500 sccm full scale
    "Torr": (0.005, 0.0),  # piezo gauge
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """One thing that people ask about first when everything that talks to a line has died.

    Attributes:
        what: ``heats``, ``flows``, or ``on`` for any other switch under power.
        name: The instrument; of a switch its channel.
        value: What it is set to, in ``unit``.
        does: ``on_comm_loss`` of its channel: ``hold``, ``unknown`` or ``safe(<seconds>)``.
    """

    what: str
    name: str
    value: float
    unit: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """One step as it went on the nominal plant.

    Attributes:
        started_s: From the beginning of the plan.
        ended_s: The same; for a step that only measures, by its stated expectation.
        if_killed: What each energised channel does by itself if everything that talks to it dies
            at the end of this step, from the drivers' ``on_comm_loss``.
        stays: Of the same moment, the heat, power and gas.
    """

    instruction_id: str
    stage: str
    started_s: float
    ended_s: float
    if_killed: tuple[str, ...] = ()
    stays: tuple[Stays, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedViolation:
    """A limit that the plan would pass.

    Attributes:
        instruction_id: The step in which it happens.
        channel: Where it is seen.
        predicted: The value; ``None`` where it is no number.
        detail: One sentence with the value, the limit and the unit.
    """

    instruction_id: str
    stage: str
    channel: str
    predicted: float | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A pre-flight.

    Attributes:
        duration_s: From the first step to the end of the last.
        steps: Each step as it went.
        trajectory: For each process value its ``(time_s, value)`` pairs.
        units: Unit of each.
        highest: The highest value of each process value, of every look at it.
        gas_used_cm3: Standard volume of each measured gas.
        violation: The first limit it would pass; ``None`` when it passes none.
        hardware: What the hazard table puts before heat when all software is dead.
    """

    duration_s: float
    steps: tuple[PredictedStep, ...]
    trajectory: Mapping[str, tuple[tuple[float, float], ...]]
    units: Mapping[str, str]
    gas_used_cm3: Mapping[str, float]
    violation: PredictedViolation | None = None
    highest: Mapping[str, float] = field(default_factory=dict)
    hardware: tuple[str, ...] = ()
    bands: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(BANDS))

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object, for the journal, the approver and the report."""
        violation = self.violation
        return {
            "duration_s": self.duration_s,
            "steps": [
                {
                    "instruction": step.instruction_id,
                    "stage": step.stage,
                    "started_s": step.started_s,
                    "ended_s": step.ended_s,
                    "if_killed": list(step.if_killed),
                    "stays": [asdict(each) for each in step.stays],
                }
                for step in self.steps
            ],
            "trajectory": {
                channel: [list(pair) for pair in pairs]
                for channel, pairs in self.trajectory.items()
            },
            "units": dict(self.units),
            "bands": {unit: list(band) for unit, band in self.bands.items()},
            "highest": dict(self.highest),
            "gas_used_cm3": dict(self.gas_used_cm3),
            "hardware": list(self.hardware),
            "violation": None
            if violation is None
            else {
                "instruction": violation.instruction_id,
                "stage": violation.stage,
                "channel": violation.channel,
                "predicted": violation.predicted,
                "detail": violation.detail,
            },
        }
