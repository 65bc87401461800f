"""The guard as a line sees it, whichever shell stands behind, and whose turn it is on each port."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from labharness.core.errors import LabError
from labharness.core.vocabulary import Request, Trip
from labharness.safety.guard.core import Permit, SafeFrame

__all__ = ["WAITING_MAX", "Done", "Guard", "LatchView", "Log", "PortBusy", "PortQueue", "Tells"]

Done = Callable[[bytes | None, str], None]
Log = Sequence[Mapping[str, object]]


class PortBusy(LabError, RuntimeError, code="port_busy"):
    """More users wait for a port than ever should."""


class LatchView(Protocol):
    """The latch as a line sees it; the file is its owner's."""

    trip: Trip | None
    write_error: str

    def close(self, trip: Trip) -> None:
        """Latch."""
        ...

    def saved(self) -> bool:
        """Return whether the latch is on disk as it is in memory."""
        ...

    def probe(self) -> None:
        """Raise ``OSError`` if a latch could not be written now."""
        ...

    def set_marker(self, procedure: str) -> None:
        """Set the marker of an armed line; raise ``OSError`` if it does not reach the disk."""
        ...

    def clear_marker(self) -> None:
        """Take the armed marker away, unless it stands for a latch that is not on the disk."""
        ...

    def open(self) -> None:
        """Take latch and marker away."""
        ...


class Guard(Protocol):
    """The only way to the ports of a line.

    A port has one user at a time: ``when_free(port, start)`` calls ``start`` when the port is
    given to it, and the user gives it back with ``release(port)``. Who is ``patient`` comes after
    all others. Procedures do not ask.

    Attributes:
        latch: Where the latch is kept.
        procedures: Their frames, in order of hazard.
        heartbeat_s: How often the control loop is to call ``heartbeat``; ``inf`` for never.
        on_safe_frame: Called with each frame of a procedure whose exchange has ended, and why it
            failed.
        on_trip: Called when the guard itself has tripped, or is gone.
        on_offline_log: Called with the log of what happened without a harness; says whether
            it is kept. What is not, the guard keeps for the next one.
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

    def when_free(self, port: str, start: Callable[[], None], *, patient: bool = False) -> None:
        """Call ``start`` as soon as the port is free; it then owns the port until ``release``."""
        ...

    def leave(self, port: str, start: Callable[[], None]) -> None:
        """Stand in the queue of a port no more."""
        ...

    def release(self, port: str) -> None:
        """Give the port back."""
        ...

    def ready(self, port: str) -> bool:
        """Return whether an exchange may begin on a port that the caller owns."""
        ...

    def permit(self, port: str, request: Request) -> Permit:
        """Make a permit for a frame that the kernel has just allowed; raise ``NotPermitted``."""
        ...

    def exchange(self, port: str, request: Request, permit: Permit | None, done: Done) -> None:
        """Send one frame now; ``done(reply, error)`` is called once, later.

        Raises:
            NotPermitted: Nothing was sent, and ``done`` is never called.
        """
        ...

    def trip(self, trip: Trip) -> None:
        """Run a procedure: bytes first, then the latch; records come after, by the caller."""
        ...

    def repeat(self, frames: list[SafeFrame]) -> None:
        """Send frames of a procedure again, or for the first time without a trip."""
        ...

    def new_epoch(self) -> None:
        """Void every permit: something changed that a verdict may have rested on."""
        ...

    async def arm(self) -> None:
        """Let permits be made, once the marker of an armed line is on the disk.

        Raises:
            NotPermitted: The line is latched, or the guard says why it does not.
            OSError: the armed marker does not reach the disk.
        """
        ...

    def disarm(self) -> None:
        """Make the line read-only again."""
        ...

    def heartbeat(self, procedure: str) -> None:
        """Say that the control loop lives, and which procedure fits if it should not."""
        ...

    async def reset(self) -> None:
        """Open the latch; that the cause is gone and who asks is the caller's to establish.

        Raises:
            OSError: It does not open.
        """
        ...

    def close(self) -> None:
        """Close every link; nothing leaves afterwards."""
        ...


class Tells:
    """What every shell of the guard tells of: nobody, until a line listens."""

    def __init__(self) -> None:
        self.on_safe_frame: Callable[[SafeFrame, str], None] = lambda frame, error: None
        self.on_trip: Callable[[Trip], None] = lambda trip: None
        self.on_offline_log: Callable[[Log], bool] = lambda entries: False  # nobody keeps it
        self.on_link_lost: Callable[[str, str], None] = lambda port, why: None


WAITING_MAX = 256  # users waiting for one port at once


class PortQueue:
    """Keeps the queues of all ports.

    Args:
        ports: Their names.
        ready: Says whether an exchange may begin on a port now.
    """

    def __init__(self, ports: Iterable[str], ready: Callable[[str], bool]) -> None:
        self.waiting: dict[str, deque[Callable[[], None]]] = {name: deque() for name in ports}
        self.patient: dict[str, deque[Callable[[], None]]] = {
            name: deque() for name in self.waiting
        }
        self.taken: dict[str, bool] = dict.fromkeys(self.waiting, False)
        self._ready = ready

    def when_free(self, port: str, start: Callable[[], None], *, patient: bool = False) -> None:
        """Stand in the queue of a port, or behind all who stand there."""
        waiting = (self.patient if patient else self.waiting)[port]
        if len(waiting) >= WAITING_MAX:
            raise PortBusy(f"{WAITING_MAX} users wait for port {port} already")
        waiting.append(start)

    def leave(self, port: str, start: Callable[[], None]) -> None:
        """Stand in no queue of a port any more."""
        for waiting in (self.waiting[port], self.patient[port]):
            with suppress(ValueError):  # it stands in the other, or had its turn
                waiting.remove(start)

    def release(self, port: str) -> None:
        """Give a port back."""
        self.taken[port] = False

    def offer(self, port: str) -> bool:
        """Pass a free port to the next in its queue; return whether somebody still waits."""
        while not self.taken[port] and (waiting := self.waiting[port] or self.patient[port]):
            if not self._ready(port):
                return True
            self.taken[port] = True
            waiting.popleft()()
        return False
