"""The wire face of a Eurotherm 2400 temperature controller, with its PID loop and its programmer.

Written from Eurotherm HA026230 issue 3, chapters 3 to 6. Not simulated: autotune, the IEEE region,
bit functions 01, 02 and 05, the detection of heater failure and loop break; of the programmer:
calls, logic outputs and editing the running program. A program starts from the process value,
continues in manual mode, and continues after a power dip where it was (background knowledge; a real
instrument is commissioned either way).

The integral rests while the error is beyond the proportional band. With PB 20 degC, Ti 200 s and Td
15 s a 1200 W tube furnace overshoots a step by less than 2 degC, and the end of a ramp by half a
degree for each degC/min.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from labharness.instruments.simulation import LoopEnvironment, ModbusFace, WireRefusal

PV, SL, OP, WO, SP = 1, 2, 3, 4, 5
PROPORTIONAL, INTEGRAL, DERIVATIVE = 6, 8, 9
ALARM_1, OUTPUT_HIGH, OUTPUT_LOW, BREAK_OUTPUT, RATE = 13, 30, 31, 34, 35
FAST_STATUS, SUMMARY, FIRMWARE, SP_HIGH, SP_LOW = 74, 75, 107, 111, 112
MAKER, INSTRUMENT, ADDRESS, BREAK_FLAG, MANUAL, ACKNOWLEDGE = 121, 122, 131, 258, 273, 274
PROGRAM, PROGRAM_STATUS, SEGMENT_TYPE, SEGMENT_LEFT = 22, 23, 29, 36
SEGMENT, PROGRAM_LEFT, CYCLES_LEFT, SEGMENT_TARGET, SEGMENT_RATE, PROGRAM_SP = (
    56,
    58,
    59,
    160,
    161,
    163,
)

READ_ONLY = frozenset(
    {PV, WO, SP, FAST_STATUS, SUMMARY, FIRMWARE, MAKER, INSTRUMENT, ADDRESS, BREAK_FLAG}
)
COURSE = frozenset(
    {SEGMENT_TYPE, SEGMENT_LEFT, SEGMENT, PROGRAM_LEFT, CYCLES_LEFT}
    | {SEGMENT_TARGET, SEGMENT_RATE, PROGRAM_SP}
)
LAST_ADDRESS = 12_550  # the last address of the map: the resolution of the serial line
ALARM_BIT, MANUAL_BIT, BREAK_BIT = 1 << 0, 1 << 4, 1 << 5
OUT_OF_RANGE_BIT = 1 << 10
OVER_RANGE_C = 1400.0  # reading of a type K input with an open thermocouple
WORD_MAX = 32_767
STORED_FROM, STORED_EACH, STORED_PROGRAMS = 8192, 136, 20  # number 0 is the running copy
PARTS, PART_WORDS = 17, 8  # general data and 16 segments
IS_RESET, IS_RUN, IS_HOLD, IS_HOLDBACK, IS_COMPLETE = 1, 2, 4, 8, 16
T_END, T_RAMP, T_RAMP_TIME, T_DWELL, T_STEP = 0, 1, 2, 3, 4
END_RESET, END_DWELL, END_OUTPUT = 0, 1, 2
UNIT_S = (1, 60, 3600)


class Simulator(ModbusFace):
    """One controller on one heated zone.

    ``part`` has ``temperature_c`` and ``sensor_broken`` to read, ``power_fraction`` to set, and
    calls ``controller`` at each step of the plant with the step in s.

    Args:
        pid: Proportional band in degC, integral time in s, derivative time in s.
        setpoint_high_c: Register 111 as commissioned.
        program: Above 0 the programmer option is fitted, with 20 stored programs.
    """

    functions = (3, 4, 6, 7, 16)

    def __init__(
        self,
        env: LoopEnvironment,
        part: Any,  # noqa: ANN401 - a plant's part, or a stand-in with the same names
        chance: random.Random,
        *,
        unit: int = 1,
        decimals: int = 1,
        program: int = 0,
        pid: Sequence[float] = (20.0, 200.0, 15.0),
        setpoint_high_c: float = 1200.0,
    ) -> None:
        super().__init__(unit)
        self._part = part
        self._chance = chance
        self._per_degree = int(10**decimals)
        self._integral_c = 0.0
        self._slope_c_per_s = 0.0
        self._output_percent = 0.0
        self._pv_c = self._measured_c()
        self._working_c = 0.0
        band_c, integral_s, derivative_s = pid
        self._words = {
            SL: 0,
            OP: 0,
            PROPORTIONAL: self._degrees(band_c),
            INTEGRAL: round(integral_s),
            DERIVATIVE: round(derivative_s),
            ALARM_1: self._degrees(setpoint_high_c),
            OUTPUT_HIGH: 1000,
            OUTPUT_LOW: 0,
            BREAK_OUTPUT: 0,
            RATE: 0,
            FIRMWARE: 0x0304,
            SP_HIGH: self._degrees(setpoint_high_c),
            SP_LOW: 0,
            MAKER: 0,
            INSTRUMENT: 0x2480,
            ADDRESS: unit,
            MANUAL: 0,
            ACKNOWLEDGE: 0,
        }
        self._made: dict[int, Callable[[], int]] = {  # parameters that are made when read
            PV: lambda: self._degrees(self._measured_c()),
            SP: lambda: self._degrees(self._working_c),
            WO: lambda: self._output(),
            OP: lambda: self._words[OP] if self._words[MANUAL] else self._output(),
            FAST_STATUS: lambda: self._status() & 0xFF,
            SUMMARY: lambda: self._status(),
            BREAK_FLAG: lambda: int(self._part.sensor_broken),
        }
        self._programmer = _Programmer(self._per_degree) if program else None
        part.controller = self.step

    def step(self, dt_s: float) -> None:
        """Advance the loop by ``dt_s`` and drive the heater."""
        words = self._words
        pv_c = self._measured_c()
        programmer = self._programmer
        if dt_s > 0:
            if programmer is not None:
                programmer.step(pv_c, dt_s)
            self._ramp(pv_c, dt_s)
            self._differentiate(pv_c, dt_s)
        self._pv_c = pv_c
        if words[MANUAL]:
            self._integral_c = 0.0
            percent = signed(words[OP]) / 10
        elif self._part.sensor_broken:
            self._integral_c = 0.0
            percent = signed(words[BREAK_OUTPUT]) / 10
        elif programmer is not None and programmer.end_output_percent is not None:
            self._integral_c = 0.0
            percent = programmer.end_output_percent
        else:
            percent = self._control(pv_c, dt_s)
        low, high = signed(words[OUTPUT_LOW]) / 10, signed(words[OUTPUT_HIGH]) / 10
        self._output_percent = min(max(percent, low), high)
        self._part.power_fraction = min(max(self._output_percent / 100, 0.0), 1.0)

    def exception_status(self) -> int:
        """Return the fast status byte."""
        return self._status() & 0xFF

    def read_registers(self, function: int, start: int, count: int) -> Sequence[int]:
        """Read words; a parameter that is not configured reads an undefined value."""
        if start + count - 1 > LAST_ADDRESS:
            raise WireRefusal(2)
        made, words = self._made, self._words
        return [
            made[at]() if at in made else words[at] if at in words else self._read(at)
            for at in range(start, start + count)
        ]

    def write_registers(self, function: int, start: int, words: Sequence[int]) -> None:
        """Store words in order; a refused word stops the rest."""
        if start + len(words) - 1 > LAST_ADDRESS:
            raise WireRefusal(2)
        try:
            for address, word in enumerate(words, start):
                programmer = self._programmer
                if programmer is not None and programmer.has(address):
                    programmer.store(address, word, self._measured_c())
                elif address in self._words or address in READ_ONLY:
                    self._store(address, word)
                elif function == 6:
                    raise WireRefusal(3)  # in a block, an unconfigured word is silently ignored
        finally:
            self.step(0.0)

    def _read(self, address: int) -> int:
        programmer = self._programmer
        if programmer is not None and programmer.has(address):
            return programmer.read(address)
        return self._chance.getrandbits(16)

    def _output(self) -> int:
        return round(self._output_percent * 10) & 0xFFFF

    def _store(self, address: int, word: int) -> None:
        words = self._words
        value = signed(word)
        if address in READ_ONLY or (address == OP and not words[MANUAL]):
            raise WireRefusal(3)
        if address == SL and not signed(words[SP_LOW]) <= value <= signed(words[SP_HIGH]):
            raise WireRefusal(3)
        if address in (OP, OUTPUT_HIGH, OUTPUT_LOW, BREAK_OUTPUT) and not -1000 <= value <= 1000:
            raise WireRefusal(3)
        if address in (MANUAL, ACKNOWLEDGE) and value not in (0, 1):
            raise WireRefusal(3)
        if address in (RATE, PROPORTIONAL, INTEGRAL, DERIVATIVE) and value < 0:
            raise WireRefusal(3)
        if address == MANUAL and value and not words[MANUAL]:
            # manual mode starts from the present output
            words[OP] = round(self._output_percent * 10) & 0xFFFF
        if address == RATE and value and not words[RATE]:
            self._working_c = self._measured_c()
        words[address] = word

    def _ramp(self, pv_c: float, dt_s: float) -> None:
        target_c = signed(self._words[SL]) / self._per_degree
        rate_c_per_min = self._words[RATE] / self._per_degree
        programmer = self._programmer
        if programmer is not None and programmer.runs:
            self._working_c = programmer.setpoint_c
        elif not rate_c_per_min:
            self._working_c = target_c
        elif self._words[MANUAL] or self._part.sensor_broken:
            self._working_c = pv_c  # so that control restarts without a jump
        else:
            step_c = rate_c_per_min / 60 * dt_s
            self._working_c += min(max(target_c - self._working_c, -step_c), step_c)

    def _differentiate(self, pv_c: float, dt_s: float) -> None:
        # the derivative acts on the process value, filtered with a sixth of the derivative time
        filter_s = self._words[DERIVATIVE] / 6
        slope_c_per_s = (pv_c - self._pv_c) / dt_s
        self._slope_c_per_s += (slope_c_per_s - self._slope_c_per_s) * dt_s / (filter_s + dt_s)

    def _control(self, pv_c: float, dt_s: float) -> float:
        programmer = self._programmer
        if programmer is not None and programmer.runs:
            self._working_c = programmer.setpoint_c
        elif not self._words[RATE]:
            self._working_c = signed(self._words[SL]) / self._per_degree
        band_c = max(self._words[PROPORTIONAL] / self._per_degree, 1 / self._per_degree)
        integral_s = self._words[INTEGRAL]
        error_c = self._working_c - pv_c
        damped_c = error_c - self._words[DERIVATIVE] * self._slope_c_per_s
        demand = (damped_c + self._integral_c) / band_c
        winding = (demand > 1 and error_c > 0) or (demand < 0 and error_c < 0)
        if integral_s and abs(error_c) <= band_c and not winding:  # cutback
            self._integral_c += error_c * dt_s / integral_s
            self._integral_c = min(max(self._integral_c, -band_c), band_c)
        return min(max(demand, 0.0), 1.0) * 100

    def _measured_c(self) -> float:
        return OVER_RANGE_C if self._part.sensor_broken else float(self._part.temperature_c)

    def _degrees(self, temperature_c: float) -> int:
        raw = round(temperature_c * self._per_degree)
        return min(max(raw, -WORD_MAX), WORD_MAX) & 0xFFFF

    def _status(self) -> int:
        status = 0
        if self._measured_c() * self._per_degree > signed(self._words[ALARM_1]):
            status |= ALARM_BIT
        if self._words[MANUAL]:
            status |= MANUAL_BIT
        if self._part.sensor_broken:
            status |= BREAK_BIT | OUT_OF_RANGE_BIT
        return status


class _Programmer:
    """The programmer option: stored programs, and a running copy of one.

    Attributes:
        setpoint_c: Present setpoint of the program.
        end_output_percent: Output of an End segment of that type, once it is reached.
    """

    def __init__(self, per_degree: int) -> None:
        self._per_degree = per_degree
        self._number = 1
        self._status = IS_RESET
        self._stored = [[0] * PARTS * PART_WORDS for _ in range(STORED_PROGRAMS + 1)]
        self._segment = 0
        self._left_s = 0.0
        self._cycles = 0
        self.setpoint_c = 0.0
        self.end_output_percent: float | None = None

    @property
    def runs(self) -> bool:
        """Whether the program controls the setpoint, because it is not reset."""
        return self._status != IS_RESET

    def has(self, address: int) -> bool:
        """Return whether an address belongs to the programmer."""
        end = STORED_FROM + STORED_EACH * (STORED_PROGRAMS + 1)
        return (
            address in COURSE
            or PROGRAM <= address <= PROGRAM_STATUS
            or (STORED_FROM <= address < end)
        )

    def read(self, address: int) -> int:
        """Return one word."""
        if address >= STORED_FROM:
            number, at = divmod(address - STORED_FROM, STORED_EACH)
            return self._stored[number][at]
        words = self._words(self._segment)
        kind, target, rate = words[:3] if self.runs else (0, 0, 0)
        found = {
            PROGRAM: self._number,
            PROGRAM_STATUS: self._status,
            SEGMENT: self._segment,
            SEGMENT_TYPE: kind,
            SEGMENT_TARGET: target,
            SEGMENT_RATE: rate,
            SEGMENT_LEFT: min(round(self._segment_left_s()), WORD_MAX),
            PROGRAM_LEFT: min(round(self._program_left_s()), WORD_MAX),
            CYCLES_LEFT: self._cycles,
            PROGRAM_SP: round(self.setpoint_c * self._per_degree) & 0xFFFF if self.runs else 0,
        }
        return found[address]

    def store(self, address: int, word: int, pv_c: float) -> None:
        """Store one word, or refuse it."""
        if address == PROGRAM_STATUS:
            self._order(word, pv_c)
        elif address == PROGRAM:
            if self.runs or not 1 <= word <= STORED_PROGRAMS:
                raise WireRefusal(3)
            self._number = word
        elif address in COURSE or self.runs:
            raise WireRefusal(3)  # a running program is edited in hold only, which is not simulated
        else:
            number, at = divmod(address - STORED_FROM, STORED_EACH)
            if not number or (at % PART_WORDS == 0 and at and word > 5):
                raise WireRefusal(3)
            self._stored[number][at] = word

    def step(self, pv_c: float, dt_s: float) -> None:
        """Advance a program by ``dt_s``."""
        kind, back, *_ = self._words(0)
        off_c = pv_c - self.setpoint_c
        beyond = {0: False, 1: off_c < -self._c(back), 2: off_c > self._c(back)}
        waits = beyond.get(kind, abs(off_c) > self._c(back))
        if self._status in (IS_RUN, IS_HOLDBACK):
            self._status = IS_HOLDBACK if waits else IS_RUN
        if self._status != IS_RUN:
            return
        kind, target, rate, *_ = self._words(self._segment)
        target_c = self._c(target)
        if kind == T_RAMP:
            ramp_s = UNIT_S[self._words(0)[2] % 3]
            most_c = rate / self._per_degree / ramp_s * dt_s
            self.setpoint_c += min(max(target_c - self.setpoint_c, -most_c), most_c)
            over = self.setpoint_c == target_c
        elif kind == T_RAMP_TIME:
            share = min(dt_s / self._left_s, 1.0) if self._left_s > 0 else 1.0
            self.setpoint_c += (target_c - self.setpoint_c) * share
            self._left_s -= dt_s
            over = self._left_s <= 0
        else:
            self._left_s -= dt_s
            over = self._left_s <= 0
        if over:
            self._enter(self._segment + 1)

    def _order(self, word: int, pv_c: float) -> None:
        if word == IS_RESET:
            self._status, self._segment, self.end_output_percent = IS_RESET, 0, None
        elif word == IS_RUN and not self.runs:
            self._stored[0] = list(self._stored[self._number])
            self._status, self.setpoint_c = IS_RUN, pv_c
            self._cycles = max(self._words(0)[4], 1)
            self._enter(1)
        elif word == IS_RUN and self._status == IS_HOLD:
            self._status = IS_RUN
        elif word == IS_HOLD and self._status in (IS_RUN, IS_HOLDBACK, IS_HOLD):
            self._status = IS_HOLD
        elif word != self._status:
            raise WireRefusal(3)

    def _enter(self, number: int) -> None:
        """Begin a segment; steps end at once, and the last cycle's End ends the program."""
        for _ in range(PARTS):
            kind, target, _, end, *_ = self._words(number)
            self._segment, self._left_s = number, self._length_s(number)
            if kind == T_STEP:
                self.setpoint_c = self._c(target)
                number += 1
            elif kind in (T_RAMP, T_RAMP_TIME, T_DWELL):
                return
            elif self._cycles > 1:
                self._cycles -= 1
                number = 1
            elif end == END_RESET:
                self._order(IS_RESET, 0.0)
                return
            else:
                self._status = IS_COMPLETE
                if end == END_OUTPUT:
                    self.end_output_percent = signed(target) / 10
                return
        self._order(IS_RESET, 0.0)  # all segments are steps

    def _length_s(self, number: int) -> float:
        kind, _, length, *_ = self._words(number)
        unit_s = UNIT_S[self._words(0)[3 if kind == T_DWELL else 2] % 3]
        return float(length * unit_s) if kind in (T_DWELL, T_RAMP_TIME) else 0.0

    def _segment_left_s(self) -> float:
        kind, target, rate, *_ = self._words(self._segment)
        if not self.runs or kind != T_RAMP:
            return max(self._left_s, 0.0) if self.runs else 0.0
        return self._ramp_s(self.setpoint_c, target, rate)

    def _program_left_s(self) -> float:
        if not self.runs:
            return 0.0
        total_s, at_c = self._segment_left_s(), self._c(self._words(self._segment)[1])
        for number in range(self._segment + 1, PARTS):
            kind, target, rate, *_ = self._words(number)
            if kind == T_END:
                break
            total_s += self._ramp_s(at_c, target, rate) if kind == T_RAMP else 0.0
            total_s += self._length_s(number)
            at_c = self._c(target)
        return total_s

    def _ramp_s(self, from_c: float, target: int, rate: int) -> float:
        per_s = rate / self._per_degree / UNIT_S[self._words(0)[2] % 3]
        return abs(self._c(target) - from_c) / per_s if per_s else 0.0

    def _words(self, part: int) -> list[int]:
        found = self._stored[0][PART_WORDS * part : PART_WORDS * (part + 1)]
        return found or [T_END] * PART_WORDS  # the End after the last segment

    def _c(self, word: int) -> float:
        return signed(word) / self._per_degree


def signed(word: int) -> int:
    """Return a word as two's complement."""
    return word - 0x10000 if word & 0x8000 else word
