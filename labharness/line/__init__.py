"""One line: instruments behind their gate, polled, commanded and made safe."""

from labharness.line.alarms import LineAlarms, alarm_name
from labharness.line.command import Uploaded, programmer_of
from labharness.line.exchanges import NoReply
from labharness.line.hindrances import NotArmed, Room
from labharness.line.instrument import Contact, Instrument, PortTiming, read_frames
from labharness.line.line import COOL_WATCH_S_MAX, Line
from labharness.line.procedures import StepState, Verification, compile_procedures
from labharness.line.trip_response import HoldTooLong, Tripped, latch_lost

__all__ = [
    "COOL_WATCH_S_MAX",
    "Contact",
    "HoldTooLong",
    "Instrument",
    "Line",
    "LineAlarms",
    "NoReply",
    "NotArmed",
    "PortTiming",
    "Room",
    "StepState",
    "Tripped",
    "Uploaded",
    "Verification",
    "alarm_name",
    "compile_procedures",
    "latch_lost",
    "programmer_of",
    "read_frames",
]
