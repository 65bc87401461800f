"""Find numbers that JSON cannot carry, or that another program may read differently."""

import math
from collections.abc import Mapping
from typing import Final

INTEGER_MAX: Final = 2**53 - 1
"""Beyond this, another program may read a different integer (RFC 7493, section 2.2)."""

PLACE_CHARACTERS: Final = 200


_Place = tuple["_Place", object] | tuple[()]
"""Where a value is: the place around it, and what is behind that."""


def value_fault(value: object, where: str) -> tuple[str, str] | None:
    """Return the place and the reason of the first number that JSON cannot carry, or None.

    Refuses NaN, infinities, and integers that another program may read differently.
    """
    pending: list[tuple[_Place, object]] = [((), value)]
    while pending:
        place, one = pending.pop()
        if isinstance(one, str):
            continue
        if isinstance(one, float) and not math.isfinite(one):
            return _shown(place, where), f"{one} is not a number that can be measured or set"
        if isinstance(one, int) and abs(one) > INTEGER_MAX:
            why = f"an integer beyond ±{INTEGER_MAX} is read differently by others"
            return _shown(place, where), why
        if isinstance(one, dict | Mapping):
            pending += [((place, key), item) for key, item in one.items()][::-1]
        elif isinstance(one, list | tuple):
            pending += [((place, index), item) for index, item in enumerate(one)][::-1]
    return None


def _shown(place: _Place, where: str) -> str:
    """Return a place in words; they are made for a fault alone, as most values have none."""
    if not place:
        return where
    around, last = place
    inside = f"[{last}]" if isinstance(last, int) else f".{str(last)[:80]}"
    return f"{_shown(around, where)[:PLACE_CHARACTERS]}{inside}"
