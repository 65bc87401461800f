"""Honeywell Midas gas detector on Modbus TCP: read, never written.

Source: Honeywell Midas technical handbook, appendix A, "Modbus/TCP register map"; reference n is
address n - 40001 on the wire.
Verified: simulator only; never on hardware. The order of the two words of the concentration, and
where the unit stands, are a published third-party driver's (numat/midas).
"""

from collections.abc import Sequence

from labharness.core.vocabulary import Request
from labharness.instruments.driver import Identity, Wants, While
from labharness.instruments.driver.modbus import Holding, ModbusDriver, ReadBlock

MODEL = "Honeywell Midas"


class HoneywellMidas(ModbusDriver):
    """Measures one gas at one point.

    The heartbeat toggles every 2 s: a detector that answers with a heartbeat that stands still
    is frozen, whatever concentration it shows.

    Args:
        unit: Modbus unit identifier.
    """

    tcp = True
    baud = 0
    proves = ("status",)
    document = "register map, address {address}: reference {address} + 40001"
    unverified = (
        "low word first in the concentration and the unit's bits in the high byte of 40007 "
        "(third-party driver)"
    )
    blocks = (ReadBlock("status", 0, 12),)
    who = ReadBlock("identity", 1, 1)  # gas and cartridge; there is no model, firmware or serial
    wants = Wants("cartridge_id", "[1-9]", f"{MODEL} tells no sensor cartridge")

    ppm = Holding(
        6,
        bit=8,
        bits=8,
        must=1.0,  # one bit of the high byte tells the unit; bit 0 is ppm
        otherwise=", so the concentration is in another unit than ppm",
        hidden=True,
        doc="Measure which unit the concentration is in.",
    )
    concentration = Holding(
        2,
        size=2,
        real=True,
        low_first=True,
        sound_while=While("fault", (0.0, 1.0), "the instrument reports a fault of its own"),
        unit="ppm",
        doc="Measure the gas at the detector.",
    )
    state = Holding(
        0,
        bit=0,
        bits=4,
        doc="Measure the state: 0 warm-up, 1 monitoring, 2-4 inhibited, 5-8 test and service.",
    )
    fault = Holding(
        0, bit=4, bits=2, doc="Measure the fault: 0 none, 1 maintenance, 2 instrument, 3 both."
    )
    alarm_1 = Holding(0, bit=6, doc="Measure whether alarm 1 is active: 0 or 1.")
    alarm_2 = Holding(0, bit=7, doc="Measure whether alarm 2 is active: 0 or 1.")
    heartbeat = Holding(0, bit=11, doc="Measure the bit that toggles every 2 s.")
    fault_number = Holding(
        5, doc="Measure the number of the most severe fault: below 30 m.., else F..; 0 none."
    )
    temperature = Holding(
        7, step=1.0, signed=True, unit="degC", doc="Measure the detector's temperature."
    )
    cell_life = Holding(8, unit="h", doc="Measure the hours left of the sensor cartridge.")
    heartbeat_counter = Holding(9, doc="Measure the count of heartbeats.")
    flow = Holding(
        10, doc="Measure the sample flow in cc/min as drawn (not at standard conditions)."
    )

    def known(self, words: Sequence[int]) -> Identity:
        """Read which gas and which cartridge."""
        gas, cartridge = words[0] & 0xFF, words[0] >> 8
        return Identity(MODEL, details={"gas_id": str(gas), "cartridge_id": str(cartridge)})

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Refuse: nothing that inhibits a gas detector goes through this harness."""
        raise ValueError(f"{channel!r} cannot be set; a {MODEL} is only read")
