"""Honeywell Midas gas detector on Modbus TCP: read, never written.

Source: Honeywell Midas technical handbook, appendix A, "Modbus/TCP register map"; reference n is
address n - 40001 on the wire.
Verified: simulator only; never on hardware. The order of the two words of the concentration, and
where the unit stands, are a published third-party driver's (numat/midas).
"""

import math
import struct
from collections.abc import Mapping
from typing import ClassVar

from labharness.core.vocabulary import BadReply, Request
from labharness.instruments.driver import CONTACT, Channel, Identity, Query, Scan, fault
from labharness.instruments.driver.modbus import ModbusDriver

__all__ = ["HoneywellMidas"]

WORDS = 12  # 40001 to 40012
PPM = 1 << 8  # 40007: one bit of the high byte tells the unit; bit 0 is ppm
MODEL = "Honeywell Midas"


class HoneywellMidas(ModbusDriver):
    """Measures one gas at one point.

    The heartbeat toggles every 2 s: a detector that answers with a heartbeat that stands still
    is frozen, whatever concentration it shows.

    Args:
        unit: Modbus unit identifier.
    """

    tcp = True
    baud: ClassVar[int] = 0
    proves: ClassVar[tuple[str, ...]] = ("status",)
    unverified: ClassVar[str] = (
        "low word first in the concentration and the unit's bits in the high byte of 40007 "
        "(third-party driver)"
    )
    channels: Mapping[str, Channel] = {
        "concentration": Channel(
            unit="ppm", doc="Measure the gas at the detector.", source="references 40003-40004"
        ),
        "state": Channel(
            unit="",
            doc="Measure the state: 0 warm-up, 1 monitoring, 2-4 inhibited, 5-8 test and service.",
            source="reference 40001 bits 0-3",
            shows=(0.0, 15.0),
        ),
        "fault": Channel(
            unit="",
            doc="Measure the fault: 0 none, 1 maintenance, 2 instrument, 3 both.",
            source="reference 40001 bits 4-5",
            shows=(0.0, 3.0),
        ),
        "alarm_1": Channel(
            unit="",
            doc="Measure whether alarm 1 is active: 0 or 1.",
            source="reference 40001 bit 6",
            shows=CONTACT,
        ),
        "alarm_2": Channel(
            unit="",
            doc="Measure whether alarm 2 is active: 0 or 1.",
            source="reference 40001 bit 7",
            shows=CONTACT,
        ),
        "heartbeat": Channel(
            unit="",
            doc="Measure the bit that toggles every 2 s.",
            source="reference 40001 bit 11",
            shows=CONTACT,
        ),
        "fault_number": Channel(
            unit="",
            doc="Measure the number of the most severe fault: below 30 m.., else F..; 0 none.",
            source="reference 40006",
        ),
        "temperature": Channel(
            unit="degC", doc="Measure the detector's temperature.", source="reference 40008"
        ),
        "cell_life": Channel(
            unit="h",
            doc="Measure the hours left of the sensor cartridge.",
            source="reference 40009",
        ),
        "heartbeat_counter": Channel(
            unit="", doc="Measure the count of heartbeats.", source="reference 40010"
        ),
        "flow": Channel(
            unit="",
            doc="Measure the sample flow in cc/min as drawn (not at standard conditions).",
            source="reference 40011",
        ),
    }

    def __init__(self, *, unit: int = 1) -> None:
        super().__init__(unit=unit)
        self._words = self.words_of("status", WORDS)
        self._gas_words = self.words_of("identity", 1)
        request = self.read_registers(0, WORDS)
        self._scans = (Scan("status", request, tuple(self.channels), self._decode),)

    def scans(self) -> tuple[Scan, ...]:
        """Return the one block that holds everything."""
        return self._scans

    def identify(self) -> Query:
        """Read the gas and cartridge ids; the map holds no model, firmware or serial number."""
        return Query("identity", self.read_registers(1, 1), self._identity)

    def expects(self, identity: Identity) -> str:
        """Want a sensor cartridge.

        Its firmware is not judged: the map does not hold it.
        """
        if identity.details.get("cartridge_id", "0") != "0":
            return ""
        return f"{MODEL} at unit {self.unit} tells no sensor cartridge"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Refuse: nothing that inhibits a gas detector goes through this harness."""
        raise ValueError(f"{channel!r} cannot be set; a {MODEL} is only read")

    def _decode(self, reply: bytes) -> tuple[float, ...]:
        words = self._words(reply)
        status = words[0]
        if words[6] & 0xFF00 != PPM:
            raise fault("concentration", f"in another unit than ppm (40007 is {words[6]:04X}h)")
        concentration: float = struct.unpack(">f", struct.pack(">HH", words[3], words[2]))[0]
        if not math.isfinite(concentration):
            raise BadReply(f"concentration: {concentration} is no number")
        temperature = words[7] - 0x10000 if words[7] & 0x8000 else words[7]
        return (
            concentration,
            float(status & 0xF),
            float(status >> 4 & 3),
            float(status >> 6 & 1),
            float(status >> 7 & 1),
            float(status >> 11 & 1),
            float(words[5]),
            float(temperature),
            float(words[8]),
            float(words[9]),
            float(words[10]),
        )

    def _identity(self, reply: bytes) -> Identity:
        (word,) = self._gas_words(reply)
        return Identity(MODEL, details={"gas_id": str(word & 0xFF), "cartridge_id": str(word >> 8)})
