"""Heat in the simulated line: the furnace's ramps, holds and cooling, and the sulfur heater."""

import math
from typing import Any

import pytest

from labharness_simulators.plant import CvdTube, SulfurHeater, TubeFurnace
from rig import part

FURNACE_MAINS, SULFUR_MAINS = 6, 7


def line(**factors: Any) -> tuple[CvdTube, TubeFurnace, SulfurHeater]:
    plant = CvdTube(None, **factors)
    furnace, sulfur = plant.parts["furnace"], plant.parts["sulfur"]
    assert isinstance(furnace, TubeFurnace)
    assert isinstance(sulfur, SulfurHeater)
    coils = part(plant, "relays").coils
    coils[FURNACE_MAINS] = coils[SULFUR_MAINS] = True
    return plant, furnace, sulfur


def hold(furnace: TubeFurnace, target_c: float) -> None:
    """Put a plain PI controller on the furnace; it feeds forward the holding power."""
    power = furnace.hold_power_w(target_c) / furnace.FULL_POWER_W

    def control(dt_s: float) -> None:
        furnace.power_fraction = power + (target_c - furnace.temperature_c) / 20.0

    furnace.controller = control


def minutes_to_cool(plant: CvdTube, furnace: TubeFurnace, marks_c: list[float]) -> list[float]:
    furnace.controller = None
    furnace.power_fraction = 0.0
    start_s, minutes = plant.time_s, []
    for mark_c in marks_c:
        while furnace.temperature_c > mark_c and plant.time_s - start_s < 6 * 3600:
            plant.step(2.0)
        minutes.append((plant.time_s - start_s) / 60)
    return minutes


def test_full_power_starts_at_45_degrees_a_minute_and_reaches_1000_in_26_minutes() -> None:
    plant, furnace, _ = line()
    furnace.power_fraction = 1.0
    readings = []
    while furnace.temperature_c < 1000 and plant.time_s < 3600:
        plant.step(1.0)
        readings.append(furnace.temperature_c)
    assert readings[119] - readings[59] == pytest.approx(45, rel=0.1)
    assert plant.time_s / 60 == pytest.approx(26, rel=0.1)


@pytest.mark.parametrize(("temperature_c", "power_w"), [(500, 151), (750, 257), (1000, 404)])
def test_the_holding_power_holds(temperature_c: float, power_w: float) -> None:
    plant, furnace, _ = line()
    assert furnace.hold_power_w(temperature_c) == pytest.approx(power_w, rel=0.02)
    furnace.heater_k = furnace.tube_k = temperature_c + 273.15
    furnace.power_fraction = power_w / 1200
    plant.step(1800.0)
    # The sulfur heater's tube draws a few watts that the table does not count.
    assert furnace.temperature_c == pytest.approx(temperature_c, rel=0.02)


def test_a_shut_furnace_cools_in_hours() -> None:
    plant, furnace, _ = line()
    hold(furnace, 750.0)
    plant.step(3600.0)
    plant.step(3600.0)
    assert furnace.temperature_c == pytest.approx(750, abs=3)
    minutes = minutes_to_cool(plant, furnace, [600.0, 400.0, 200.0, 100.0])
    assert minutes == pytest.approx([18, 55, 124, 203], rel=0.15)


def test_an_open_lid_cools_to_200_within_twenty_minutes() -> None:
    plant, furnace, _ = line()
    hold(furnace, 750.0)
    plant.step(3600.0)
    plant.faults.lid_open = True
    (minutes,) = minutes_to_cool(plant, furnace, [200.0])
    assert 13 < minutes < 20


def test_a_short_line_cools_ten_times_as_fast() -> None:
    plant, furnace, _ = line(furnace_mass_factor=0.1)
    hold(furnace, 750.0)
    plant.step(3600.0)
    minutes = minutes_to_cool(plant, furnace, [100.0])
    assert minutes == pytest.approx([20.3], rel=0.15)


def test_the_sample_lags_a_ramp_and_catches_up() -> None:
    plant, furnace, _ = line()
    furnace.power_fraction = 0.4
    while furnace.temperature_c < 600:
        plant.step(1.0)
    lag_k = furnace.heater_k - furnace.tube_k
    assert 5 < lag_k < 40
    hold(furnace, 600.0)
    plant.step(1800.0)
    assert furnace.heater_k - furnace.tube_k < 1


def test_the_sulfur_boat_reaches_200_within_ten_minutes_and_cools_again() -> None:
    plant, _, sulfur = line()
    sulfur.power_fraction = 1.0
    while sulfur.temperature_c < 220 and plant.time_s < 3600:
        plant.step(1.0)
    assert plant.time_s < 600
    sulfur.power_fraction = 0.0
    plant.step(1200.0)
    assert sulfur.temperature_c < 60


def test_a_furnace_at_750_does_not_melt_the_sulfur() -> None:
    plant, furnace, sulfur = line()
    hold(furnace, 750.0)
    plant.step(3600.0)
    plant.step(3600.0)
    assert 40 < sulfur.temperature_c < 90


@pytest.mark.parametrize("name", ["furnace", "sulfur"])
def test_without_mains_no_power_heats(name: str) -> None:
    plant, furnace, sulfur = line()
    heater = furnace if name == "furnace" else sulfur
    heater.power_fraction = 1.0
    plant.step(60.0)
    assert heater.temperature_c > 30
    part(plant, "relays").coils[FURNACE_MAINS if name == "furnace" else SULFUR_MAINS] = False
    assert not heater.mains_on
    plant.step(60.0)
    warm_c = heater.temperature_c
    plant.step(600.0)
    assert heater.temperature_c < warm_c


def test_the_estop_loop_drops_the_mains_of_both_heaters() -> None:
    plant, furnace, sulfur = line()
    assert furnace.mains_on
    assert sulfur.mains_on
    plant.faults.estop_open = True
    assert not furnace.mains_on
    assert not sulfur.mains_on


def test_a_runaway_ignores_the_controller_and_obeys_the_contactor() -> None:
    plant, furnace, _ = line()
    plant.faults.add_furnace_c_per_s = 1.0
    furnace.power_fraction = 0.0
    plant.step(300.0)
    hot_c = furnace.temperature_c
    assert hot_c > 150
    part(plant, "relays").coils[FURNACE_MAINS] = False
    plant.step(300.0)
    assert furnace.temperature_c < hot_c


@pytest.mark.parametrize("power", [math.nan, -1.0])
def test_a_power_that_is_none_heats_nothing(power: float) -> None:
    plant, furnace, _ = line()
    furnace.power_fraction = power
    plant.step(600.0)
    assert furnace.temperature_c == pytest.approx(24.85, abs=0.1)


def test_a_broken_sensor_reads_nan_on_its_own_heater_alone() -> None:
    plant, furnace, sulfur = line()
    plant.faults.sulfur_sensor_broken = True
    assert math.isnan(sulfur.temperature_c)
    assert not math.isnan(furnace.temperature_c)
    sulfur.sensor_broken = False
    furnace.sensor_broken = True
    assert not plant.faults.sulfur_sensor_broken
    assert math.isnan(furnace.temperature_c)
