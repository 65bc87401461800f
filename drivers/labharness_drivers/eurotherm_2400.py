"""Eurotherm 2400 series temperature controller (2404, 2408, 2416) on Modbus RTU.

Source: Eurotherm HA026230 issue 3, "2000 Series Communications" handbook, chapters 3 to 6.
Verified: simulator only; never on hardware. The register map is the maker's. Output in steps of
0.1 % is from a published EPICS support module; the steps of the setpoint rate and the exact
instrument ids are background knowledge.
"""

import math
from typing import ClassVar

from labharness.core.vocabulary import BadReply, Program, Request
from labharness.instruments.driver import (
    CONTACT,
    Adds,
    Block,
    Channel,
    Cools,
    Dark,
    Identity,
    Off,
    Programmer,
    Query,
    Scan,
    While,
)
from labharness.instruments.driver.modbus import ModbusDriver, Register

__all__ = ["Eurotherm2400"]

PERCENT_STEP = 0.1  # eurothermModbus, Db/*.template: output times 0.1
SERIES = 0x24  # HA026230, register 122: first two digits, 24 = 2400 series
DIN_SIZES = {0x4: "2404", 0x6: "2416", 0x8: "2408"}  # HA026230, register 122, third digit
RANGES = {  # what a heating loop can mean by these; the envelope says what a line allows
    "output": (0.0, 100.0),
    "output_high": (0.0, 100.0),
    "setpoint_rate": (0.0, 3276.7),
    "mode": (0.0, 1.0),
    "program": (0.0, 20.0),
}
CHOICES = {  # what a status word may be set to
    "mode": {0: "automatic", 1: "manual"},
    "program_status": {1: "reset", 2: "run", 4: "hold"},
}
RESET, RUN, HOLD, HOLDBACK, COMPLETE = 1, 2, 4, 8, 16  # HA026230, register 23
PROGRAM_1, PROGRAM_WORDS, SEGMENT_WORDS = 8328, 136, 8  # base 8192 is the program that runs
BLOCK_WORDS = 5  # of eight; those after it are for other controllers of the series
SEGMENTS_MAX = 16  # the last one used is an End
END, RAMP, DWELL, STEP = 0, 1, 3, 4  # segment type; 2 is a ramp given by its time, 5 a call
HOLDBACK_OFF, HOLDBACK_BAND = 0, 3
SECONDS, MINUTES = 0, 1
WORD_MAX = 32_767


class Eurotherm2400(ModbusDriver):
    """Holds one heated zone at a temperature.

    The handbook knows no communications watchdog: when nobody talks to it, it goes on heating.

    Args:
        unit: Modbus address.
        decimals: Decimal places of the instrument's display (0, 1 or 2); they scale every
            temperature on the wire, and no register tells them.
        program: Number of the stored program that is ours to write, 1 to 20; the others are left
            alone. 0 where the instrument has no programmer.
    """

    baud: ClassVar[int] = 9600  # register 12548: 0 = 9600, 1 = 19200
    unverified: ClassVar[str] = (
        "output in steps of 0.1 % (third-party driver); setpoint rate and ramp rate in display "
        "steps per minute, instrument ids 24x0h, End type 0 as a reset, and that the words a "
        "segment does not use keep what is written (background knowledge)"
    )
    off = (
        Off(
            adds=Adds.HEAT,
            steps=(("mode", 1.0), ("output", 0.0)),  # in automatic it refuses an output
            source="HA026230 registers 273 (mA) and 3 (OP)",
            drives=("setpoint", "output"),
            dark=Dark(channel="working_output", at_most=0.05, within_s=2.0, before_relay=True),
            # A sheathed thermocouple lags by 8 s, a massive one by half a minute (background
            # knowledge); 2 degC are ten times its noise; 60 degC may be touched.
            cools=Cools(channel="temperature", lag_s=60.0, over_s=60.0, rise_max=2.0, above=60.0),
        ),
    )
    timeout_s = 0.7  # a read of several words takes up to 500 ms, its bytes at 9600 baud 50 ms
    settle_s = 0.02  # master wait period, 20 ms on the 2400

    def __init__(self, *, unit: int = 1, decimals: int = 1, program: int = 0) -> None:
        super().__init__(unit=unit)
        if decimals not in (0, 1, 2):
            raise ValueError(f"decimals {decimals!r} is not 0, 1 or 2 (display decimal places)")
        if not 0 <= program <= 20:
            raise ValueError(f"program {program!r} is not within 1 to 20, or 0 for no programmer")
        step_c = 10.0**-decimals
        self.channels = _channels(step_c) | (_PROGRAM_CHANNELS if program else {})
        process = {
            "temperature": Register(1, step_c, signed=True),
            "setpoint": Register(2, step_c, signed=True),
            "output": Register(3, PERCENT_STEP, signed=True),
            "working_output": Register(4, PERCENT_STEP, signed=True),
            "working_setpoint": Register(5, step_c, signed=True),
        }
        status = {
            "alarm_1": Register(75, bit=0),
            "manual": Register(75, bit=4),
            "sensor_break": Register(75, bit=5),
            "loop_break": Register(75, bit=6),
            "heater_fail": Register(75, bit=7),
        }
        bounds = {
            "output_high": Register(30, PERCENT_STEP, signed=True),
            "setpoint_rate": Register(35, step_c, signed=True),
        }
        mode = {"mode": Register(273)}
        self._registers = process | bounds | mode
        self._scans: tuple[Scan, ...] = (
            # First the flags: a broken sensor is to be known before the reading it spoils.
            self.block("status", 74, 2, status),
            self.block("process", 1, 5, process),
            # As often as the setpoint: whoever sets one of these by other hands defeats a limit.
            self.block("bounds", 30, 6, bounds),
            self.block("mode", 273, 1, mode),
        )
        self._identity_words = self.words_of("identity", 16)
        self._step_c = step_c
        self._base = PROGRAM_1 + PROGRAM_WORDS * (program - 1)
        self._queries: tuple[Query, ...] = ()
        if program:
            self._add_programmer(program)

    def scans(self) -> tuple[Scan, ...]:
        """Return the four blocks, none longer than six words, and the programmer's three."""
        return self._scans

    def queries(self) -> tuple[Query, ...]:
        """Return a frame for each block of the stored program that is ours."""
        return self._queries

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
        """Return the one frame (function 06) that sets a channel.

        ``output`` is taken in manual mode only; in automatic the instrument refuses it.
        """
        spec = self.settable(channel)
        low, high = RANGES.get(channel, (-math.inf, math.inf))
        if not low <= value <= high:
            raise ValueError(f"{channel} {value} {spec.unit} is not within {low} to {high}")
        choices = CHOICES.get(channel)
        if choices is not None and value not in choices:
            known = ", ".join(f"{number} ({name})" for number, name in choices.items())
            raise ValueError(f"{channel} {value} is none of {known}")
        register = self._registers[channel]
        (word,) = register.encode(value)
        return (self.write_register(register.address, word),)

    def shown(self, channel: str, value: float) -> Request | None:
        """Read the one register that was written."""
        register = self._registers[channel]
        (word,) = register.encode(value)
        return self.shows_word(register.address, word)

    def _add_programmer(self, number: int) -> None:
        status = {"program": Register(22), "program_status": Register(23)}
        course = {"segment": Register(56), "program_left": Register(58)}
        left = {"segment_left": Register(36)}
        self._registers |= status
        self._scans += (
            self.block("program", 22, 2, status),
            self.block("course", 56, 3, course, period_s=5.0),
            self.block("left", 36, 1, left, period_s=5.0),
        )
        self._queries = tuple(
            Query(
                f"program block {at}",
                self.read_registers(self._base + SEGMENT_WORDS * at, BLOCK_WORDS),
                self.words_of(f"program block {at}", BLOCK_WORDS),
            )
            for at in range(SEGMENTS_MAX + 1)
        )
        self.programmer = Programmer(
            setpoint="setpoint",
            rate="setpoint_rate",
            status="program_status",
            number="program",
            slot=number,
            reset=RESET,
            run=RUN,
            hold=HOLD,
            complete=COMPLETE,
            empty=self._block(1, END, 0, 0),
            blocks=self._blocks,
        )

    def _blocks(self, program: Program) -> tuple[Block, ...]:
        """Return a program's blocks, the first segment last (HA026230, programmer data)."""
        segments, course = program.segments, program.course()
        if len(segments) >= SEGMENTS_MAX:
            most = SEGMENTS_MAX - 1
            raise ValueError(f"{len(segments)} segments; it stores {most} and the end")
        unit, unit_s = SECONDS, 1
        if any(each.dwell_s > WORD_MAX for each in segments):
            unit, unit_s = MINUTES, 60
        rows = []
        for at, (segment, (target_c, rate)) in enumerate(zip(segments, course, strict=True), 1):
            where = f"segment {at} ({segment})"
            target = _word(target_c, self._step_c, f"{where}: its target in degC")
            if segment.target_c is None:
                length = _word(segment.dwell_s, unit_s, f"{where}: its length in s")
                rows.append(self._block(at, DWELL, target, length))
            elif rate:
                step = _word(rate, self._step_c, f"{where}: its rate in degC/min")
                rows.append(self._block(at, RAMP, target, step))
            else:
                rows.append(self._block(at, STEP, target, 0))
        rows.append(self._block(len(rows) + 1, END, 0, 0))  # End power 0, End type 0
        back = _word(program.holdback_c, self._step_c, "holdback in degC")
        kind = HOLDBACK_BAND if back else HOLDBACK_OFF
        general = self._block(0, kind, back, MINUTES, unit, 1)  # ramps per minute, one cycle
        return (general, *reversed(rows))

    def _block(self, at: int, *words: int) -> Block:
        """Make one block: 0 is the general data, a segment follows by its number."""
        holds = (*words, *(0,) * (BLOCK_WORDS - len(words)))  # no calls, no logic outputs
        name = f"segment {at}" if at else "general data"
        unsigned = [each & 0xFFFF for each in holds]
        write = self.write_registers(self._base + SEGMENT_WORDS * at, unsigned)
        return Block(name, write, self._queries[at], tuple(unsigned))

    def _identity(self, reply: bytes) -> Identity:
        words = self._identity_words(reply)
        firmware, instrument = words[0], words[-1]
        if not instrument:
            raise BadReply("identity: register 122 is empty")
        model = f"id {instrument:04X}h"
        if instrument >> 8 == SERIES:
            model = DIN_SIZES.get(instrument >> 4 & 0xF, f"24xx ({model})")
        return Identity(f"Eurotherm {model}", f"{firmware >> 8:X}.{firmware & 0xFF:02X}")


def _word(value: float, step: float, what: str) -> int:
    """Return a value as a whole number of steps; what is judged is what is written, to the step."""
    raw = round(value / step)
    if not math.isclose(raw * step, value, rel_tol=1e-9, abs_tol=1e-9) or abs(raw) > WORD_MAX:
        most = WORD_MAX * step
        raise ValueError(f"{what} is {value:g}; it takes steps of {step:g}, up to {most:g}")
    return raw


_PROGRAM_CHANNELS: dict[str, Channel] = {
    "program": Channel(
        unit="",
        doc="Control which of the stored programs is run; in reset only.",
        source="HA026230 register 22 (PN)",
        settable=True,
        readback="program",
    ),
    "program_status": Channel(
        unit="",
        doc="Control the program: 1 reset, 2 run, 4 hold; it also shows 8 holdback, 16 complete.",
        source="HA026230 register 23 (PC)",
        settable=True,
        readback="program_status",
        settle_s=1.0,
        own=(float(RESET), float(HOLDBACK), float(COMPLETE)),
    ),
    "segment": Channel(
        unit="",
        doc="Measure the number of the segment that runs.",
        source="HA026230 register 56 (SN)",
    ),
    "segment_left": Channel(
        unit="s",
        doc="Measure the time left of the segment.",
        source="HA026230 register 36 (TS)",
    ),
    "program_left": Channel(
        unit="s",
        doc="Measure the time left of the program.",
        source="HA026230 register 58 (TP)",
    ),
}


def _channels(step_c: float) -> dict[str, Channel]:
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
            acts_while=While("manual", (0.0,), "the controller is in manual"),
        ),
        "output": Channel(
            unit="%",
            doc="Control the output level; in manual only, in automatic it shows the level.",
            source="HA026230 register 3 (OP)",
            settable=True,
            readback="output",
            resolution=PERCENT_STEP,
            acts_while=While("manual", (1.0,), "the controller is in automatic"),
            own=None,  # in automatic the loop drives it
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
            shows=CONTACT,
        ),
        "manual": Channel(
            unit="",
            doc="Measure whether the output is set by hand, not by the controller: 0 or 1.",
            source="HA026230 register 75 (SO) bit 4",
            shows=CONTACT,
        ),
        "sensor_break": Channel(
            unit="",
            doc="Measure whether the thermocouple is broken: 0 or 1.",
            source="HA026230 register 75 (SO) bit 5",
            shows=CONTACT,
        ),
        "loop_break": Channel(
            unit="",
            doc="Measure whether the temperature does not answer the output: 0 or 1.",
            source="HA026230 register 75 (SO) bit 6",
            shows=CONTACT,
        ),
        "heater_fail": Channel(
            unit="",
            doc="Measure whether the heater draws no current: 0 or 1.",
            source="HA026230 register 75 (SO) bit 7",
            shows=CONTACT,
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
            shows=CONTACT,
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
