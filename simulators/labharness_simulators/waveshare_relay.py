"""The wire face of a Waveshare Modbus RTU relay board with eight relays and eight inputs.

Written from the Waveshare wiki's register map as published by third parties. Not simulated: the
timed (flash) coils at 0200h and 0400h, and the registers that change address and line settings.
"""

import random
import struct
from collections.abc import Sequence
from typing import Any

from labharness.instruments.simulation import LoopEnvironment, ModbusFace, WireRefusal

WAYS = 8
ALL = 0x00FF
VERSION_ADDRESS, VERSION = 0x8000, 200  # 2.00
ON, OFF, TOGGLE = 0xFF00, 0x0000, 0x5500


class Simulator(ModbusFace):
    """One board. ``part`` has ``coils``, a list of eight, to set and ``inputs`` to read."""

    functions = (1, 2, 3, 5, 15)

    def __init__(
        self,
        env: LoopEnvironment,
        part: Any,  # noqa: ANN401 - a plant's part, or a stand-in with the same names
        chance: random.Random,
        *,
        unit: int = 1,
        **_of_the_driver: object,
    ) -> None:
        super().__init__(unit)
        self._part = part

    def answer(self, pdu: bytes) -> bytes:
        """Answer function 05 here, because this board has an additional value that toggles."""
        if pdu[0] != 5 or len(pdu) != 5:
            return super().answer(pdu)
        coil, value = struct.unpack_from(">HH", pdu, 1)
        coils = range(WAYS) if coil == ALL else (coil,)
        if coil != ALL and coil >= WAYS:
            return b"\x85\x02"
        if value not in (ON, OFF, TOGGLE):
            return b"\x85\x03"
        for each in coils:
            self._part.coils[each] = not self._part.coils[each] if value == TOGGLE else value == ON
        return pdu

    def read_registers(self, function: int, start: int, count: int) -> Sequence[int]:
        """Read the version, the only register."""
        if (start, count) != (VERSION_ADDRESS, 1):
            raise WireRefusal(2)
        return [VERSION]

    def read_bits(self, function: int, start: int, count: int) -> Sequence[bool]:
        """Read relays (function 01) or inputs (02); unwired inputs are 0."""
        if start + count > WAYS:
            raise WireRefusal(2)
        states = self._part.coils if function == 1 else self._part.inputs
        padded = [*states, *[False] * WAYS]
        return [bool(state) for state in padded[start : start + count]]

    def write_bits(self, function: int, start: int, states: Sequence[bool]) -> None:
        """Switch several relays at once (function 15)."""
        if start + len(states) > WAYS:
            raise WireRefusal(2)
        for coil, state in enumerate(states, start):
            self._part.coils[coil] = state
