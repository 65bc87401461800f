"""One line: instruments behind their gate, polled, commanded and made safe."""

from labharness.line.alarms import LineAlarms
from labharness.line.exchanges import NoReply
from labharness.line.hindrances import NotArmed, Room
from labharness.line.instrument import Contact, Instrument
from labharness.line.line import Line
from labharness.line.trip_response import HoldTooLong, Tripped

__all__ = [
    "Contact",
    "HoldTooLong",
    "Instrument",
    "Line",
    "LineAlarms",
    "NoReply",
    "NotArmed",
    "Room",
    "Tripped",
]
