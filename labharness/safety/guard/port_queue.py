"""Whose turn it is on each port: one user at a time, in the order of asking; the patient last."""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from labharness.safety.guard.contract import PortBusy

__all__ = ["WAITING_MAX", "PortQueue"]

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
