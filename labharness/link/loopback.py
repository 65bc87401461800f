"""The loopback: a road inside the process, to a simulated bus."""

from collections.abc import Callable

from labharness.link.roads import FarEnd, LinkLost, nobody

__all__ = ["LoopbackLink"]


class LoopbackLink:
    """Hands bytes to a far end in the same process.

    Closing fences the road: what is still under way from either side is dropped, as it is for a
    process that was killed.
    """

    kind = "loopback"

    def __init__(self, far_end: FarEnd) -> None:
        self._far_end = far_end
        self._is_open = False
        self.receive: Callable[[bytes], None] = nobody

    async def open(self) -> None:
        """Open; there is nothing that could fail."""
        self._is_open = True

    def write(self, data: bytes) -> None:
        """Hand the bytes to the simulated bus."""
        if not self._is_open:
            raise LinkLost("loopback is closed")
        self._far_end.transmit(data, self._deliver)

    def close(self) -> None:
        """Fence the road."""
        self._is_open = False

    def _deliver(self, data: bytes) -> None:
        if self._is_open:
            self.receive(data)
