"""Eurotherm 2400 series temperature controller (2404, 2408, 2416) on Modbus RTU.

Source: Eurotherm HA026230 issue 3, "2000 Series Communications" handbook, chapters 3 to 6.
Verified: simulator only; never on hardware. The register map is the maker's. Output in steps of
0.1 % is from a published EPICS support module; the steps of the setpoint rate and the exact
instrument ids are background knowledge.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

from labharness.driver import Channel, Identity, Query, Scan
from labharness.driver.modbus import ModbusDriver, Register
from labharness.vocabulary import BadReply, Request

__all__ = ["Eurotherm2400"]

PERCENT_STEP = 0.1  # eurothermModbus, Db/*.template: output times 0.1
SERIES = 0x24  # HA026230, register 122: first two digits, 24 = 2400 series
DIN_SIZES = {0x4: "2404", 0x6: "2416", 0x8: "2408"}  # HA026230, register 122, third digit
RANGES = {  # what a heating loop can mean by these; the envelope says what a line allows
    "output": (0.0, 100.0),
    "output_high": (0.0, 100.0),
    "setpoint_rate": (0.0, 3276.7),
    "mode": (0.0, 1.0),
}


class Eurotherm2400(ModbusDriver):
    """Holds one heated zone at a temperature.

    The handbook knows no communications watchdog: when nobody talks to it, it goes on heating.

    Args:
        unit: Modbus address.
        decimals: Decimal places of the instrument's display (0, 1 or 2); they scale every
            temperature on the wire, and no register tells them.
    """

    baud: ClassVar[int] = 9600  # register 12548: 0 = 9600, 1 = 19200
    unverified: ClassVar[str] = (
        "output in steps of 0.1 % (third-party driver); setpoint rate in display steps per minute "
        "and instrument ids 24x0h (background knowledge)"
    )
    timeout_s = 0.7  # a read of several words takes up to 500 ms, its bytes at 9600 baud 50 ms
    settle_s = 0.02  # master wait period, 20 ms on the 2400

    def __init__(self, *, unit: int = 1, decimals: int = 1) -> None:
        super().__init__(unit=unit)
        if decimals not in (0, 1, 2):
            raise ValueError(f"decimals {decimals!r} is not 0, 1 or 2 (display decimal places)")
        step_c = 10.0**-decimals
        self.channels = _channels(step_c)
        process = {
            "temperature": Register(1, step_c, signed=True),
            "setpoint": Register(2, step_c, signed=True),
            "output": Register(3, PERCENT_STEP, signed=True),
            "working_output": Register(4, PERCENT_STEP, signed=True),
            "working_setpoint": Register(5, step_c, signed=True),
        }
        status = {
            "alarm_1": Register(75, bit=0),
            "sensor_break": Register(75, bit=5),
            "loop_break": Register(75, bit=6),
            "heater_fail": Register(75, bit=7),
        }
        rate = {"setpoint_rate": Register(35, step_c, signed=True)}
        mode = {"mode": Register(273)}
        limit = {"output_high": Register(30, PERCENT_STEP, signed=True)}
        self._registers = process | rate | mode | limit
        self._scans = (
            # First the flags: a broken sensor is to be known before the reading it spoils.
            self.block("status", 74, 2, status),
            self.block("process", 1, 5, process),
            self.block("rate", 35, 1, rate, period_s=30.0),
            self.block("mode", 273, 1, mode, period_s=30.0),
            self.block("limit", 30, 1, limit, period_s=60.0),
        )
        self._identity_words = self.words_of("identity", 16)

    def scans(self) -> tuple[Scan, ...]:
        """Give the five blocks, none longer than five words."""
        return self._scans

    def identify(self) -> Query:
        """Read firmware (107) and instrument id (122) in one frame."""
        return Query("identity", self.read_registers(107, 16), self._identity)

    def expects(self, identity: Identity) -> str:
        """Want a controller of the 2400 series.

        Its firmware is not judged: no source says which is too old.
        """
        if identity.model.startswith("Eurotherm 24"):
            return ""
        return f"{identity.model} at unit {self.unit}; wanted a Eurotherm of the 2400 series"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Give the one frame (function 06) that sets a channel.

        ``output`` is taken in manual mode only; in automatic the instrument refuses it.
        """
        spec = self.settable(channel)
        low, high = RANGES.get(channel, (-math.inf, math.inf))
        if not low <= value <= high:
            raise ValueError(f"{channel} {value} {spec.unit} is not within {low} to {high}")
        if channel == "mode" and value not in (0, 1):
            raise ValueError(f"mode {value} is neither 0 (automatic) nor 1 (manual)")
        register = self._registers[channel]
        (word,) = register.encode(value)
        return (self.write_register(register.address, word),)

    def _identity(self, reply: bytes) -> Identity:
        words = self._identity_words(reply)
        firmware, instrument = words[0], words[-1]
        if not instrument:
            raise BadReply("identity: register 122 is empty")
        model = f"id {instrument:04X}h"
        if instrument >> 8 == SERIES:
            model = DIN_SIZES.get(instrument >> 4 & 0xF, f"24xx ({model})")
        return Identity(f"Eurotherm {model}", f"{firmware >> 8:X}.{firmware & 0xFF:02X}")


def _channels(step_c: float) -> Mapping[str, Channel]:
    return {
        "temperature": Channel(
            unit="degC", doc="Measure the process value.", source="HA026230 register 1 (PV)"
        ),
        "setpoint": Channel(
            unit="degC",
            doc="Control the target setpoint.",
            source="HA026230 register 2 (SL)",
            settable=True,
            readback="setpoint",
            resolution=step_c,
        ),
        "output": Channel(
            unit="%",
            doc="Control the output level; in manual only, in automatic it shows the level.",
            source="HA026230 register 3 (OP)",
            settable=True,
            readback="output",
            resolution=PERCENT_STEP,
        ),
        "working_output": Channel(
            unit="%",
            doc="Measure the output that the heater gets.",
            source="HA026230 register 4 (WO)",
        ),
        "working_setpoint": Channel(
            unit="degC",
            doc="Measure the setpoint that is held, which ramps towards the target.",
            source="HA026230 register 5 (SP)",
        ),
        "alarm_1": Channel(
            unit="",
            doc="Measure whether alarm 1 is active: 0 or 1.",
            source="HA026230 register 75 (SO) bit 0",
        ),
        "sensor_break": Channel(
            unit="",
            doc="Measure whether the thermocouple is broken: 0 or 1.",
            source="HA026230 register 75 (SO) bit 5",
        ),
        "loop_break": Channel(
            unit="",
            doc="Measure whether the temperature does not answer the output: 0 or 1.",
            source="HA026230 register 75 (SO) bit 6",
        ),
        "heater_fail": Channel(
            unit="",
            doc="Measure whether the heater draws no current: 0 or 1.",
            source="HA026230 register 75 (SO) bit 7",
        ),
        "setpoint_rate": Channel(
            unit="degC/min",
            doc="Control how fast the working setpoint ramps; 0 is at once.",
            source="HA026230 register 35 (RR)",
            settable=True,
            readback="setpoint_rate",
            resolution=step_c,
        ),
        "mode": Channel(
            unit="",
            doc="Control who sets the output: 0 automatic, 1 manual.",
            source="HA026230 register 273 (mA)",
            settable=True,
            readback="mode",
        ),
        "output_high": Channel(
            unit="%",
            doc="Control the highest output that the loop may give.",
            source="HA026230 register 30 (HO)",
            settable=True,
            readback="output_high",
            resolution=PERCENT_STEP,
        ),
    }
