"""Bytes under way on a wire: put in together, they arrive one after the other."""

from collections import deque

GRID_S = 1e-6  # a byte's timer may fire this much early


class Wire:
    """One direction of one line. It has no clock: each call passes the time.

    Args:
        byte_s: Time of one byte; 0 for a link without wire time.
        free_s: End of the wire time of another client's bytes.

    Attributes:
        free_s: Time at which the last byte has arrived.
    """

    def __init__(self, byte_s: float, free_s: float = 0.0) -> None:
        self._byte_s = byte_s
        # start time of the first byte, and the bytes
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._count = 0
        self.free_s = free_s

    def __len__(self) -> int:
        """Return the number of bytes on the wire, arrived or not."""
        return self._count

    def put(self, data: bytes, now_s: float) -> None:
        """Put bytes behind those under way."""
        start_s = max(now_s, self.free_s)
        self._pieces.append((start_s, data))
        self._count += len(data)
        self.free_s = start_s + len(data) * self._byte_s

    def whole(self) -> bytes:
        """Return all bytes on the wire."""
        if len(self._pieces) == 1:
            return self._pieces[0][1]
        return b"".join(data for _, data in self._pieces)

    def due_s(self, count: int) -> float:
        """Return the time at which the first ``count`` bytes have arrived."""
        for start_s, data in self._pieces:
            if count <= len(data):
                return start_s + count * self._byte_s
            count -= len(data)
        return self.free_s

    def arrived(self, now_s: float) -> int:
        """Return how many bytes have arrived by now."""
        count = 0
        for start_s, data in self._pieces:
            if start_s > now_s + GRID_S:
                break
            passed_s = now_s + GRID_S - start_s
            here = min(len(data), int(passed_s / self._byte_s)) if self._byte_s else len(data)
            count += here
            if here < len(data):
                break
        return count

    def take(self, count: int) -> bytes:
        """Remove and return the first ``count`` bytes."""
        taken = []
        while count and self._pieces:
            start_s, data = self._pieces.popleft()
            here = min(count, len(data))
            taken.append(data[:here])
            if here < len(data):
                self._pieces.appendleft((start_s + here * self._byte_s, data[here:]))
            count -= here
            self._count -= here
        return b"".join(taken)
