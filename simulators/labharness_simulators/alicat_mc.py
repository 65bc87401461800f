"""A simulated Alicat MC mass flow controller on its serial line.

Written from the MC-series manual (serial commands, pp. 36-37) and from frames captured on an
MC-500SCCM-D, firmware 10v20 (GraysonBellamy/alicatlib, tests/fixtures).

Not simulated, and refused with ``?``: streaming and a change of the letter (``@``), ramps (``SR``,
``LSRC``), totaliser, mixes (``GM``), control of pressure or volume (``LV 36``, ``W122=36``), PID
and registers other than 46 and 122, change of units over the wire, tare of pressure. The units of
the mass flow and of the pressure are changed at its display (``panel``).

A gas is only selected: the true flow is that of the gas in the pipe, and no factor is applied.
``HP`` holds the flow, not the valve. ``T`` is a tare, as on a unit without totaliser. ``FPF``
reports the full scale of the mass flow, and a missing sensor for any statistic beyond the frame (a
barometer, 15); it is refused for pressure, temperature and volume.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from labharness.instruments.simulation import LineFace, LoopEnvironment
from labharness_simulators.plant.gas import MassFlow

COUNTS_OF_FULL_SCALE = 64_000  # integer setpoints: 0..64000 is 0..100 %
STANDARD_PSIA = 14.696  # Alicat standard conditions: 14.696 psia, 25 C
STANDARD_K = 298.15
CELSIUS, CCM = "2 `C", "12 CCM"
FLOW_UNITS = {"SCCM": ("12", 1.0), "SLPM": ("7", 1e-3)}  # number on the wire, of one sccm
PRESSURE_UNITS = {"PSIA": ("10", 1.0), "kPaA": ("3", 6.894757)}  # 7 and 3: background knowledge
MASS_FLOW = 37  # number of the loop's variable: the mass flow setpoint
GASES = {  # number: short and long name
    0: ("Air", "Air"),
    1: ("Ar", "Argon"),
    2: ("CH4", "Methane"),
    3: ("CO", "Carbon Monoxide"),
    4: ("CO2", "Carbon Dioxide"),
    5: ("C2H6", "Ethane"),
    6: ("H2", "Hydrogen"),
    7: ("He", "Helium"),
    8: ("N2", "Nitrogen"),
    9: ("N2O", "Nitrous Oxide"),
    10: ("Ne", "Neon"),
    11: ("O2", "Oxygen"),
}
TOKENS = ("OPL", "POV", "P2O", "TOV", "VOV", "MOV", "TMF", "OVR", "COM", "HLD", "EXH", "GTA", "LCK")


class Simulator(LineFace):
    """One unit on the bus: silent to other letters, ``?`` to unknown commands.

    Attributes:
        setpoint_source: ``S`` or ``U`` is serial; ``A`` is analog, and then serial setpoints are
            silently ignored.
        gas: The selected gas, as shown in the frame.
        tokens: Status tokens after the gas.
    """

    panel: ClassVar = {"flow_unit": tuple(FLOW_UNITS), "pressure_unit": tuple(PRESSURE_UNITS)}
    flow_unit = "SCCM"
    pressure_unit = "PSIA"
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
        sets = (
            r"S ?[0-9.]+|[0-9]+|LS [0-9.]+|GS? ?[0-9]+|H(PC?|C)?|[CLUVT]|W(46|122)=[0-9]+|LSS [ASU]"
        )
        self.writes = re.compile(rf"{unit}(\$\$)?({sets})", re.IGNORECASE)
        self.full_scale_sccm = full_scale_sccm
        self.gas = part.gas
        self.setpoint_source = "S"
        self.tokens: tuple[str, ...] = ()
        self._setpoint_sccm = part.setpoint_sccm
        self._held = self._locked = False
        self._zero_sccm = 0.0
        self._serial = 100_000 + ord(unit)
        self._flow = f"+0{5 + decimals}.{decimals}f" if decimals else "+05.0f"
        # % makes it in half the time of an f-string, and it is made twice a second
        self._row = f"{unit} %+07.2f %+07.2f %{self._flow} %{self._flow} %{self._flow} %6s%s\r"
        self._width = f"{5 + decimals}/{decimals}"
        self._commands = self._table()

    def answer(self, line: str) -> str | None:
        """Answer one command; upper and lower case are equal."""
        command = line.strip().upper()
        if command[:1] != self.unit:
            return None
        rest = command[1:].removeprefix("$$")
        if not rest:
            return self._frame()
        for pattern, does in self._commands:
            if found := pattern.fullmatch(rest):
                return does(*found.groups())
        return "?\r"

    def _table(self) -> Sequence[tuple[re.Pattern[str], Callable[..., str]]]:
        number, unit = r"(-?[0-9]+\.?[0-9]*|-?\.[0-9]+)", self.unit

        def same(text: str) -> Callable[[], str]:
            return lambda: f"{unit} {text}\r"

        rows: list[tuple[str, Callable[..., str]]] = [
            (rf"S ?{number}", self._set),
            (r"([0-9]+)", self._set_counts),
            (rf"LS(?: {number})?", self._loop_setpoint),
            (r"LSS(?: ([ASU]))?", self._source),
            (rf"LV(?: {MASS_FLOW})?", same(str(MASS_FLOW))),
            (rf"(?:R122|W122={MASS_FLOW})", same(f"  122 = {MASS_FLOW}")),
            (r"(?:R46|W46=([0-9]+))", self._gas_register),
            (r"GS(?: ([0-9]+))?", self._gas_select),
            (r"G ?([0-9]+)", self._gas_legacy),
            (r"[VT]", self._tare),
            (r"H(?:P?(C)|P)?", self._hold),
            (r"C", self._cancel),
            (r"([LU])", self._lock),
            (r"FPF ([0-9]+)", self._full_scale),
            (r"DCU ([0-9]+)", self._units),
            (r"DV ([1-9][0-9]*)((?: [0-9]+)+)", self._statistics),
            (r"VE", same("  10v20.0-R24 Jan  9 2025,15:04:07")),
            (r"\?\?M\*", self._manufacturer),
            (r"\?\?D\*", self._layout),
            (r"\?\?G\*", self._gases),
        ]
        return [(re.compile(pattern), does) for pattern, does in rows]

    def _set(self, said: str) -> str:
        return self._frame() if self._accept(float(said) / self._of_sccm) else "?\r"

    def _set_counts(self, said: str) -> str:
        if int(said) > COUNTS_OF_FULL_SCALE:
            return "?\r"
        asked_sccm = int(said) / COUNTS_OF_FULL_SCALE * self.full_scale_sccm
        return self._frame() if self._accept(asked_sccm) else "?\r"

    def _loop_setpoint(self, said: str | None) -> str:
        if said is not None and not self._accept(float(said) / self._of_sccm):
            return "?\r"
        loop = f"{self._setpoint_sccm * self._of_sccm:{self._flow}}"
        return f"{self.unit} {loop} {loop} {self._mass}\r"

    def _accept(self, value_sccm: float) -> bool:
        if not 0 <= value_sccm <= self.full_scale_sccm:
            return False
        if self.setpoint_source != "A":
            self._setpoint_sccm = value_sccm
            if not self._held:
                self._part.setpoint_sccm = value_sccm
        return True

    def _source(self, said: str | None) -> str:
        self.setpoint_source = said or self.setpoint_source
        return f"{self.unit} {self.setpoint_source}\r"

    def _choose(self, said: str | None) -> bool:
        if said is not None:
            if int(said) not in GASES:
                return False
            self.gas = GASES[int(said)][0]
        return True

    def _gas_number(self) -> int:
        return next((at for at, names in GASES.items() if names[0] == self.gas), 0)

    def _gas_register(self, said: str | None) -> str:
        if not self._choose(said):
            return "?\r"
        return f"{self.unit}   046 = {self._gas_number()}\r"

    def _gas_select(self, said: str | None) -> str:
        if not self._choose(said):
            return "?\r"
        number = self._gas_number()
        return f"{self.unit} {number} {' '.join(GASES[number])}\r"

    def _gas_legacy(self, said: str) -> str:
        return self._frame() if self._choose(said) else "?\r"

    def _tare(self) -> str:
        self._zero_sccm = self._part.flow_sccm  # a tare assumes that nothing flows
        return self._frame()

    def _hold(self, closed: str | None) -> str:
        self._held = True
        self._part.setpoint_sccm = 0.0 if closed else self._part.flow_sccm
        return self._frame()

    def _cancel(self) -> str:
        self._held = False
        self._part.setpoint_sccm = self._setpoint_sccm
        return self._frame()

    def _lock(self, letter: str) -> str:
        self._locked = letter == "L"
        return self._frame()

    def _full_scale(self, statistic: str) -> str:
        if statistic in ("2", "3", "4"):
            return "?\r"
        if statistic not in ("5", str(MASS_FLOW)):
            return f"{self.unit} 0 1 ---\r"  # the answer of real units for a missing sensor
        return f"{self.unit} {self.full_scale_sccm * self._of_sccm:{self._flow}} {self._mass}\r"

    def _units(self, statistic: str) -> str:
        pressure = f"{PRESSURE_UNITS[self.pressure_unit][0]} {self.pressure_unit}"
        known = {"2": pressure, "3": CELSIUS, "4": CCM, "5": self._mass, str(MASS_FLOW): self._mass}
        return f"{self.unit} {known[statistic]}\r" if statistic in known else "?\r"

    @property
    def _mass(self) -> str:
        """The unit of the mass flow, by number and label."""
        return f"{FLOW_UNITS[self.flow_unit][0]} {self.flow_unit}"

    @property
    def _of_sccm(self) -> float:
        return FLOW_UNITS[self.flow_unit][1]

    def _statistics(self, _: str, wanted: str) -> str:
        columns = self._frame().split()
        known = dict(zip(("2", "3", "4", "5", str(MASS_FLOW)), columns[1:6], strict=True))
        # without the unit's letter
        return " ".join([known.get(each, "--") for each in wanted.split()]) + "\r"

    def _frame(self) -> str:
        part = self._part
        pressure_psia, temperature_c = part.pressure_psia, part.gas_temperature_c
        mass_sccm = part.flow_sccm - self._zero_sccm
        volume_ccm = mass_sccm * (STANDARD_PSIA / pressure_psia)
        volume_ccm *= (temperature_c + 273.15) / STANDARD_K
        shown = "".join([f" {token}" for token in self.tokens])
        shown += " HLD" * self._held + " LCK" * self._locked
        flows = volume_ccm, mass_sccm * self._of_sccm, self._setpoint_sccm * self._of_sccm
        pressure_psia *= PRESSURE_UNITS[self.pressure_unit][1]  # in that unit from here on
        return self._row % (pressure_psia, temperature_c, *flows, self.gas, shown)

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

    def _layout(self) -> str:
        flow = self._width
        mass = f"{FLOW_UNITS[self.flow_unit][0].zfill(3)} 02 {self.flow_unit}"
        pressure = f"{PRESSURE_UNITS[self.pressure_unit][0].zfill(3)} 02 {self.pressure_unit}"
        rows = [
            "ID_ NAME______________________ TYPE_______ WIDTH NOTES___________________",
            "700 Unit ID                    string          1",
            f"002 Abs Press                  s decimal     7/2 {pressure}",
            "003 Flow Temp                  s decimal     7/2 002 02 `C",
            f"004 Volu Flow                  s decimal     {flow} 012 02 CCM",
            f"005 Mass Flow                  s decimal     {flow} {mass}",
            f"037 Mass Flow Setpt            s decimal     {flow} {mass}",
            "703 Gas                        string          6",
            "701 *Error                     string          3 ADC",
            *[f"702 *Status                    string          3 {token}" for token in TOKENS],
        ]
        return "".join(f"{self.unit} D{at:02} {row}\r" for at, row in enumerate(rows))

    def _gases(self) -> str:
        return "".join(f"{self.unit} G{at:02} {names[0]:>8}\r" for at, names in GASES.items())
