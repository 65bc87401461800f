"""The simulated microscope: lines where they belong, with the heights and the noise of the type."""

import itertools
import math
import random
import statistics
from dataclasses import replace
from functools import partial
from random import Random
from statistics import median

import numpy as np
import pytest

from labharness.analysis.evidence import CVD_ROW, EXFOLIATED_ROW, Reference
from labharness.analysis.peaks import PeakFit, fit_peaks
from labharness.analysis.spectrum import Spectrum, shift_from_wavelength
from labharness_simulators.plant import Film, Laser, MicroscopeStage, Relays, Sample, Spectrometer
from labharness_simulators.plant.faults import Faults
from labharness_simulators.plant.optics import LASER_NM
from labharness_simulators.plant.sample import draw_sample
from labharness_simulators.plant.spectrum import (
    A1G_OVER_SILICON,
    PL_OVER_A1G,
    SEPARATION_CM1,
    Light,
    light_of,
)
from labharness_simulators.plant.spot import FOCUS_UM, WAIST_UM, layers_under, spot_light

NOMINAL = Sample("nominal", "SiO2/Si")
BIAS = 300


def look_at(layers: int, sample: Sample = NOMINAL, laser_mw: float = 0.3) -> Spectrometer:
    return Spectrometer(lambda s: light_of(sample, layers, 0.0, 0.0, laser_mw, s), None)


def shifts_cm1(spectrometer: Spectrometer) -> list[float]:
    return [1e7 / 532.0 - 1e7 / nm for nm in spectrometer.wavelengths_nm()]


def peak(
    spectrometer: Spectrometer, low_cm1: float, high_cm1: float, exposure_s: float = 20.0
) -> tuple[float, float]:
    """Return the place and height of the highest point of a window, by a parabola through three."""
    counts, axis = spectrometer.exposure(exposure_s), shifts_cm1(spectrometer)
    window = [i for i, shift in enumerate(axis) if low_cm1 < shift < high_cm1]
    top = max(window, key=lambda i: counts[i])
    left, middle, right = counts[top - 1 : top + 2]
    offset = 0.5 * (left - right) / (left - 2 * middle + right)
    place = axis[top] + offset * (axis[top + 1] - axis[top - 1]) / 2
    return place, middle - min(counts[i] for i in window)


def test_silicon_stands_at_520_7() -> None:
    place, _ = peak(look_at(0), 500, 540)
    assert place == pytest.approx(520.7, abs=0.1)


@pytest.mark.parametrize(
    ("layers", "separation_cm1"), [(1, 19.9), (2, 22.7), (3, 23.7), (4, 24.7), (5, 25.4), (6, 26.2)]
)
def test_the_separation_of_the_nominal_film_follows_its_layers(
    layers: int, separation_cm1: float
) -> None:
    spectrometer = look_at(layers)
    e2g, _ = peak(spectrometer, 370, 392)
    a1g, _ = peak(spectrometer, 397, 415)
    assert 379 < e2g < 386
    assert a1g - e2g == pytest.approx(separation_cm1, abs=0.3)


def test_a_monolayer_gives_hundreds_and_silicon_thousands_of_counts() -> None:
    spectrometer = look_at(1)
    _, a1g = peak(spectrometer, 397, 415, exposure_s=2.0)
    _, silicon = peak(spectrometer, 505, 535, exposure_s=2.0)
    assert 200 < a1g < 600
    assert 2_000 < silicon < 4_000
    assert a1g / silicon == pytest.approx(0.115, rel=0.1)


def test_monolayers_as_grown_scatter_about_19_9() -> None:
    chance = random.Random(11)
    separations = []
    for _ in range(1500):
        lines = light_of(draw_sample(chance, "s", "SiO2/Si"), 1, 0.0, 0.0, 0.3, 2.0).lines
        separations.append(lines[4].centre_cm1 - lines[3].centre_cm1)
    assert statistics.mean(separations) == pytest.approx(19.9, abs=0.06)
    assert statistics.stdev(separations) == pytest.approx(0.69, abs=0.05)


def test_spots_of_one_sample_differ_little_and_each_repeats_itself() -> None:
    sample = draw_sample(random.Random(3), "s", "SiO2/Si")

    def separation(x_um: float) -> float:
        lines = light_of(sample, 1, x_um, 0.0, 0.3, 2.0).lines
        return lines[4].centre_cm1 - lines[3].centre_cm1

    spots = [separation(10.0 * step) for step in range(40)]
    assert 0.02 < statistics.stdev(spots) < 0.2
    assert separation(50.0) == separation(50.0)


def test_photoluminescence_tells_one_layer_from_two() -> None:
    glows = []
    for layers in (1, 2):
        spectrometer = look_at(layers)
        spectrometer.centre_nm = 663.0
        spectrometer.advance_to(60.0)
        place_cm1, _ = peak(spectrometer, 3500, 4000, exposure_s=2.0)
        energy_ev = 1239.842 / (1e7 / (1e7 / 532.0 - place_cm1))
        assert energy_ev == pytest.approx(1.87, abs=0.01)
        glows.append(max(spectrometer.exposure(2.0)) - BIAS)
    assert 10 < glows[0] / glows[1] < 100


def test_the_grating_turns_at_ten_nanometres_a_second() -> None:
    spectrometer = look_at(1)
    spectrometer.centre_nm = 645.0
    spectrometer.advance_to(5.0)
    assert spectrometer.moving
    assert spectrometer.centre_nm == pytest.approx(595.0)
    spectrometer.advance_to(10.0)
    assert not spectrometer.moving
    assert spectrometer.centre_nm == 645.0
    with pytest.raises(ValueError, match="allowed 0 to 1500 nm"):
        spectrometer.centre_nm = float("nan")


def test_a_pixel_is_0_6_wavenumbers_and_the_window_holds_film_and_silicon() -> None:
    axis = shifts_cm1(look_at(1))
    assert len(axis) == 1024
    assert axis[600] - axis[599] == pytest.approx(0.6, abs=0.03)
    assert axis[0] < 360
    assert axis[-1] > 540


def scatter(counts: list[int]) -> float:
    """Return the noise of one pixel from the steps between neighbours, blind to the slope."""
    steps = [right - left for left, right in itertools.pairwise(counts)]
    return statistics.stdev(steps) / 2**0.5


def test_noise_is_that_of_counted_photons() -> None:
    def bare(exposure_s: float) -> Light:
        return Light((), (), 1_000.0)

    counts = Spectrometer(bare, random.Random(5)).exposure(0.001)
    level = statistics.mean(counts)
    assert scatter(counts) == pytest.approx((level - BIAS + 25) ** 0.5, rel=0.1)
    averaged = Spectrometer(bare, random.Random(5)).exposure(0.001, averages=100)
    assert scatter(averaged) == pytest.approx(0.1 * scatter(counts), rel=0.15)


def test_long_exposures_catch_cosmic_rays() -> None:
    counts = Spectrometer(lambda s: None, random.Random(2)).exposure(600.0)
    assert sum(count > BIAS + 60 for count in counts) > 10


def test_a_dark_field_shows_the_bias_alone() -> None:
    assert set(Spectrometer(lambda s: None, None).exposure(1.0)) == {BIAS}


def test_the_calibration_error_moves_all_lines_alike() -> None:
    spectrometer = look_at(1)
    spectrometer.offset_cm1 = 2.0
    silicon, _ = peak(spectrometer, 500, 540)
    a1g, _ = peak(spectrometer, 397, 415)
    assert silicon == pytest.approx(522.7, abs=0.1)
    assert a1g == pytest.approx(404.6, abs=0.2)


@pytest.mark.parametrize("exposure_s", [0.0, -1.0, float("nan"), 1e9])
def test_an_impossible_exposure_is_refused(exposure_s: float) -> None:
    with pytest.raises(ValueError, match="allowed up to"):
        look_at(1).exposure(exposure_s)


def test_an_impossible_number_of_averages_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed 1 to 1000"):
        look_at(1).exposure(1.0, averages=0)


def test_sapphire_has_no_silicon_line() -> None:
    sapphire = light_of(Sample("s", "sapphire"), 1, 0.0, 0.0, 0.3, 2.0)
    assert sapphire.lines[0].height == 0
    assert sapphire.lines[4].height > 0


def test_an_open_enclosure_blocks_the_beam() -> None:
    faults = Faults()
    laser = Laser(Relays(faults))
    laser.on, laser.power_w = True, 3e-4
    assert laser.output_w == 3e-4
    laser.step(3600.0)
    faults.enclosure_open = True
    assert laser.output_w == 0
    laser.step(3600.0)
    assert laser.hours == pytest.approx(1.0)


def test_the_stage_travels_five_millimetres_a_second() -> None:
    stage = MicroscopeStage()
    stage.move_to(3000.0, 4000.0, 0.0)
    stage.advance_to(0.5)
    assert stage.moving
    assert stage.position_um == pytest.approx((1500.0, 2000.0, 0.0))
    stage.advance_to(0.2)
    assert stage.position_um == pytest.approx((1500.0, 2000.0, 0.0))
    stage.advance_to(1.0)
    assert not stage.moving
    assert stage.position_um == (3000.0, 4000.0, 0.0)
    stage.move_to(0.0, 0.0, 0.0)
    stage.advance_to(1.5)
    stage.stop()
    assert not stage.moving
    with pytest.raises(ValueError, match="finite"):
        stage.move_to(float("inf"), 0.0, 0.0)


def test_a_film_is_met_where_the_stage_points() -> None:
    film = Film([2e9] * 6, [50.0, 0.0, 0.0, 0.0, 0.0, 0.0], seed=1)
    assert film.layers_at(0.0, 0.0) == 1


E2G, A1G = 3, 4


BRIGHT_S = 300.0


"""At 0.3 mW: A1g of nearly fifty thousand counts, as bright as the camera takes."""


def sheet(layers: int = 1) -> Film:
    """Return closed layers, without any edge."""
    return Film([2e9] * 6, [50.0] * layers + [0.0] * (6 - layers), seed=1)


def lit(
    film: Film,
    x_um: float = 0.0,
    z_um: float = 0.0,
    sample: Sample = NOMINAL,
    exposure_s: float = 2.0,
) -> Light:
    return spot_light(film, sample, (x_um, 0.0, z_um), 0.3, exposure_s)


def test_a_spot_over_an_edge_sees_both_sides() -> None:
    film = sheet()
    film.burn(0.0, 0.0)  # a hole of 1 um radius
    assert layers_under(film, 0.0, 0.0, WAIST_UM) == {0: 1.0}
    assert layers_under(film, 5.0, 0.0, WAIST_UM) == {1: 1.0}
    edge = layers_under(film, 1.0, 0.0, WAIST_UM)
    assert set(edge) == {0, 1}
    assert edge[1] == pytest.approx(0.55, abs=0.15)
    assert sum(edge.values()) == pytest.approx(1.0)


def test_the_light_of_an_edge_is_that_of_both_by_their_shares() -> None:
    film = sheet()
    film.burn(0.0, 0.0)
    on_film = layers_under(film, 1.0, 0.0, WAIST_UM)[1]
    whole, edge, hole = lit(film, 5.0), lit(film, 1.0), lit(film)
    assert raman(edge) == pytest.approx(on_film * raman(whole), rel=1e-6)
    assert raman(hole) == 0.0
    assert glow(edge) == pytest.approx(on_film * glow(whole), rel=1e-6)
    between = on_film * silicon(whole) + (1 - on_film) * silicon(hole)
    assert silicon(edge) == pytest.approx(between)


def raman(light: Light) -> float:
    return sum(line.height for line in light.lines if 400 < line.centre_cm1 < 408)


def silicon(light: Light) -> float:
    return sum(line.height for line in light.lines if line.centre_cm1 == 520.7)


def glow(light: Light) -> float:
    return max((band.height for band in light.bands), default=0.0)


def test_out_of_focus_a_spot_is_dimmer_and_wider() -> None:
    film = sheet()
    film.burn(0.0, 0.0)
    assert raman(lit(film, 9.0, FOCUS_UM)) == pytest.approx(0.5 * raman(lit(film, 9.0)))
    assert set(layers_under(film, 1.9, 0.0, WAIST_UM)) == {1}
    wide = WAIST_UM * math.hypot(1.0, 4.0)
    assert set(layers_under(film, 1.9, 0.0, wide)) == {0, 1}
    assert raman(lit(film, 1.9, 4.0 * FOCUS_UM)) < raman(lit(film, 9.0, 4.0 * FOCUS_UM))


def test_a_sample_that_lies_high_is_in_focus_there() -> None:
    high = replace(NOMINAL, height_um=2.0, tilt_x=0.01)
    dim, sharp = lit(sheet(), 100.0, 0.0, high), lit(sheet(), 100.0, 3.0, high)
    assert raman(dim) < 0.3 * raman(sharp)
    assert raman(sharp) == pytest.approx(raman(lit(sheet())))


def fit(light: Light, seed: int = 5) -> PeakFit:
    spectrometer = Spectrometer(lambda _: light, Random(seed))
    shift = shift_from_wavelength(LASER_NM, spectrometer.wavelengths_nm())
    counts = np.array(spectrometer.exposure(BRIGHT_S)) - spectrometer.BIAS_COUNTS
    (found,) = fit_peaks([Spectrum(shift, counts, spectrometer.READ_NOISE_COUNTS)])
    return found


def test_bright_spectra_fit_no_better_than_real_ones() -> None:
    """Real ones have 5 to 41; lines without shoulders would have 4 here, by the camera's pixels."""
    clean = fit(light_of(NOMINAL, 1, 0.0, 0.0, 0.3, BRIGHT_S))
    assert clean.reduced_chi2 < 5
    chance, found = Random(3), []
    for seed in range(20):
        sample = draw_sample(chance, "s", "SiO2/Si")
        found.append(fit(lit(sheet(), sample=sample, exposure_s=BRIGHT_S), seed).reduced_chi2)
    assert 2 * clean.reduced_chi2 < median(found) < 41, sorted(found)


def test_shoulders_move_the_separation_by_little() -> None:
    clean = fit(light_of(NOMINAL, 1, 0.0, 0.0, 0.3, BRIGHT_S))
    grown = fit(lit(sheet(), exposure_s=BRIGHT_S))
    assert abs(grown.separation_cm1 - clean.separation_cm1) < 0.3


def test_la_m_stands_at_227_and_bare_oxide_has_none() -> None:
    grown, bare = lit(sheet()), lit(Film([0.0] * 6, [0.0] * 6, seed=1))
    (la,) = [line for line in grown.lines if line.centre_cm1 == 227.0]
    e2g = light_of(NOMINAL, 1, 0.0, 0.0, 0.3, 2.0).lines[E2G]
    assert 0.02 < la.height / e2g.height < 0.3, "no nanocrystalline film"
    assert {line.centre_cm1 for line in bare.lines} == {520.7, 303.0, 960.0}


def test_the_plant_shares_no_number_with_the_analysis_that_judges_it() -> None:
    for row in (EXFOLIATED_ROW, CVD_ROW):
        for ours, theirs in zip(SEPARATION_CM1, row.centre_cm1, strict=True):
            assert ours != theirs
    assert Reference().a1g_si_monolayer != A1G_OVER_SILICON
    assert Reference().pl_raman_monolayer != PL_OVER_A1G[0]
    shines = partial(light_of, NOMINAL)
    thick = [shines(layers, 0.0, 0.0, 0.3, 2.0).lines for layers in (1, 3)]
    one, three = (lines[A1G].height / lines[0].height for lines in thick)
    assert three / one != pytest.approx(3 ** Reference().a1g_si_exponent, rel=0.05)
