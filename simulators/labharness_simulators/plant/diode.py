"""A diode between the terminals of a source: what current flows at what voltage."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

BOLTZMANN_J_PER_K = 1.380649e-23  # SI, exact
ELEMENTARY_CHARGE_C = 1.602176634e-19  # SI, exact
BISECTIONS = 80
GAIN_ERROR = 2e-4  # a reading of a 2400 is good to 0.02 % and worse (its data sheet)


@dataclass(slots=True)
class DiodeFaults:
    """Faults of the diode.

    Attributes:
        open_circuit: Nothing is connected.
        shorted: The junction conducts both ways; only the series resistance is left.
    """

    open_circuit: bool = False
    shorted: bool = False


class Diode:
    """A junction with a series resistance, connected to a source.

    Shockley's equation, I = Is (exp((V - I Rs) / (n k T / q)) - 1): W. Shockley, Bell Syst. Tech.
    J. 28 (1949) 435, doi:10.1002/j.1538-7305.1949.tb03645.x; with Rs as in T. C. Banwell and
    A. Jayakumar, Electron. Lett. 36 (2000) 291, doi:10.1049/el:20000301. Reverse breakdown and
    self-heating are not simulated.

    Args:
        faults: Its faults.
        gain: Reading of the meter per true current.
        saturation_a: Is.
        ideality: n.
        series_ohm: Rs.
        temperature_c: Of the junction.

    Attributes:
        on: Whether the source is on.
        source_v: The voltage that it is set to.
        limit_a: The current that it does not exceed, of either sign.
    """

    def __init__(
        self,
        faults: DiodeFaults,
        gain: float,
        saturation_a: float,
        ideality: float,
        series_ohm: float,
        temperature_c: float,
    ) -> None:
        self.faults = faults
        self.on, self.source_v, self.limit_a = False, 0.0, 1.05e-4
        self._gain = gain
        self._saturation_a = saturation_a
        self._series_ohm = series_ohm
        kelvin = temperature_c + 273.15
        self._thermal_v = ideality * BOLTZMANN_J_PER_K * kelvin / ELEMENTARY_CHARGE_C

    def voltage_at(self, current_a: float) -> float:
        """Return the voltage across diode and series resistance at a current above -Is."""
        ohmic_v = current_a * self._series_ohm
        if self.faults.shorted:
            return ohmic_v
        return ohmic_v + self._thermal_v * math.log1p(current_a / self._saturation_a)

    def current_at(self, voltage_v: float) -> float:
        """Return the current at a voltage; it rises with the voltage, so halving finds it."""
        if self.faults.open_circuit:
            return 0.0
        if self.faults.shorted:
            return voltage_v / self._series_ohm
        high_a = max(voltage_v, 0.0) / self._series_ohm
        low_a = 0.0 if voltage_v >= 0 else -self._saturation_a
        for _ in range(BISECTIONS):
            middle_a = (low_a + high_a) / 2
            if middle_a > -self._saturation_a and self.voltage_at(middle_a) < voltage_v:
                low_a = middle_a
            else:
                high_a = middle_a
        return (low_a + high_a) / 2

    @property
    def limited(self) -> bool:
        """Whether the source holds its current, and not its voltage."""
        return self.on and abs(self.current_at(self.source_v)) > self.limit_a

    @property
    def current_a(self) -> float:
        """The current that flows."""
        if not self.on:
            return 0.0
        return max(-self.limit_a, min(self.limit_a, self.current_at(self.source_v)))

    @property
    def voltage_v(self) -> float:
        """The voltage at the terminals."""
        if not self.limited:
            return self.source_v if self.on else 0.0
        return self.voltage_at(self.current_a)

    @property
    def measured_a(self) -> float:
        """Return the current as the meter of the source reads it."""
        return self.current_a * self._gain


class DiodeBench:
    """One diode on a bench, for a source meter.

    Its usual values are the published SPICE model of a 1N4148 (IS=2.52n RS=.568 N=1.752).

    Args:
        chance: Source of the meter's error; None is the nominal bench without any.
        saturation_a: Saturation current of the diode.
        ideality: Its ideality.
        series_ohm: Its series resistance.
        temperature_c: Of the junction.

    Attributes:
        parts: The parts that wire faces read and set, by name.
        faults: Its faults; they may be set at any time.
        time_s: Seconds stepped so far.
    """

    def __init__(
        self,
        chance: random.Random | None,
        saturation_a: float = 2.52e-9,
        ideality: float = 1.752,
        series_ohm: float = 0.568,
        temperature_c: float = 25.0,
    ) -> None:
        for name, value in (
            ("saturation_a", saturation_a),
            ("ideality", ideality),
            ("series_ohm", series_ohm),
            ("temperature_c", temperature_c + 273.15),
        ):
            if not 0.0 < value < math.inf:
                raise ValueError(f"DiodeBench: {name} is {value}; allowed above 0")
        gain = 1.0 if chance is None else chance.normalvariate(1.0, GAIN_ERROR)
        self.faults = DiodeFaults()
        self.time_s = 0.0
        self.diode = Diode(self.faults, gain, saturation_a, ideality, series_ohm, temperature_c)
        self.parts: dict[str, object] = {"diode": self.diode}

    def begin_at(self, readings: Mapping[str, float]) -> None:
        """Begin as it is switched on: no reading of this bench outlasts its source."""

    def step(self, dt_s: float) -> None:
        """Let time pass; the current follows the voltage at once."""
        self.time_s += dt_s

    def operate(self, action: str, details: Mapping[str, object]) -> float:
        """Begin a manual step; return the seconds it takes."""
        return 0.0

    def finish(self, action: str) -> None:
        """End a manual step."""

    def truth(self) -> dict[str, float]:
        """Return what no instrument tells."""
        return {"current_a": self.diode.current_a, "voltage_v": self.diode.voltage_v}
