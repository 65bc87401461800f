"""The envelope of a line: what may be set, what must hold, what trips, and how to make safe.

Everything here is data. A thing that is not written in the envelope is refused.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from labharness.vocabulary import Cause

__all__ = [
    "AtLeast",
    "AtMost",
    "Bound",
    "Condition",
    "Envelope",
    "EnvelopeInvalid",
    "Interlock",
    "Limit",
    "Procedure",
    "Purge",
    "PurgedOf",
    "Role",
    "Step",
    "TripRow",
    "Watch",
]


class EnvelopeInvalid(ValueError):
    """The envelope contradicts itself or names what does not exist."""


class Role(StrEnum):
    """When a channel may be set."""

    PREPARE = "prepare"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The closed interval one channel may be set to.

    Attributes:
        channel: ``instrument.channel``.
        unit: A command in any other unit is refused.
        low: Smallest value allowed.
        high: Largest value allowed.
        source: Where the numbers come from.
        role: ``prepare`` channels (watchdogs, modes) may also be set while the line is arming.
        step_max: Largest change by one command; ``inf`` for no such limit.
        readback: Channel that shows what was set; the channel itself where nothing else does.
    """

    channel: str
    unit: str
    low: float
    high: float
    source: str
    role: Role = Role.OPERATE
    step_max: float = math.inf
    readback: str = ""

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.high < math.inf:  # also refuses NaN
            raise EnvelopeInvalid(
                f"{self.channel}: {self.low} to {self.high} {self.unit} is empty or unbounded"
            )
        if not self.step_max > 0:
            raise EnvelopeInvalid(f"{self.channel}: step_max {self.step_max} is not positive")


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A fresh reading of ``channel`` is at least ``value``."""

    channel: str
    value: float

    def holds(self, value: float) -> bool:
        """Say whether it holds for one value."""
        return value >= self.value

    def __str__(self) -> str:
        return f"{self.channel} at least {self.value:g}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """A fresh reading of ``channel`` is at most ``value``."""

    channel: str
    value: float

    def holds(self, value: float) -> bool:
        """Say whether it holds for one value."""
        return value <= self.value

    def __str__(self) -> str:
        return f"{self.channel} at most {self.value:g}"


@dataclass(frozen=True, slots=True)
class PurgedOf:
    """``volumes`` of the tube passed as measured inert flow since ``contaminant`` was in it."""

    contaminant: str
    volumes: float

    def __str__(self) -> str:
        return f"tube purged of {self.contaminant} by {self.volumes:g} volumes"


Bound = AtLeast | AtMost
Condition = Bound | PurgedOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Interlock:
    """Setting one of ``guards`` above ``above`` takes all conditions, proven by fresh readings.

    Attributes:
        name: Said in refusals.
        guards: Channels it stands before.
        above: A command to at most this value de-energises and is not held up by this row.
        below: A command to less than this takes the conditions too (inert flow over a hot source).
        require: All of these.
        on_loss: Procedure that runs when a condition is lost while a guarded channel is above
            ``above``; ``""`` when the row only stands before commands.
        prohibits: Name of the prohibited action (HCP L3) that this row enforces.
        source: Where the rule comes from.
    """

    name: str
    guards: tuple[str, ...]
    require: tuple[Condition, ...]
    source: str
    above: float = 0.0
    below: float = -math.inf
    on_loss: str = ""
    prohibits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A channel the line listens to all the time.

    Attributes:
        channel: What is listened to.
        stale_s: A reading older than this counts for nothing, and the silence trips.
        procedure: What the silence runs while the line is armed.
    """

    channel: str
    stale_s: float
    procedure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TripRow:
    """A reading outside ``low``..``high`` trips; without a procedure it only warns."""

    name: str
    channel: str
    cause: Cause
    procedure: str
    unit: str
    source: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """How the purge proof is made: by integrated measured flow, never by a timer.

    Attributes:
        volume_cm3: Volume of the tube and its lines.
        inert: Flow channels (sccm) that count.
        present: For each contaminant the condition under which it *may be* in the tube; while it
            holds, or is not known to be false, that contaminant's proof is nothing.
    """

    volume_cm3: float
    inert: tuple[str, ...]
    present: Mapping[str, Bound]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One channel's value in a safe state of the line.

    Attributes:
        channel: What is set.
        value: To what.
        unit: In what unit.
        optional: The safe state holds without it (it is worth a try, not worth an alarm).
    """

    channel: str
    value: float
    unit: str
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A joint, ordered, safe state of the line (law 2).

    Attributes:
        name: Its name.
        steps: In order of hazard, the most hazardous first.
        wire_s_max: Longest time its first wave may take on the slowest port.
        verify_s_max: Longest time until each step is verified, or is reported as not.
        when: While this is proven, ``instead`` is the safe state (do not vent a vacuum).
        instead: Name of that procedure; ``""`` for none.
    """

    name: str
    steps: tuple[Step, ...]
    wire_s_max: float
    verify_s_max: float
    when: Bound | None = None
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """All rules of one line."""

    line: str
    limits: Mapping[str, Limit]
    interlocks: tuple[Interlock, ...]
    watches: Mapping[str, Watch]
    trips: tuple[TripRow, ...]
    procedures: Mapping[str, Procedure]
    purge: Purge
    procedure_of: Mapping[Cause, str]

    def __post_init__(self) -> None:
        for row in self.interlocks:
            if row.above == math.inf:  # a row that stands before commands downwards only
                self._finite(row.below, f"interlock {row.name!r}: below")
            else:
                self._finite(row.above, f"interlock {row.name!r}: above")
            for channel in row.guards:
                self._known(channel, self.limits, f"interlock {row.name!r} guards")
            for condition in row.require:
                if isinstance(condition, PurgedOf):
                    self._known(
                        condition.contaminant, self.purge.present, f"interlock {row.name!r} asks"
                    )
                    self._positive(condition.volumes, f"interlock {row.name!r}: volumes")
                else:
                    self._known(
                        condition.channel, self.watches, f"interlock {row.name!r} relies on"
                    )
            if row.on_loss:
                self._known(row.on_loss, self.procedures, f"interlock {row.name!r} runs")
        for trip in self.trips:
            if not trip.low < trip.high:  # also refuses NaN
                raise EnvelopeInvalid(f"trip {trip.name!r}: {trip.low} to {trip.high} is empty")
            self._known(trip.channel, self.watches, f"trip {trip.name!r} watches")
            if trip.procedure:
                self._known(trip.procedure, self.procedures, f"trip {trip.name!r} runs")
        for watch in self.watches.values():
            self._positive(watch.stale_s, f"watch {watch.channel}: stale_s")
            if watch.procedure:
                self._known(watch.procedure, self.procedures, f"watch {watch.channel} runs")
        self._positive(self.purge.volume_cm3, "the purge proof: volume_cm3")
        for channel in self.purge.inert:
            self._known(channel, self.watches, "the purge proof counts")
        for contaminant, present in self.purge.present.items():
            self._known(present.channel, self.watches, f"presence of {contaminant!r} is seen by")
            self._finite(present.value, f"presence of {contaminant!r}")
        for procedure in self.procedures.values():
            if procedure.when is not None:
                who = f"procedure {procedure.name!r} asks"
                self._known(procedure.when.channel, self.watches, who)
                self._known(procedure.instead, self.procedures, who)
            for step in procedure.steps:
                self._known(step.channel, self.limits, f"procedure {procedure.name!r} sets")

    def _finite(self, value: float, what: str) -> None:
        if not math.isfinite(value):
            raise EnvelopeInvalid(f"{what} is {value}, which is no finite number")

    def _positive(self, value: float, what: str) -> None:
        if not 0 < value < math.inf:  # also refuses NaN
            raise EnvelopeInvalid(f"{what} is {value}, which is not positive and finite")

    def _known(self, name: str, table: Mapping[str, object], who: str) -> None:
        if name not in table:
            raise EnvelopeInvalid(f"{who} {name!r}, which this envelope does not have")
