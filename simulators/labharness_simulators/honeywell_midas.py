"""The wire face of a Honeywell Midas gas detector on Modbus TCP.

Written from the Honeywell Midas technical handbook, appendix A; the word order of a float is from a
published third-party driver. Not simulated: every write, such as the commands at 40021 (exception
01), because a line must not inhibit its own gas detector, and registers above 40016 (exception 02).
"""

import random
import struct
from collections.abc import Sequence
from typing import Any

from labharness.instruments.simulation import LoopEnvironment, ModbusTcpFace, WireRefusal

REGISTERS = 16  # 40001 to 40016
HEARTBEAT_US = 2_000_000
ALARMS_INHIBITED = (2, 3, 4)
# faults from this number on are the instrument's (F..), lower ones ask for maintenance
INSTRUMENT_FAULTS = 30
UNIT_PPM = 0x0100
GAS_ID, CARTRIDGE_ID = 1, 7
SENSOR_C, CELL_LIFE_H, FLOW_CC_PER_MIN = 24, 8760, 500


class Simulator(ModbusTcpFace):
    """One detector.

    ``part`` has ``concentration_ppm``, ``fault`` (its number, 0 for none) and ``state``.

    Args:
        alarm_1_ppm: Threshold of alarm 1.
        alarm_2_ppm: Threshold of alarm 2.
    """

    functions = (3,)

    def __init__(
        self,
        env: LoopEnvironment,
        part: Any,  # noqa: ANN401 - a plant's part, or a stand-in with the same names
        chance: random.Random,
        *,
        unit: int = 1,
        alarm_1_ppm: float = 100.0,
        alarm_2_ppm: float = 200.0,
    ) -> None:
        super().__init__(unit)
        self._env = env
        self._part = part
        self._thresholds_ppm = (alarm_1_ppm, alarm_2_ppm)

    def read_registers(self, function: int, start: int, count: int) -> Sequence[int]:
        """Read from the status block and the thresholds after it."""
        if start + count > REGISTERS:
            raise WireRefusal(2)
        return self._block()[start : start + count]

    def _block(self) -> list[int]:
        part = self._part
        beats = int(self._env.now) // HEARTBEAT_US
        status = int(part.state) & 0xF | (beats & 1) << 11
        if part.fault:
            status |= (2 if part.fault >= INSTRUMENT_FAULTS else 1) << 4
        if part.state not in ALARMS_INHIBITED:
            for bit, threshold_ppm in enumerate(self._thresholds_ppm, 6):
                status |= int(part.concentration_ppm >= threshold_ppm) << bit
        words = [status, CARTRIDGE_ID << 8 | GAS_ID, *low_word_first(part.concentration_ppm)]
        words += [min(max(round(part.concentration_ppm), 0), 0xFFFF), int(part.fault)]
        words += [UNIT_PPM, SENSOR_C, CELL_LIFE_H, beats & 0xFFFF, FLOW_CC_PER_MIN, 0]
        for threshold_ppm in self._thresholds_ppm:
            words += low_word_first(threshold_ppm)
        return words


def low_word_first(value: float) -> tuple[int, int]:
    """Return a float as two words, in the detector's order."""
    high, low = struct.unpack(">HH", struct.pack(">f", value))
    return low, high
