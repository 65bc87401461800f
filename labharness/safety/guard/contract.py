"""The interface of the guard to a line, for every shell, and the queue of each port."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from labharness.core.vocabulary import Request, Trip
from labharness.core.vocabulary.texts import CodedError
from labharness.safety.guard.core import Permit
from labharness.safety.guard.port import SafeFrame

Done = Callable[[bytes | None, str], None]
Log = Sequence[Mapping[str, object]]


class PortBusy(CodedError, RuntimeError, code="port_busy"):
    """Too many users wait for a port."""


class LatchView(Protocol):
    """The interface of the latch to a line."""

    trip: Trip | None
    write_error: str

    def close(self, trip: Trip) -> None:
        """Latch."""

    def saved(self) -> bool:
        """Return whether the latch is on disk as it is in memory."""

    def probe(self) -> None:
        """Raise ``OSError`` if a latch could not be written now."""

    def set_marker(self, procedure: str) -> None:
        """Set the marker of an armed line; raise ``OSError`` if it does not reach the disk."""

    def clear_marker(self) -> None:
        """Take the armed marker away, unless it stands for a latch that is not on the disk."""

    def open(self) -> None:
        """Take latch and marker away."""


class Guard(Protocol):
    """The only way to the ports of a line.

    Attributes:
        latch: The latch.
        procedures: Frames of each procedure, in order of hazard.
        heartbeat_s: Period at which the control loop must call ``heartbeat``; ``inf`` for never.
        on_safe_frame: Called at the end of the exchange of each safe frame, with its error.
        on_trip: Called when the guard itself has tripped, or is gone.
        on_offline_log: Called with the log of the time without a harness; returns whether it is
            on a disk. Otherwise the guard keeps it for the next harness.
        on_link_lost: Called with a port and a reason when its link was lost, and will be opened
            again when something is asked of it; permits are void before.
    """

    latch: LatchView
    procedures: Mapping[str, tuple[SafeFrame, ...]]
    heartbeat_s: float
    on_safe_frame: Callable[[SafeFrame, str], None]
    on_trip: Callable[[Trip], None]
    on_offline_log: Callable[[Log], bool]
    on_link_lost: Callable[[str, str], None]

    def at(self, port: str) -> "Shell":
        """Return the guard of a port, for its turns and its exchanges."""

    def trip(self, trip: Trip) -> None:
        """Run a procedure: bytes first, then the latch; records come after, by the caller."""

    def repeat(self, frames: list[SafeFrame]) -> None:
        """Send frames of a procedure again, or for the first time without a trip."""

    def new_epoch(self) -> None:
        """Void every permit: something changed that a verdict may have rested on."""

    async def arm(self) -> None:
        """Let permits be made, once the marker of an armed line is on the disk.

        Raises:
            NotPermitted: The line is latched, or the guard says why it does not.
            OSError: the armed marker does not reach the disk.
        """

    def disarm(self) -> None:
        """Make the line read-only again."""

    def heartbeat(self, procedure: str) -> None:
        """Report that the control loop lives, and name the procedure to run if it dies."""

    async def reset(self) -> None:
        """Open the latch; the caller has checked the person and that the cause is gone.

        Raises:
            OSError: It does not open.
        """

    def close(self) -> None:
        """Close every link; nothing leaves afterwards."""


class Tells:
    """The listeners of a shell of the guard; they do nothing until a line sets its own."""

    def __init__(self) -> None:
        self.on_safe_frame: Callable[[SafeFrame, str], None] = lambda frame, error: None
        self.on_trip: Callable[[Trip], None] = lambda trip: None
        self.on_offline_log: Callable[[Log], bool] = lambda entries: False  # it is not kept
        self.on_link_lost: Callable[[str, str], None] = lambda port, why: None


WAITING_MAX = 256  # users waiting for one port at once


class Shell(Tells, ABC):
    """The ports of a shell of the guard: the turns of their users, and their exchanges.

    A port has one user at a time: ``when_free(port, start)`` calls ``start`` when the port is
    given to it, and the user returns it with ``release(port)``. A ``patient`` user comes after all
    others. Procedures do not wait for it.

    Args:
        ports: Their names.
    """

    def __init__(self, ports: Iterable[str]) -> None:
        super().__init__()
        self._waiting: dict[str, deque[Callable[[], None]]] = {name: deque() for name in ports}
        self._patient: dict[str, deque[Callable[[], None]]] = {
            name: deque() for name in self._waiting
        }
        self._taken = dict.fromkeys(self._waiting, False)

    def at(self, port: str) -> "Shell":
        """Return the guard of a port: this one."""
        return self

    @abstractmethod
    def ready(self, port: str) -> bool:
        """Return whether an exchange may begin on a port that the caller owns."""

    @abstractmethod
    def permit(self, port: str, request: Request) -> Permit:
        """Make a permit for a frame that the kernel has just allowed; raise ``NotPermitted``."""

    @abstractmethod
    def exchange(self, port: str, request: Request, permit: Permit | None, done: Done) -> None:
        """Send one frame now; ``done(reply, error)`` is called once, later.

        Raises:
            NotPermitted: Nothing was sent, and ``done`` is never called.
        """

    @abstractmethod
    def doubt(self, port: str) -> None:
        """Take a port for out of step: its last reply cannot be read."""

    def when_free(self, port: str, start: Callable[[], None], *, patient: bool = False) -> None:
        """Call ``start`` as soon as the port is free; it then owns the port until ``release``.

        A patient user stands behind all others.
        """
        waiting = (self._patient if patient else self._waiting)[port]
        if len(waiting) >= WAITING_MAX:
            raise PortBusy(f"{WAITING_MAX} users wait for port {port} already")
        waiting.append(start)
        self._offer(port)

    def leave(self, port: str, start: Callable[[], None]) -> None:
        """Leave the queues of a port."""
        for waiting in (self._waiting[port], self._patient[port]):
            with suppress(ValueError):  # it stands in the other, or had its turn
                waiting.remove(start)

    def release(self, port: str) -> None:
        """Return the port."""
        self._taken[port] = False
        self._offer(port)

    def _offer(self, port: str) -> bool:
        """Pass a free port to the next in its queue; return whether a user still waits."""
        while not self._taken[port] and (waiting := self._waiting[port] or self._patient[port]):
            if not self.ready(port):
                return True
            self._taken[port] = True
            waiting.popleft()()
        return False
