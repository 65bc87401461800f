"""The only home of time, ids, chance and entropy."""

from labharness.clock.chance import Chance
from labharness.clock.loops import Deadlock, PacedLoop, VirtualLoop, failure_of, run
from labharness.clock.times import (
    VIRTUAL_EPOCH,
    Clock,
    monotonic_ns,
    rest,
    utc_text,
    wall_clock_utc,
)

__all__ = [
    "VIRTUAL_EPOCH",
    "Chance",
    "Clock",
    "Deadlock",
    "PacedLoop",
    "VirtualLoop",
    "failure_of",
    "monotonic_ns",
    "rest",
    "run",
    "utc_text",
    "wall_clock_utc",
]
