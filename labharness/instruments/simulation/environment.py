"""A SimPy environment driven by the event loop's clock, virtual or real."""

import asyncio
from collections.abc import Callable
from typing import Any

import simpy

from labharness.core.clock import poster

TICKS_PER_S = 1_000_000  # integer microseconds: no drift after a million one-second steps


class LoopEnvironment(simpy.Environment):
    """A SimPy environment whose time is the loop's.

    One timer of the loop is set for the head of SimPy's queue. ``sync`` runs all due events. Code
    that touches a simulated instrument calls it first, so that the plant never lags behind the
    clock.

    Attributes:
        loop: The event loop that counts the time.
        post_at: Has the loop call a function with one argument at a time; it is not cancelled.
    """

    loop: asyncio.AbstractEventLoop
    post_at: Callable[[float, Callable[[bytes], None], bytes], object]

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(0)
        self._begin_on(loop)
        self._start_s = loop.time()
        self._armed: asyncio.TimerHandle | None = None
        self._armed_tick = 0
        self._stepping = False

    def move(self, loop: asyncio.AbstractEventLoop) -> None:
        """Continue on another loop, whose time goes on from this one's.

        A process that dies takes its loop with it, but the plant lives on.
        """
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        self._begin_on(loop)
        self._arm()

    def _begin_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.post_at = poster(loop)

    def seconds(self, delay_s: float) -> simpy.Event:
        """Return an event after ``delay_s``, for a plant's process to yield."""
        return self.timeout(round(delay_s * TICKS_PER_S))

    def schedule(self, event: Any, priority: Any = 1, delay: Any = 0) -> None:  # noqa: ANN401 - SimPy's own signature
        """Put an event on the queue; one from outside counts from the loop's time."""
        if not self._stepping:
            self._now = max(self._now, self._tick())
        super().schedule(event, priority, delay)
        if not self._stepping:
            self._arm()

    def sync(self) -> float:
        """Run every event that is due, bring ``now`` up to the loop's time, and return that."""
        loop_s = self.loop.time()
        if self._stepping:
            return loop_s
        now = round((loop_s - self._start_s) * TICKS_PER_S)
        queue = self._queue
        if not queue or queue[0][0] > now:
            if now > self._now:
                self._now = now
            return loop_s
        self._stepping = True
        try:
            while queue and queue[0][0] <= now:
                self.step()
            self._now = max(self._now, now)
        finally:
            self._stepping = False
        self._arm()
        return loop_s

    def _tick(self) -> int:
        return round((self.loop.time() - self._start_s) * TICKS_PER_S)

    def _arm(self) -> None:
        if not self._queue:
            return
        head = int(self._queue[0][0])
        if self._armed is not None:
            if self._armed_tick <= head:
                return
            self._armed.cancel()
        self._armed_tick = head
        self._armed = self.loop.call_at(self._start_s + head / TICKS_PER_S, self._fire)

    def _fire(self) -> None:
        self._armed = None
        self.sync()
        self._arm()
