"""Find numbers that JSON cannot carry, or that another program may read differently."""

import math
from collections.abc import Mapping
from typing import Final

__all__ = ["INTEGER_MAX", "PLACE_CHARACTERS", "value_fault"]

INTEGER_MAX: Final = 2**53 - 1
"""Beyond this, another program may read a different integer (RFC 7493, section 2.2)."""

PLACE_CHARACTERS: Final = 200


def value_fault(value: object, where: str) -> tuple[str, str] | None:
    """Return the place and the reason of the first number that JSON cannot carry, or None.

    Refuses NaN, infinities, and integers that another program may read differently.
    """
    pending: list[tuple[str, object]] = [(where, value)]
    while pending:
        place, one = pending.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return place, f"{one} is not a number that can be measured or set"
        if isinstance(one, int) and abs(one) > INTEGER_MAX:
            return place, f"an integer beyond ±{INTEGER_MAX} is read differently by others"
        if isinstance(one, Mapping):
            place = place[:PLACE_CHARACTERS]
            pending.extend((f"{place}.{str(key)[:80]}", item) for key, item in one.items())
        elif isinstance(one, list | tuple):
            place = place[:PLACE_CHARACTERS]
            pending.extend((f"{place}[{index}]", item) for index, item in enumerate(one))
    return None
