"""The simulator kit: everything that a simulator author imports."""

from labharness.instruments.simulation.bus import BusFaults as BusFaults
from labharness.instruments.simulation.bus import LoopEnvironment as LoopEnvironment
from labharness.instruments.simulation.bus import SimulatedBus as SimulatedBus
from labharness.instruments.simulation.bus import WireRecord as WireRecord
from labharness.instruments.simulation.faces import Face as Face
from labharness.instruments.simulation.faces import JsonFace as JsonFace
from labharness.instruments.simulation.faces import LineFace as LineFace
from labharness.instruments.simulation.faces import ModbusFace as ModbusFace
from labharness.instruments.simulation.faces import ModbusTcpFace as ModbusTcpFace
from labharness.instruments.simulation.faces import WireRefusal as WireRefusal
