"""Lab time (counted by the loop) and world time (the calendar's)."""

import asyncio
from datetime import UTC, datetime, timedelta

from labharness.core.clock.loops import PacedLoop, VirtualLoop
from labharness.core.clock.process import wall_clock_utc

__all__ = ["VIRTUAL_EPOCH", "Clock"]

VIRTUAL_EPOCH = datetime(2026, 1, 1, 8, 0, tzinfo=UTC)  # a stated date, neither 1970 nor today


class Clock:
    """Time for one run: seconds of lab time, and the UTC moment they stand for.

    In a virtual run world time *is* lab time, counted from a stated epoch; in a paced run world
    time is the calendar's.

    Args:
        loop: The loop the run lives on.
        epoch: Moment of the loop's second 0; only for virtual runs.

    Attributes:
        jumped_s: Seconds by which the virtual calendar was set forward; lab time does not jump.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: datetime = VIRTUAL_EPOCH) -> None:
        self.loop = loop
        self.virtual = isinstance(loop, VirtualLoop)
        self._epoch = epoch
        self.jumped_s = 0.0
        self.speed = loop.speed if isinstance(loop, PacedLoop) else None

    def now_s(self) -> float:
        """Return the seconds of lab time."""
        return self.loop.time()

    def utc(self) -> datetime:
        """Return the world time."""
        if self.virtual:
            return self._epoch + timedelta(seconds=self.loop.time() + self.jumped_s)
        return wall_clock_utc()
