"""The simulated laser's spot: it has a size and a focus, and films are not perfect."""

import math
from dataclasses import replace
from functools import partial
from random import Random
from statistics import median

import numpy as np
import pytest

from labharness.analysis.evidence import CVD_ROW, EXFOLIATED_ROW, Reference
from labharness.analysis.peaks import PeakFit, fit_peaks
from labharness.analysis.spectrum import Spectrum, shift_from_wavelength
from labharness_simulators.plant import Film, Sample, Spectrometer
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
