"""A persistent map: adding an entry makes a new map that shares the old entries.

The state of a lab's tasks is a value: each fact makes a new one. A copy of a dict of all tasks that
a lab ever had would cost more with each task.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

NEWEST_MAX: Final = 64
"""Most entries that are copied for each new one; all are copied when there are more."""


class PersistentMap(Mapping[K, V]):
    """Entries in the order in which their keys came, as in a dict.

    Args:
        known: Entries that it begins with.
    """

    __slots__ = ("_newest", "_shared", "_size")

    def __init__(self, known: Mapping[K, V] | None = None) -> None:
        self._shared: dict[K, V] = dict(known or {})
        self._newest: dict[K, V] = {}  # instead of those that are shared, or behind them
        self._size = len(self._shared)

    def with_entry(self, key: K, value: V) -> "PersistentMap[K, V]":
        """Return a mapping with one entry more, or another value of a key."""
        made: PersistentMap[K, V] = PersistentMap()
        made._size = self._size + (key not in self)
        made._shared, made._newest = self._shared, {**self._newest, key: value}
        if len(made._newest) > NEWEST_MAX:
            made._shared, made._newest = {**made._shared, **made._newest}, {}
        return made

    def __getitem__(self, key: K) -> V:
        """Return the value of a key."""
        return self._newest[key] if key in self._newest else self._shared[key]

    def __iter__(self) -> Iterator[K]:
        """Return the keys, the oldest first."""
        return chain(self._shared, self._behind(self._newest))

    def __reversed__(self) -> Iterator[K]:
        """Return the keys, the newest first."""
        return chain(self._behind(reversed(self._newest)), reversed(self._shared))

    def _behind(self, keys: Iterable[K]) -> Iterator[K]:
        return (each for each in keys if each not in self._shared)

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._size

    def __repr__(self) -> str:
        """Return it as a dict is shown."""
        return repr(dict(self))
