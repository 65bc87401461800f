"""Finding what no single reading shows: silence, a lost interlock, an implausible sensor."""

import math
from collections.abc import Iterator

from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text
from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.judging import lacks
from labharness.safety.kernel.memory import Memory, Window
from labharness.safety.kernel.modes import LIVE
from labharness.safety.kernel.rows import Interlock, Plausible
from labharness.safety.kernel.tracks import Track

__all__ = ["lost", "tick"]


def tick(memory: Memory, now: float) -> tuple[Trip, ...]:
    """Let time pass: return the trips and warnings that it causes.

    Nothing is sent to a disarmed line: the loss of a state that it keeps by itself only warns.
    """
    memory.proofs.tick(now)
    trips = sum([_implausible(memory, *each, now) for each in memory.windows], ())
    gone = tuple(trip for _, trip in lost(memory, now))
    if memory.mode not in LIVE:
        return gone
    return trips + tuple(_silent(memory, now)) + gone


def lost(memory: Memory, now: float) -> Iterator[tuple[Interlock, Trip]]:
    """Return each interlock whose condition is lost while its state holds or may hold.

    On a disarmed line only the interlocks about a state alone count, and they warn.
    """
    for rule in memory.rules:
        row, does = rule.row, rule.row.on_loss if memory.mode in LIVE else ""
        if not row.on_loss or (row.guards and not does) or not memory.energised(rule, now):
            continue
        condition = memory.missing(rule, now)
        if condition is not None and not memory.silent(condition, now):
            why = Text("trip.lost", row=row.name, lacks=lacks(row, condition, memory, now))
            at = condition.channel if isinstance(condition, Bound) else "purge"
            yield row, Trip(Cause.INTERLOCK_LOST, does, at, None, now, why)


def _silent(memory: Memory, now: float) -> Iterator[Trip]:
    """Return a trip for each channel that was last heard too long ago."""
    for channel, watch in memory.envelope.watches.items():
        age_s = now - memory.tracks[channel].at_s
        if age_s > watch.stale_s and watch.procedure:
            why = Text("trip.silent", channel=channel, age_s=age_s, allowed_s=watch.stale_s)
            yield Trip(Cause.COMMUNICATION, watch.procedure, channel, None, now, why)


def _implausible(memory: Memory, row: Plausible, window: Window, now: float) -> tuple[Trip, ...]:
    """Compare one plausibility row with what its window has seen, and begin a new window in time.

    A window begins when the row counts: its reading is fresh and its states are proven. It ends
    when it is over, when something is wrong, and when the row counts no more.
    """
    track = memory.tracks[row.channel]
    value, age_s = track.value, now - window.since_s
    window.low, window.high = min(window.low, value), max(window.high, value)
    if row.expects is not None or row.agrees_with:
        over, wrong = _differs(memory, row, track, age_s, now)
    else:
        over, wrong = _moves(row, window, value, age_s)
    counts = track.fresh(now) and all(memory.holds(each, now) for each in row.during)
    begun = counts and age_s >= 0
    if begun and not over and not wrong:
        return ()
    span = window.high - window.low
    window.restart(value, now if counts else math.inf)
    if not (begun and wrong):
        return ()
    why = Text(
        "trip.implausible", row=row.name, channel=track.channel, value=value, span=span, age_s=age_s
    )
    return (Trip(row.cause, row.procedure, track.channel, value, now, why),)


def _differs(
    memory: Memory, row: Plausible, track: Track, age_s: float, now: float
) -> tuple[bool, bool]:
    """Return whether all agrees as it should, and whether it has not for too long."""
    differs = abs(track.value - memory.tracks[row.agrees_with or row.channel].value)
    agrees = differs <= row.differ_max and (row.expects is None or memory.holds(row.expects, now))
    return agrees, not agrees and age_s >= row.found_s


def _moves(row: Plausible, window: Window, value: float, age_s: float) -> tuple[bool, bool]:
    """Return whether a window is over, and whether a sensor moved too much or too little in it."""
    over = age_s >= row.found_s / 2
    rise, span = value - window.first, window.high - window.low
    too_little = rise < row.rise_min or span < row.span_min
    return over, span > row.span_max or (over and too_little)
