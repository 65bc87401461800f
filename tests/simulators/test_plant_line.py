"""The simulated line as a whole: a growth from powder to spectrum, and its repeatability."""

import random
from functools import partial

import pytest

from labharness_simulators.plant import (
    CvdTube,
    Heater,
    Laser,
    MassFlow,
    MicroscopeStage,
    Relays,
    Sample,
    Spectrometer,
)
from literature import follow
from rig import part

ARGON_VALVE, BYPASS_SHUT, VENT, FURNACE_MAINS, SULFUR_MAINS = 0, 1, 4, 6, 7
BOATS = {
    "moo3_mass_mg": 15.0,
    "sulfur_mass_mg": 150.0,
    "substrate": "SiO2/Si",
    "sample_id": "sample-1",
}


def short_line(seed: int | None = None) -> CvdTube:
    chance = None if seed is None else random.Random(seed)
    return CvdTube(
        chance,
        tube_volume_l=0.2,
        furnace_mass_factor=0.08,
        furnace_loss_factor=2.5,
        sulfur_mass_factor=0.3,
    )


ramp_to = partial(follow, begin_c=25.0, band_c=40.0, slow_s=150.0)


def grow(
    plant: CvdTube,
    temperature_c: float = 750.0,
    sulfur_c: float = 200.0,
    moo3_mg: float = 15.0,
    dwell_min: float = 15.0,
) -> None:
    """Load, purge, heat, dwell, cool: the standard recipe of a short line."""
    plant.step(plant.operate("load", {**BOATS, "moo3_mass_mg": moo3_mg}))
    plant.finish("load")
    relays, argon = plant.parts["relays"], plant.parts["argon"]
    furnace, sulfur = plant.parts["furnace"], plant.parts["sulfur"]
    assert isinstance(relays, Relays)
    assert isinstance(argon, MassFlow)
    assert isinstance(furnace, Heater)
    assert isinstance(sulfur, Heater)
    for coil in (ARGON_VALVE, BYPASS_SHUT, VENT, FURNACE_MAINS, SULFUR_MAINS):
        relays.coils[coil] = True
    argon.setpoint_sccm = 500.0
    plant.step(300.0)
    argon.setpoint_sccm = 50.0
    ramp_s = (temperature_c - 25.0) / 50.0 * 60.0
    furnace.controller = ramp_to(furnace, temperature_c, 50.0)
    plant.step(ramp_s - 600.0)
    sulfur.controller = ramp_to(sulfur, sulfur_c, 60.0)
    plant.step(600.0 + dwell_min * 60.0)
    furnace.controller = sulfur.controller = None
    furnace.power_fraction = sulfur.power_fraction = 0.0
    argon.setpoint_sccm = 500.0
    plant.step(900.0)


def coverage(plant: CvdTube) -> tuple[float, ...]:
    covered = plant.truth()["coverage"]
    assert isinstance(covered, tuple)
    return covered


def measure(plant: CvdTube, x_um: float = 0.0, power_w: float = 3e-4) -> list[int]:
    laser, stage = plant.parts["laser"], plant.parts["stage"]
    spectrometer = plant.parts["spectrometer"]
    assert isinstance(laser, Laser)
    assert isinstance(stage, MicroscopeStage)
    assert isinstance(spectrometer, Spectrometer)
    laser.on, laser.power_w = True, power_w
    stage.move_to(x_um, 0.0, 0.0)
    plant.step(2.0)
    return spectrometer.exposure(2.0)


def to_microscope(plant: CvdTube) -> None:
    plant.step(plant.operate("move_to_microscope", {}))
    plant.finish("move_to_microscope")


def test_hotter_growths_go_from_nothing_over_triangles_to_many_layers() -> None:
    grown = {}
    for temperature_c in (600.0, 700.0, 775.0, 900.0):
        plant = short_line()
        grow(plant, temperature_c)
        grown[temperature_c] = coverage(plant)
    assert grown[600.0][0] < 0.01
    assert 0.05 < grown[700.0][0] < 0.4
    assert grown[700.0][1] < 0.01
    assert 0.3 < grown[775.0][0] < 0.95
    assert 0.005 < grown[775.0][1] < 0.3
    assert sum(grown[900.0]) > 1.5


def test_cold_sulfur_grows_nothing_and_too_much_moo3_grows_thick() -> None:
    cold, heavy = short_line(), short_line()
    grow(cold, sulfur_c=25.0)
    grow(heavy, 800.0, moo3_mg=400.0)
    assert coverage(cold)[0] < 1e-6
    assert sum(coverage(heavy)) > 2


def test_air_in_the_hot_tube_leaves_no_film() -> None:
    plant = short_line()
    plant.faults.air_leak_sccm = 1.0
    grow(plant)
    assert coverage(plant)[0] < 1e-2


def test_powders_are_used_up_as_they_evaporate() -> None:
    plant = short_line()
    grow(plant)
    moo3_mg, sulfur_mg = plant.truth()["moo3_mass_mg"], plant.truth()["sulfur_mass_mg"]
    assert isinstance(moo3_mg, float)
    assert isinstance(sulfur_mg, float)
    assert 13 < moo3_mg < 15
    assert 140 < sulfur_mg < 150


def test_a_fresh_substrate_is_bare_and_its_boats_are_full() -> None:
    plant = short_line()
    grow(plant)
    plant.operate("load", {**BOATS, "sample_id": "sample-2"})
    truth = plant.truth()
    sample = truth["sample"]
    assert isinstance(sample, Sample)
    assert sample.sample_id == "sample-2"
    assert truth["moo3_mass_mg"] == 15.0
    assert coverage(plant) == (0.0,) * 6


def test_a_sample_is_measured_after_it_was_moved() -> None:
    plant = short_line(4)
    grow(plant, 800.0)
    dark = measure(plant)
    grown = coverage(plant)
    to_microscope(plant)
    assert coverage(plant) == grown
    spectrum = measure(plant)
    assert max(dark) < 1_000
    assert max(spectrum) > 1_500
    spots = plant.truth()["measured_spots"]
    assert spots == ((0.0, 0.0, plant.layers_at(0.0, 0.0)),)


def test_five_milliwatts_burn_the_spot() -> None:
    plant = short_line()
    grow(plant, 900.0)
    to_microscope(plant)
    assert plant.layers_at(0.0, 0.0) > 0
    measure(plant, power_w=5e-3)
    assert plant.layers_at(0.0, 0.0) > 0
    measure(plant, power_w=6e-3)
    assert plant.layers_at(0.0, 0.0) == 0
    assert plant.layers_at(5.0, 0.0) > 0


def run(seed: int) -> tuple[object, ...]:
    plant = short_line(seed)
    grow(plant)
    grown = plant.truth()
    to_microscope(plant)
    return grown, [measure(plant, 10.0 * step) for step in range(3)], plant.truth()


def test_one_seed_gives_one_line_and_another_seed_another() -> None:
    assert run(1) == run(1)
    assert run(1) != run(2)


def test_looking_changes_nothing() -> None:
    watched, alone = short_line(6), short_line(6)
    for _ in range(50):
        for plant in (watched, alone):
            plant.step(1.0)
        for each in watched.parts.values():
            for name in dir(each):
                if not name.startswith("_"):
                    getattr(each, name)
        watched.truth()
    assert watched.truth() == alone.truth()
    heaters = [part(each, "furnace") for each in (watched, alone)]
    assert heaters[0].temperature_c == heaters[1].temperature_c


def test_samples_scatter_but_do_not_depend_on_how_long_the_line_has_run() -> None:
    def loaded(seed: int, seconds: float) -> Sample:
        plant = short_line(seed)
        plant.step(seconds)
        plant.operate("load", BOATS)
        sample = plant.truth()["sample"]
        assert isinstance(sample, Sample)
        return sample

    assert loaded(1, 1.0) == loaded(1, 100.0)
    assert loaded(1, 1.0) != loaded(2, 1.0)


def test_an_operator_opens_and_shuts() -> None:
    plant = short_line()
    relays = plant.parts["relays"]
    assert isinstance(relays, Relays)
    assert plant.operate("load", BOATS) > 0
    assert relays.inputs == (True, False, True, True)
    with pytest.raises(ValueError, match="'load' is not finished"):
        plant.operate("move_to_microscope", {})
    plant.finish("load")
    assert relays.inputs == (True, True, True, True)
    assert plant.operate("move_to_microscope", {}) > 0
    assert relays.inputs == (True, False, False, True)
    plant.finish("move_to_microscope")
    assert relays.inputs == (True, True, True, True)
    with pytest.raises(ValueError, match="in hand is None"):
        plant.finish("load")


def test_a_sample_that_was_grown_may_be_put_under_the_microscope_again() -> None:
    plant = CvdTube(random.Random(1), samples={"other": {"layers": 3, "coverage": 0.4}})
    places = [(60.0 * x, 60.0 * y) for x in range(-3, 4) for y in range(-3, 4)]

    def seen(action: str, details: dict[str, object]) -> list[int]:
        plant.operate(action, details)
        plant.finish(action)
        return [plant.layers_at(*place) for place in places]

    seen("load", BOATS)
    grown = seen("move_to_microscope", {})
    other = seen("put_under_microscope", {"sample_id": "other"})
    assert {*other} == {0, 3}
    assert 0.2 < other.count(3) / len(other) < 0.6
    assert seen("put_under_microscope", {"sample_id": BOATS["sample_id"]}) == grown


def test_the_nominal_line_takes_any_sample_for_a_bare_one() -> None:
    plant = short_line()
    relays = plant.parts["relays"]
    assert isinstance(relays, Relays)
    assert plant.operate("put_under_microscope", {"sample_id": "any"}) > 0
    assert relays.inputs == (True, True, False, True)
    plant.finish("put_under_microscope")
    assert relays.inputs == (True, True, True, True)
    assert plant.layers_at(0.0, 0.0) == 0


@pytest.mark.parametrize(
    ("action", "details", "message"),
    [
        ("dance", {}, "an operator can"),
        ("move_to_microscope", {}, "no sample in the tube"),
        ("move_to_microscope", {"x": 1}, "takes no details"),
        ("put_under_microscope", {}, "takes .'sample_id',"),
        ("load", {}, "'load' takes"),
        ("load", {**BOATS, "moo3_mass_mg": -1.0}, "moo3_mass_mg -1.0"),
        ("load", {**BOATS, "sulfur_mass_mg": float("nan")}, "sulfur_mass_mg nan"),
        ("load", {**BOATS, "sulfur_mass_mg": "much"}, "sulfur_mass_mg 'much'"),
    ],
)
def test_an_impossible_action_is_refused_and_moves_nothing(
    action: str, details: dict[str, object], message: str
) -> None:
    plant = short_line()
    with pytest.raises(ValueError, match=message):
        plant.operate(action, details)
    assert plant.truth()["sample_at"] is None
    assert part(plant, "relays").inputs == (True, True, True, True)


@pytest.mark.parametrize("dt_s", [0.0, -1.0, float("nan"), 1e6])
def test_an_impossible_step_is_refused(dt_s: float) -> None:
    with pytest.raises(ValueError, match="asked to step"):
        short_line().step(dt_s)


def test_an_impossible_tube_is_refused() -> None:
    with pytest.raises(ValueError, match="tube_volume_l is 0"):
        CvdTube(None, tube_volume_l=0.0)


def test_controllers_are_called_with_the_time_that_passes() -> None:
    plant = short_line()
    seconds: list[float] = []
    furnace = plant.parts["furnace"]
    assert isinstance(furnace, Heater)
    furnace.controller = seconds.append
    plant.step(1.0)
    plant.step(7.0)
    assert sum(seconds) == pytest.approx(8.0)
    assert max(seconds) <= 5.0


def test_long_steps_and_short_ones_agree() -> None:
    by_seconds, by_minutes = short_line(), short_line()
    for plant in (by_seconds, by_minutes):
        part(plant, "relays").coils[:] = [True] * 8
        part(plant, "furnace").power_fraction = 0.3
        part(plant, "argon").setpoint_sccm = 100.0
    for _ in range(600):
        by_seconds.step(1.0)
    for _ in range(10):
        by_minutes.step(60.0)
    one, other = by_seconds.truth(), by_minutes.truth()
    assert one["substrate_c"] == pytest.approx(other["substrate_c"], rel=0.01)
    assert one["pressure_pa"] == pytest.approx(other["pressure_pa"], rel=0.01)
