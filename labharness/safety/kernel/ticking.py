"""Finding what no single reading shows: silence, a lost interlock, an implausible sensor."""

import math
from collections.abc import Iterator

from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Said, Text
from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.judging import counts, lacks
from labharness.safety.kernel.memory import Memory, Window
from labharness.safety.kernel.modes import LIVE
from labharness.safety.kernel.rows import Interlock
from labharness.safety.kernel.tracks import lacking


def tick(memory: Memory, now: float) -> tuple[Trip, ...]:
    """Let time pass: return the trips and warnings that it causes.

    Nothing is sent to a disarmed line: the loss of a state that it keeps by itself only warns.
    """
    memory.proofs.tick(now)
    trips = sum([_implausible(window, now) for window in memory.windows], ())
    gone = tuple(trip for _, trip in lost(memory, now))
    if memory.mode not in LIVE:
        return gone
    return trips + tuple(_silent(memory, now)) + gone


def lost(memory: Memory, now: float) -> Iterator[tuple[Interlock, Trip]]:
    """Return each interlock whose condition is lost while its state holds or may hold.

    On a disarmed line only the interlocks about a state alone count, and they warn.
    """
    live = memory.mode in LIVE
    for rule in memory.losable:
        row = rule.row
        if (row.guards and not live) or not memory.energised(rule, now):
            continue
        condition = memory.missing(rule, now)
        if condition is not None and not memory.silent(condition, now):
            said = lacks(row, condition, memory, now)
            why = Said("trip.lost", row=row.name, lacks=said, counted=counts(rule, now)).text
            at = condition.channel if isinstance(condition, Bound) else "purge"
            does = row.on_loss if live else ""
            yield row, Trip(Cause.INTERLOCK_LOST, does, at, None, now, why)


def _silent(memory: Memory, now: float) -> Iterator[Trip]:
    """Return a trip for each channel that was last heard too long ago."""
    for watch, track in memory.watched:
        age_s = now - track.at_s
        if age_s > watch.stale_s:
            why = Text("trip.silent", channel=watch.channel, age_s=age_s, allowed_s=watch.stale_s)
            yield Trip(Cause.COMMUNICATION, watch.procedure, watch.channel, None, now, why)


def _implausible(window: Window, now: float) -> tuple[Trip, ...]:
    """Compare one plausibility row with what its window has seen, and begin a new window in time.

    A window begins when the row counts: its reading is fresh and its states are proven. It ends
    when it is over, when something is wrong, and when the row counts no more.
    """
    row, track, during = window.row, window.track, window.during
    if now - track.at_s > track.stale_s or (during and lacking(during, now) is not None):
        window.since_s = math.inf
        return ()
    value, age_s = track.value, now - window.since_s
    if age_s < 0:
        window.restart(value, now)
        return ()
    if value < window.low:
        window.low = value
    elif value > window.high:
        window.high = value
    if row.expects is not None or row.agrees_with:
        over, wrong = _differs(window, age_s, now)
    else:
        over, wrong = _moves(window, age_s)
    if not over and not wrong:
        return ()
    span = window.high - window.low
    window.restart(value, now)
    if not wrong:
        return ()
    why = Text(
        "trip.implausible", row=row.name, channel=track.channel, value=value, span=span, age_s=age_s
    )
    return (Trip(row.cause, row.procedure, track.channel, value, now, why),)


def _differs(window: Window, age_s: float, now: float) -> tuple[bool, bool]:
    """Return whether all agrees as it should, and whether it has not for too long."""
    row = window.row
    differs = abs(window.track.value - window.other.value)
    agrees = differs <= row.differ_max and lacking(window.expects, now) is None
    return agrees, not agrees and age_s >= row.found_s


def _moves(window: Window, age_s: float) -> tuple[bool, bool]:
    """Return whether a window is over, and whether a sensor moved too much or too little in it."""
    row = window.row
    over = age_s >= row.found_s / 2
    rise, span = window.track.value - window.first, window.high - window.low
    too_little = rise < row.rise_min or span < row.span_min
    return over, span > row.span_max or (over and too_little)
