"""The armed marker, which follows the heartbeats; a thread writes it, so no disk holds up a trip.

Arming, disarming and reset write and remove the armed marker by themselves, once this has ended.
"""

from contextlib import suppress
from threading import Thread

from labharness.safety.guard.latch import Latch

__all__ = ["ArmedMarker"]

APART_S = 1.0  # heartbeats may change their mind ten times a second; a disk need not


class ArmedMarker:
    """Writes one marker at a time, and the last that was wanted in the end.

    Args:
        latch: Whose marker it is.

    Attributes:
        wanted: The procedure that the last heartbeat named.
    """

    def __init__(self, latch: Latch) -> None:
        self.wanted = ""
        self._latch = latch
        self._thread: Thread | None = None
        self._next_s = 0.0

    @property
    def busy(self) -> bool:
        """Whether a marker is on its way to the disk."""
        return self._thread is not None and self._thread.is_alive()

    def follow(self, now: float) -> None:
        """Begin to write what is wanted, where it is not written yet; waits for nothing."""
        if self.wanted == self._latch.marker or now < self._next_s or self.busy:
            return
        self._next_s = now + APART_S
        self._thread = Thread(target=self._write, args=(self.wanted,), daemon=True)
        with suppress(RuntimeError):  # no more threads: what is marked is for this line too
            self._thread.start()

    def wait(self, within_s: float | None = None) -> None:
        """Wait until no marker is on its way."""
        if self._thread is not None and self.busy:
            self._thread.join(within_s)

    def _write(self, procedure: str) -> None:
        with suppress(OSError):  # the name that stands there is one for this line too
            self._latch.set_marker(procedure)
