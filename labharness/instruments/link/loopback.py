"""A link inside the process, to a simulated bus."""

from collections.abc import Callable

from labharness.instruments.link.links import LinkLost, RemoteEnd, nobody


class LoopbackLink:
    """A link to a remote end in the same process.

    After ``close``, bytes that are still under way in either direction are dropped, as for a
    process that was killed.
    """

    kind = "loopback"

    def __init__(self, remote_end: RemoteEnd) -> None:
        self._remote_end = remote_end
        self._is_open = False
        self.receive: Callable[[bytes], None] = nobody

    async def open(self) -> None:
        """Open; this cannot fail."""
        self._is_open = True

    def write(self, data: bytes) -> None:
        """Send the bytes to the simulated bus."""
        if not self._is_open:
            raise LinkLost("loopback is closed")
        self._remote_end.transmit(data, self._deliver)

    def close(self) -> None:
        """Drop all bytes from now on."""
        self._is_open = False

    def _deliver(self, data: bytes) -> None:
        if self._is_open:
            self.receive(data)
