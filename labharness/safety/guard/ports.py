"""The ports of the guard process: they move bytes between the core and the descriptors."""

import selectors
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from threading import Thread

from labharness.core.vocabulary import Request
from labharness.instruments.link import LinkLost
from labharness.instruments.link.descriptors import Descriptor
from labharness.safety.guard.core import GuardCore, Permit
from labharness.safety.guard.duty import Duty
from labharness.safety.guard.port import DRAIN, IDLE, SENT, Finished, SafeFrame

REOPEN_S_MAX = 1.0  # a lost link is given this long
REOPEN_S = 1.0  # and is tried so often, however often it is asked for
UNTRIED = "it is not open"


class Ports:
    """Moves the core's bytes. It takes no decision.

    Args:
        core: The core, which decides.
        links: The link of each port, open or lost.
        selector: The selector that watches their descriptors.
        steady_s: The machine's steady clock.

    Attributes:
        duty: The open part of the procedure that was sent.
        on_safe: Called at the end of a safe frame's exchange, with its error.
        on_lost: Called when a link was lost: port and reason.
        tell: Called with ``ended`` and its fields at the end of a numbered exchange, and with
            ``free`` when a port has become free.
    """

    def __init__(
        self,
        core: GuardCore,
        links: Mapping[str, Descriptor],
        selector: selectors.BaseSelector,
        steady_s: Callable[[], float],
    ) -> None:
        self.core = core
        self.duty = Duty()
        self.on_safe: Callable[[SafeFrame, str], None]
        self.on_lost: Callable[[str, str], None]
        self.tell: Callable[..., None]
        self._links = dict(links)
        self._selector = selector
        self._steady_s = steady_s
        self._asked: dict[str, int | None] = dict.fromkeys(links)
        self._wanted: dict[str, None] = {}  # lost links that are needed, in order
        self._openings: dict[str, Thread] = {}  # by which some of them are being opened
        self._not_before_s = dict.fromkeys(links, 0.0)
        self._whys: dict[str, str] = {}  # why links were lost, or did not open

    @property
    def due_s(self) -> float:
        """When ``expire`` must be called next."""
        return min(port.due_s for port in self.core.ports.values())

    @property
    def busy(self) -> bool:
        """Whether something is on a wire, or waits for one."""
        return any(port.state is SENT or port.safe for port in self.core.ports.values())

    @property
    def making_safe(self) -> bool:
        """Whether a frame of a procedure is on a wire, or waits for one."""
        return any(port.makes_safe for port in self.core.ports.values())

    def free(self) -> list[str]:
        """Return the ports on which an exchange may begin."""
        return [
            name
            for name, port in self.core.ports.items()
            if port.state is IDLE and not port.safe and name not in self._openings
        ]

    def shut(self) -> dict[str, str]:
        """Return why each closed link is not open; ``""`` while it is being opened."""
        tried = (*self._wanted, *self._openings)
        closed = (name for name, link in self._links.items() if link.fileno() < 0)
        return {name: "" if name in tried else self._whys.get(name, UNTRIED) for name in closed}

    def watch(self) -> None:
        """Listen to every link that is open."""
        for name in self._links:
            self._listen(name)

    def _listen(self, name: str) -> None:
        """Listen to a link if it is open; what cannot be listened to is closed."""
        link = self._links[name]
        if link.fileno() >= 0:
            try:
                self._selector.register(link.fileno(), selectors.EVENT_READ, self._reader(name))
            except (OSError, ValueError, KeyError):
                link.close()

    def close(self) -> None:
        """Close every link."""
        for link in self._links.values():
            link.close()

    def send(self, name: str, request: Request, permit: Permit | None, number: int) -> None:
        """Begin an exchange; raises ``NotPermitted``, and then no byte was sent.

        On a link that is closed it fails, and the link is opened for the next time.
        """
        now = self._steady_s()
        frame = self.core.send(name, request, now, permit)
        self._asked[name] = number
        why = self._hand_over(name, frame)
        if why:
            self._want([name])
            self._end(name, why, now)

    def forget(self) -> None:
        """Drop the users of the exchanges under way: their harness has gone."""
        self._asked = dict.fromkeys(self._links)

    def trip(self, procedure: str) -> None:
        """Run a procedure: its first wave on all ports before anything else."""
        self._send_safe(self.core.trip(procedure))
        self.duty.begin(self.core.procedures[procedure])

    def repeat(self, frames: Collection[SafeFrame]) -> None:
        """Send frames of a procedure for a harness that has it in force."""
        self.duty.add(frames)
        self._send_again(frames)

    def insist(self, *, reading: bool) -> None:
        """Send the open frames again, and with ``reading`` the readings that show their values.

        Only a port that is still at its frames is left out: a silent port waits for its own
        time-outs, and delays no other.
        """
        at_it = {name for name, port in self.core.ports.items() if port.makes_safe}
        self._send_again(self.duty.due(at_it, reading=reading))

    def _send_again(self, frames: Collection[SafeFrame]) -> None:
        """Send frames; lost links among theirs are opened for the next time."""
        self._send_safe(self.core.queue(frames))
        self._want(frame.port for frame in frames)

    def want_closed(self) -> None:
        """Open the closed links: a harness has come that may need them."""
        self._want(self._links)

    def _want(self, names: Iterable[str]) -> None:
        self._wanted.update(dict.fromkeys(e for e in names if self._links[e].fileno() < 0))

    @property
    def may_reopen(self) -> bool:
        """Whether a lost link is wanted, or being opened."""
        return bool(self._wanted or self._openings)

    def reopen(self) -> None:
        """Open lost links that are wanted, each in a thread: no procedure waits for an address."""
        now = self._steady_s()
        for name, opening in list(self._openings.items()):
            if not opening.is_alive():
                del self._openings[name]
                self._listen(name)
                self.tell("free")
        for name in list(self._wanted):
            if self._links[name].fileno() >= 0:
                del self._wanted[name]
            elif name not in self._openings and now >= self._not_before_s[name]:
                del self._wanted[name]
                self._not_before_s[name] = now + REOPEN_S
                opening = Thread(target=self._open, args=(name,), daemon=True)
                with suppress(RuntimeError):  # no more threads: it is wanted again
                    opening.start()
                self._openings[name] = opening

    def _open(self, name: str) -> None:
        """Open a link; the next exchange on it reports a failure."""
        self._whys[name] = UNTRIED
        with suppress(Exception):  # a driver of the system may raise anything
            try:
                self._links[name].open(REOPEN_S_MAX)
            except LinkLost as why:
                self._whys[name] = str(why)

    def expire(self, now: float) -> None:
        """Let time pass on every port."""
        for name, port in self.core.ports.items():
            if port.due_s <= now:
                finished = port.expire(now)
                if finished is not None:
                    self._finish(name, finished)
                elif port.state is SENT:
                    self._go_on(name, now)
                else:
                    self.tell("free")

    def _reader(self, name: str) -> Callable[[], None]:
        port, link = self.core.ports[name], self._links[name]

        def read() -> None:
            now = self._steady_s()
            try:
                data = link.read()
            except LinkLost as why:
                self._lose(name, link, str(why), now)
                return
            if port.state is DRAIN and now >= port.due_s:
                port.expire(now)  # its quiet was over before these bytes came
                self.tell("free")
            was = port.state
            finished = port.feed(data, now)
            if finished is not None:
                self._finish(name, finished)
            elif port.state is not was:
                self.tell("free")  # no longer: these bytes were not asked for
            else:
                self._go_on(name, now)

        return read

    def doubt(self, name: str) -> None:
        """Take a port for out of step: the harness cannot read its last reply."""
        self.core.ports[name].doubt(self._steady_s())

    def _go_on(self, name: str, now: float) -> None:
        """Send what proves the last reply, if that is due."""
        frame = self.core.prove(name, now)
        if frame is not None and (why := self._hand_over(name, frame)):
            self._end(name, why, now)

    def _lose(self, name: str, link: Descriptor, why: str, now: float) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(link.fileno())
        link.close()
        self._whys[name] = why
        self.on_lost(name, why)
        self._end(name, why, now)

    def _hand_over(self, name: str, frame: bytes) -> str:
        """Write to a link; return the error if it is lost."""
        try:
            self._links[name].write(frame)
        except LinkLost as why:
            return str(why)
        return ""

    def _send_safe(self, names: Iterable[str]) -> None:
        """Send the next frame of each port; a lost link is reported after the last byte."""
        now = self._steady_s()
        lost = []
        gone = []
        for name in names:
            gone.append((name, self.core.ports[name].give_way(now)))
            frame = self.core.send_safe(name, now)
            if frame is not None:
                why = self._hand_over(name, frame)
                if why:
                    lost.append((name, why))
        for name, finished in gone:
            if finished is not None:
                self._finish(name, finished)
        for name, why in lost:
            self._end(name, why, now)

    def _end(self, name: str, why: str, now: float) -> None:
        finished = self.core.ports[name].lose(why, now)
        if finished is not None:
            self._finish(name, finished)

    def _finish(self, name: str, finished: Finished) -> None:
        if self.core.ports[name].safe:
            self._send_safe((name,))
        safe = finished.safe
        if safe is None:
            number, self._asked[name] = self._asked[name], None
            if number is not None:
                told = {"number": number, "reply": finished.reply, "error": finished.error}
                self.tell("ended", port=name, **told)
            return
        self.on_safe(safe, self.duty.ended(finished))
