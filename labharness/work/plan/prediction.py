"""The prediction of a plan, from its flight on the nominal simulated plant."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

BANDS: Mapping[str, tuple[float, float]] = {
    # relative and absolute half-width by unit: the instruments' tolerances, nothing of the plant
    "degC": (0.0075, 2.2),  # thermocouple type K, standard class
    "K": (0.0075, 2.2),
    "degF": (0.0075, 4.0),
    "sccm": (0.008, 1.0),  # thermal mass flow: 0.8 % of reading and 0.2 % of 500 sccm full scale
    "Torr": (0.005, 0.0),  # piezo gauge
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """Heat, gas or power that may remain when every program that talks to the line has died.

    Attributes:
        what: ``heats``, ``flows``, or ``on`` for any other switch under power.
        name: The instrument; of a switch its channel.
        value: Its setpoint, in ``unit``.
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
        if_killed: The action of each energised channel by itself, if every program that talks to
            it dies at the end of this step; from the drivers' ``on_comm_loss``.
        stays: The heat, power and gas at the same moment.
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
        predicted: The value; ``None`` where it is not a number.
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
        hardware: Safeguards of the hazard table that limit heat when all software is dead.
        unflown: The instructions with a branch that no flight has shown.
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
    unflown: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object, for the journal, the approver and the report."""
        body = asdict(self)
        for each in (*body["steps"], *filter(None, [body["violation"]])):
            each["instruction"] = each.pop("instruction_id")
        if not self.unflown:
            del body["unflown"]
        return body


def joined(flown: Sequence[Prediction], unflown: tuple[str, ...]) -> Prediction:
    """Return the prediction of a set: its first violation, or its longest way, and all highest."""
    violated = [each for each in flown if each.violation is not None]
    return replace(
        violated[0] if violated else max(flown, key=lambda each: each.duration_s),
        highest=_most(each.highest for each in flown),
        gas_used_cm3=_most(each.gas_used_cm3 for each in flown),
        unflown=unflown,
    )


def _most(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    pairs = sorted(pair for each in found for pair in each.items())
    return dict(pairs)  # the last one of a name is its highest
