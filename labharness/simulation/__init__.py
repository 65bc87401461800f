"""The simulator kit: all a simulator author imports."""

from labharness.simulation.bus import BusFaults, SimulatedBus, WireRecord
from labharness.simulation.environment import LoopEnvironment
from labharness.simulation.faces import (
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
