"""The only home of time, ids, chance and entropy."""

from labharness.clock.chance import Chance
from labharness.clock.loops import (
    Deadlock,
    PacedLoop,
    VirtualLoop,
    begin,
    failure_of,
    finish,
    run,
)
from labharness.clock.times import VIRTUAL_EPOCH, Clock, utc_text, wall_clock_utc

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
    "run",
    "utc_text",
    "wall_clock_utc",
]
