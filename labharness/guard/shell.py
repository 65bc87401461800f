"""The guard on the event loop: links, timers and the latch file around the core."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from labharness.guard.core import Finished, GuardCore, Permit, PortState, SafeFrame
from labharness.guard.latch import Latch
from labharness.link import Link, LinkLost
from labharness.vocabulary import Request, Trip

__all__ = ["Done", "LoopGuard", "PortBusy"]

WAITING_MAX = 256  # users waiting for one port at once

Done = Callable[[bytes | None, str], None]


class PortBusy(RuntimeError):
    """More users wait for a port than ever should."""


class LoopGuard:
    """Moves the core's bytes. It takes no decision.

    A port has one user at a time: ``when_free(port, start)`` calls ``start`` when the port is
    given to it, and the user gives it back with ``release(port)``. Procedures do not ask.

    Args:
        core: What decides.
        links: The road of each port; ``receive`` of each is taken over.
        latch: Where the latch is kept.
    """

    def __init__(self, core: GuardCore, links: Mapping[str, Link], latch: Latch) -> None:
        self.core = core
        self.latch = latch
        self.on_safe_frame: Callable[[SafeFrame, str], None] = lambda frame, error: None
        self._loop = asyncio.get_running_loop()
        self._links = dict(links)
        self._done: dict[str, Done | None] = dict.fromkeys(links)
        self._taken: dict[str, bool] = dict.fromkeys(links, False)
        self._waiting: dict[str, deque[Callable[[], None]]] = {name: deque() for name in links}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = float("inf")
        for name, link in links.items():
            link.receive = self._receiver(name)
        if latch.trip is not None:
            core.latched = True

    def when_free(self, port: str, start: Callable[[], None]) -> None:
        """Call ``start`` as soon as the port is free; it then owns the port until ``release``."""
        waiting = self._waiting[port]
        if len(waiting) >= WAITING_MAX:
            raise PortBusy(f"{WAITING_MAX} users wait for port {port} already")
        waiting.append(start)
        self._offer(port)

    def release(self, port: str) -> None:
        """Give the port back."""
        self._taken[port] = False
        self._offer(port)

    def exchange(self, port: str, request: Request, permit: Permit | None, done: Done) -> None:
        """Send one frame now; ``done(reply, error)`` is called once, later.

        Raises:
            NotPermitted: The core refuses; nothing was sent and ``done`` is never called.
        """
        now = self._loop.time()
        frame = self.core.send(port, request, now, permit)
        self._done[port] = done
        self._hand_over(port, frame, now)

    def ready(self, port: str) -> bool:
        """Say whether an exchange may begin on a port that the caller owns."""
        state = self.core.ports[port]
        return state.state is PortState.IDLE and not state.safe

    def trip(self, trip: Trip) -> None:
        """Run a procedure: bytes first, then the latch; records come after, by the caller."""
        for port in self.core.trip(trip.procedure):
            self._send_safe(port)
        self.latch.close(trip)

    def repeat(self, frames: list[SafeFrame]) -> None:
        """Send single steps of a procedure again (verification found them not done)."""
        for port in self.core.queue(frames):
            self._send_safe(port)

    def close(self) -> None:
        """Close every road."""
        if self._timer is not None:
            self._timer.cancel()
        for link in self._links.values():
            link.close()

    def _receiver(self, port: str) -> Callable[[bytes], None]:
        state = self.core.ports[port]
        loop = self._loop

        def receive(data: bytes) -> None:
            finished = state.feed(data, loop.time())
            if finished is not None:
                self._finish(port, finished)
            elif state.due_s < self._timer_s:
                self._arm(state.due_s)

        return receive

    def _hand_over(self, port: str, frame: bytes, now: float) -> None:
        try:
            self._links[port].write(frame)
        except LinkLost as why:
            finished = self.core.ports[port].lose(str(why), now)
            if finished is not None:
                self._loop.call_soon(self._finish, port, finished)
        due_s = self.core.ports[port].due_s
        if due_s < self._timer_s:
            self._arm(due_s)

    def _send_safe(self, port: str) -> None:
        now = self._loop.time()
        frame = self.core.send_safe(port, now)
        if frame is not None:
            self._hand_over(port, frame, now)

    def _finish(self, port: str, finished: Finished) -> None:
        if finished.safe is not None:
            self.on_safe_frame(finished.safe, finished.error)
        state = self.core.ports[port]
        if state.safe:
            self._send_safe(port)
        if state.due_s < self._timer_s:
            self._arm(state.due_s)
        if finished.safe is None:
            done, self._done[port] = self._done[port], None
            if done is not None:
                done(finished.reply, finished.error)
        elif not state.safe:
            self._offer(port)

    def _offer(self, port: str) -> None:
        state = self.core.ports[port]
        waiting = self._waiting[port]
        while (
            waiting and not self._taken[port] and state.state is PortState.IDLE and not state.safe
        ):
            self._taken[port] = True
            waiting.popleft()()

    def _arm(self, when_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = when_s
        self._timer = self._loop.call_at(when_s, self._expire)

    def _expire(self) -> None:
        # what was due at _timer_s is due now, though the loop's grid may lie just below it
        now = max(self._loop.time(), self._timer_s)
        self._timer = None
        self._timer_s = float("inf")
        for name, port in self.core.ports.items():
            if port.due_s <= now:
                finished = port.expire(now)
                if finished is not None:
                    self._finish(name, finished)
                else:
                    if port.safe:
                        self._send_safe(name)
                    self._offer(name)
        due_s = min(port.due_s for port in self.core.ports.values())
        if due_s < self._timer_s:
            self._arm(due_s)
