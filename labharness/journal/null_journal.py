"""A journal that stores nothing, for pre-flights and for a full disk."""

from collections.abc import Mapping, Sequence

from labharness.journal.chain import Head


class NullJournal:
    """A journal that only counts its records; it cannot fail."""

    keeps = False

    def __init__(self) -> None:
        self._seq = 0

    @property
    def head(self) -> Head:
        """The number of records, without a hash."""
        return Head(self._seq, "")

    def append(self, kind: str, body: Mapping[str, object], at_s: float) -> int:
        """Count a record."""
        self._seq += 1
        return self._seq

    def commit(self) -> None:
        """Do nothing."""

    async def durable(self, seq: int) -> None:
        """Return at once."""

    def stream(self, name: str, columns: Sequence[str]) -> int:
        """Return 0 for every stream."""
        return 0

    def sample(self, stream: int, at_s: float, values: Sequence[float]) -> None:
        """Drop the row."""
