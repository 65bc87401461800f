"""A journal that keeps nothing: for flights that are not real, and for a disk that is full."""

from collections.abc import Mapping, Sequence

from labharness.journal.chain import Head

__all__ = ["NullJournal"]


class NullJournal:
    """Counts records and keeps nothing; nothing can make it fail."""

    keeps = False

    def __init__(self) -> None:
        self._seq = 0

    @property
    def head(self) -> Head:
        """There is no chain."""
        return Head(self._seq, "")

    def append(self, kind: str, body: Mapping[str, object], at_s: float) -> int:
        """Count a record."""
        self._seq += 1
        return self._seq

    def commit(self) -> None:
        """Keep nothing."""

    async def durable(self, seq: int) -> None:
        """Keep nothing."""

    def stream(self, name: str, columns: Sequence[str]) -> int:
        """Every stream is stream 0."""
        return 0

    def sample(self, stream: int, at_s: float, values: Sequence[float]) -> None:
        """Keep nothing."""
