"""A spectrum is refused when it is none, and cosmic rays are told from lines."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labharness.analysis.spectrum import Spectrum, despike, shift_from_wavelength

Array = NDArray[np.float64]
AXIS: Array = np.arange(1024, dtype=np.float64) * 0.6 + 95.0


def lines_on_background(rng: np.random.Generator, fwhm_cm1: float, height: float) -> Array:
    clean = np.full(AXIS.size, 400.0)
    for position in (303.0, 384.1, 404.0, 520.7):
        clean += height / (1 + (2 * (AXIS - position) / fwhm_cm1) ** 2)
    counts: Array = rng.poisson(clean) + rng.normal(0, 6, AXIS.size)
    return counts


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["shift_cm1", "counts"])
def test_a_spectrum_with_a_pixel_that_is_no_number_is_refused(where: str, bad: float) -> None:
    shift, counts = AXIS.copy(), np.ones(AXIS.size)
    (shift if where == "shift_cm1" else counts)[7] = bad
    with pytest.raises(ValueError, match=rf"{where}\[7\]"):
        Spectrum(shift, counts)


@pytest.mark.parametrize(
    ("axis", "counts", "read_noise", "message"),
    [
        (AXIS, np.ones(AXIS.size - 1), 6.0, "as many counts"),
        (AXIS.reshape(2, -1), np.ones((2, AXIS.size // 2)), 6.0, "one row"),
        (AXIS[:19], np.ones(19), 6.0, "at least 20 pixels, got 19"),
        (AXIS[::-1], np.ones(AXIS.size), 6.0, "must ascend"),
        (np.full(AXIS.size, 400.0), np.ones(AXIS.size), 6.0, "must ascend"),
        (AXIS, np.ones(AXIS.size), -1.0, "read_noise_counts"),
        (AXIS, np.ones(AXIS.size), float("nan"), "read_noise_counts"),
    ],
)
def test_what_is_no_spectrum_is_refused_with_the_reason(
    axis: Array, counts: Array, read_noise: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Spectrum(axis, counts, read_noise)


def test_a_spectrum_does_not_change_when_its_source_is_overwritten() -> None:
    counts = np.ones(AXIS.size)
    spectrum = Spectrum(AXIS, counts)
    counts[:] = 5
    assert spectrum.counts[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        spectrum.counts[0] = 2


def test_silicon_seen_by_a_green_laser_lies_at_547_nm() -> None:
    # 1e7/532.1 - 520.7 = 18272.7 cm⁻¹, which is 547.26 nm.
    assert shift_from_wavelength(532.1, [547.264])[0] == pytest.approx(520.7, abs=0.1)


@given(st.floats(300, 900), st.lists(st.floats(200, 1100), min_size=2, max_size=9, unique=True))
@settings(deadline=None, max_examples=50)
def test_an_ascending_wavelength_gives_an_ascending_shift(
    laser_nm: float, wavelengths_nm: list[float]
) -> None:
    assert (np.diff(shift_from_wavelength(laser_nm, sorted(wavelengths_nm))) >= 0).all()
    assert shift_from_wavelength(laser_nm, [laser_nm])[0] == 0


@pytest.mark.parametrize(("laser", "wavelength"), [(0.0, 540.0), (532.0, -1.0), (532.0, np.nan)])
def test_a_wavelength_that_cannot_be_is_refused(laser: float, wavelength: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        shift_from_wavelength(laser, [wavelength])


@given(st.integers(0, 2**32 - 1), st.floats(2.0, 12.0), st.floats(0, 200_000))
@example(270, 12.0, 156_395.9)  # a top wider than the window, with 290 counts of shot noise
@settings(deadline=None, max_examples=40)
def test_despiking_leaves_lines_of_any_brightness_alone(
    seed: int, fwhm_cm1: float, height: float
) -> None:
    counts = lines_on_background(np.random.default_rng(seed), fwhm_cm1, height)
    clean, flagged = despike(counts)
    assert flagged.sum() == 0
    assert (clean == counts).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.floats(400, 50_000))
@settings(deadline=None, max_examples=40)
def test_despiking_finds_a_cosmic_ray_and_removes_it(seed: int, width: int, height: float) -> None:
    rng = np.random.default_rng(seed)
    counts = lines_on_background(rng, 3.5, 4000)
    # Between the lines; on top of a line it must first outshine the line.
    start = int(rng.choice(np.nonzero(np.abs(AXIS - 450) < 30)[0]))
    struck = counts.copy()
    struck[start : start + width] += height
    clean, flagged = despike(struck)
    assert flagged[start : start + width].all()
    assert flagged.sum() == width
    assert np.abs(clean - counts).max() < 8 * np.sqrt(500)


def test_a_map_is_despiked_like_its_spectra_one_by_one() -> None:
    rng = np.random.default_rng(5)
    rows = np.stack([lines_on_background(rng, 3.5, 4000) for _ in range(4)])
    rows[1, 600] += 3000
    rows[3, 20:22] += 900
    rows[2, -1] += 900
    clean, flagged = despike(rows)
    alone = [despike(row) for row in rows]
    assert flagged.sum(axis=1).tolist()[:2] == [0, 1]
    assert (clean == np.stack([row for row, _ in alone])).all()
    assert (flagged == np.stack([mask for _, mask in alone])).all()


@pytest.mark.parametrize("counts", [np.ones(10), np.ones((2, 2, 50)), np.full(60, np.nan)])
def test_despiking_refuses_what_is_no_row_of_counts(counts: Array) -> None:
    with pytest.raises(ValueError, match="despike needs"):
        despike(counts)
