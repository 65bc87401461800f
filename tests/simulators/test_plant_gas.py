"""Gas in the simulated line: purging, pumping, over-pressure, and who may flow."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness_simulators.plant import CvdTube, Film, Growth
from labharness_simulators.plant.gas import TubeGas
from labharness_simulators.plant.sources import (
    crusted_moo3_pa,
    delivered_metal_pa,
    delivered_sulfur_pa,
    moo3_vapour_pa,
    sulfur_vapour_pa,
)
from rig import part

ARGON_VALVE, BYPASS_SHUT, HYDROGEN_VALVE, PUMP_ISOLATION, VENT, PUMP = range(6)
ATMOSPHERE_PA = 101_325.0


def line(*energised: int, volume_l: float = 2.0) -> CvdTube:
    plant = CvdTube(None, tube_volume_l=volume_l)
    for coil in energised:
        part(plant, "relays").coils[coil] = True
    return plant


def truth(plant: CvdTube, name: str) -> float:
    value = plant.truth()[name]
    assert isinstance(value, float)
    return value


@settings(deadline=None, max_examples=15)
@given(flow_sccm=st.floats(50, 500), volume_l=st.floats(0.2, 2.0), volumes=st.floats(0.5, 7.0))
def test_a_purge_decays_with_the_volumes_passed(
    flow_sccm: float, volume_l: float, volumes: float
) -> None:
    plant = line(ARGON_VALVE, BYPASS_SHUT, VENT, volume_l=volume_l)
    part(plant, "argon").setpoint_sccm = flow_sccm
    plant.step(60.0)  # the bubbler's back-pressure fills up
    start = truth(plant, "o2_fraction")
    seconds = volumes * volume_l * 1000 / flow_sccm * 60
    for _ in range(round(seconds)):
        plant.step(1.0)
    # Back-pressure makes the tube 1 % fuller than its volume at 1 atm.
    expected = math.exp(-volumes / 1.012)
    assert truth(plant, "o2_fraction") / start == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("flow_sccm", "pressure_pa"), [(10, 17), (50, 84), (100, 169), (200, 338), (500, 844)]
)
def test_the_pump_settles_where_its_speed_meets_the_flow(
    flow_sccm: float, pressure_pa: float
) -> None:
    plant = line(ARGON_VALVE, BYPASS_SHUT, PUMP_ISOLATION, PUMP)
    part(plant, "argon").setpoint_sccm = flow_sccm
    plant.step(120.0)
    assert truth(plant, "pressure_pa") - 2 == pytest.approx(pressure_pa, rel=0.02)


def test_the_pump_needs_both_its_motor_and_its_valve() -> None:
    for coil in (PUMP, PUMP_ISOLATION):
        plant = line(BYPASS_SHUT, coil)
        plant.step(60.0)
        assert truth(plant, "pressure_pa") == pytest.approx(ATMOSPHERE_PA)


def test_a_line_without_power_bursts_its_limit_because_the_bypass_flows_and_the_vent_is_shut() -> (
    None
):
    plant = line()
    plant.step(60.0)
    assert truth(plant, "pressure_pa") > 1.15 * ATMOSPHERE_PA
    plant.step(3600.0)
    assert truth(plant, "pressure_pa") <= 2.0 * ATMOSPHERE_PA
    assert truth(plant, "peak_pressure_pa") == truth(plant, "pressure_pa")


def test_an_open_vent_holds_the_tube_at_the_bubbler() -> None:
    plant = line(VENT)
    plant.step(600.0)
    assert 1_000 < truth(plant, "pressure_pa") - ATMOSPHERE_PA < 2_000


@pytest.mark.parametrize("ambient_torr", [760.0, 626.0, 487.0])
def test_a_tube_stands_in_the_room_that_it_is_told_of(ambient_torr: float) -> None:
    plant = CvdTube(None, ambient_torr=ambient_torr, vented=True)
    room_pa = ambient_torr * ATMOSPHERE_PA / 760.0
    gauge = part(plant, "gauge")
    assert gauge.pressure_torr == pytest.approx(ambient_torr)
    assert truth(plant, "ambient_pa") == pytest.approx(room_pa)
    plant.step(600.0)
    assert 1_000 < truth(plant, "pressure_pa") - room_pa < 2_000
    plant.faults.outlet_blocked = True
    plant.step(3600.0)
    assert truth(plant, "pressure_pa") - room_pa == pytest.approx(ATMOSPHERE_PA, rel=0.01)
    plant.faults.outlet_blocked = False
    part(plant, "relays").lid_held_open = True
    plant.step(1.0)
    assert truth(plant, "pressure_pa") == pytest.approx(room_pa)
    part(plant, "relays").lid_held_open = False
    part(plant, "relays").coils[:] = [False, True, False, True, False, True, False, False]
    plant.step(600.0)
    part(plant, "relays").coils[:] = [False, True, False, False, True, False, False, False]
    plant.step(60.0)
    assert truth(plant, "sucked_back_pa") == pytest.approx(room_pa - 1_000, rel=0.01)


def test_a_blocked_outlet_fills_the_tube_in_spite_of_the_vent() -> None:
    plant = line(VENT)
    plant.faults.outlet_blocked = True
    plant.step(60.0)
    assert truth(plant, "pressure_pa") > 1.15 * ATMOSPHERE_PA


def test_venting_an_evacuated_tube_draws_air_back() -> None:
    plant = line(ARGON_VALVE, BYPASS_SHUT, PUMP_ISOLATION, PUMP)
    part(plant, "argon").setpoint_sccm = 200.0
    plant.step(600.0)
    assert truth(plant, "o2_fraction") < 1e-3
    coils = part(plant, "relays").coils
    coils[PUMP], coils[VENT] = False, True
    plant.step(60.0)
    assert truth(plant, "o2_fraction") > 0.1


@settings(deadline=None, max_examples=15)
@given(volume_l=st.floats(0.2, 4.0), step_s=st.floats(0.02, 1.0), left=st.floats(0.01, 0.95))
def test_no_more_is_sucked_back_than_the_tube_lacks(
    volume_l: float, step_s: float, left: float
) -> None:
    """However fast the vent fills the tube beside the step in which that is computed."""
    gas = TubeGas(volume_l)
    gas.evacuate_to(left * ATMOSPHERE_PA)
    lacking_pa = ATMOSPHERE_PA - gas.BUBBLER_PA - gas.pressure_pa
    for _ in range(math.ceil(10.0 / step_s)):
        gas.step(
            step_s,
            air_sccm=0.0,
            argon_sccm=0.0,
            nitrogen_sccm=0.0,
            hydrogen_sccm=0.0,
            pumping=False,
            venting=True,
        )
    assert gas.sucked_back_pa == pytest.approx(lacking_pa, rel=0.01)
    assert gas.pressure_pa == pytest.approx(ATMOSPHERE_PA - gas.BUBBLER_PA, rel=0.01)


def test_a_leak_leaves_oxygen_in_proportion() -> None:
    plant = line(ARGON_VALVE, BYPASS_SHUT, VENT, volume_l=0.2)
    part(plant, "argon").setpoint_sccm = 50.0
    plant.faults.air_leak_sccm = 0.5
    plant.step(3600.0)
    plant.step(3600.0)
    assert truth(plant, "o2_fraction") == pytest.approx(0.2095 * 0.5 / 50.5, rel=0.02)


def test_an_open_lid_lets_the_room_in_and_shows_on_its_input() -> None:
    plant = line(ARGON_VALVE, VENT)
    part(plant, "argon").setpoint_sccm = 500.0
    plant.step(3600.0)
    assert truth(plant, "o2_fraction") < 1e-4
    plant.faults.lid_open = True
    assert part(plant, "relays").inputs == (True, False, True, True)
    plant.step(1.0)
    assert truth(plant, "o2_fraction") == pytest.approx(0.2095)


@settings(deadline=None, max_examples=25)
@given(
    moves=st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.floats(0.1, 40.0)), max_size=20),
    volume_l=st.sampled_from([0.2, 2.0]),
)
def test_whatever_is_switched_the_gases_add_up_to_the_pressure(
    moves: list[tuple[int, bool, float]], volume_l: float
) -> None:
    plant = line(volume_l=volume_l)
    for gas in ("argon", "nitrogen", "hydrogen"):
        part(plant, gas).setpoint_sccm = 80.0
    gas_in_tube = plant._gas
    for coil, energised, seconds in moves:
        part(plant, "relays").coils[coil] = energised
        plant.step(seconds)
        parts = (gas_in_tube.air, gas_in_tube.argon, gas_in_tube.nitrogen, gas_in_tube.hydrogen)
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(truth(plant, "pressure_pa"))
        assert 0 < truth(plant, "pressure_pa") <= 2.01 * ATMOSPHERE_PA


def test_a_flow_needs_its_valve_and_nitrogen_has_none() -> None:
    plant = line(BYPASS_SHUT, VENT)
    for gas in ("argon", "nitrogen", "hydrogen"):
        part(plant, gas).setpoint_sccm = 50.0
    plant.step(10.0)
    assert part(plant, "argon").flow_sccm == 0
    assert part(plant, "argon").valve_drive_percent == 100
    assert part(plant, "hydrogen").flow_sccm == 0
    assert part(plant, "nitrogen").flow_sccm == pytest.approx(50)
    part(plant, "relays").coils[HYDROGEN_VALVE] = True
    plant.step(10.0)
    assert part(plant, "hydrogen").flow_sccm == pytest.approx(50)
    part(plant, "relays").coils[HYDROGEN_VALVE] = False
    plant.step(0.01)
    assert truth(plant, "hydrogen_sccm") == 0


def test_a_flow_comes_with_a_lag_of_0_4_seconds() -> None:
    plant = line(ARGON_VALVE, VENT)
    part(plant, "argon").setpoint_sccm = 100.0
    for _ in range(4):
        plant.step(0.1)
    assert part(plant, "argon").flow_sccm == pytest.approx(100 * (1 - math.exp(-1)), rel=0.01)


@pytest.mark.parametrize(("setpoint_sccm", "flow_sccm"), [(math.nan, 0), (-5, 0), (1e6, 512)])
def test_a_setpoint_out_of_range_is_bounded_by_the_instrument(
    setpoint_sccm: float, flow_sccm: float
) -> None:
    plant = line(ARGON_VALVE, VENT)
    part(plant, "argon").setpoint_sccm = setpoint_sccm
    plant.step(20.0)
    assert part(plant, "argon").flow_sccm == pytest.approx(flow_sccm)


def test_instruments_err_within_their_class() -> None:
    for seed in range(20):
        plant = CvdTube(random.Random(seed))
        part(plant, "relays").coils[ARGON_VALVE] = part(plant, "relays").coils[VENT] = True
        part(plant, "argon").setpoint_sccm = 200.0
        plant.step(60.0)
        gauge = part(plant, "gauge")
        pressure_torr = truth(plant, "pressure_pa") / 133.322
        assert gauge.pressure_torr == pytest.approx(pressure_torr, rel=0.015)
        assert gauge.pressure_torr != pytest.approx(pressure_torr, rel=1e-7)
        assert truth(plant, "argon_sccm") == pytest.approx(200, abs=6)
        assert part(plant, "argon").flow_sccm == pytest.approx(200, abs=1)


def test_hydrogen_reaches_the_room_only_when_the_exhaust_is_lost() -> None:
    plant = line(HYDROGEN_VALVE, BYPASS_SHUT, VENT, volume_l=0.2)
    detector = part(plant, "h2_detector")
    part(plant, "hydrogen").setpoint_sccm = 100.0
    plant.step(600.0)
    assert truth(plant, "h2_fraction") > 0.9
    assert detector.concentration_ppm == 0
    plant.faults.exhaust_lost = True
    assert part(plant, "relays").inputs[0] is False
    plant.step(200.0)
    assert detector.concentration_ppm == pytest.approx(5_000, rel=0.05)
    plant.faults.exhaust_lost = False
    plant.faults.h2_detector_offset_ppm = 123.0
    plant.step(1200.0)
    assert detector.concentration_ppm == pytest.approx(123, abs=0.1)


def test_a_hydrogen_line_that_came_off_leaks_through_its_open_valve_whatever_is_metered() -> None:
    plant = line(HYDROGEN_VALVE, BYPASS_SHUT, VENT, volume_l=0.2)
    detector = part(plant, "h2_detector")
    plant.faults.hydrogen_leak_sccm = 200.0
    plant.step(10.0)
    assert detector.room_ppm == pytest.approx(4_000, rel=0.05)  # the extraction runs
    plant.step(200.0)
    assert detector.room_ppm == pytest.approx(10_000, rel=0.01)
    assert truth(plant, "hydrogen_leak_sccm") == 200.0
    assert truth(plant, "hydrogen_sccm") == 0.0  # the controller is shut
    part(plant, "relays").coils[HYDROGEN_VALVE] = False
    plant.step(200.0)
    assert truth(plant, "hydrogen_leak_sccm") == 0.0
    assert detector.room_ppm < 1.0


def grow(temperature_c: float, dwell_min: float = 10) -> Growth:
    """Ramp from 500 °C at 15 °C/min in 10 K stairs, dwell; the furnace itself is left out."""
    growth = Growth()
    sulfur_pa = delivered_sulfur_pa(sulfur_vapour_pa(200.0 + 273.15), 150.0, 50.0)
    stairs = [(40.0, float(stair_c)) for stair_c in range(500, round(temperature_c), 10)]
    for seconds, at_c in [*stairs, (dwell_min * 60, temperature_c)]:
        kelvin = at_c + 273.15
        metal_pa = delivered_metal_pa(crusted_moo3_pa(kelvin, sulfur_pa), 15.0, 50.0)
        for _ in range(round(seconds)):
            growth.advance(1.0, kelvin, metal_pa, sulfur_pa)
    return growth


@pytest.mark.parametrize(
    ("temperature_c", "pressure_pa"), [(600, 2.4), (650, 19), (700, 126), (750, 680), (800, 3140)]
)
def test_moo3_has_its_vapour_pressure(temperature_c: float, pressure_pa: float) -> None:
    assert moo3_vapour_pa(temperature_c + 273.15) == pytest.approx(pressure_pa, rel=0.03)


def test_sulfur_boils_at_444_6_degrees_and_gives_312_pa_at_200() -> None:
    assert sulfur_vapour_pa(444.6 + 273.15) == pytest.approx(101_325, rel=0.01)
    assert sulfur_vapour_pa(473.15) == pytest.approx(312, rel=0.01)
    assert sulfur_vapour_pa(290.0) == 0


def test_nothing_is_delivered_without_powder_or_without_flow() -> None:
    assert delivered_metal_pa(10.0, 0.0, 50.0) == 0
    assert delivered_metal_pa(10.0, 15.0, 0.0) == 0
    assert delivered_sulfur_pa(300.0, 0.0, 50.0) == 0
    assert delivered_sulfur_pa(300.0, 150.0, 0.0) == 0


def test_delivery_is_continuous_where_transport_dies_away() -> None:
    for deliver in (delivered_metal_pa, delivered_sulfur_pa):
        assert deliver(10.0, 15.0, 4.9999) == pytest.approx(deliver(10.0, 15.0, 5.0), rel=1e-3)


@settings(deadline=None, max_examples=20)
@given(
    history=st.lists(
        st.tuples(st.floats(723, 1273), st.floats(0, 0.3), st.floats(0, 30)), max_size=8
    )
)
def test_no_layer_covers_more_than_the_one_below(history: list[tuple[float, float, float]]) -> None:
    growth = Growth()
    for kelvin, metal_pa, sulfur_pa in history:
        for _ in range(200):
            growth.advance(1.0, kelvin, metal_pa, sulfur_pa)
        coverage = growth.coverage
        assert list(coverage) == sorted(coverage, reverse=True)
        assert 0 <= coverage[-1] <= coverage[0] <= 1


def test_heat_without_sulfur_takes_the_film_away_and_sulfur_protects_it() -> None:
    bare, kept = grow(800), grow(800)
    for _ in range(3600):
        bare.advance(1.0, 1223.15, 0.0, 0.0)
        kept.advance(1.0, 1223.15, 0.0, 20.0)
    assert bare.extended_area[0] < 0.96 * kept.extended_area[0]


def film_of(growth: Growth, seed: int = 7) -> Film:
    return Film(growth.nuclei_per_m2, growth.extended_area, seed)


def grid(film: Film) -> list[int]:
    places = [-490 + 20 * step for step in range(50)]
    return [film.layers_at(float(x), float(y)) for x in places for y in places]


@pytest.mark.parametrize("temperature_c", [650, 700, 750, 800, 850])
def test_a_film_covers_what_its_moments_say(temperature_c: float) -> None:
    growth = grow(temperature_c)
    layers = grid(film_of(growth))
    for wanted in (1, 2):
        share = sum(count >= wanted for count in layers) / len(layers)
        assert share == pytest.approx(growth.coverage[wanted - 1], abs=0.07)


def test_a_film_is_its_seed() -> None:
    growth = grow(700)
    assert grid(film_of(growth, 1)) == grid(film_of(growth, 1))
    assert grid(film_of(growth, 1)) != grid(film_of(growth, 2))


def test_a_film_ends_at_the_edge_of_its_square_millimetre() -> None:
    film = film_of(grow(900))
    assert film.layers_at(500.0, 0.0) >= 1
    assert film.layers_at(501.0, 0.0) == 0


def test_no_nuclei_make_a_bare_film() -> None:
    assert set(grid(film_of(Growth()))) == {0}


def test_a_burn_takes_one_spot_only() -> None:
    film = film_of(grow(900))
    before = film.layers_at(10.0, 10.0), film.layers_at(13.0, 10.0)
    film.burn(10.0, 10.0)
    assert before[0] > 0
    assert film.layers_at(10.5, 10.0) == 0
    assert film.layers_at(13.0, 10.0) == before[1]
