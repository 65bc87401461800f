"""The values of a run's folder that a report shows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from labharness.core.vocabulary.durations import NotADuration, parse_duration
from labharness.journal.chain import VerifyReport
from labharness.work.desk.rules_record import RecordedRules

QUIET: Final = {"confirmed", "unconfirmed"}
"""Endings of commands that leave no doubt; the latter's channels have nothing to read back."""

Points = tuple[tuple[float, float], ...]
"""Seconds since the run's first record, and value; NaN was not measured."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a run, from its first step to its last; all times in s since the run began."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class StepRow:
    """One instruction of the plan and its outcome."""

    name: str
    phase: str
    description: str
    status: str
    start_s: float | None
    end_s: float | None

    @property
    def took_s(self) -> float | None:
        """The time from begin to end; None where it did not begin or end."""
        if self.start_s is None or self.end_s is None:
            return None
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that a reader should know of, as it was recorded; a chart has room for a label."""

    at_s: float
    kind: str
    text: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactState:
    """An artifact; ``holds`` says whether its bytes still have the checksum of the answer."""

    name: str
    uri: str
    size_bytes: int
    checksum: str
    holds: bool


@dataclass(frozen=True, slots=True)
class RecordedForecast:
    """The predicted trajectory of one channel with its band, in the channel's unit."""

    points: Points
    low: Points
    high: Points


@dataclass(frozen=True, slots=True)
class RecordedPrediction:
    """The expectation of pre-flight for the plan.

    Attributes:
        channels: The trajectory of each process value.
        duration_s: From the first step to the end of the last.
        took_s: The duration of each step, by its name.
        if_killed: The behaviour of each channel if all communication ends at the end of a step.
        stays: The heat, power and gas of the same moment, of each step whose record has them.
        hardware: The protection against heat in the hazard table.
        gas_used_cm3: Standard volume of each gas.
    """

    channels: Mapping[str, RecordedForecast]
    duration_s: float
    took_s: Mapping[str, float]
    if_killed: Mapping[str, tuple[str, ...]]
    stays: Mapping[str, Sequence[Mapping[str, Any]]]
    hardware: tuple[str, ...]
    gas_used_cm3: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run.

    Attributes:
        header: The facts hashed into the chain: session, seed, digests, epoch.
        about: The process that wrote the journal: versions, system.
        asked: The payload of the submission.
        plan: The ``planned`` record; empty when nothing was planned.
        approval: The persons who approved it, and their reason; empty where there are none.
        accepted: The ``task_accepted`` record; empty when it was not.
        by_hand: The person who drove the line by hand; empty where a task did.
        ending: ``task_completed``, ``task_failed``, ``task_rejected``, ``aborted``, or ``none``
            when the journal has no terminal message.
        state: The last state of the session; empty where none is recorded.
        answer: The payload of the terminal message.
        answer_chained: The answer was read from the journal; else it lay beside it, unhashed.
        chain: The result of a check of the hash chain.
        traces: Every channel that has a unit, by name.
        prediction: The expectation of pre-flight; None where there was none.
        commands: The number of commands by their ending.
        unshown: The number of unconfirmed commands by channel, of channels without read-back.
        instruments: The ``identified`` record of each that answered on the line.
        spectra: The raw spectra, where the run has any that fit their checksum.
        duration_s: From the first record to the last.
    """

    header: Mapping[str, Any]
    about: Mapping[str, Any]
    asked: Mapping[str, Any]
    plan: Mapping[str, Any]
    approval: Mapping[str, Any]
    accepted: Mapping[str, Any]
    by_hand: str
    ending: str
    state: str
    answer: Mapping[str, Any]
    answer_chained: bool
    chain: VerifyReport
    rules: RecordedRules
    traces: Mapping[str, Points]
    prediction: RecordedPrediction | None
    phases: tuple[Phase, ...]
    steps: tuple[StepRow, ...]
    happenings: tuple[Happening, ...]
    commands: Mapping[str, int]
    unshown: Mapping[str, int]
    instruments: tuple[Mapping[str, Any], ...]
    artifacts: tuple[ArtifactState, ...]
    spectra: Mapping[str, Any]
    duration_s: float

    @property
    def results(self) -> Mapping[str, Any]:
        """The outputs, or those that a failed run has."""
        return as_mapping(self.answer.get("outputs") or self.answer.get("partial_outputs"))

    def happened(self, kind: str) -> tuple[Happening, ...]:
        """Return what happened of one kind."""
        return tuple(each for each in self.happenings if each.kind == kind)


def took_s(answer: Mapping[str, Any], journal_s: float) -> float:
    """Return how long a run took as its answer says: the journal goes on until that is written."""
    try:
        return parse_duration(as_mapping(answer.get("execution_summary"))["duration"])
    except (KeyError, TypeError, NotADuration):
        return journal_s


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a part of an answer, which may come from anywhere; an empty one for another shape."""
    return value if isinstance(value, Mapping) else {}


def values_within(points: Points, phase: Phase) -> list[float]:
    """Return what was measured during a phase."""
    inside = (value for at_s, value in points if phase.start_s <= at_s <= phase.end_s)
    return [value for value in inside if not math.isnan(value)]
