"""Update the kernel's memory by commands and readings; a reading may trip."""

import math
from collections.abc import Iterable, Sequence

from labharness.core.vocabulary import Cause, Command, Trip
from labharness.core.vocabulary.texts import Text
from labharness.safety.kernel.memory import Memory
from labharness.safety.kernel.rows import TripRow
from labharness.safety.kernel.tracks import Track, may_be


def begin(memory: Memory, command: Command) -> None:
    """Remember that a command was sent: until it is confirmed both values count (law 7)."""
    track = memory.readback(command.channel)
    track.unconfirmed = tuple(dict.fromkeys((*track.unconfirmed, command.value)))
    memory.proofs.sent(track.channel, command.value)


def conclude(memory: Memory, command: Command) -> None:
    """Take a command as confirmed, because a fresh read-back agrees."""
    memory.readback(command.channel).unconfirmed = ()
    expect(memory, command.channel, command.value)


def expect(memory: Memory, channel: str, value: float) -> None:
    """Remember what a channel was shown to be set to; NaN for what is not known (any more)."""
    memory.readback(channel).told = value


def adopt(memory: Memory, channels: Iterable[str]) -> None:
    """Take what was just read for what is set, where nothing else is known of that."""
    for track in map(memory.track, channels):
        if math.isnan(track.told) and not track.unconfirmed:
            track.told = track.value


def observe(
    memory: Memory, tracks: Sequence[Track], values: Sequence[float], now: float
) -> tuple[Trip, ...]:
    """Take the readings of one frame into memory; return the trips and warnings they cause.

    Of each reading in turn: count the conditions that it changes, let the proofs see it, remember
    it, and compare it with what was set and with the rows that trip. A NaN is not a measurement: it
    leaves the old reading to grow stale.
    """
    trips: tuple[Trip, ...] = ()
    for track, value in zip(tracks, values, strict=True):
        if value != value:
            continue
        before = track.value
        if value != before:
            for bound in track.conditions:  # without `holds`: each reading passes here
                if (bound.low <= value <= bound.high) != (bound.low <= before <= bound.high):
                    memory.changes += 1
        if track.proves:
            memory.proofs.see(track, value, now)
        track.value, track.at_s = value, now
        if abs(value - track.told) > track.within:
            trips += _foreign(memory, track, before, now)
        for row in track.rows:
            if not row.low <= value <= row.high:
                trips += (_outside(row, value, now),)
    return trips


def _outside(row: TripRow, value: float, now: float) -> Trip:
    """Return the trip of a reading outside a row, with the bound that it has passed."""
    bound = Text("bound.least", bound=row.low)
    if value > row.high:
        bound = Text("bound.most", bound=row.high)
    found = Text("quantity", value=value, unit=f" {row.unit}" if row.unit else "")
    why = Text("trip.outside", row=row.name, channel=row.channel, found=found, bound=bound)
    return Trip(row.cause, row.procedure, row.channel, value, now, why)


def _foreign(memory: Memory, track: Track, before: float, now: float) -> tuple[Trip, ...]:
    """Report a value that this line did not set: a warning once, and its procedure each time."""
    limit, value = track.limit, track.value
    if limit is None or not track.foreign():
        return ()
    at_stake = not track.stake or may_be(track.stake, now) is not None
    procedure = limit.on_foreign if at_stake else ""
    if value == before and not procedure:
        return ()
    shown = Text("quantity", value=value, unit=f" {limit.unit}" if limit.unit else "")
    found = Text("reading.of", channel=track.channel, found=shown)
    why = Text("trip.foreign", found=found, confirmed=track.told)
    return (Trip(Cause.INTERLOCK_LOST, procedure, track.channel, value, now, why),)
