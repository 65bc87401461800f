"""What is known of each channel: its last reading, how old it is, and what was sent meanwhile.

A value that was sent and is not confirmed counts beside the one that was read (law 7). So a bound
is *proven* when a fresh reading and every such value are within it, and a state *may be* when the
reading is stale or any of these values is within it.
"""

import math
from dataclasses import dataclass

from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.rows import Limit, TripRow

__all__ = ["Shown", "Track", "may_be", "proven"]


@dataclass(slots=True, eq=False)
class Track:
    """The last reading of one channel, and all that the kernel looks up when the next one comes.

    Attributes:
        channel: Its name.
        value: What was read; NaN until something was.
        at_s: When; ``-inf`` until something was.
        unconfirmed: Values that were sent and are not confirmed; the channel counts as all of them.
        stale_s: A reading older than this counts for nothing.
        rows: What readings trip.
        conditions: Conditions whose truth this reading may change.
        proves: Whether a proof about the tube is made or taken back by its readings.
        told: What it was last shown to be set to, by a confirmed command, a verified step, or as
            the line was armed; NaN while that is not known.
        within: How far a reading may be from that.
        limit: The limit of what it shows.
        stake: What a value that nobody here has set puts at stake.
    """

    channel: str
    value: float = math.nan
    at_s: float = -math.inf
    unconfirmed: tuple[float, ...] = ()
    stale_s: float = math.inf
    rows: tuple[TripRow, ...] = ()
    conditions: frozenset[Bound] = frozenset()
    proves: bool = False
    told: float = math.nan
    within: float = math.inf
    limit: Limit | None = None
    stake: "Shown" = ()

    def fresh(self, now: float) -> bool:
        """Return whether the last reading still counts."""
        return now - self.at_s <= self.stale_s

    def possible(self) -> tuple[float, ...]:
        """Return every value the channel may have."""
        return (self.value, *self.unconfirmed)

    def foreign(self) -> bool:
        """Return whether it reads what nobody here has set; not while a value is unconfirmed."""
        own = () if self.limit is None else self.limit.own
        differs = abs(self.value - self.told) > self.within
        return differs and not self.unconfirmed and self.value not in own


Shown = tuple[tuple[Bound, Track], ...]
"""Bounds, each beside the track of the channel that shows whether it holds."""


def may_be(states: Shown, now: float) -> Bound | None:
    """Return the first state that no fresh reading and no unconfirmed value excludes."""
    for state, track in states:
        if now - track.at_s > track.stale_s or state.low <= track.value <= state.high:
            return state
        if track.unconfirmed and any(map(state.holds, track.unconfirmed)):
            return state
    return None


def proven(bound: Bound, track: Track, now: float) -> bool:
    """Return whether a fresh reading and all unconfirmed values are within a bound."""
    if now - track.at_s > track.stale_s or not bound.low <= track.value <= bound.high:
        return False
    return not track.unconfirmed or all(map(bound.holds, track.unconfirmed))
