"""The whole simulated line: sulfur boat, tube furnace, gases, a sample, and a microscope."""

import math
import random
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from labharness_simulators.plant.faults import Faults
from labharness_simulators.plant.film import Film
from labharness_simulators.plant.furnace import (
    THERMOCOUPLE_ERROR,
    THERMOCOUPLE_NOISE_C,
    ZERO_C_K,
    SulfurHeater,
    TubeFurnace,
)
from labharness_simulators.plant.gas import BYPASS_SCCM, PA_PER_TORR, MassFlow, TubeGas
from labharness_simulators.plant.gauges import Detector, Gauge
from labharness_simulators.plant.growth import GROWTH_ONSET_K, LAYERS
from labharness_simulators.plant.hot_zone import HOT_SULFUR_K, HotZone
from labharness_simulators.plant.optics import Laser, Spectrometer
from labharness_simulators.plant.relays import (
    ARGON_VALVE,
    FURNACE_MAINS,
    HYDROGEN_VALVE,
    NITROGEN_BYPASS,
    PUMP,
    PUMP_ISOLATION,
    SULFUR_MAINS,
    VENT,
    Relays,
)
from labharness_simulators.plant.sample import draw_sample
from labharness_simulators.plant.shelf import Lying, Shelf
from labharness_simulators.plant.spectrum import Light
from labharness_simulators.plant.spot import spot_light
from labharness_simulators.plant.stage import MicroscopeStage

COIL_OF = {
    "box.argon_valve": ARGON_VALVE,
    "box.nitrogen_bypass_shut": NITROGEN_BYPASS,
    "box.hydrogen_valve": HYDROGEN_VALVE,
    "box.pump_isolation": PUMP_ISOLATION,
    "box.vent": VENT,
    "box.pump": PUMP,
}
"""Relays whose state a line may read back, by their names in the shipped line."""

SUBSTEP_S_MAX = 5.0
HOT_SUBSTEP_S_MAX = 2.0  # while a film grows
STEP_S_MAX = 3_600.0
BURNING_W = 5e-3
SPOTS_MAX = 1_000  # measured spots remembered for `truth`
LOAD_S = 180.0
TO_MICROSCOPE_S = 120.0
LOAD_DETAILS = ("moo3_mass_mg", "sulfur_mass_mg", "substrate", "sample_id")


class CvdTube:
    """A CVD line for MoS2 from MoO3 and sulfur powder.

    It has no wires: faces read and set its `parts`. Reading changes nothing, except that an
    exposure draws noise and may burn the film.

    Args:
        chance: source of the instruments' errors, of noise and of the scatter of samples; None is
            the nominal line without any. Equal seeds and equal steps give equal lines.
        tube_volume_l: 2.0 for a 2-inch tube of 1.2 m.
        furnace_mass_factor: heat capacity of the furnace and its tube, relative to a 2-inch one.
        furnace_loss_factor: heat loss of the furnace, relative to the same.
        sulfur_mass_factor: heat capacity of the sulfur heater, relative to the default.
        vented: the vent is open, as after the last shutdown; without power it is shut, and the open
            bypass then fills the tube.
        samples: the samples that lie ready beside the microscope, by their ids: see `Shelf`.
        ambient_torr: the room's pressure; 626 (83.5 kPa) at 1,600 m (ISO 2533).

    Attributes:
        parts: the parts for the faces, by name.
        faults: the faults, which may be set at any time.
        time_s: seconds stepped so far.
    """

    def __init__(
        self,
        chance: random.Random | None,
        tube_volume_l: float = 2.0,
        furnace_mass_factor: float = 1.0,
        furnace_loss_factor: float = 1.0,
        sulfur_mass_factor: float = 1.0,
        vented: bool = False,
        ambient_torr: float = 760.0,
        samples: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
    ) -> None:
        for name, value in (
            ("tube_volume_l", tube_volume_l),
            ("furnace_mass_factor", furnace_mass_factor),
            ("furnace_loss_factor", furnace_loss_factor),
            ("sulfur_mass_factor", sulfur_mass_factor),
            ("ambient_torr", ambient_torr),
        ):
            if not 0.0 < value < math.inf:
                raise ValueError(f"CvdTube: {name} is {value}; allowed above 0")
        ambient_pa = ambient_torr * PA_PER_TORR
        self.time_s = 0.0
        self.faults = Faults()
        self._noise = _branch(chance)
        self._sample_chance = _branch(chance)
        errors = _branch(chance)
        self._shelf = Shelf(samples, _branch(chance))

        def error(sd: float) -> float:
            return 0.0 if errors is None else errors.normalvariate(0.0, sd)

        self._relays = Relays(self.faults)
        self._relays.coils[VENT] = vented
        self._furnace = TubeFurnace(
            self._relays,
            self.faults,
            1.0 + error(THERMOCOUPLE_ERROR),
            furnace_mass_factor,
            furnace_loss_factor,
        )
        self._sulfur = SulfurHeater(
            self._relays, self.faults, 1.0 + error(THERMOCOUPLE_ERROR), sulfur_mass_factor
        )
        flows = [
            MassFlow(
                gas,
                full_scale_sccm,
                self._relays,
                valve,
                faults=self.faults,
                name=name,
                gain=1.0 + error(0.003),
                zero_of_full_scale=error(0.001),
                ambient_pa=ambient_pa,
            )
            for name, gas, full_scale_sccm, valve in (
                ("argon", "Ar", 500.0, ARGON_VALVE),
                ("nitrogen", "N2", 500.0, None),
                ("hydrogen", "H2", 100.0, HYDROGEN_VALVE),
            )
        ]
        self._argon, self._nitrogen, self._hydrogen = flows
        self._gas = TubeGas(tube_volume_l, ambient_pa)
        self._gauge = Gauge(self.faults, 1.0 + error(0.0025), ambient_pa)
        self._detector = Detector(self.faults)
        self._laser = Laser(self._relays)
        self._stage = MicroscopeStage()
        self._spectrometer = Spectrometer(self._look, errors)
        self.parts: dict[str, object] = {
            "furnace": self._furnace,
            "sulfur": self._sulfur,
            "argon": self._argon,
            "nitrogen": self._nitrogen,
            "hydrogen": self._hydrogen,
            "relays": self._relays,
            "gauge": self._gauge,
            "h2_detector": self._detector,
            "laser": self._laser,
            "spectrometer": self._spectrometer,
            "stage": self._stage,
        }
        self._in_hand: str | None = None
        self._hot = HotZone()
        self._on_stage: Lying | None = None
        self._spots: deque[tuple[float, float, int]] = deque(maxlen=SPOTS_MAX)
        self._peak_pressure_pa = self._gas.pressure_pa
        self._opened_h2_fraction = 0.0
        self._decays_for_s = 0.0
        self._decays = (1.0, 1.0, 1.0)

    def begin_at(self, readings: Mapping[str, float]) -> None:
        """Begin in the state that was read back from a line.

        The gas in the tube is assumed to be air, because no reading shows what it is: a purge is
        needed.

        Args:
            readings: By channel: temperatures in degC (heater and tube alike), the pressure in
                Torr, and which relays of `box` are energised; others are ignored.
        """
        for channel, coil in COIL_OF.items():
            state = readings.get(channel, math.nan)
            if state == state:
                self._relays.coils[coil] = state > 0.5
        pressure_torr = readings.get("gauge.pressure", math.nan)
        if pressure_torr > 0.0:
            self._gas.evacuate_to(pressure_torr * PA_PER_TORR)
            self._gauge.step(self._gas.pressure_pa, 0.0)
        furnace_c = readings.get("furnace.temperature", math.nan)
        if furnace_c == furnace_c:
            self._furnace.heater_k = self._furnace.tube_k = furnace_c + ZERO_C_K
        sulfur_c = readings.get("sulfur.temperature", math.nan)
        if sulfur_c == sulfur_c:
            self._sulfur.boat_k = sulfur_c + ZERO_C_K

    def step(self, dt_s: float) -> None:
        """Advance all physics by `dt_s`, in substeps of at most 5 s, or 2 s while it is hot.

        Each heater's `controller(dt_s)` is called before each substep.

        Raises:
            ValueError: `dt_s` is not above 0 and at most 3600 s.
        """
        if not 0.0 < dt_s <= STEP_S_MAX:
            raise ValueError(f"CvdTube: asked to step {dt_s} s; allowed above 0 to {STEP_S_MAX} s")
        if dt_s <= HOT_SUBSTEP_S_MAX:
            self._substep(dt_s)
            return
        count = math.ceil(dt_s / (HOT_SUBSTEP_S_MAX if self._is_hot() else SUBSTEP_S_MAX))
        for _ in range(count):
            self._substep(dt_s / count)

    def _substep(self, dt_s: float) -> None:
        if dt_s != self._decays_for_s:
            self._decays_for_s = dt_s
            lags = (
                self._furnace.thermocouple_lag_s,
                self._sulfur.thermocouple_lag_s,
                MassFlow.LAG_S,
            )
            heat, boat, flow = (math.exp(-dt_s / lag) for lag in lags)
            self._decays = (heat, boat, flow)
        furnace, sulfur = self._furnace, self._sulfur
        if self.faults.sensors:
            self.faults.advance_to(self.time_s + dt_s)
        if furnace.controller is not None:
            furnace.controller(dt_s)
        if sulfur.controller is not None:
            sulfur.controller(dt_s)
        self.time_s = now_s = self.time_s + dt_s
        if self._noise is None:
            n_heat = n_boat = n_argon = n_nitrogen = n_hydrogen = n_gauge = n_room = 0.0
        else:
            gauss = self._noise.gauss
            n_heat, n_boat, n_room = gauss(), gauss(), gauss()
            n_argon, n_nitrogen, n_hydrogen, n_gauge = gauss(), gauss(), gauss(), gauss()
        heat_decay, boat_decay, flow_decay = self._decays
        creeping_w = sulfur.heat_from_w(furnace.heater_k)
        furnace.step(dt_s, heat_decay, creeping_w, n_heat * THERMOCOUPLE_NOISE_C)
        sulfur.step(dt_s, boat_decay, creeping_w, n_boat * THERMOCOUPLE_NOISE_C)

        gas, argon, nitrogen, hydrogen = self._gas, self._argon, self._nitrogen, self._hydrogen
        supply = gas.supply_share
        argon.step(flow_decay, supply, n_argon)
        nitrogen.step(flow_decay, supply, n_nitrogen)
        hydrogen.step(flow_decay, supply, n_hydrogen)
        inflow_sccm, escaping_sccm = self._move_gas(dt_s, supply)
        self._gauge.step(gas.pressure_pa, n_gauge)
        self._detector.step(dt_s, escaping_sccm + self._leaking_sccm(), n_room)
        self._laser.step(dt_s)
        self._stage.advance_to(now_s)
        self._spectrometer.advance_to(now_s)
        if self._is_hot():
            self._hot.step(dt_s, furnace.tube_k, sulfur.boat_k, inflow_sccm, gas)

    def _is_hot(self) -> bool:
        return self._furnace.tube_k > GROWTH_ONSET_K or self._sulfur.boat_k > HOT_SULFUR_K

    def _bypass_sccm(self) -> float:
        shut = self._relays.contacts[NITROGEN_BYPASS]
        return 0.0 if shut else BYPASS_SCCM * self._gas.supply_share

    def _leaking_sccm(self) -> float:
        is_open = self._relays.contacts[HYDROGEN_VALVE]
        return self.faults.hydrogen_leak_sccm if is_open else 0.0

    def _move_gas(self, dt_s: float, supply: float) -> tuple[float, float]:
        """Advance the tube's gas; return the flow through it and its hydrogen lost to the room."""
        gas, contacts, faults = self._gas, self._relays.contacts, self.faults
        hydrogen_sccm = self._hydrogen.true_sccm
        nitrogen_sccm = self._nitrogen.true_sccm
        if not contacts[NITROGEN_BYPASS]:
            nitrogen_sccm += BYPASS_SCCM * supply
        inflow_sccm = self._argon.true_sccm + nitrogen_sccm + hydrogen_sccm
        if self._relays.lid_open:
            gas.open_to_room()
            return inflow_sccm, hydrogen_sccm
        outlet_clear = not faults.outlet_blocked
        gas.step(
            dt_s,
            air_sccm=faults.air_leak_sccm,
            argon_sccm=self._argon.true_sccm,
            nitrogen_sccm=nitrogen_sccm,
            hydrogen_sccm=hydrogen_sccm,
            pumping=outlet_clear
            and contacts[PUMP_ISOLATION]
            and contacts[PUMP]
            and not faults.pump_stopped,
            venting=outlet_clear and contacts[VENT],
        )
        if gas.pressure_pa > self._peak_pressure_pa:
            self._peak_pressure_pa = gas.pressure_pa
        if faults.exhaust_lost:
            return inflow_sccm, gas.hydrogen_fraction * gas.out_sccm
        return inflow_sccm, 0.0

    def operate(self, action: str, details: Mapping[str, object]) -> float:
        """Begin an operator's manual step; return the seconds until `finish` is due.

        `load` opens the lid and puts in new boats and a new substrate; `move_to_microscope` opens
        lid and enclosure and moves the sample to the stage, where its film no longer changes;
        `put_under_microscope` opens the enclosure and puts a sample there that lies ready.

        Raises:
            ValueError: an unknown action, another action in hand, missing or unknown details, a
                mass that is not a finite number of mg from 0, or no sample in the tube.
        """
        if self._in_hand is not None:
            raise ValueError(f"CvdTube: asked to {action!r}; {self._in_hand!r} is not finished")
        if action == "load":
            return self._begin_load(details)
        if action == "move_to_microscope":
            if details:
                raise ValueError(f"CvdTube: {action!r} takes no details; got {sorted(details)}")
            return self._begin_move()
        if action == "put_under_microscope":
            return self._begin_put(details)
        raise ValueError(
            f"CvdTube: asked to {action!r}; an operator can 'load', 'move_to_microscope' or "
            "'put_under_microscope'"
        )

    @property
    def in_hand(self) -> str | None:
        """The manual step that was begun and not finished."""
        return self._in_hand

    def finish(self, action: str) -> None:
        """Shut lid and enclosure at the end of a manual step.

        Raises:
            ValueError: that action is not in hand.
        """
        if action != self._in_hand:
            raise ValueError(f"CvdTube: asked to finish {action!r}; in hand is {self._in_hand!r}")
        self._in_hand = None
        self._relays.lid_held_open = False
        self._relays.enclosure_held_open = False

    def _begin_load(self, details: Mapping[str, object]) -> float:
        if sorted(details) != sorted(LOAD_DETAILS):
            raise ValueError(f"CvdTube: 'load' takes {LOAD_DETAILS}; got {tuple(sorted(details))}")
        moo3_mg = _mass_mg(details, "moo3_mass_mg")
        sulfur_mg = _mass_mg(details, "sulfur_mass_mg")
        sample = draw_sample(
            self._sample_chance, str(details["sample_id"]), str(details["substrate"])
        )
        self._open_lid("load")
        self._hot.load(sample, moo3_mg, sulfur_mg)
        return LOAD_S

    def _begin_move(self) -> float:
        sample, growth = self._hot.unload()
        self._open_lid("move_to_microscope")
        self._relays.enclosure_held_open = True
        film = Film(growth.nuclei_per_m2, growth.extended_area, sample.film_seed)
        self._lay(Lying(sample, film, growth.coverage))
        return TO_MICROSCOPE_S

    def _begin_put(self, details: Mapping[str, object]) -> float:
        if sorted(details) != ["sample_id"]:
            raise ValueError(
                "CvdTube: 'put_under_microscope' takes ('sample_id',); "
                f"got {tuple(sorted(details))}"
            )
        lying = self._shelf.find(str(details["sample_id"]))
        self._in_hand = "put_under_microscope"
        self._relays.enclosure_held_open = True
        self._lay(lying)
        return TO_MICROSCOPE_S

    def _lay(self, lying: Lying) -> None:
        """Lay a sample on the stage; whatever lay there goes back, and both may be had again."""
        self._shelf.put(lying)
        self._on_stage = lying
        self._spots.clear()

    def _open_lid(self, action: str) -> None:
        self._in_hand = action
        self._opened_h2_fraction = self._gas.hydrogen_fraction
        self._relays.lid_held_open = True
        self._gas.open_to_room()

    def _look(self, exposure_s: float) -> Light | None:
        """Return the light of the spot under the laser; None without beam or sample."""
        power_w = self._laser.output_w
        if power_w <= 0.0 or self._on_stage is None:
            return None
        sample, film = self._on_stage.sample, self._on_stage.film
        x_um, y_um, _ = position_um = self._stage.position_um
        if power_w > BURNING_W:
            film.burn(x_um, y_um)
        self._spots.append((x_um, y_um, film.layers_at(x_um, y_um)))
        return spot_light(film, sample, position_um, 1e3 * power_w, exposure_s)

    def lose_power(self) -> None:
        """Simulate a power dip: all coils drop, the laser is off, unsaved setpoints are lost.

        The temperature controllers and the argon and nitrogen controllers keep their settings; the
        hydrogen controller never saves its setpoint. The caller must keep the instruments silent
        meanwhile.
        """
        self._relays.coils = [False] * len(self._relays.coils)
        self._laser.on = False
        self._hydrogen.setpoint_sccm = 0.0

    def truth(self) -> dict[str, object]:
        """Return the true state, without any instrument's error or noise, for referees in tests.

        `coverage`, `mean_layers`, `nuclei_per_mm2` and `edge_um` belong to the sample in the tube.
        Without one there, coverage and mean belong to the film on the stage.
        """
        gas, growth, in_tube = self._gas, self._hot.growth, self._hot.sample
        stage = self._on_stage
        coverage = (0.0,) * LAYERS if stage is None else stage.coverage
        if in_tube is not None:
            coverage = growth.coverage
        sample = in_tube or (stage and stage.sample)
        return {
            "time_s": self.time_s,
            "furnace_heater_c": self._furnace.heater_k - ZERO_C_K,
            "substrate_c": self._furnace.tube_k - ZERO_C_K,
            "sulfur_c": self._sulfur.boat_k - ZERO_C_K,
            "ambient_pa": gas.ambient_pa,
            "pressure_pa": gas.pressure_pa,
            "peak_pressure_pa": self._peak_pressure_pa,
            "o2_fraction": gas.oxygen_fraction,
            "h2_fraction": gas.hydrogen_fraction,
            "argon_sccm": self._argon.true_sccm,
            "nitrogen_sccm": self._nitrogen.true_sccm,
            "hydrogen_sccm": self._hydrogen.true_sccm,
            "hydrogen_leak_sccm": self._leaking_sccm(),
            "out_sccm": gas.out_sccm,
            "room_h2_ppm": self._detector.room_ppm,
            "inert_sccm": self._argon.true_sccm + self._nitrogen.true_sccm + self._bypass_sccm(),
            "furnace_mains": self._relays.coils[FURNACE_MAINS],
            "sulfur_mains": self._relays.coils[SULFUR_MAINS],
            "hydrogen_valve": self._relays.coils[HYDROGEN_VALVE],
            "furnace_power": self._furnace.power_fraction,
            "sulfur_power": self._sulfur.power_fraction,
            "hydrogen_setpoint_sccm": self._hydrogen.setpoint_sccm,
            "furnace_heating": self._furnace.heating,
            "sulfur_heating": self._sulfur.heating,
            "lid_open": self._relays.lid_open,
            "lid_held_open": self._relays.lid_held_open,
            "opened_h2_fraction": self._opened_h2_fraction,
            "enclosure_open": not self._relays.enclosure_shut,
            "sucked_back_pa": gas.sucked_back_pa,
            "laser_on": self._laser.on,
            "laser_output_w": self._laser.output_w,
            "moo3_mass_mg": self._hot.moo3_mass_mg,
            "sulfur_mass_mg": self._hot.sulfur_mass_mg,
            "sample": sample,
            "sample_at": "tube" if in_tube else "stage" if self._on_stage else None,
            "coverage": coverage,
            "mean_layers": sum(coverage),
            "nuclei_per_mm2": growth.nuclei_per_m2[0] * 1e-6,
            "edge_um": growth.edge_um,
            "measured_spots": tuple(self._spots),
        }

    def layers_at(self, x_um: float, y_um: float) -> int:
        """Return the true layers under a stage position in um, 0 without a film; for referees."""
        return 0 if self._on_stage is None else self._on_stage.film.layers_at(x_um, y_um)


def _branch(chance: random.Random | None) -> random.Random | None:
    """Return a new random source, so that one part's draws do not shift another's."""
    return None if chance is None else random.Random(chance.getrandbits(64))


def _mass_mg(details: Mapping[str, object], name: str) -> float:
    mass = details[name]
    if isinstance(mass, bool) or not isinstance(mass, int | float) or not 0.0 <= mass < math.inf:
        raise ValueError(f"CvdTube: 'load' got {name} {mass!r}; allowed a number of mg from 0")
    return float(mass)
