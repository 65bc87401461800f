"""Machine code fits as NumPy does, and is asked only where there is enough to fit."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labharness.analysis import lines
from labharness.analysis.lines import LineFits, LineWindow, fit_lines
from labharness.analysis.peaks import A_LINE, E_LINE, SILICON_LINE

pytest.importorskip("numba", reason="comes with the extra fast")

Array = NDArray[np.float64]
AXIS = np.linspace(360.0, 435.0, 120)
SAME = 1e-9


def lorentz(x: Array, height: float, at: float, fwhm: float) -> Array:
    return height / (1 + (2 * (x - at) / fwhm) ** 2)


def films(count: int, seed: int) -> tuple[Array, Array]:
    """Draw films of all brightness, a fiftieth of their pixels left out of the fit."""
    rng = np.random.default_rng(seed)
    clean = [
        lorentz(AXIS, rng.uniform(50, 2000), rng.uniform(381, 386), rng.uniform(2, 6))
        + lorentz(AXIS, rng.uniform(50, 4000), rng.uniform(402, 410), rng.uniform(3, 8))
        + rng.uniform(20, 500)
        for _ in range(count)
    ]
    counts = rng.poisson(np.array(clean)).astype(float)
    weight = 1 / np.sqrt(counts + 16.0)
    weight[rng.random(counts.shape) < 0.02] = 0.0
    return counts, weight


def both(
    monkeypatch: pytest.MonkeyPatch,
    axis: Array,
    counts: Array,
    weight: Array,
    windows: Sequence[LineWindow],
) -> tuple[LineFits, LineFits]:
    plain = fit_lines(axis, counts, weight, windows)
    monkeypatch.setattr(lines, "COMPILED_SPECTRA_MIN", 1)
    asked = []
    compiled = lines._compiled()
    assert compiled is not None

    def seen(*arguments: Any) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        asked.append(True)
        return compiled(*arguments)

    monkeypatch.setattr(lines, "_compiled", lambda: seen)
    fast = fit_lines(axis, counts, weight, windows)
    assert asked
    return plain, fast


def errors(fits: LineFits) -> Array:
    found: Array = np.sqrt(np.einsum("ijj->ij", fits.covariance))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_films_are_fitted_alike_to_a_billionth(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    # more than one part, and the last one not full
    plain, fast = both(monkeypatch, AXIS, *films(300, seed), (E_LINE, A_LINE))
    assert plain.converged.mean() > 0.9
    assert np.array_equal(plain.converged, fast.converged)
    scale = errors(plain)
    assert (np.abs(fast.parameters - plain.parameters) <= SAME * scale).all()
    apart = np.abs(fast.covariance - plain.covariance)
    assert (apart <= SAME * scale[:, :, None] * scale[:, None, :]).all()
    assert fast.chi2 == pytest.approx(plain.chi2, rel=SAME)
    assert fast.centre_cm1 == plain.centre_cm1


@pytest.mark.thorough
def test_one_line_has_an_odd_number_of_parameters_and_is_fitted_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    axis = np.linspace(500.0, 540.0, 70)
    rng = np.random.default_rng(4)
    counts = rng.poisson(100 + lorentz(axis, 5000, 520.7, 3.2), (50, 70)).astype(float)
    plain, fast = both(monkeypatch, axis, counts, 1 / np.sqrt(counts + 16), (SILICON_LINE,))
    assert plain.converged.all()
    assert fast.converged.all()
    assert (np.abs(fast.parameters - plain.parameters) <= SAME * errors(plain)).all()


@pytest.mark.thorough
def test_noise_has_no_lines_for_either(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.random.default_rng(5).poisson(200, (200, AXIS.size)).astype(float)
    plain, fast = both(monkeypatch, AXIS, counts, 1 / np.sqrt(counts + 16), (E_LINE, A_LINE))
    assert np.array_equal(plain.converged, fast.converged)
    assert fast.chi2 == pytest.approx(plain.chi2, rel=1e-6)


def test_where_machine_code_cannot_be_made_numpy_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, weight = films(20, 6)
    plain = fit_lines(AXIS, counts, weight, (E_LINE, A_LINE))
    monkeypatch.setattr(lines, "COMPILED_SPECTRA_MIN", 1)
    monkeypatch.setitem(sys.modules, "labharness.analysis.compiled", None)
    again = fit_lines(AXIS, counts, weight, (E_LINE, A_LINE))
    assert np.array_equal(plain.parameters, again.parameters)


def test_few_spectra_load_no_compiler() -> None:
    code = (
        "import sys, numpy as np\n"
        "from labharness.analysis.lines import LineWindow, fit_lines\n"
        "x = np.linspace(0.0, 30.0, 40)\n"
        "fit_lines(x, np.ones((9, 40)), np.ones((9, 40)), (LineWindow(5.0, 25.0, 4.0),))\n"
        "sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
