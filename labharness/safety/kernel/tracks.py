"""The knowledge of each channel: its last reading, its age, and the values sent since.

A value that was sent and is not confirmed counts beside the one that was read (law 7). So a bound
is *proven* when a fresh reading and every such value are within it, and a state *may be* when the
reading is stale or any of these values is within it.
"""

import math
from dataclasses import dataclass

from labharness.safety.kernel.conditions import Bound
from labharness.safety.kernel.rows import Limit, TripRow


@dataclass(slots=True, eq=False)
class Track:
    """The last reading of one channel, and everything that the kernel needs for the next one.

    Attributes:
        channel: Its name.
        value: Its last reading; NaN before the first.
        at_s: Time of the last reading; ``-inf`` before the first.
        unconfirmed: Values that were sent and are not confirmed; the channel counts as all of them.
        stale_s: A reading older than this counts for nothing.
        rows: The rows of trips on its readings.
        conditions: Conditions whose truth this reading may change.
        proves: Whether a proof about the tube is made or taken back by its readings.
        told: Its last known setting, by a confirmed command, a verified step, or as the line was
            armed; NaN while it is not known.
        within: Largest difference of a reading from that.
        limit: The limit of the channel that it shows.
        stake: The states in which a value that this line did not set is dangerous.
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
        """Return whether it reads a value that this line did not set, and none is unconfirmed."""
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


def lacking(bounds: Shown, now: float) -> Bound | None:
    """Return the first bound that a fresh reading and all unconfirmed values do not prove."""
    for bound, track in bounds:
        if now - track.at_s > track.stale_s or not bound.low <= track.value <= bound.high:
            return bound
        if track.unconfirmed and not all(map(bound.holds, track.unconfirmed)):
            return bound
    return None
