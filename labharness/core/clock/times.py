"""Lab time (counted by the loop) and world time (the calendar's)."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from labharness.core.clock.loops import PacedLoop, VirtualLoop
from labharness.core.clock.process import pause, steady_s, utc_text, wall_clock_utc

VIRTUAL_EPOCH = datetime(2026, 1, 1, 8, 0, tzinfo=UTC)  # a stated date, neither 1970 nor today
HEARD_S = 0.02  # between two looks at requests while virtual time stands


class Clock:
    """Time for one run: seconds of lab time, and the UTC moment they stand for.

    In a virtual run of one process world time *is* lab time, counted from a stated epoch. In a
    paced run, and in every run of a lab that is up, world time is the calendar's.

    Args:
        loop: The loop the run lives on.
        by_calendar: World time is the calendar's in virtual time too.

    Attributes:
        jumped_s: Seconds by which the virtual calendar was set forward; lab time does not jump.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, by_calendar: bool = False) -> None:
        self.loop = loop
        self.virtual = isinstance(loop, VirtualLoop)
        self.by_calendar = by_calendar or not self.virtual
        self.jumped_s = 0.0
        self._answers = 0  # requests that are answered now
        self.speed = loop.speed if isinstance(loop, PacedLoop) else None

    @property
    def stands(self) -> bool:
        """Whether its lab time stands while a person is waited for."""
        return self.virtual and self.by_calendar

    def now_s(self) -> float:
        """Return the seconds of lab time."""
        return self.loop.time()

    def utc(self) -> datetime:
        """Return the world time."""
        return wall_clock_utc() if self.by_calendar else self._lab_utc()

    def utc_of(self, at_s: float) -> datetime:
        """Return the world time of an earlier moment of lab time.

        Of virtual time by the calendar it is now: its seconds take no time of the calendar.
        """
        ago_s = self.now_s() - at_s
        pace = self.speed or (math.inf if self.by_calendar else 1.0)
        return self.utc() - timedelta(seconds=ago_s / pace)

    @property
    def behind_s(self) -> float:
        """Lab seconds by which the computer fell behind a speed above real time just now."""
        fast = isinstance(self.loop, PacedLoop) and self.loop.speed > 1.0
        return self.loop.behind_s if fast else 0.0  # type: ignore[attr-defined]  # a paced loop's

    def metadata(self) -> dict[str, Any]:
        """Return the field of a message that states lab time; none where it is world time."""
        if self.speed == 1.0 or not self.by_calendar:
            return {}
        return {"metadata": {"lab_time": utc_text(self._lab_utc())}}

    async def stand(self, world_s: float, waits: Callable[[], bool] = lambda: True) -> None:
        """Wait for a person in world time, as long as ``waits``.

        Virtual time by the calendar stands meanwhile; requests of other threads are heard, and it
        goes on at real speed while one of them is `answered`.
        """
        if not self.stands:
            await asyncio.sleep(world_s * (self.speed or 1.0))
            return
        until_s = steady_s() + world_s
        while waits() and (left_s := until_s - steady_s()) > 0:
            pause(min(left_s, HEARD_S))
            await asyncio.sleep(HEARD_S if self._answers else 0)

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Let time go on meanwhile: what a person asks of a line takes lab time."""
        self._answers += 1
        try:
            yield
        finally:
            self._answers -= 1

    def _lab_utc(self) -> datetime:
        return VIRTUAL_EPOCH + timedelta(seconds=self.loop.time() + self.jumped_s)
