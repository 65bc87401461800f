"""A tube furnace in flowing inert gas: one heated zone, one flow controller, no valve."""

import math
import random
from collections.abc import Mapping

from labharness_simulators.plant.faults import Faults
from labharness_simulators.plant.furnace import (
    THERMOCOUPLE_ERROR,
    THERMOCOUPLE_NOISE_C,
    ZERO_C_K,
    TubeFurnace,
)
from labharness_simulators.plant.gas import MassFlow
from labharness_simulators.plant.relays import FURNACE_MAINS, Relays

SUBSTEP_S_MAX = 2.0
FULL_SCALE_SCCM = 500.0


class AnnealingTube:
    """A tube furnace that anneals one sample.

    Args:
        chance: Source of the instruments' errors and noise; None is the nominal furnace.
        mass_factor: Heat capacity, relative to a furnace around a 2-inch tube.
        loss_factor: Heat loss, relative to the same.

    Attributes:
        parts: Parts for the faces, by name.
        faults: Faults, which may be set at any time; the sensors are `furnace` and `argon`.
        time_s: Seconds stepped so far.
        in_hand: The manual step under way: None, as nothing is done by hand.
    """

    def __init__(
        self,
        chance: random.Random | None,
        mass_factor: float = 1.0,
        loss_factor: float = 1.0,
    ) -> None:
        for name, value in (("mass_factor", mass_factor), ("loss_factor", loss_factor)):
            if not 0.0 < value < math.inf:
                raise ValueError(f"AnnealingTube: {name} is {value}; allowed above 0")
        self._noise = chance
        self.faults = Faults()
        self.time_s = 0.0
        self.in_hand: str | None = None
        self._relays = Relays(self.faults)
        self._relays.coils[FURNACE_MAINS] = True  # it is plugged in; nothing switches it
        self._furnace = TubeFurnace(
            self._relays,
            self.faults,
            1.0 + self._error(THERMOCOUPLE_ERROR),
            mass_factor,
            loss_factor,
        )
        self._gas = MassFlow(
            "Ar",
            FULL_SCALE_SCCM,
            self._relays,
            None,
            faults=self.faults,
            name="argon",
            gain=1.0 + self._error(0.003),
            zero_of_full_scale=self._error(0.001),
        )
        self.parts: dict[str, object] = {"furnace": self._furnace, "gas": self._gas}

    def _error(self, sd: float) -> float:
        return 0.0 if self._noise is None else self._noise.normalvariate(0.0, sd)

    def begin_at(self, readings: Mapping[str, float]) -> None:
        """Begin as hot as the furnace was read."""
        furnace_c = readings.get("furnace.temperature", math.nan)
        if furnace_c == furnace_c:
            self._furnace.heater_k = self._furnace.tube_k = furnace_c + ZERO_C_K

    def step(self, dt_s: float) -> None:
        """Advance all physics, in substeps of at most 2 s."""
        count = math.ceil(dt_s / SUBSTEP_S_MAX)
        for _ in range(count):
            self._substep(dt_s / count)

    def _substep(self, dt_s: float) -> None:
        furnace, gas = self._furnace, self._gas
        if self.faults.sensors:
            self.faults.advance_to(self.time_s + dt_s)
        if furnace.controller is not None:
            furnace.controller(dt_s)
        self.time_s += dt_s
        n_heat, n_gas = (
            (0.0, 0.0) if self._noise is None else (self._noise.gauss(), self._noise.gauss())
        )
        decay = math.exp(-dt_s / furnace.thermocouple_lag_s)
        furnace.step(dt_s, decay, 0.0, n_heat * THERMOCOUPLE_NOISE_C)
        gas.step(math.exp(-dt_s / MassFlow.LAG_S), 1.0, n_gas)

    def operate(self, action: str, details: Mapping[str, object]) -> float:
        """Begin a manual step, of which this furnace has none.

        Raises:
            ValueError: Always.
        """
        raise ValueError(f"AnnealingTube: asked to {action!r}; nothing is done by hand here")

    def finish(self, action: str) -> None:
        """End a manual step."""

    def truth(self) -> dict[str, float]:
        """Return what no instrument tells."""
        return {
            "furnace_c": self._furnace.heater_k - ZERO_C_K,
            "sample_c": self._furnace.tube_k - ZERO_C_K,
            "furnace_heating": self._furnace.heating,
            "flow_sccm": self._gas.true_sccm,
        }
