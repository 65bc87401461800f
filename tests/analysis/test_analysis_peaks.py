"""Lines are measured with errors that are true, and film is told from bare substrate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labharness.analysis.film import film_signal, peak_height
from labharness.analysis.peaks import fit_peaks, fit_silicon
from labharness.analysis.spectrum import Spectrum

AXIS = np.linspace(95.0, 709.0, 1024)


def line(position_cm1: float, fwhm_cm1: float, height: float) -> NDArray[np.float64]:
    profile: NDArray[np.float64] = height / (1 + (2 * (AXIS - position_cm1) / fwhm_cm1) ** 2)
    return profile


def film(
    rng: np.random.Generator,
    *,
    separation_cm1: float = 19.9,
    a_height: float = 4400.0,
    background: float = 500.0,
    silicon: float = 36_000.0,
    offset_cm1: float = 0.0,
    silica: float = 150.0,
) -> Spectrum:
    """Draw one spectrum of MoS2 on oxidised silicon; an ``a_height`` of 0 is bare substrate."""
    e_cm1 = 384.1 + offset_cm1
    clean = (
        line(e_cm1, 3.2, 0.4 * a_height)
        + line(e_cm1 + separation_cm1, 4.8, a_height)
        + line(520.7 + offset_cm1, 3.4, silicon)
        + line(303.0, 12.0, 0.03 * silicon)
        + line(440.0, 80.0, silica)
        + background
    )
    counts = rng.poisson(clean) + rng.normal(0, 6, AXIS.size)
    return Spectrum(AXIS, counts, read_noise_counts=6.0)


@pytest.mark.parametrize(("a_height", "background"), [(4400.0, 500.0), (600.0, 200.0)])
def test_the_stated_error_of_the_separation_is_its_true_error(
    a_height: float, background: float
) -> None:
    rng = np.random.default_rng(11)
    truth = rng.uniform(18.0, 25.5, 600)
    fits = fit_peaks(
        [
            film(rng, separation_cm1=d, a_height=a_height, background=background, silica=0.0)
            for d in truth
        ]
    )
    pull = np.array(
        [(f.separation_cm1 - d) / f.separation_sigma_cm1 for f, d in zip(fits, truth, strict=True)]
    )
    assert all(fit.converged for fit in fits)
    assert 0.9 < np.sqrt(np.mean(pull**2)) < 1.1
    assert abs(pull.mean()) < 0.2
    assert 0.9 < np.mean([fit.reduced_chi2 for fit in fits]) < 1.1


def test_the_curved_band_of_silica_moves_the_separation_less_than_the_axis_does() -> None:
    rng = np.random.default_rng(12)
    fits = fit_peaks([film(rng, silica=500.0) for _ in range(200)])
    assert abs(np.mean([fit.separation_cm1 for fit in fits]) - 19.9) < 0.03


def test_heights_positions_and_widths_come_back() -> None:
    fit = fit_peaks([film(np.random.default_rng(3), a_height=40_000.0)])[0]
    assert fit.e.position_cm1 == pytest.approx(384.1, abs=0.05)
    assert fit.a.position_cm1 == pytest.approx(404.0, abs=0.05)
    assert fit.e.fwhm_cm1 == pytest.approx(3.2, abs=0.1)
    assert fit.a.fwhm_cm1 == pytest.approx(4.8, abs=0.1)
    assert fit.e.height_counts == pytest.approx(16_000, rel=0.03)
    assert fit.a.height_counts == pytest.approx(40_000, rel=0.03)
    assert fit.pixel_cm1 == pytest.approx(0.6, abs=0.01)


def test_a_map_is_fitted_like_its_spectra_one_by_one() -> None:
    rng = np.random.default_rng(4)
    spectra = [film(rng, a_height=h) for h in rng.uniform(50, 9000, 150)]  # More than one chunk.
    together = fit_peaks(spectra)
    for spectrum, fit in zip(spectra, together, strict=True):
        if fit.converged and fit.snr_e > 5:
            alone = fit_peaks([spectrum])[0]
            assert alone.separation_cm1 == pytest.approx(fit.separation_cm1, abs=1e-3)


@given(st.integers(0, 2**32 - 1), st.floats(-3.0, 3.0), st.floats(18.0, 25.5))
@settings(deadline=None, max_examples=30)
def test_a_shifted_axis_moves_the_lines_and_not_their_separation(
    seed: int, offset_cm1: float, separation_cm1: float
) -> None:
    spectrum = film(
        np.random.default_rng(seed), offset_cm1=offset_cm1, separation_cm1=separation_cm1
    )
    fit, silicon = fit_peaks([spectrum])[0], fit_silicon(spectrum)
    assert silicon is not None
    assert silicon.offset_cm1 == pytest.approx(-offset_cm1, abs=0.05)
    assert fit.separation_cm1 == pytest.approx(separation_cm1, abs=6 * fit.separation_sigma_cm1)


def test_a_cosmic_ray_beside_the_lines_changes_nothing_and_one_on_a_line_is_told() -> None:
    spectrum = film(np.random.default_rng(8))
    before = fit_peaks([spectrum])[0]
    for position_cm1, on_line in ((394.0, False), (before.e.position_cm1 + 0.9, True)):
        counts = spectrum.counts.copy()
        counts[int(np.argmin(np.abs(AXIS - position_cm1)))] += 30_000
        fit = fit_peaks([Spectrum(AXIS, counts)])[0]
        assert fit.cosmic_near_line is on_line
        assert fit.separation_cm1 == pytest.approx(before.separation_cm1, abs=0.1)


def test_noise_alone_never_passes_for_two_lines() -> None:
    rng = np.random.default_rng(9)
    fits = fit_peaks([film(rng, a_height=0.0) for _ in range(200)])
    assert not any(fit.converged and min(fit.snr_e, fit.snr_a) >= 5 for fit in fits)


def test_a_spectrum_of_zeros_is_fitted_without_a_word_and_does_not_count() -> None:
    fit = fit_peaks([Spectrum(AXIS, np.zeros(AXIS.size), 0.0)])[0]
    assert min(fit.snr_e, fit.snr_a) < 5


def test_spectra_of_unlike_axes_are_refused() -> None:
    spectrum = film(np.random.default_rng(1))
    other = Spectrum(AXIS + 0.1, spectrum.counts)
    with pytest.raises(ValueError, match="spectrum 1 has another axis"):
        fit_peaks([spectrum, other])
    assert fit_peaks([]) == ()


@pytest.mark.parametrize("axis", [np.linspace(400, 700, 600), np.linspace(3600, 4100, 600)])
def test_an_axis_without_the_lines_is_refused(axis: NDArray[np.float64]) -> None:
    spectrum = Spectrum(axis, np.ones(axis.size))
    with pytest.raises(ValueError, match="360–435"):
        fit_peaks([spectrum])
    with pytest.raises(ValueError, match="360–435"):
        film_signal(spectrum)


def test_silicon_is_measured_and_its_absence_is_said() -> None:
    rng = np.random.default_rng(2)
    silicon = fit_silicon(film(rng))
    assert silicon is not None
    assert silicon.position_cm1 == pytest.approx(520.7, abs=0.05)
    assert silicon.height_counts == pytest.approx(36_000, rel=0.03)
    assert silicon.instrument_fwhm_cm1 == pytest.approx(1.37, abs=0.15)
    assert fit_silicon(film(rng, silicon=0.0)) is None
    assert fit_silicon(Spectrum(AXIS[:600], np.ones(600))) is None  # Ends at 454 cm⁻¹.


def test_silicon_is_found_on_the_coarse_pixels_of_a_short_spectrometer() -> None:
    axis = np.arange(100.0, 700.0, 2.77)
    counts = 2800 / (1 + (2 * (axis - 521.3) / 7.4) ** 2) + 600
    silicon = fit_silicon(Spectrum(axis, counts))
    assert silicon is not None
    assert silicon.position_cm1 == pytest.approx(521.3, abs=0.05)
    assert silicon.fwhm_cm1 == pytest.approx(7.4, abs=0.2)


def test_bare_substrate_is_called_film_less_than_once_in_a_hundred() -> None:
    rng = np.random.default_rng(21)
    found = [
        film_signal(film(rng, a_height=0.0, background=b, silicon=s)) is not None
        for b, s in ((20.0, 2000.0), (500.0, 36_000.0), (3000.0, 100_000.0))
        for _ in range(200)
    ]
    assert sum(found) < 6


@given(st.integers(0, 2**32 - 1), st.floats(18.0, 25.5), st.floats(300.0, 50_000.0))
@settings(deadline=None, max_examples=40)
def test_a_film_of_any_layer_count_is_seen(
    seed: int, separation_cm1: float, a_height: float
) -> None:
    spectrum = film(np.random.default_rng(seed), separation_cm1=separation_cm1, a_height=a_height)
    assert film_signal(spectrum) == pytest.approx(a_height, rel=0.35)


def test_tungsten_disulfide_is_not_called_film_of_mos2() -> None:
    rng = np.random.default_rng(6)
    clean = line(351.5, 6, 3000) + line(356.5, 3.5, 1500) + line(417.8, 4.5, 600) + 300
    spectrum = Spectrum(AXIS, rng.poisson(clean).astype(np.float64))
    assert film_signal(spectrum) is None


@pytest.mark.parametrize("span_nm", [15.0, 20.0, 60.0])
@pytest.mark.parametrize("height", [300.0, 3000.0, 80_000.0])
def test_photoluminescence_is_measured_even_where_the_axis_is_narrower_than_its_band(
    span_nm: float, height: float
) -> None:
    rng = np.random.default_rng(17)
    wavelength_nm = np.linspace(668 - span_nm / 2, 668 + span_nm / 2, 1024)
    band = height * np.exp(-4 * np.log(2) * ((wavelength_nm - 667) / 18) ** 2)
    counts = rng.poisson(band + 200).astype(np.float64)
    counts[300] += 40_000  # A cosmic ray is not the maximum.
    assert 0.4 * height < peak_height(wavelength_nm, counts) < 1.4 * height


def test_no_photoluminescence_is_no_height() -> None:
    rng = np.random.default_rng(18)
    flat = rng.poisson(1000.0, 1024).astype(np.float64)
    assert peak_height(np.linspace(658, 678, 1024), flat) < 30
    assert peak_height(np.linspace(658, 678, 1024), np.zeros(1024)) == 0
