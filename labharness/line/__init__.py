"""One line: instruments behind their gate, polled, commanded and made safe."""

from labharness.line.alarms import LineAlarms as LineAlarms
from labharness.line.exchanges import NoReply as NoReply
from labharness.line.hindrances import NotArmed as NotArmed
from labharness.line.hindrances import Room as Room
from labharness.line.instrument import Contact as Contact
from labharness.line.instrument import Instrument as Instrument
from labharness.line.line import Line as Line
from labharness.line.trip_response import HoldTooLong as HoldTooLong
from labharness.line.trip_response import Tripped as Tripped
