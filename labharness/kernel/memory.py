"""What the kernel remembers: the last reading of each channel, doubt, and the purge proof.

One ``Track`` a channel holds what ``observe`` must touch, so that a reading costs a few attribute
accesses and no search. The memory has one owner, the line, and changes only through this package.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from labharness.kernel.envelope import (
    Bound,
    Condition,
    Envelope,
    Interlock,
    PurgedOf,
    TripRow,
)
from labharness.kernel.modes import Mode
from labharness.vocabulary import Trip

__all__ = ["Memory", "Track"]


@dataclass(slots=True, eq=False)
class Track:
    """The last reading of one channel.

    Attributes:
        value: What was read; NaN until something was.
        at_s: When; ``-inf`` until something was.
        doubt: Values that were sent and are not confirmed; the channel counts as all of them.
        low: Readings below it trip.
        high: Readings above it trip.
        conditions: Conditions whose truth this reading may change.
        inert: Its flow counts for the purge proof.
        shows: Contaminants whose presence this channel shows, each with its condition.
    """

    channel: str
    value: float = math.nan
    at_s: float = -math.inf
    doubt: tuple[float, ...] = ()
    stale_s: float = math.inf
    low: float = -math.inf
    high: float = math.inf
    rows: tuple[TripRow, ...] = ()
    conditions: tuple[Bound, ...] = ()
    inert: bool = False
    shows: tuple[tuple[str, Bound], ...] = ()

    def possible(self) -> tuple[float, ...]:
        """Every value the channel may have."""
        return (self.value, *self.doubt)


@dataclass(slots=True, eq=False)
class Memory:
    """All tracks of a line, its mode, and its proofs.

    Attributes:
        purged_cm3: For each contaminant, inert gas measured since it was last in the tube.
        changes: Counts changes of an interlock's truth; permits made before one are void.
        trip: The trip in force.
    """

    envelope: Envelope
    tracks: dict[str, Track] = field(default_factory=dict)
    mode: Mode = Mode.DISARMED
    purged_cm3: dict[str, float] = field(default_factory=dict)
    changes: int = 0
    trip: Trip | None = None
    guarding: dict[str, tuple[Interlock, ...]] = field(default_factory=dict)
    watched: tuple[Track, ...] = ()

    def __post_init__(self) -> None:
        envelope = self.envelope
        for channel, watch in envelope.watches.items():
            self.track(channel).stale_s = watch.stale_s
        self.watched = tuple(self.track(channel) for channel in envelope.watches)
        for row in envelope.trips:
            track = self.track(row.channel)
            track.rows += (row,)
            track.low, track.high = max(track.low, row.low), min(track.high, row.high)
        for condition in self._conditions():
            track = self.track(condition.channel)
            if condition not in track.conditions:
                track.conditions += (condition,)
        for channel in envelope.purge.inert:
            self.track(channel).inert = True
        for contaminant, present in envelope.purge.present.items():
            self.track(present.channel).shows += ((contaminant, present),)
        self.purged_cm3 = dict.fromkeys(envelope.purge.present, 0.0)
        for channel in envelope.limits:
            self.guarding[channel] = tuple(
                row for row in envelope.interlocks if channel in row.guards
            )

    def track(self, channel: str) -> Track:
        """Give the track of a channel, making it the first time."""
        found = self.tracks.get(channel)
        if found is None:
            found = self.tracks[channel] = Track(channel)
        return found

    def fresh(self, track: Track, now: float) -> bool:
        """Say whether the last reading still counts."""
        return now - track.at_s <= track.stale_s

    def holds(self, condition: Condition, now: float) -> bool:
        """Say whether a condition is proven; a stale or doubtful reading proves nothing."""
        if isinstance(condition, PurgedOf):
            purged = self.volumes(condition.contaminant) >= condition.volumes
            return purged and self.absent(condition.contaminant, now)
        track = self.tracks[condition.channel]
        return self.fresh(track, now) and all(condition.holds(v) for v in track.possible())

    def absent(self, contaminant: str, now: float) -> bool:
        """Say whether a contaminant is known not to enter the tube at this moment."""
        present = self.envelope.purge.present[contaminant]
        track = self.tracks[present.channel]
        known = self.fresh(track, now)
        return known and not any(present.holds(value) for value in track.possible())

    def procedure(self, name: str, now: float) -> str:
        """Give the procedure that makes safe in the state the line is proven to be in."""
        procedure = self.envelope.procedures[name]
        if procedure.when is not None and self.holds(procedure.when, now):
            return procedure.instead
        return name

    def silent(self, condition: Condition, now: float) -> bool:
        """Say whether silence, which trips by itself, is why a condition does not hold."""
        if isinstance(condition, PurgedOf):
            condition = self.envelope.purge.present[condition.contaminant]
        watch = self.envelope.watches[condition.channel]
        return bool(watch.procedure) and not self.fresh(self.tracks[condition.channel], now)

    def volumes(self, contaminant: str) -> float:
        """Tube volumes of measured inert flow since the contaminant was last present."""
        return self.purged_cm3[contaminant] / self.envelope.purge.volume_cm3

    def energised(self, row: Interlock) -> bool:
        """Say whether a guarded channel is, or may be, above ``above``; unread, it may be."""
        limits = self.envelope.limits
        return any(
            not value <= row.above
            for channel in row.guards
            for value in self.track(limits[channel].readback or channel).possible()
        )

    def _conditions(self) -> Iterable[Bound]:
        for row in self.envelope.interlocks:
            for condition in row.require:
                if not isinstance(condition, PurgedOf):
                    yield condition
        yield from self.envelope.purge.present.values()
