"""Analyse a whole map, and some of its spectra with lmfit and fitspy in the same run.

Judged means all that ``labharness analyse`` does with what it has read: noise, cosmic rays,
silicon, material, both MoS2 lines with errors, disorder and layers. The peers only fit both lines,
in the same window and from the same first guess, every pixel alike. fitspy is under the GPL: it is
installed for benchmarks alone (extra ``benchmark``).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: one core for each program

import sys
from collections.abc import Callable
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.assess import Assessment, assess
from labharness.analysis.formats import Recording

Array = NDArray[np.float64]

TARGETS_S = {1_520: 2.0, 10_000: 12.0}
PIXELS = 1024
PEER_SPECTRA = 40
ROUNDS = 3
SAME_CM1 = 0.1
WINDOW_CM1 = (360.0, 435.0)
FIRST_GUESS = ((384.0, 4.0), (404.0, 5.0))


def line(x: Array, at: Array | float, fwhm: float, height: Array | float) -> Array:
    return np.asarray(height / (1 + (2 * (x - at) / fwhm) ** 2))


def drawn(count: int) -> Recording:
    """Return a map of films of one and two layers, a third of it bare, with dead rows in it."""
    rng = np.random.default_rng(1)
    x = np.linspace(100.0, 700.0, PIXELS)
    e_cm1 = 384.5 + rng.normal(0, 0.3, count)[:, None]
    apart = rng.choice([19.6, 22.2], count)[:, None]
    height = (rng.uniform(500, 2500, count) * (rng.random(count) < 0.67))[:, None]
    clean = 400 + line(x, e_cm1, 3.5, 0.5 * height) + line(x, e_cm1 + apart, 5.0, height)
    clean += line(x, 520.5, 3.4, 20_000) + line(x, 303, 12, 500) + line(x, 454, 40, 0.2 * height)
    counts = rng.poisson(clean).astype(float)
    counts[:: count // 20] = 0.0
    return Recording("drawn", x, "1/cm", counts, 532.0)


def with_lmfit() -> Callable[[Array, Array], float] | None:
    try:
        from lmfit.models import LinearModel, LorentzianModel
    except ImportError:
        return None
    model: Any = LorentzianModel(prefix="e_") + LorentzianModel(prefix="a_") + LinearModel()

    def separation(x: Array, y: Array) -> float:
        level = float(np.median(y))
        start = {"intercept": level, "slope": 0.0}
        for name, (at, fwhm) in zip("ea", FIRST_GUESS, strict=True):
            top = float(np.interp(at, x, y)) - level
            start |= {f"{name}_center": at, f"{name}_sigma": fwhm / 2}
            start[f"{name}_amplitude"] = max(top, 1.0) * np.pi * fwhm / 2
        best = model.fit(y, model.make_params(**start), x=x).best_values
        return float(best["a_center"] - best["e_center"])

    return separation


def with_fitspy() -> Callable[[Array, Array], float] | None:
    # It makes a folder in the home directory on import; a benchmark must not leave one behind.
    home = os.environ.get("HOME", "")
    with TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        try:
            from fitspy.core.spectrum import Spectrum
        except ImportError:
            return None
        finally:
            os.environ["HOME"] = home

    def separation(x: Array, y: Array) -> float:
        spectrum = Spectrum()
        spectrum.x, spectrum.y = x.copy(), y.copy()
        spectrum.set_bkg_model("Linear")
        for at, fwhm in FIRST_GUESS:
            spectrum.add_peak_model("Lorentzian", at, fwhm=fwhm, dx0=(10.0, 12.0), dfwhm=40.0)
        spectrum.fit(coef_noise=0, fit_negative=True, xtol=1e-6)
        e_cm1, a_cm1 = (model.param_hints["x0"]["value"] for model in spectrum.peak_models)
        return float(a_cm1 - e_cm1)

    return separation


def beside(map_: Recording, found: Assessment) -> bool:
    """Print the times of the peers for some of the spectra; return whether they agree."""
    clear = [n for n, fit in enumerate(found.fits) if fit is not None and fit.snr_a > 20]
    rows = clear[:: max(len(clear) // PEER_SPECTRA, 1)][:PEER_SPECTRA]
    inside = (map_.axis >= WINDOW_CM1[0]) & (map_.axis <= WINDOW_CM1[1])
    same = True
    for name, peer in (("lmfit", with_lmfit()), ("fitspy", with_fitspy())):
        if peer is None:
            print(f"{name:10} is not installed: pip install 'labharness[benchmark]'")
            continue
        times, apart = [], 0.0
        for row in rows:
            fit = found.fits[row]
            start = perf_counter()
            separation = peer(map_.axis[inside], map_.intensity[row][inside])
            times.append(perf_counter() - start)
            if fit is not None:
                apart = max(apart, abs(separation - fit.separation_cm1) - fit.separation_sigma_cm1)
        same = same and apart <= SAME_CM1
        took = median(times)
        print(
            f"{name:10} {1 / took:8.0f} spectra/s, fit of both lines alone; "
            f"1,520 would take {1520 * took:.0f} s; apart beyond one error ≤ {apart:.3f} cm⁻¹"
        )
    return same


def main() -> int:
    good = True
    print(f"load before: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    for count, target in TARGETS_S.items():
        map_ = drawn(count)
        walls, cpus = [], []
        for _ in range(ROUNDS):
            wall, cpu = perf_counter(), process_time()
            found = assess(map_)
            walls.append(perf_counter() - wall)
            cpus.append(process_time() - cpu)
        good = good and median(walls) <= target
        print(
            f"labharness {count / median(walls):8.0f} spectra/s judged; {count:,} in "
            f"{median(walls):.2f} s ({median(cpus):.2f} s of processor), target {target:g} s"
        )
        if count == min(TARGETS_S):
            good = beside(map_, found) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
