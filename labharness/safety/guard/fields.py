"""Strict reading of JSON objects with the standard library: every key asked for, none left over."""

import math
from collections.abc import Mapping

__all__ = ["BadFields", "Fields"]

WHOLE_MAX = 2**63 - 1  # what canonical bytes hold


class BadFields(ValueError):
    """An object says something that cannot be; the message names where, and what is allowed."""


class Fields:
    """One JSON object, whose keys are taken one by one.

    Args:
        value: What was parsed.
        where: What to call it in a message.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise BadFields(f"{where} is no object")
        self._left: dict[str, object] = dict(value)
        self.where = where

    def take(self, key: str) -> object:
        """Take what stands under ``key``, whatever it is."""
        if key not in self._left:
            raise BadFields(f"{self.where} has no {key!r}")
        return self._left.pop(key)

    def text(self, key: str) -> str:
        """Take a text."""
        value = self.take(key)
        if not isinstance(value, str):
            raise BadFields(f"{self.where}: {key} {value!r} is no text")
        return value

    def one_of(self, key: str, allowed: Mapping[str, object] | tuple[str, ...]) -> str:
        """Take a text that is one of a few."""
        value = self.text(key)
        if value not in allowed:
            raise BadFields(f"{self.where}: {key} {value!r} is none of {', '.join(allowed)}")
        return value

    def whole(self, key: str) -> int:
        """Take a whole number from 0 on."""
        value = self.take(key)
        if type(value) is not int or not 0 <= value <= WHOLE_MAX:
            raise BadFields(f"{self.where}: {key} {str(value)[:40]} is no whole number from 0 on")
        return value

    def number(self, key: str) -> float:
        """Take a finite number."""
        value = self.take(key)
        if type(value) is int and abs(value) <= WHOLE_MAX:
            return float(value)
        if type(value) is float and math.isfinite(value):
            return value
        raise BadFields(f"{self.where}: {key} {str(value)[:40]} is no finite number")

    def seconds(self, key: str, at_most: float) -> float:
        """Take a time from 0 to ``at_most`` (s)."""
        value = self.number(key)
        if not 0 <= value <= at_most:
            raise BadFields(f"{self.where}: {key} is {value:g} s, allowed 0 to {at_most:g} s")
        return value

    def flag(self, key: str) -> bool:
        """Take true or false."""
        value = self.take(key)
        if not isinstance(value, bool):
            raise BadFields(f"{self.where}: {key} {value!r} is neither true nor false")
        return value

    def raw(self, key: str) -> bytes:
        """Take bytes, written in hexadecimal."""
        value = self.text(key)
        try:
            return bytes.fromhex(value)
        except ValueError:
            raise BadFields(f"{self.where}: {key} {value[:40]!r} is no hexadecimal") from None

    def items(self, key: str) -> list[object]:
        """Take a list."""
        value = self.take(key)
        if not isinstance(value, list):
            raise BadFields(f"{self.where}: {key} is no list")
        return value

    def inside(self, key: str) -> "Fields":
        """Take an object."""
        return Fields(self.take(key), f"{self.where}, {key}")

    def names(self) -> tuple[str, ...]:
        """Return the keys that are left."""
        return tuple(self._left)

    def has(self, key: str) -> bool:
        """Return whether ``key`` is there; for the few that may be left out."""
        return key in self._left

    def null(self, key: str) -> bool:
        """Return whether null stands under ``key``, which must be there; a null is taken."""
        found = key in self._left and self._left[key] is None
        if found:
            del self._left[key]
        return found

    def end(self) -> None:
        """Refuse what nobody asked for."""
        if self._left:
            raise BadFields(f"{self.where}: unknown {', '.join(map(repr, sorted(self._left)))}")
