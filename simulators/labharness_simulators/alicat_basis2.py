"""The wire face of an Alicat BASIS 2 mass flow controller, with its communications watchdog.

Written from Alicat DOC-MANUAL-BASIS2 revision 4, pages 10 to 28. Not simulated: ASCII, totaliser,
batches, ramps, tare, and the change of gas. The unit of the flow is changed at its display
(``panel``); that the setpoint register follows it is background knowledge.
"""

import random
from collections.abc import Generator, Sequence
from typing import Any, ClassVar

from simpy import Event

from labharness.instruments.simulation import LoopEnvironment, ModbusFace, WireRefusal

FIRMWARE, SERIAL, FULL_SCALE, UNITS = 25, 26, 35, 49
WATCHDOG, AUTOTARE, SOURCE = 514, 515, 516
SETPOINT_HIGH, SETPOINT_LOW = 2053, 2054
GAS, STATUS, TEMPERATURE, FLOW, ACTIVE, VALVE = 2100, 2101, 2102, 2103, 2106, 2107

ANALOG, UNSAVED = 0, 2
SERIAL_TEXT = b"SIM000000001"
GAS_NUMBERS = {"Air": 0, "Ar": 1, "CO2": 2, "N2": 3, "O2": 4, "N2O": 5, "H2": 6, "He": 7, "CH4": 8}
FLOW_UNITS = {"SCCM": (0, 1.0), "SLPM": (2, 1e-3)}  # register 49, and of one sccm
CEILING = 1.025  # of full scale, page 12
US_PER_MS = 1000


class Simulator(ModbusFace):
    """One controller on one gas.

    ``part`` has ``flow_sccm``, ``full_scale_sccm``, ``gas``, ``gas_temperature_c`` and
    ``valve_drive_percent`` to read and ``setpoint_sccm`` to set. Gas and full scale come from the
    part, not from the lab file, so a wrong lab file is noticed.
    """

    functions = (3, 6, 16)
    panel: ClassVar = {"flow_unit": tuple(FLOW_UNITS)}
    flow_unit = "SCCM"

    def __init__(
        self,
        env: LoopEnvironment,
        part: Any,  # noqa: ANN401 - a plant's part, or a stand-in with the same names
        chance: random.Random,
        *,
        unit: int = 1,
        decimals: int = 2,
        **_of_the_driver: object,
    ) -> None:
        super().__init__(unit)
        self._env = env
        self._part = part
        self._per_sccm = 10**decimals
        full_scale = round(part.full_scale_sccm * 1000)
        self._fixed = {
            FIRMWARE: 2 << 8 | 1 << 4 | 3,
            **{SERIAL + n: int.from_bytes(SERIAL_TEXT[2 * n : 2 * n + 2], "big") for n in range(6)},
            FULL_SCALE: full_scale >> 16,
            FULL_SCALE + 1: full_scale & 0xFFFF,
        }
        self._words = {WATCHDOG: 0, AUTOTARE: 0, SOURCE: UNSAVED, SETPOINT_HIGH: 0, SETPOINT_LOW: 0}
        self._known = dict(self._fixed)
        self._set_by_modbus = False
        self._heard_us = env.now
        self._watching = False

    def receive(self, frame: bytes) -> bytes | None:
        """Answer one frame; each answered frame resets the watchdog."""
        self._lapse()
        reply = super().receive(frame)
        if reply is not None:
            self._heard_us = self._env.now
            if self._watchdog_us() and not self._watching:
                self._watching = True
                self._env.process(self._watch())
        return reply

    def read_registers(self, function: int, start: int, count: int) -> Sequence[int]:
        """Read words; undefined ones are 0, or an address exception if all are undefined."""
        known = self._snapshot()
        words = [known.get(address) for address in range(start, start + count)]
        if not any(word is not None for word in words):
            raise WireRefusal(2)
        return [word or 0 for word in words]

    def write_registers(self, function: int, start: int, words: Sequence[int]) -> None:
        """Store words, clipped to their range; the echo does not show the clipping."""
        if not all(address in self._words for address in range(start, start + len(words))):
            raise WireRefusal(2)
        for address, word in enumerate(words, start):
            if address == WATCHDOG:
                word = min(word, 5000)
            elif address == SOURCE:
                word = min(word, UNSAVED)
            self._words[address] = word
            if address == SETPOINT_LOW:
                self._set()

    def _set(self) -> None:
        if self._words[SOURCE] == ANALOG:
            return  # the analog input controls; a digital setpoint is silently ignored
        raw = self._words[SETPOINT_HIGH] << 16 | self._words[SETPOINT_LOW]
        wanted_sccm = (raw - (1 << 32) if raw >> 31 else raw) / 1000 / FLOW_UNITS[self.flow_unit][1]
        self._part.setpoint_sccm = min(max(wanted_sccm, 0.0), self._part.full_scale_sccm * CEILING)
        self._set_by_modbus = True

    def _watchdog_us(self) -> int:
        armed = self._words[SOURCE] == UNSAVED and self._set_by_modbus
        return self._words[WATCHDOG] * US_PER_MS if armed else 0

    def _lapse(self) -> None:
        watchdog_us = self._watchdog_us()
        if watchdog_us and self._env.now - self._heard_us > watchdog_us:
            self._part.setpoint_sccm = 0.0
            self._set_by_modbus = False

    def _watch(self) -> Generator[Event, object, None]:
        # runs while the watchdog is armed, because silence must shut the valve without a request
        while watchdog_us := self._watchdog_us():
            yield self._env.timeout(self._heard_us + watchdog_us + 1 - self._env.now)
            self._lapse()
        self._watching = False

    def _snapshot(self) -> dict[int, int]:
        part = self._part
        flow = min(part.flow_sccm, part.full_scale_sccm * CEILING)
        words = self._known  # one table, brought up to date: it is read twice a second
        words.update(self._words)
        words[GAS] = GAS_NUMBERS[part.gas]
        words[STATUS] = int(part.flow_sccm >= part.full_scale_sccm * CEILING)
        words[TEMPERATURE] = round(part.gas_temperature_c * 100) & 0xFFFF
        words[UNITS], of_sccm = FLOW_UNITS[self.flow_unit]
        words[FLOW] = round(flow * of_sccm * self._per_sccm) & 0xFFFF
        words[ACTIVE] = round(part.setpoint_sccm * of_sccm * self._per_sccm) & 0xFFFF
        words[VALVE] = round(part.valve_drive_percent * 100) & 0xFFFF
        return words
