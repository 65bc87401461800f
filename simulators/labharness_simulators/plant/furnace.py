"""Heat: the tube furnace with its sample node, and the small heater of the sulfur boat."""

from collections.abc import Callable

from labharness_simulators.plant.faults import Faults
from labharness_simulators.plant.relays import FURNACE_MAINS, SULFUR_MAINS, Relays

ZERO_C_K = 273.15
AMBIENT_K = 298.0
THERMOCOUPLE_NOISE_C = 0.2  # 0.1-0.3 °C rms, from memory of bench readings; unverified
THERMOCOUPLE_ERROR = 0.0013  # sd of the gain: a third of type N class 1, ±0.4 % (IEC 60584-1)


class Heater:
    """One heated zone as its controller sees it.

    Attributes:
        power_fraction: 0..1, set by the controller's face; other values count as the nearest end,
            NaN as 0.
        controller: called as `controller(dt_s)` before each step, or None.
        gain: reading in °C divided by the true temperature.
    """

    __slots__ = (
        "_contactor",
        "_faults",
        "_name",
        "_noise_c",
        "_relays",
        "_thermocouple_k",
        "controller",
        "gain",
        "power_fraction",
    )

    def __init__(self, relays: Relays, faults: Faults, contactor: int, gain: float) -> None:
        self._relays = relays
        self._faults = faults
        self._contactor = contactor
        self._name = "furnace" if contactor == FURNACE_MAINS else "sulfur"
        self._thermocouple_k = AMBIENT_K
        self._noise_c = 0.0
        self.power_fraction = 0.0
        self.controller: Callable[[float], None] | None = None
        self.gain = gain

    @property
    def sensor_broken(self) -> bool:
        """True while the thermocouple is open."""
        faults = self._faults
        if faults.sensors and faults.silent(self._name):
            return True
        if self._contactor == FURNACE_MAINS:
            return faults.furnace_sensor_broken
        return faults.sulfur_sensor_broken

    @sensor_broken.setter
    def sensor_broken(self, broken: bool) -> None:
        if self._contactor == FURNACE_MAINS:
            self._faults.furnace_sensor_broken = broken
        else:
            self._faults.sulfur_sensor_broken = broken

    @property
    def mains_on(self) -> bool:
        """True while the contactor lets power reach the winding."""
        return self._relays.mains_on(self._contactor)

    @property
    def temperature_c(self) -> float:
        """The thermocouple's reading in °C, with its lag, error and noise; NaN when it is open."""
        if self.sensor_broken:
            return float("nan")
        reading_c = (self._thermocouple_k - ZERO_C_K) * self.gain + self._noise_c
        return self._faults.heard(self._name, reading_c) if self._faults.sensors else reading_c

    @property
    def power_on(self) -> float:
        """The fraction 0..1 of full power that reaches the winding."""
        wanted = self.power_fraction
        if not (wanted > 0.0 and self.mains_on):
            return 0.0
        return wanted if wanted < 1.0 else 1.0

    @property
    def heating(self) -> bool:
        """True while the winding is fed, by its controller or by a stuck output stage."""
        return self.power_on > 0.0


class TubeFurnace(Heater):
    """A hinged one-zone furnace of 1200 W around a 2-inch quartz tube (OTF-1200X class).

    Two thermal nodes, the winding with its insulation and the tube with the sample, and a
    thermocouple that lags the winding. The constants are chosen for the behaviour of the maker's
    class: 45 °C/min at full power, 26 min to 1000 °C, 2-3 h to cool with the lid shut.
    """

    __slots__ = (
        "_heater_capacity",
        "_linear_loss",
        "_radiative_loss",
        "_tube_capacity",
        "heater_k",
        "thermocouple_lag_s",
        "tube_k",
    )

    FULL_POWER_W = 1200.0
    HEATER_J_PER_K = 1500.0
    TUBE_J_PER_K = 120.0
    LOSS_W_PER_K = 0.28
    LOSS_W_PER_K4 = 5.0e-11
    TO_TUBE_W_PER_K = 1.2
    TO_TUBE_W_PER_K4 = 4.0e-11
    THERMOCOUPLE_LAG_S = 8.0  # sheathed; a bare one 1-2 s
    BARE_THERMOCOUPLE_LAG_S = 1.5
    OPEN_LID_LOSS = 6.0  # times the closed loss, with the fan
    OPEN_LID_TUBE_W_PER_K = 0.25

    def __init__(
        self, relays: Relays, faults: Faults, gain: float, mass_factor: float, loss_factor: float
    ) -> None:
        super().__init__(relays, faults, FURNACE_MAINS, gain)
        self.heater_k = AMBIENT_K
        self.tube_k = AMBIENT_K
        self._heater_capacity = self.HEATER_J_PER_K * mass_factor
        self._tube_capacity = self.TUBE_J_PER_K * mass_factor
        self._linear_loss = self.LOSS_W_PER_K * loss_factor
        self._radiative_loss = self.LOSS_W_PER_K4 * loss_factor
        self.thermocouple_lag_s = max(
            self.BARE_THERMOCOUPLE_LAG_S, self.THERMOCOUPLE_LAG_S * min(1.0, mass_factor)
        )

    @property
    def heating(self) -> bool:
        """True while the winding is fed, by its controller or by a stuck output stage."""
        return self.power_on > 0.0 or (self._faults.add_furnace_c_per_s > 0.0 and self.mains_on)

    def hold_power_w(self, temperature_c: float) -> float:
        """Return the power in W that holds a temperature with the lid shut."""
        kelvin = temperature_c + ZERO_C_K
        return self._linear_loss * (kelvin - AMBIENT_K) + self._radiative_loss * (
            kelvin**4 - AMBIENT_K**4
        )

    def step(self, dt_s: float, decay: float, to_sulfur_w: float, noise_c: float) -> None:
        """Advance the nodes by `dt_s`; `decay` is exp(-dt/lag) of the thermocouple."""
        heater = self.heater_k
        tube = self.tube_k
        heater_squared = heater * heater
        tube_squared = tube * tube
        heater_fourth = heater_squared * heater_squared
        loss_w = self._linear_loss * (heater - AMBIENT_K) + self._radiative_loss * (
            heater_fourth - AMBIENT_K**4
        )
        to_tube_w = self.TO_TUBE_W_PER_K * (heater - tube) + self.TO_TUBE_W_PER_K4 * (
            heater_fourth - tube_squared * tube_squared
        )
        tube_loss_w = 0.0
        if self._relays.lid_open:
            loss_w *= self.OPEN_LID_LOSS
            tube_loss_w = self.OPEN_LID_TUBE_W_PER_K * (tube - AMBIENT_K)
        gain_w = self.FULL_POWER_W * self.power_on - loss_w - to_tube_w - to_sulfur_w
        heater += dt_s * gain_w / self._heater_capacity
        runaway = self._faults.add_furnace_c_per_s
        if runaway and self.mains_on:
            heater += runaway * dt_s
        self.heater_k = heater
        self.tube_k = tube + dt_s * (to_tube_w - tube_loss_w) / self._tube_capacity
        self._thermocouple_k = heater + (self._thermocouple_k - heater) * decay
        self._noise_c = noise_c


class SulfurHeater(Heater):
    """A heated sleeve around the sulfur boat, 25 cm upstream and outside the insulation.

    One thermal node. With its power off beside a furnace at 750 °C it stays below 75 °C. The
    constants are chosen for a heating tape on a bare tube that reaches 200 °C within 5 min.
    """

    __slots__ = ("_capacity", "boat_k", "thermocouple_lag_s")

    FULL_POWER_W = 80.0
    CAPACITY_J_PER_K = 60.0
    LOSS_W_PER_K = 0.15
    TO_FURNACE_W_PER_K = 0.01
    THERMOCOUPLE_LAG_S = 4.0
    BARE_THERMOCOUPLE_LAG_S = 1.5

    def __init__(self, relays: Relays, faults: Faults, gain: float, mass_factor: float) -> None:
        super().__init__(relays, faults, SULFUR_MAINS, gain)
        self.boat_k = AMBIENT_K
        self._capacity = self.CAPACITY_J_PER_K * mass_factor
        self.thermocouple_lag_s = max(
            self.BARE_THERMOCOUPLE_LAG_S, self.THERMOCOUPLE_LAG_S * min(1.0, mass_factor)
        )

    def heat_from_w(self, furnace_k: float) -> float:
        """Return the heat in W that the tube conducts from the furnace."""
        return self.TO_FURNACE_W_PER_K * (furnace_k - self.boat_k)

    def step(self, dt_s: float, decay: float, from_furnace_w: float, noise_c: float) -> None:
        """Advance the boat by `dt_s`; `decay` is exp(-dt/lag) of the thermocouple."""
        boat = self.boat_k
        gain_w = self.FULL_POWER_W * self.power_on - self.LOSS_W_PER_K * (boat - AMBIENT_K)
        boat += dt_s * (gain_w + from_furnace_w) / self._capacity
        self.boat_k = boat
        self._thermocouple_k = boat + (self._thermocouple_k - boat) * decay
        self._noise_c = noise_c
