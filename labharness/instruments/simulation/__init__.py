"""The simulator kit: everything that a simulator author imports."""

from labharness.instruments.simulation.bus import (
    BusFaults,
    LoopEnvironment,
    SimulatedBus,
    WireRecord,
)
from labharness.instruments.simulation.faces import (
    Face,
    JsonFace,
    LineFace,
    ModbusFace,
    ModbusTcpFace,
    WireRefusal,
)

__all__ = [
    "BusFaults",
    "Face",
    "JsonFace",
    "LineFace",
    "LoopEnvironment",
    "ModbusFace",
    "ModbusTcpFace",
    "SimulatedBus",
    "WireRecord",
    "WireRefusal",
]
