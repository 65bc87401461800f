"""Lines are measured as they are: truth lies within the stated errors, in the unit of the file."""

import numpy as np
import pytest
from numpy.typing import NDArray

from labharness.analysis.line_table import ranges_of
from labharness.analysis.lines import LineWindow
from labharness.analysis.material_table import LineGroup
from labharness.analysis.measured import FittedRange, MeasuredLine, arpls, measure
from labharness.analysis.spectrum import Spectrum

Array = NDArray[np.float64]

AXIS = np.linspace(100.0, 700.0, 1000)
TRUTH = {"E2g": (384.0, 3.6, 900.0), "A1g": (404.0, 5.0, 1600.0)}
"""Position, width and height of each line."""


def clean(ground: Array | float = 300.0) -> Array:
    counts = np.zeros_like(AXIS) + ground
    for position, width, height in TRUTH.values():
        counts = counts + height / (1 + ((AXIS - position) / (width / 2)) ** 2)
    return counts


def noisy(count: int, ground: Array | float = 300.0) -> list[Spectrum]:
    """Return spectra that differ by photon noise alone."""
    chance = np.random.default_rng(8)
    return [Spectrum(AXIS, chance.poisson(clean(ground)).astype(float), 1.0) for _ in range(count)]


def film(spectra: list[Spectrum], unit: float = 1.0, baseline: str = "straight") -> FittedRange:
    (found, *_) = measure(spectra, np.full(len(spectra), unit), ranges_of("MoS2", AXIS), baseline)
    return found


def pulls(line: MeasuredLine) -> dict[str, Array]:
    """Return how many of its errors each number is from the truth."""
    position, width, height = TRUTH[line.name]
    area = np.pi / 2 * width * height
    return {
        "position": (line.position_cm1 - position) / line.position_sigma_cm1,
        "width": (line.fwhm_cm1 - width) / line.fwhm_sigma_cm1,
        "height": (line.height_counts - height) / line.height_sigma_counts,
        "area": (line.area_counts_cm1 - area) / line.area_sigma_counts_cm1,
    }


@pytest.mark.parametrize("at", [0, 1])
def test_position_width_height_and_area_scatter_as_their_errors_say(at: int) -> None:
    line = film(noisy(400)).lines[at]
    assert line.stands_out.all()
    for name, values in pulls(line).items():
        assert abs(values.mean()) < 0.25, name
        assert values.std() == pytest.approx(0.97, abs=0.13), name  # errors are never made smaller


def test_a_line_that_is_no_lorentz_line_has_larger_errors() -> None:
    beside = clean() + 400 / (1 + ((AXIS - 411.0) / 2.5) ** 2)
    chance = np.random.default_rng(9)
    odd = film([Spectrum(AXIS, chance.poisson(beside).astype(float), 1.0) for _ in range(20)])
    plain = film(noisy(20))
    assert np.median(odd.reduced_chi2) > 5 > 1.5 > np.median(plain.reduced_chi2)
    for name in ("position_sigma_cm1", "area_sigma_counts_cm1"):
        wide, narrow = (np.median(getattr(each.lines[0], name)) for each in (odd, plain))
        assert wide > 1.8 * narrow


def test_the_unit_of_the_file_scales_heights_and_areas_and_nothing_else() -> None:
    spectra = noisy(3)
    one, other = film(spectra).lines[1], film(spectra, unit=0.002).lines[1]
    assert other.area_counts_cm1 == pytest.approx(one.area_counts_cm1 * 0.002)
    assert other.area_sigma_counts_cm1 == pytest.approx(one.area_sigma_counts_cm1 * 0.002)
    assert other.height_sigma_counts == pytest.approx(one.height_sigma_counts * 0.002)
    assert other.position_cm1 == pytest.approx(one.position_cm1)


def test_the_drawn_curve_is_the_fitted_one() -> None:
    found = film(noisy(2), unit=0.5)
    model = found.model(1, found.shift_cm1)
    residuals = (found.counts[1] - model) / found.noise_counts[1]
    freedom = residuals.size - 8
    assert float(residuals @ residuals) / freedom == pytest.approx(found.reduced_chi2[1], rel=1e-6)
    assert model - found.ground(1, found.shift_cm1) == pytest.approx(
        0.5 * (clean(0.0)[np.isin(AXIS, found.shift_cm1)]), abs=25
    )


def test_bare_substrate_has_rows_without_a_line() -> None:
    flat = [Spectrum(AXIS, np.random.default_rng(1).poisson(300.0, AXIS.size).astype(float), 1.0)]
    assert not any(line.stands_out.any() for line in film(flat).lines)


# ---- what a person asks for


def test_a_window_takes_the_lines_that_are_known_in_it_and_else_the_highest() -> None:
    found = ranges_of("MoS2", AXIS, [(360.0, 435.0), (150.0, 250.0)])
    assert [each.names for each in found] == [("E2g", "A1g"), ("150-250",)]


def test_a_window_is_cut_where_the_axis_ends_and_gone_where_there_is_none() -> None:
    ((cut,),) = [ranges_of("unknown", AXIS, [(600.0, 900.0), (2000.0, 3000.0)])]
    assert cut.range_cm1 == (600.0, 700.0)


def test_lines_of_which_the_axis_holds_too_little_are_not_fitted() -> None:
    short = AXIS[AXIS > 394.0]
    names = [name for each in ranges_of("MoS2", short) for name in each.names]
    assert names == ["Si"]


def test_graphene_without_its_d_line_in_the_window_has_g_and_2d() -> None:
    axis = np.linspace(1380.0, 2790.0, 1200)
    found = ranges_of("graphene", axis)
    assert [name for each in found for name in each.names] == ["G", "2D"]


# ---- the smooth background


def glow() -> Array:
    """A luminescence that is anything but straight under the lines."""
    return 4000 * np.exp(-(((AXIS - 620) / 240) ** 2)) + 300


def test_under_a_broad_line_a_smooth_baseline_is_nearer_than_a_straight_one() -> None:
    axis = np.linspace(100.0, 3200.0, 1600)
    luminescence = 8000 * np.exp(-(((axis - 2600) / 1500) ** 2)) + 300
    line = 2000 / (1 + ((axis - 2690) / 20) ** 2)
    counts = np.random.default_rng(2).poisson(line + luminescence).astype(float)
    (two_d,) = ranges_of("graphene", axis, [(2550.0, 2800.0)])
    straight, smooth = (
        measure([Spectrum(axis, counts, 1.0)], np.ones(1), [two_d], name)[0].lines[0]
        for name in ("straight", "arpls")
    )
    truth = np.pi / 2 * 40 * 2000
    assert abs(smooth.area_counts_cm1[0] / truth - 1) < 0.02
    assert abs(straight.area_counts_cm1[0] / truth - 1) > 0.04


def test_a_baseline_follows_the_ground_and_not_the_lines() -> None:
    (spectrum,) = noisy(1, glow())
    ground = arpls(AXIS, spectrum.counts)
    assert np.median(np.abs(ground - glow())) < 0.1 * glow().max()
    under = np.abs(AXIS - 404) < 2
    assert (spectrum.counts - ground)[under].min() > 0.5 * TRUTH["A1g"][2]


@pytest.mark.parametrize(("fwhm_cm1", "least", "most"), [(40, -0.01, 0.01), (60, 0.07, 0.15)])
def test_a_smooth_baseline_takes_the_wings_of_broad_lines_as_the_manual_says(
    fwhm_cm1: float, least: float, most: float
) -> None:
    axis = np.linspace(100.0, 3200.0, 1600)
    luminescence = 8000 * np.exp(-(((axis - 2600) / 1500) ** 2)) + 300
    place = 2690.0 if fwhm_cm1 < 50 else 1350.0
    counts = luminescence + 2000 / (1 + ((axis - place) / (fwhm_cm1 / 2)) ** 2)
    reach = (2550.0, 2800.0) if fwhm_cm1 < 50 else (1000.0, 1800.0)
    window = LineWindow(place - 50, place + 50, fwhm_cm1, 4 * fwhm_cm1)
    band = LineGroup(("band",), (window,), reach, reach)
    spectrum = Spectrum(axis, np.random.default_rng(2).poisson(counts).astype(float), 1.0)
    (found,) = measure([spectrum], np.ones(1), [band], "arpls")
    truth = np.pi / 2 * fwhm_cm1 * 2000
    assert least < 1 - found.lines[0].area_counts_cm1[0] / truth < most


def test_narrow_lines_are_the_same_over_either_baseline() -> None:
    spectra = noisy(50, glow())
    one, other = film(spectra).lines[1], film(spectra, baseline="arpls").lines[1]
    assert np.abs(one.position_cm1 - other.position_cm1).max() < 0.05
    assert other.area_counts_cm1 == pytest.approx(one.area_counts_cm1, rel=0.05)


def test_a_baseline_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="no baseline 'snip'; there are straight, arpls"):
        film(noisy(1), baseline="snip")
