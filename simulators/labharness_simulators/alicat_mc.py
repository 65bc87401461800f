"""A simulated Alicat MC mass flow controller, as its serial line sees it.

Written from the MC-series manual (serial commands, pp. 36-37) and from frames captured on an
MC-500SCCM-D, firmware 10v20.
"""

import random
import re

from labharness.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.gas import MassFlow

__all__ = ["Simulator"]

COUNTS_OF_FULL_SCALE = 64_000  # integer setpoints: 0..64000 is 0..100 %
STANDARD_PSIA = 14.696  # Alicat standard conditions: 14.696 psia, 25 C
STANDARD_K = 298.15


class Simulator(LineFace):
    """One unit on the bus: silent to other letters, ``?`` to what it does not know.

    Attributes:
        setpoint_source: ``S`` or ``U`` is serial; ``A`` is analog, and then serial setpoints are
            ignored without a word.
        gas: The gas selected in the unit, as the frame shows it.
        tokens: Status tokens that follow the gas.
    """

    latency_s = 0.008
    refused = "?\r"

    def __init__(
        self,
        env: LoopEnvironment,
        part: MassFlow,
        chance: random.Random,
        *,
        unit: str,
        gas: str,
        full_scale_sccm: float,
        decimals: int = 2,
    ) -> None:
        self._part = part
        self.unit = unit
        self.writes = re.compile(f"{unit}(S ?[0-9.]+|[0-9]+)")
        self.full_scale_sccm = full_scale_sccm
        self.gas = part.gas
        self.setpoint_source = "S"
        self.tokens: tuple[str, ...] = ()
        self._setpoint_sccm = part.setpoint_sccm
        self._zero_sccm = 0.0
        self._serial = 100_000 + ord(unit)
        self._flow = f"+0{5 + decimals}.{decimals}f" if decimals else "+05.0f"

    def answer(self, line: str) -> str | None:
        """Answer one command; letters count the same in either case."""
        command = line.strip().upper()
        if command[:1] != self.unit:
            return None
        rest = command[1:]
        if not rest:
            return self._frame()
        if setpoint := re.fullmatch(r"S ?(-?[0-9]+\.?[0-9]*|-?\.[0-9]+)", rest):
            return self._set(float(setpoint[1]))
        if rest.isdecimal() and int(rest) <= COUNTS_OF_FULL_SCALE:
            return self._set(int(rest) / COUNTS_OF_FULL_SCALE * self.full_scale_sccm)
        if rest in ("V", "T"):
            self._zero_sccm = self._part.flow_sccm  # a tare believes that nothing flows
            return self._frame()
        if source := re.fullmatch(r"LSS(?: ([ASU]))?", rest):
            self.setpoint_source = source[1] or self.setpoint_source
            return f"{self.unit} {self.setpoint_source}\r"
        if rest == "VE":
            return f"{self.unit}   10v20.0-R24 Jan  9 2025,15:04:07\r"
        return self._manufacturer() if rest == "??M*" else "?\r"

    def _set(self, value_sccm: float) -> str:
        if not 0 <= value_sccm <= self.full_scale_sccm:
            return "?\r"
        if self.setpoint_source != "A":
            self._setpoint_sccm = self._part.setpoint_sccm = value_sccm
        return self._frame()

    def _frame(self) -> str:
        part, flow = self._part, self._flow
        pressure_psia, temperature_c = part.pressure_psia, part.gas_temperature_c
        mass_sccm = part.flow_sccm - self._zero_sccm
        volume_ccm = mass_sccm * (STANDARD_PSIA / pressure_psia)
        volume_ccm *= (temperature_c + 273.15) / STANDARD_K
        tokens = "".join([f" {token}" for token in self.tokens])
        return (
            f"{self.unit} {pressure_psia:+07.2f} {temperature_c:+07.2f} {volume_ccm:{flow}} "
            f"{mass_sccm:{flow}} {self._setpoint_sccm:{flow}} {self.gas:>6}{tokens}\r"
        )

    def _manufacturer(self) -> str:
        rows = (
            "ALICAT SCIENTIFIC",
            "www.example.invalid",
            "Ph   000-000-0000",
            "mail@example.invalid",
            f"Model Number MC-{self.full_scale_sccm:g}SCCM-D",
            f"Serial Number {self._serial}",
            "Date Manufactured 01/09/2025",
            "Date Calibrated   01/09/2025",
            "Calibrated By     SIM",
            "Software Revision 10v20.0-R24",
        )
        return "".join(f"{self.unit}  M{at:02} {row}\r" for at, row in enumerate(rows))
