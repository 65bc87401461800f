"""The only home of time, ids, chance and entropy.

Names that need asyncio are imported at their first use: the guard process runs without asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from labharness.core.clock.chance import Chance
from labharness.core.clock.process import monotonic_ns, pause, steady_s, utc_text, wall_clock_utc

if TYPE_CHECKING:
    from labharness.core.clock.loops import (
        Deadlock,
        PacedLoop,
        VirtualLoop,
        begin,
        failure_of,
        finish,
        poster,
        run,
    )
    from labharness.core.clock.times import VIRTUAL_EPOCH, Clock

__all__ = [
    "VIRTUAL_EPOCH",
    "Chance",
    "Clock",
    "Deadlock",
    "PacedLoop",
    "VirtualLoop",
    "begin",
    "failure_of",
    "finish",
    "monotonic_ns",
    "pause",
    "poster",
    "run",
    "steady_s",
    "utc_text",
    "wall_clock_utc",
]

_TAKES_ASYNCIO = {
    "VIRTUAL_EPOCH": "times",
    "Clock": "times",
    "Deadlock": "loops",
    "PacedLoop": "loops",
    "VirtualLoop": "loops",
    "begin": "loops",
    "failure_of": "loops",
    "finish": "loops",
    "poster": "loops",
    "run": "loops",
}


def __getattr__(name: str) -> object:
    module = _TAKES_ASYNCIO.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
