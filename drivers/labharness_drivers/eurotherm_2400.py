"""Eurotherm 2400 series temperature controller (2404, 2408, 2416) on Modbus RTU.

Source: Eurotherm HA026230 issue 3, "2000 Series Communications" handbook, chapters 3 to 6.
Verified: simulator only; never on hardware. The register map is the maker's. Output in steps of
0.1 % is from a published EPICS support module; the steps of the setpoint rate and the exact
instrument ids are background knowledge.
"""

import math
from collections.abc import Sequence
from functools import partial

from labharness.core.vocabulary import BadReply, Program
from labharness.instruments.driver import (
    ANY,
    CONTACT,
    Adds,
    Block,
    Cools,
    Dark,
    Identity,
    Off,
    Programmer,
    Query,
    Wants,
    While,
    of,
    within,
)
from labharness.instruments.driver.modbus import Holding, ModbusDriver, ReadBlock

SERIES = 0x24  # HA026230, register 122: first two digits, 24 = 2400 series
DIN_SIZES = {0x4: "2404", 0x6: "2416", 0x8: "2408"}  # HA026230, register 122, third digit
RESET, RUN, HOLD, HOLDBACK, COMPLETE = 1, 2, 4, 8, 16  # HA026230, register 23
PROGRAM_1, PROGRAM_WORDS, SEGMENT_WORDS = 8328, 136, 8  # base 8192 is the program that runs
BLOCK_WORDS = 5  # of eight; those after it are for other controllers of the series
SEGMENTS_MAX = 16  # the last one used is an End
END, RAMP, DWELL, STEP = 0, 1, 3, 4  # segment type; 2 is a ramp given by its time, 5 a call
HOLDBACK_OFF, HOLDBACK_BAND = 0, 3
SECONDS, MINUTES = 0, 1
WORD_MAX = 32_767
_degrees = partial(Holding, step=of("step_c"), signed=True, unit="degC")
_percent = partial(Holding, step=0.1, signed=True, unit="%")  # eurothermModbus, Db/*.template
_flag = partial(Holding, 75)
_programmed = partial(Holding, fitted=of("slot"))


class Eurotherm2400(ModbusDriver):
    """Holds one heated zone at a temperature.

    The handbook names no communications watchdog: when no frame comes, it goes on heating.

    Args:
        unit: Modbus address.
        decimals: Decimal places of the instrument's display (0, 1 or 2); they scale every
            temperature on the wire, and no register tells them.
        program: Number of the stored program that this driver may write, 1 to 20; it leaves the
            others alone. 0 where the instrument has no programmer.
    """

    unverified = (
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
    document = "HA026230 register {address}"
    blocks = (
        # First the flags: a broken sensor is to be known before the reading it spoils.
        ReadBlock("status", 74, 2),
        ReadBlock("process", 1, 5),
        # As often as the setpoint: a person who sets one of these at the panel defeats a limit.
        ReadBlock("bounds", 30, 6),
        ReadBlock("mode", 273, 1),
        ReadBlock("program", 22, 2),
        ReadBlock("course", 56, 3, every_s=5.0),
        ReadBlock("left", 36, 1, every_s=5.0),
    )
    who = ReadBlock("identity", 107, 16)  # firmware (107) and instrument id (122)
    wants = Wants("model", "^Eurotherm 24", "{}; wanted a Eurotherm of the 2400 series")

    temperature = _degrees(
        1,
        sound_while=While("sensor_break", (0.0,), "the thermocouple is broken"),
        doc="Measure the process value.",
    )
    setpoint = _degrees(
        2,
        sets=ANY,
        acts_while=While("manual", (0.0,), "the controller is in manual", "mode"),
        doc="Control the target setpoint.",
    )
    output = _percent(
        3,
        sets=(0.0, 100.0),
        acts_while=While("manual", (1.0,), "the controller is in automatic", "mode"),
        own=None,  # in automatic the loop drives it, and the instrument refuses an output
        doc="Control the output level; in manual only, in automatic it shows the level.",
    )
    working_output = _percent(4, doc="Measure the output that the heater gets.")
    working_setpoint = _degrees(
        5, doc="Measure the setpoint that is held, which ramps towards the target."
    )
    alarm_1 = _flag(bit=0, doc="Measure whether alarm 1 is active: 0 or 1.")
    manual = _flag(
        bit=4, doc="Measure whether the output is set by hand, not by the controller: 0 or 1."
    )
    sensor_break = _flag(bit=5, doc="Measure whether the thermocouple is broken: 0 or 1.")
    loop_break = _flag(
        bit=6, doc="Measure whether the temperature does not answer the output: 0 or 1."
    )
    heater_fail = _flag(bit=7, doc="Measure whether the heater draws no current: 0 or 1.")
    output_high = _percent(
        30, sets=(0.0, 100.0), doc="Control the highest output that the loop may give."
    )
    setpoint_rate = Holding(
        35,
        step=of("step_c"),
        signed=True,
        sets=(0.0, 3276.7),
        unit="degC/min",
        doc="Control how fast the working setpoint ramps; 0 is at once.",
    )
    mode = Holding(
        273,
        sets={0: "automatic", 1: "manual"},
        shows=CONTACT,
        doc="Control who sets the output: 0 automatic, 1 manual.",
    )
    program = _programmed(
        22, sets=(0.0, 20.0), doc="Control which of the stored programs is run; in reset only."
    )
    program_status = _programmed(
        23,
        sets={RESET: "reset", RUN: "run", HOLD: "hold"},
        settle_s=1.0,
        own=(float(RESET), float(HOLDBACK), float(COMPLETE)),
        doc="Control the program: 1 reset, 2 run, 4 hold; it also shows 8 holdback, 16 complete.",
    )
    segment = _programmed(56, doc="Measure the number of the segment that runs.")
    segment_left = _programmed(36, unit="s", doc="Measure the time left of the segment.")
    program_left = _programmed(58, unit="s", doc="Measure the time left of the program.")

    def __init__(self, *, unit: int = 1, decimals: int = 1, program: int = 0) -> None:
        within("decimals", decimals, 0, 2)
        within("program (0 for no programmer)", program, 0, 20)
        self.step_c = 10.0**-decimals
        self.slot = program
        super().__init__(unit=unit)
        if program:
            self._base = PROGRAM_1 + PROGRAM_WORDS * (program - 1)
            self._queries = tuple([self._stored(at) for at in range(SEGMENTS_MAX + 1)])
            self.programmer = Programmer(
                setpoint="setpoint",
                rate="setpoint_rate",
                status="program_status",
                number="program",
                slot=program,
                reset=RESET,
                run=RUN,
                hold=HOLD,
                complete=COMPLETE,
                empty=self._block(1, END, 0, 0),
                blocks=self._blocks,
            )

    def known(self, words: Sequence[int]) -> Identity:
        """Read firmware and instrument id."""
        firmware, instrument = words[0], words[-1]
        if not instrument:
            raise BadReply("identity: register 122 is empty")
        model = f"id {instrument:04X}h"
        if instrument >> 8 == SERIES:
            model = DIN_SIZES.get(instrument >> 4 & 0xF, f"24xx ({model})")
        return Identity(f"Eurotherm {model}", f"{firmware >> 8:X}.{firmware & 0xFF:02X}")

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
            target = _word(target_c, self.step_c, f"{where}: its target in degC")
            if segment.target_c is None:
                length = _word(segment.dwell_s, unit_s, f"{where}: its length in s")
                rows.append(self._block(at, DWELL, target, length))
            elif rate:
                step = _word(rate, self.step_c, f"{where}: its rate in degC/min")
                rows.append(self._block(at, RAMP, target, step))
            else:
                rows.append(self._block(at, STEP, target, 0))
        rows.append(self._block(len(rows) + 1, END, 0, 0))  # End power 0, End type 0
        back = _word(program.holdback_c, self.step_c, "holdback in degC")
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

    def _stored(self, at: int) -> Query:
        """Return the query of one block: 0 is the general data, a segment follows by its number."""
        start = self._base + SEGMENT_WORDS * at
        block = ReadBlock(f"program block {at}", start, BLOCK_WORDS)
        return Query(block.name, self.read(block), self.split(block))


def _word(value: float, step: float, what: str) -> int:
    """Return a value as a whole number of steps; what is judged is what is written, to the step."""
    raw = round(value / step)
    if not math.isclose(raw * step, value, rel_tol=1e-9, abs_tol=1e-9) or abs(raw) > WORD_MAX:
        most = WORD_MAX * step
        raise ValueError(f"{what} is {value:g}; it takes steps of {step:g}, up to {most:g}")
    return raw
