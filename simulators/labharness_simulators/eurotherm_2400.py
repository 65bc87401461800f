"""The wire face of a Eurotherm 2400 temperature controller, with its PID loop.

Typed in from Eurotherm HA026230 issue 3, chapters 3 to 6. Not simulated: autotune, programmer,
the IEEE region, bit functions 01, 02 and 05, and the detection of heater failure and loop break.
The integral rests while the error is beyond the proportional band. With PB 20 degC, Ti 200 s and
Td 15 s a 1200 W tube furnace overshoots a step by less than 2 degC, and the end of a ramp by half
a degree for each degC/min.
"""

import random
from collections.abc import Sequence
from typing import Any

from labharness.simulation import LoopEnvironment, ModbusFace, Refusal

__all__ = ["Simulator"]

PV, SL, OP, WO, SP = 1, 2, 3, 4, 5
PROPORTIONAL, INTEGRAL, DERIVATIVE = 6, 8, 9
ALARM_1, OUTPUT_HIGH, OUTPUT_LOW, BREAK_OUTPUT, RATE = 13, 30, 31, 34, 35
FAST_STATUS, SUMMARY, FIRMWARE, SP_HIGH, SP_LOW = 74, 75, 107, 111, 112
MAKER, INSTRUMENT, ADDRESS, BREAK_FLAG, MANUAL, ACKNOWLEDGE = 121, 122, 131, 258, 273, 274

READ_ONLY = frozenset(
    {PV, WO, SP, FAST_STATUS, SUMMARY, FIRMWARE, MAKER, INSTRUMENT, ADDRESS, BREAK_FLAG}
)
LAST_ADDRESS = 12_550  # the map ends with the resolution of the serial line
ALARM_BIT, MANUAL_BIT, BREAK_BIT = 1 << 0, 1 << 4, 1 << 5
OUT_OF_RANGE_BIT = 1 << 10
OVER_RANGE_C = 1400.0  # what a type K input shows when its thermocouple is open
WORD_MAX = 32_767


class Simulator(ModbusFace):
    """One controller on one heated zone.

    ``part`` has ``temperature_c`` and ``sensor_broken`` to read, ``power_fraction`` to set, and
    calls ``controller`` with each step of the plant in s.

    Args:
        pid: Proportional band in degC, integral time in s, derivative time in s.
        setpoint_high_c: Register 111 as commissioned.
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
        part.controller = self.step

    def step(self, dt_s: float) -> None:
        """Advance the loop by ``dt_s`` and drive the heater."""
        words = self._words
        pv_c = self._measured_c()
        if dt_s > 0:
            self._ramp(pv_c, dt_s)
            self._differentiate(pv_c, dt_s)
        self._pv_c = pv_c
        if words[MANUAL]:
            self._integral_c = 0.0
            percent = signed(words[OP]) / 10
        elif self._part.sensor_broken:
            self._integral_c = 0.0
            percent = signed(words[BREAK_OUTPUT]) / 10
        else:
            percent = self._control(pv_c, dt_s)
        low, high = signed(words[OUTPUT_LOW]) / 10, signed(words[OUTPUT_HIGH]) / 10
        self._output_percent = min(max(percent, low), high)
        self._part.power_fraction = min(max(self._output_percent / 100, 0.0), 1.0)

    def answer(self, pdu: bytes) -> bytes:
        """Answer function 07, which has no data, here and the others as usual."""
        if pdu == b"\x07":
            return bytes([7, self._status() & 0xFF])
        return super().answer(pdu)

    def read_registers(self, function: int, start: int, count: int) -> Sequence[int]:
        """Read words; a parameter that is not configured gives an undefined value."""
        if start + count - 1 > LAST_ADDRESS:
            raise Refusal(2)
        return [self._read(address) for address in range(start, start + count)]

    def write_registers(self, function: int, start: int, words: Sequence[int]) -> None:
        """Store words one after the other; a refused one discards those after it, only those."""
        if start + len(words) - 1 > LAST_ADDRESS:
            raise Refusal(2)
        try:
            for address, word in enumerate(words, start):
                if address in self._words or address in READ_ONLY:
                    self._store(address, word)
                elif function == 6:
                    raise Refusal(3)  # in a block, what is not configured is silently discarded
        finally:
            self.step(0.0)

    def _read(self, address: int) -> int:
        if address == PV:
            return self._degrees(self._measured_c())
        if address == SP:
            return self._degrees(self._working_c)
        if address == WO or (address == OP and not self._words[MANUAL]):
            return round(self._output_percent * 10) & 0xFFFF
        if address == FAST_STATUS:
            return self._status() & 0xFF
        if address == SUMMARY:
            return self._status()
        if address == BREAK_FLAG:
            return int(self._part.sensor_broken)
        word = self._words.get(address)
        return self._chance.getrandbits(16) if word is None else word

    def _store(self, address: int, word: int) -> None:
        words = self._words
        value = signed(word)
        if address in READ_ONLY or (address == OP and not words[MANUAL]):
            raise Refusal(3)
        if address == SL and not signed(words[SP_LOW]) <= value <= signed(words[SP_HIGH]):
            raise Refusal(3)
        if address in (OP, OUTPUT_HIGH, OUTPUT_LOW, BREAK_OUTPUT) and not -1000 <= value <= 1000:
            raise Refusal(3)
        if address in (MANUAL, ACKNOWLEDGE) and value not in (0, 1):
            raise Refusal(3)
        if address in (RATE, PROPORTIONAL, INTEGRAL, DERIVATIVE) and value < 0:
            raise Refusal(3)
        if address == MANUAL and value and not words[MANUAL]:
            words[OP] = round(self._output_percent * 10) & 0xFFFF  # manual takes over the output
        if address == RATE and value and not words[RATE]:
            self._working_c = self._measured_c()
        words[address] = word

    def _ramp(self, pv_c: float, dt_s: float) -> None:
        target_c = signed(self._words[SL]) / self._per_degree
        rate_c_per_min = self._words[RATE] / self._per_degree
        if not rate_c_per_min:
            self._working_c = target_c
        elif self._words[MANUAL] or self._part.sensor_broken:
            self._working_c = pv_c  # so that control starts again without a jump
        else:
            step_c = rate_c_per_min / 60 * dt_s
            self._working_c += min(max(target_c - self._working_c, -step_c), step_c)

    def _differentiate(self, pv_c: float, dt_s: float) -> None:
        # the derivative acts on the process value, filtered at a sixth of the derivative time
        filter_s = self._words[DERIVATIVE] / 6
        slope_c_per_s = (pv_c - self._pv_c) / dt_s
        self._slope_c_per_s += (slope_c_per_s - self._slope_c_per_s) * dt_s / (filter_s + dt_s)

    def _control(self, pv_c: float, dt_s: float) -> float:
        if not self._words[RATE]:
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


def signed(word: int) -> int:
    """Read a word as two's complement."""
    return word - 0x10000 if word & 0x8000 else word
