"""Real lines have shoulders: bright spectra are measured as by the fits that made the tables."""

import numpy as np
import pytest
from numpy.typing import NDArray

from drawn_spectra import SILICON, draw
from labharness.analysis import spectrum
from labharness.analysis.peaks import A_LINE, E_LINE, PEAK_WINDOW_CM1, PeakFit, fit_peaks
from labharness.analysis.spectrum import Spectrum

Array = NDArray[np.float64]
AXIS = np.arange(300.0, 560.0, 0.6)
APART_MAX_CM1 = 0.1


def with_shoulders(height: float, background: float, seed: int) -> Array:
    """Draw a film whose lines have shoulders and second-order bands, as real ones have."""
    rng = np.random.default_rng(seed)
    e_cm1 = 384.0 + rng.normal(0, 0.7)
    a_cm1 = e_cm1 + rng.uniform(18.5, 25.5)
    lines = (
        (e_cm1, rng.uniform(2.2, 5.0), height * rng.uniform(0.4, 1.1)),
        (a_cm1, rng.uniform(4.0, 6.0), height),
        (e_cm1 - rng.uniform(5, 9), rng.uniform(6, 12), height * rng.uniform(0, 0.10)),
        (e_cm1 + rng.uniform(7, 12), rng.uniform(6, 12), height * rng.uniform(0, 0.08)),
        (a_cm1 + rng.uniform(9, 14), rng.uniform(8, 14), height * rng.uniform(0, 0.07)),
        (454.0, 30.0, height * rng.uniform(0, 0.5)),
        (520.7, 3.6, 5 * height),
    )
    return draw(AXIS, lines, rng, background=background)


def fitted(counts: Array) -> PeakFit:
    return fit_peaks([Spectrum(AXIS, counts)])[0]


def unweighted(counts: Array) -> float:
    """Return A1g - E2g as lmfit has it with every pixel alike, in the same window."""
    models = pytest.importorskip("lmfit.models", reason="comes with the extra dev")
    inside = (PEAK_WINDOW_CM1[0] <= AXIS) & (PEAK_WINDOW_CM1[1] >= AXIS)
    x, y = AXIS[inside], counts[inside]
    model = models.LorentzianModel(prefix="e_") + models.LorentzianModel(prefix="a_")
    model += models.LinearModel()
    level = float(np.median(y))
    start = {"slope": 0.0, "intercept": level}
    for name, line in (("e", E_LINE), ("a", A_LINE)):
        near = (x > line.low_cm1) & (x < line.high_cm1)
        at = int(np.argmax(np.where(near, y, -np.inf)))
        start[f"{name}_center"] = float(x[at])
        start[f"{name}_sigma"] = line.fwhm_cm1 / 2
        start[f"{name}_amplitude"] = float(y[at] - level) * np.pi * line.fwhm_cm1 / 2
    best = model.fit(y, model.make_params(**start), x=x).best_values
    return float(best["a_center"] - best["e_center"])


@pytest.mark.parametrize(
    ("height", "background", "seeds"),
    [
        (3000.0, 1000.0, 3),
        (20_000.0, 20.0, 3),
        (200_000.0, 1000.0, 3),
        pytest.param(3000.0, 20.0, 300, marks=pytest.mark.soak),
        pytest.param(20_000.0, 1000.0, 300, marks=pytest.mark.soak),
        pytest.param(200_000.0, 20.0, 300, marks=pytest.mark.soak),
    ],
)
def test_lines_with_shoulders_lie_as_far_apart_as_an_unweighted_fit_has_them(
    height: float, background: float, seeds: int
) -> None:
    for seed in range(seeds):
        counts = with_shoulders(height, background, seed)
        fit = fitted(counts)
        assert fit.converged
        assert fit.separation_cm1 == pytest.approx(unweighted(counts), abs=APART_MAX_CM1)


def test_weights_of_photons_alone_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    spectra = [with_shoulders(200_000.0, 20.0, seed) for seed in range(12)]
    even = [fitted(counts).separation_cm1 for counts in spectra]
    monkeypatch.setattr(spectrum, "MISFIT_SHARE", 0.0)
    photons = [fitted(counts).separation_cm1 for counts in spectra]
    apart = np.array(photons) - even
    assert np.abs(apart).max() > APART_MAX_CM1
    assert np.median(apart) > 0


def test_the_misfit_stays_visible_beside_the_noise() -> None:
    bright = [fitted(with_shoulders(200_000.0, 1000.0, seed)) for seed in range(4)]
    dim = [fitted(with_shoulders(300.0, 1000.0, seed)) for seed in range(4)]
    assert np.median([fit.reduced_chi2 for fit in bright]) > 5
    assert np.median([fit.reduced_chi2 for fit in dim]) < 1.5


def test_the_stated_error_is_true_for_bright_lines_without_shoulders() -> None:
    rng = np.random.default_rng(4)
    truth = rng.uniform(18.5, 25.5, 200)
    rows = [draw(AXIS, ((384.0, 3.2, 20_000.0), (384.0 + d, 5.0, 30_000.0)), rng) for d in truth]
    fits = fit_peaks([Spectrum(AXIS, row) for row in rows])
    pull = [
        (fit.separation_cm1 - d) / fit.separation_sigma_cm1
        for fit, d in zip(fits, truth, strict=True)
    ]
    assert 0.85 < np.sqrt(np.mean(np.square(pull))) < 1.15


@pytest.mark.parametrize("sapphire", [0.3, 1.0, 3.0])
def test_a_line_of_the_substrate_beside_a1g_moves_neither(sapphire: float) -> None:
    rng = np.random.default_rng(8)
    lines = ((384.3, 3.2, 2000.0), (404.0, 5.0, 3000.0), (417.8, 4.5, 3000.0 * sapphire))
    fit = fitted(draw(AXIS, lines, rng))
    assert fit.converged
    assert fit.separation_cm1 == pytest.approx(19.7, abs=0.1)
    without = fitted(draw(AXIS, (*lines[:2], *SILICON), rng))
    assert without.separation_cm1 == pytest.approx(19.7, abs=0.1)
