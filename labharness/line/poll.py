"""The poller of a line: each second it starts every scan that is due, each port by itself.

It is written with callbacks and not with tasks, because it runs for days: one poll of one scan
costs one frame out, one frame in, and no future.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.core.vocabulary.requests import disobeyed
from labharness.line.instrument import BoundScan
from labharness.safety.guard import Guard

LOG = logging.getLogger(__name__)
TICK_S = 1.0  # poll period of a line; the kernel's clock hand


class Poller:
    """Polls the scans of a line on an absolute grid of seconds, so that it never drifts.

    Args:
        loop: The event loop.
        guard: The way to the ports.
        scans: The scans of the line.
        tick_s: Period of the grid.
        take: Called with each scan's values.
        tick: Called on each grid point, before the scans are sent.
        heartbeat: Called every ``guard.heartbeat_s`` on a grid: the proof that this
            loop lives. A grid point whose work breaks or never comes ends the heartbeats with it.
        fault: Called with each scan that its instrument refuses, and the reason.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        guard: Guard,
        scans: Sequence[BoundScan],
        tick_s: float,
        take: Callable[[BoundScan, tuple[float, ...]], object],
        tick: Callable[[], None],
        heartbeat: Callable[[], None],
        fault: Callable[[BoundScan, str], None] = lambda scan, why: None,
    ) -> None:
        self._loop = loop
        self._heartbeat = heartbeat
        self._heartbeat_s = guard.heartbeat_s
        self._heartbeat_timer: asyncio.TimerHandle | None = None
        self._tick_s = tick_s
        self._tick = tick
        self._number = 0
        self._start_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []
        ports: dict[str, list[BoundScan]] = {}
        for scan in scans:
            if scan.ticks:
                ports.setdefault(scan.port, []).append(scan)
        self._chains = [_Chain(port, guard, each, take, fault) for port, each in ports.items()]

    def start(self) -> None:
        """Begin: the first poll is now."""
        self._start_s = self._loop.time()
        self._turn()

    def stop(self) -> None:
        """End; exchanges under way finish by themselves."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heartbeat_timer is not None:
            self._heartbeat_timer.cancel()
            self._heartbeat_timer = None
        self.wake()

    def wake(self) -> None:
        """Wake all users that wait for the next tick."""
        waiters, self._waiters = self._waiters, []
        for each in waiters:
            if not each.done():
                each.set_result(None)

    async def next_tick(self) -> None:
        """Wait for the next grid point, when the scans of this one have long been answered."""
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _turn(self) -> None:
        self._tick()
        self.wake()
        number = self._number
        for chain in self._chains:
            chain.poll(number)
        self._number = number + 1
        next_s = self._start_s + (number + 1) * self._tick_s
        self._timer = self._loop.call_at(next_s, self._turn)
        if self._heartbeat_s < float("inf"):
            self._feed(next_s)

    def _feed(self, until_s: float) -> None:
        self._heartbeat()
        next_s = self._loop.time() + self._heartbeat_s
        self._heartbeat_timer = None
        if next_s < until_s:
            self._heartbeat_timer = self._loop.call_at(next_s, self._feed, until_s)


class _Chain:
    """The scans of one port, one after the other while the port is ours."""

    __slots__ = (
        "_at",
        "_due",
        "_every",
        "_fault",
        "_guard",
        "_last",
        "_owned",
        "_port",
        "_scans",
        "_step",
        "_take",
        "_told",
    )

    def __init__(
        self,
        port: str,
        guard: Guard,
        scans: Sequence[BoundScan],
        take: Callable[[BoundScan, tuple[float, ...]], object],
        fault: Callable[[BoundScan, str], None],
    ) -> None:
        self._fault = fault
        self._port = port
        self._guard = guard
        self._scans = scans
        self._take = take
        self._every = math.gcd(*(scan.ticks for scan in scans))  # between them nothing is due
        self._due: list[BoundScan] = []
        self._at = self._step = 0
        self._owned = False
        self._last: dict[BoundScan, tuple[bytes, tuple[float, ...]]] = {}  # decoded
        self._told = False

    def poll(self, number: int) -> None:
        """Ask for the port, unless the last poll still waits for it or holds it."""
        if self._owned or number % self._every:
            return
        self._due = [scan for scan in self._scans if number % scan.ticks == 0 and scan.answers]
        if self._due:
            self._owned = True
            self._at = 0
            self._told = LOG.isEnabledFor(logging.DEBUG)
            self._guard.when_free(self._port, self._ask)

    def _next(self) -> None:
        guard = self._guard
        if self._at == len(self._due):
            self._owned = False
            guard.release(self._port)
        elif guard.ready(self._port):
            self._ask()
        else:  # the port settles, drains, or makes safe: stand in the queue again
            self._step = 0  # another may ask in between
            guard.when_free(self._port, self._ask)
            guard.release(self._port)

    def _ask(self) -> None:
        """Send the next scan on a port that is ours and ready."""
        request = self._due[self._at].scan.requests[self._step]
        if self._told:
            LOG.debug("%s > %r", self._port, request.frame)
        self._guard.exchange(self._port, request, None, self._done)

    def _done(self, reply: bytes | None, error: str) -> None:
        scan = self._due[self._at]
        if reply is not None and self._step < len(scan.scan.before):
            error = disobeyed(scan.scan.requests[self._step], reply)
            if not error:
                self._step += 1
                self._next()
                return
            self._fault(scan, error)
            reply = None
        self._at, self._step = self._at + 1, 0
        if self._told:
            LOG.debug("%s < %r %s", self._port, reply, error)
        if reply is not None:
            try:
                self._take(scan, self._decode(scan, reply))
            except (BadReply, DeviceFault) as why:  # the reading grows stale, and staleness trips
                if isinstance(why, BadReply):
                    self._guard.doubt(self._port)
                LOG.debug("%s: %s counts as silence: %s", self._port, scan.scan.name, why)
                if isinstance(why, DeviceFault):
                    self._fault(scan, str(why))
            finally:  # any other error fails the run, and the port is still free for making safe
                self._next()
        else:
            self._next()

    def _decode(self, scan: BoundScan, reply: bytes) -> tuple[float, ...]:
        """Return the values of a reply; most are the same, byte by byte, as the one before."""
        last = self._last.get(scan)
        if last is not None and last[0] == reply:
            return last[1]
        values = scan.scan.decode(reply)
        self._last[scan] = reply, values
        return values
