"""One line: instruments behind their gate, polled, commanded and made safe."""

from labharness.line.alarms import LineAlarms, alarm_name
from labharness.line.cooling import COLD_C, watch_until_cold
from labharness.line.ended import NotArmed, Tripped
from labharness.line.exchanges import NoReply
from labharness.line.holding import HoldTooLong
from labharness.line.latched import latch_lost
from labharness.line.line import Line
from labharness.line.parts import Instrument, PortTiming, read_frames
from labharness.line.procedures import StepState, Verification, compile_procedures
from labharness.line.room import Room
from labharness.line.upload import Uploaded, programmer_of
from labharness.line.wire import Finding, PortCost, check_wires, port_costs
from labharness.line.wiring import Contact

__all__ = [
    "COLD_C",
    "Contact",
    "Finding",
    "HoldTooLong",
    "Instrument",
    "Line",
    "LineAlarms",
    "NoReply",
    "NotArmed",
    "PortCost",
    "PortTiming",
    "Room",
    "StepState",
    "Tripped",
    "Uploaded",
    "Verification",
    "alarm_name",
    "check_wires",
    "compile_procedures",
    "latch_lost",
    "port_costs",
    "programmer_of",
    "read_frames",
    "watch_until_cold",
]
