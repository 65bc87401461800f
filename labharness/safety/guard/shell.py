"""The guard on the event loop: links, timers and the latch file around the core."""

import asyncio
from collections.abc import Callable, Mapping

from labharness.core.clock import poster
from labharness.core.vocabulary import Request, Trip
from labharness.instruments.link import Link, LinkLost
from labharness.safety.guard.contract import Done, LatchView, Shell
from labharness.safety.guard.core import GuardCore, NotPermitted, Permit
from labharness.safety.guard.duty import Duty
from labharness.safety.guard.port import DRAIN, IDLE, SENT, Finished, Port, SafeFrame

GRID_S = 1e-6  # the loop's timers stand on a grid, and may fire this much early


class LoopGuard(Shell):
    """Moves the core's bytes. It takes no decision.

    It dies with the harness, so it needs no heartbeat, trips nothing by itself, and is never away.
    It opens no link again: a lost link stays lost.

    One timer watches all exchanges. It is armed at or before the first one's end and looks again
    when it was early, so that an exchange which is answered in time costs it nothing. A port that
    keeps quiet has a timer only while a user waits for it.

    Args:
        core: The core, which decides.
        links: The link of each port; ``receive`` of each is taken over.
        latch: The latch.

    Attributes:
        duty: The open part of the procedure that ran last.
    """

    heartbeat_s = float("inf")

    def __init__(self, core: GuardCore, links: Mapping[str, Link], latch: LatchView) -> None:
        super().__init__(links)
        self.core = core
        self.procedures: Mapping[str, tuple[SafeFrame, ...]] = core.procedures
        self.latch: LatchView = latch
        self.duty = Duty()
        self._loop = asyncio.get_running_loop()
        self._links = dict(links)
        self._done: dict[str, Done | None] = dict.fromkeys(links)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = float("inf")
        self._closed = False
        self._post_at = poster(self._loop)
        self._quiet: dict[str, float] = {}  # of a port that is waited for: when its quiet ends
        for name, link in links.items():
            link.receive = self._receiver(name)
        if latch.trip is not None:
            core.latched = True
        for port in core.ports.values():
            self._watch(port)  # a core that was taken over may have an exchange on the wire

    def permit(self, port: str, request: Request) -> Permit:
        """Make a permit for a frame that the kernel has just allowed."""
        return self.core.permit(port, request.frame, self._loop.time())

    def exchange(self, port: str, request: Request, permit: Permit | None, done: Done) -> None:
        """Send one frame now; ``done(reply, error)`` is called once, later.

        Raises:
            NotPermitted: The core refuses, or the links are closed. Nothing was sent, and
                ``done`` is never called.
        """
        if self._closed:
            raise NotPermitted(f"port {port} is closed")
        now = self._loop.time()
        frame = self.core.send(port, request, now, permit)
        self._done[port] = done
        self._hand_over(port, frame, now)

    def ready(self, port: str) -> bool:
        """Return whether an exchange may begin on a port that the caller owns."""
        state = self.core.ports[port]
        if state.state is DRAIN and state.due_s <= (now := self._loop.time()):
            state.expire(now)  # perhaps no user waited for the end of its quiet
        return state.state is IDLE and not state.safe and not self._closed

    def doubt(self, port: str) -> None:
        """Take a port for out of step: its last reply cannot be read."""
        self.core.ports[port].doubt(self._loop.time())

    def trip(self, trip: Trip) -> None:
        """Run a procedure: bytes first, then the latch; records come after, by the caller."""
        for port in self.core.trip(trip.procedure):
            self._send_safe(port)
        self.duty.begin(self.procedures[trip.procedure])
        self.latch.close(trip)

    def give_up(self, why: str) -> None:
        """End all requests that are not answered: another guard had the ports meanwhile."""
        for port, done in self._done.items():
            if done is not None and self.core.ports[port].state is not SENT:
                self._done[port] = None
                done(None, why)
                self._offer(port)

    def repeat(self, frames: list[SafeFrame]) -> None:
        """Send single steps of a procedure again (verification found them not done)."""
        self.duty.add(frames)
        for port in self.core.queue(frames):
            self._send_safe(port)

    def insist(self, *, reading: bool) -> None:
        """Send the open frames again on idle ports; with ``reading``, read back as well."""
        ports = self.core.ports.items()
        at_it = {name for name, each in ports if each.safe or each.state is SENT}
        for port in self.core.queue(self.duty.due(at_it, reading=reading)):
            self._send_safe(port)

    def new_epoch(self) -> None:
        """Void every permit: something changed that a verdict may have rested on."""
        self.core.new_epoch()

    async def arm(self) -> None:
        """Let permits be made; raises ``NotPermitted`` while latched, ``OSError`` if unmarked."""
        self.latch.set_marker("")  # it names no procedure: this guard begins with nothing by itself
        self.core.arm()

    def disarm(self) -> None:
        """Make the line read-only again."""
        self.core.disarm()
        self.latch.saved()  # the disk may have been mended while the line cooled
        self.latch.clear_marker()

    def heartbeat(self, procedure: str) -> None:
        """Do nothing: this guard dies with the loop."""

    async def reset(self) -> None:
        """Open the latch; raises ``OSError`` if the file does not go."""
        self.latch.open()
        self.core.reset()
        self.duty.end()

    def close(self) -> None:
        """Close every link; nothing leaves afterwards."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._quiet.clear()
        for link in self._links.values():
            link.close()

    def _receiver(self, port: str) -> Callable[[bytes], None]:
        state = self.core.ports[port]
        loop = self._loop

        def receive(data: bytes) -> None:
            now = loop.time()
            if state.state is DRAIN and now - state.due_s > GRID_S:
                state.expire(now)  # its quiet was over before these bytes came
            finished = state.feed(data, now)
            if finished is not None:
                self._finish(port, finished)
            else:
                self._go_on(state, now)

        return receive

    def _go_on(self, state: Port, now: float) -> None:
        """Send what proves the last reply, if that is due, and wait on."""
        frame = self.core.prove(state.name, now)
        if frame is not None:
            self._hand_over(state.name, frame, now)
        self._watch(state)

    def _hand_over(self, port: str, frame: bytes, now: float) -> None:
        try:
            self._links[port].write(frame)
        except LinkLost as why:
            finished = self.core.ports[port].lose(str(why), now)
            if finished is not None:
                self._loop.call_soon(self._finish, port, finished)
        state = self.core.ports[port]
        if state.due_s < self._timer_s:  # else the armed timer comes before
            self._watch(state)

    def _send_safe(self, port: str) -> None:
        now = self._loop.time()
        gone = self.core.ports[port].give_way(now)
        frame = self.core.send_safe(port, now)
        if frame is not None:
            self._quiet.pop(port, None)
            self._hand_over(port, frame, now)
        if gone is not None:
            self._finish(port, gone)

    def _finish(self, port: str, finished: Finished) -> None:
        if finished.safe is not None:
            self.on_safe_frame(finished.safe, self.duty.ended(finished))
        state = self.core.ports[port]
        if state.safe:
            self._send_safe(port)
        if finished.safe is None:
            done, self._done[port] = self._done[port], None
            if done is not None:
                done(finished.reply, finished.error)
        if not self._taken[port] and port not in self._quiet:
            self._offer(port)  # also if no user owned the exchange any more

    def _offer(self, port: str) -> bool:
        waits = super()._offer(port)
        if waits and port not in self._quiet:
            state = self.core.ports[port]
            if state.state is DRAIN:
                self._quiet[port] = due_s = state.due_s
                self._post_at(due_s, self._end_quiet, (port, due_s))
        return waits

    def _end_quiet(self, ends: tuple[str, float]) -> None:
        port, due_s = ends
        if self._quiet.get(port) != due_s:
            return  # a safe frame has gone out meanwhile, or the links are closed
        del self._quiet[port]
        state = self.core.ports[port]
        if state.state is DRAIN:
            state.expire(due_s)  # now, though the loop's grid may lie just below it
        self._offer(port)

    def _watch(self, state: Port) -> None:
        if state.state is SENT and state.due_s < self._timer_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_s = state.due_s
            self._timer = self._loop.call_at(state.due_s, self._expire)

    def _expire(self) -> None:
        # what was due at _timer_s is due now, though the loop's grid may lie just below it
        now = max(self._loop.time(), self._timer_s)
        self._timer = None
        self._timer_s = float("inf")
        for name, port in self.core.ports.items():
            if port.state is SENT and port.due_s <= now:
                finished = port.expire(now)
                if finished is not None:
                    self._finish(name, finished)
                else:
                    self._go_on(port, now)
        for port in self.core.ports.values():
            self._watch(port)
