"""Lines of many spectra at once: found by boxes, fitted with Lorentz lines, and their areas.

A Lorentz line of height h and full width w has the area ``h w π/2``. The error is propagated to
first order with the whole covariance of the fit (JCGM 100:2008, equation 13): height and width of a
fitted line are anticorrelated, so errors added in quadrature would be too large.
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from labharness.analysis.arrays import Array, Mask, Rows
from labharness.analysis.spectrum import SpectralWindow, Stack, despike

ITERATIONS_MAX = 40
"""Steps of one fit; a good one takes 5 to 10."""

CHUNK_SPECTRA = 128
"""Spectra searched or fitted together; they and their Jacobian stay in a second-level cache."""

COMPILED_SPECTRA_MIN = 20_000
"""From this number on machine code is faster: NumPy fits as many in 0.8 s, and loading numba takes
half of that. Compiling, once per computer, takes 7 s."""

FWHM_MIN_CM1 = 0.3
"""A narrower line is a spike, one wider than its window allows a background; a fit that ends at
either limit has not converged."""


class FitRules(NamedTuple):
    """Stop and damping of a fit.

    Attributes:
        cost_change_min: Stop when a step promises less chi-squared than this, or than this share of
            a reduced chi-squared above one: 0.01 sigma of any parameter, where sigma grows with the
            misfit.
        curvature_floor: Share of the largest curvature that prevents a singular step for a line of
            height zero.
    """

    iterations_max: int = ITERATIONS_MAX
    cost_change_min: float = 1e-4
    damping_start: float = 1e-3
    damping_converged_max: float = 1.0
    damping_min: float = 1e-9
    damping_max: float = 1e8
    curvature_floor: float = 1e-12


CURVATURE_FLOOR = FitRules().curvature_floor
Fit = Callable[
    [Array, Array, Array, Array, Array, Array, FitRules], tuple[Array, Array, Array, Mask]
]
"""Axis, counts, root of weights, start, lowest and highest parameters, and rules; it returns best
parameters, curvature and chi-squared of each row, and whether its fit stopped by itself."""


class LineWindow(NamedTuple):
    """Allowed positions of one line in cm⁻¹, its initial width, and its largest width."""

    low_cm1: float
    high_cm1: float
    fwhm_cm1: float
    fwhm_max_cm1: float = 40.0


Number = TypeVar("Number")


@dataclass(frozen=True, slots=True)
class SeenLine(Generic[Number]):
    """One fitted line: position, width, height, and one sigma of each."""

    position_cm1: Number
    position_sigma_cm1: Number
    fwhm_cm1: Number
    fwhm_sigma_cm1: Number
    height_counts: Number
    height_sigma_counts: Number


@dataclass(frozen=True, slots=True, eq=False)
class FittedLine(SeenLine[Array]):
    """One line of every spectrum, with its area; one sigma of each includes the misfit."""

    area_counts_cm1: Array
    area_sigma_counts_cm1: Array


class LineFits(NamedTuple):
    """Best parameters of every spectrum.

    Attributes:
        parameters: One row per spectrum: height, position, FWHM of each line, then background at
            ``centre_cm1`` and its slope per cm⁻¹.
        covariance: Covariance of each row, from the noise of the pixels alone.
        chi2: Sum of squared residuals in units of that noise.
        converged: The fit stopped by itself, with no line at a bound.
        centre_cm1: Position of the background parameter.
        freedom: Degrees of freedom: pixels with a weight, less the parameters.
    """

    parameters: Array
    covariance: Array
    chi2: Array
    converged: Mask
    centre_cm1: float
    freedom: Array

    @property
    def inflation(self) -> Array:
        """Reduced chi-squared of each row, where it is above one; errors grow with its root."""
        return np.maximum(1.0, self.chi2 / self.freedom)

    @property
    def variance(self) -> Array:
        """Variance of each parameter from the noise of the pixels, one row per spectrum."""
        return np.maximum(np.einsum("ijj->ij", self.covariance), 0.0)

    def line(self, number: int) -> FittedLine:
        """Return one of the lines, which count from 0 in the order in which they were asked for."""
        at = 3 * number
        height, position, fwhm = self.parameters[:, at : at + 3].T
        variance = self.variance[:, at : at + 3] * self.inflation[:, None]
        height_sigma, position_sigma, fwhm_sigma = np.sqrt(variance).T
        of_area = self.covariance[:, [[at], [at + 2]], [at, at + 2]] * self.inflation[:, None, None]
        area, sigma = line_area(height, fwhm), area_sigma(height, fwhm, of_area)
        return FittedLine(
            position, position_sigma, fwhm, fwhm_sigma, height, height_sigma, area, sigma
        )


def fit_window(
    window: SpectralWindow, lines: Sequence[LineWindow], iterations_max: int = ITERATIONS_MAX
) -> LineFits:
    """Fit lines to every row of a window; see `fit_lines`."""
    x, counts, weight, noise = window[:4]
    return fit_lines(x, counts, weight, lines, noise, iterations_max)


def fit_lines(
    axis: Array,
    counts: Array,
    root_weight: Array,
    windows: Sequence[LineWindow],
    root_noise: Array | None = None,
    iterations_max: int = ITERATIONS_MAX,
) -> LineFits:
    """Fit every row of ``counts`` by weighted Levenberg-Marquardt, all rows at once.

    For ``COMPILED_SPECTRA_MIN`` rows and more, machine code takes the same steps on every core, if
    numba is installed (extra ``fast``). The other order of sums leaves differences of some 1e-14
    for lines, and below 1e-5 of the error in a row of noise, which has no single best fit.

    Heights may be negative, so that noise is not turned into a line. Widths enter as |w|; positions
    and widths are clipped to their bounds after each step.

    Args:
        axis: Shift of each pixel in cm⁻¹, ascending.
        counts: One spectrum per row.
        root_weight: Root of the weight of each pixel; 0 leaves a pixel out.
        windows: One per line.
        root_noise: 1/sigma of each pixel, if it differs from the weight. Errors and chi-squared are
            then those of this noise under these weights (the sandwich of White 1980,
            10.2307/1912934).
        iterations_max: Steps after which a fit is given up. Fewer are enough to decide whether a
            line is present: a present one takes 5 to 10.
    """
    centre = float(axis.mean())
    x = axis - centre
    low, high = _bounds(windows, centre)
    compiled = _compiled() if len(counts) >= COMPILED_SPECTRA_MIN else None
    fit = compiled or _fit_chunk
    rules = FitRules(iterations_max)

    def fit_part(first: int) -> tuple[Array, Array, Array, Mask]:
        part = slice(first, first + CHUNK_SPECTRA)
        y, w = counts[part], root_weight[part]
        start = np.clip(_first_guess(x, y, w > 0, windows, centre), low, high)
        best, curvature, cost, stopped = fit(x, y, w, start, low, high, rules)
        covariance = _inverse(curvature)
        if root_noise is not None:
            covariance, cost = _under_noise(x, y, w, root_noise[part], best, covariance)
        return best, covariance, cost, stopped

    firsts = range(0, len(counts), CHUNK_SPECTRA)
    if compiled:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            parts = list(threads.map(fit_part, firsts))
    else:
        parts = [fit_part(first) for first in firsts]
    parameters, covariance, chi2, stopped = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    inside = ((parameters > low) & (parameters < high)).all(axis=1)
    lines = len(windows)
    parameters[:, 1 : 3 * lines : 3] += centre
    freedom = np.maximum((root_weight > 0).sum(axis=1) - parameters.shape[1], 1)
    return LineFits(parameters, covariance, chi2, stopped & inside, centre, freedom)


def _bounds(windows: Sequence[LineWindow], centre: float) -> tuple[Array, Array]:
    low: list[float] = []
    high: list[float] = []
    for window in windows:
        low += [-np.inf, window.low_cm1 - centre, FWHM_MIN_CM1]
        high += [np.inf, window.high_cm1 - centre, window.fwhm_max_cm1]
    return np.array([*low, -np.inf, -np.inf]), np.array([*high, np.inf, np.inf])


def _first_guess(
    x: Array,
    counts: Array,
    usable: Mask,
    windows: Sequence[LineWindow],
    centre: float,
) -> Array:
    """Return initial values: each line from the highest smoothed pixel of its window."""
    edge = max(3, x.size // 10)
    left, right = np.median(counts[:, :edge], axis=1), np.median(counts[:, -edge:], axis=1)
    slope = (right - left) / (x[-edge:].mean() - x[:edge].mean())
    level = (left + right) / 2 - slope * (x[-edge:].mean() + x[:edge].mean()) / 2
    flat = np.where(usable, counts - level[:, None] - slope[:, None] * x, 0.0)
    total = np.cumsum(np.pad(flat, ((0, 0), (3, 2)), mode="edge"), axis=1)
    smooth = (total[:, 5:] - total[:, :-5]) / 5
    guess: list[Array] = []
    for window in windows:
        inside = np.nonzero((x > window.low_cm1 - centre) & (x < window.high_cm1 - centre))[0]
        top = smooth[:, inside]
        best = np.argmax(top, axis=1)
        height = np.maximum(np.take_along_axis(top, best[:, None], axis=1)[:, 0], 1.0)
        guess += [height, x[inside[best]], np.full(len(counts), window.fwhm_cm1)]
    return np.stack([*guess, level, slope], axis=1)


def _evaluate(x: Array, counts: Array, root_weight: Array, p: Array) -> tuple[Array, Array]:
    """Return the weighted residuals (rows x px) and their Jacobian (rows x parameters x px)."""
    # Every pass over rows x px is slow, so weights enter early and results go into the Jacobian.
    lines = (p.shape[1] - 2) // 3
    jacobian = np.empty((*p.shape, x.size))
    jacobian[:, -2] = root_weight
    np.multiply(root_weight, x, out=jacobian[:, -1])
    residual = counts - p[:, -2:-1]
    residual *= root_weight
    residual -= p[:, -1:] * jacobian[:, -1]
    for line in range(lines):
        height, position, half = (p[:, 3 * line + k, None] for k in range(3))
        half = half / 2
        reach = (x - position) / half
        shape = reach * reach
        shape += 1
        np.reciprocal(shape, out=shape)
        weighted, slope, widening = (jacobian[:, 3 * line + k] for k in range(3))
        np.multiply(shape, root_weight, out=weighted)
        residual -= height * weighted
        shape *= weighted
        shape *= 2 * height / half
        np.multiply(shape, reach, out=slope)
        reach *= 0.5
        np.multiply(slope, reach, out=widening)
    return residual, jacobian


def _normal(residual: Array, jacobian: Array) -> tuple[Array, Array, Array]:
    cost = np.einsum("ij,ij->i", residual, residual)
    curvature = jacobian @ jacobian.transpose(0, 2, 1)
    gradient = (jacobian @ residual[:, :, None])[:, :, 0]
    return cost, curvature, gradient


def _fit_chunk(
    x: Array,
    counts: Array,
    root_weight: Array,
    start: Array,
    low: Array,
    high: Array,
    rules: FitRules,
) -> tuple[Array, Array, Array, Mask]:
    size = start.shape[1]
    diagonal = np.arange(size)
    widths = np.arange(2, size - 2, 3)
    best, best_cost = start.copy(), np.empty(len(start))
    best_curvature = np.empty((len(start), size, size))
    stopped = np.zeros(len(start), dtype=bool)
    freedom = max(x.size - size, 1)

    # `running` holds the rows still being fitted; finished rows leave the arrays below.
    running = np.arange(len(start))
    p, damping = start, np.full(len(start), rules.damping_start)
    cost, curvature, gradient = _normal(*_evaluate(x, counts, root_weight, p))
    for iteration in range(rules.iterations_max):
        stiffness = curvature[:, diagonal, diagonal]
        stiffness = np.maximum(
            stiffness, rules.curvature_floor * stiffness.max(axis=1, keepdims=True)
        )
        damped = curvature.copy()
        damped[:, diagonal, diagonal] = stiffness * (1 + damping[:, None])
        step = np.linalg.solve(damped, gradient[:, :, None])[:, :, 0]
        trial = p + step
        trial[:, widths] = np.abs(trial[:, widths])
        trial = np.clip(trial, low, high)
        new_cost, new_curvature, new_gradient = _normal(*_evaluate(x, counts, root_weight, trial))

        better = new_cost <= cost
        promise = np.einsum("ij,ij->i", step, gradient)
        enough = rules.cost_change_min * np.maximum(1.0, new_cost / freedom)
        settled = better & (promise < enough) & (damping <= rules.damping_converged_max)
        p = np.where(better[:, None], trial, p)
        cost = np.where(better, new_cost, cost)
        curvature = np.where(better[:, None, None], new_curvature, curvature)
        gradient = np.where(better[:, None], new_gradient, gradient)
        damping = np.where(better, np.maximum(damping / 10, rules.damping_min), damping * 10)

        done = settled | (damping > rules.damping_max) | (iteration == rules.iterations_max - 1)
        if not done.any():
            continue
        rows = running[done]
        best[rows], best_cost[rows], best_curvature[rows] = p[done], cost[done], curvature[done]
        stopped[rows] = settled[done]
        going = ~done
        if not going.any():
            break
        running, counts, root_weight = running[going], counts[going], root_weight[going]
        p, cost, damping = p[going], cost[going], damping[going]
        curvature, gradient = curvature[going], gradient[going]

    return best, best_curvature, best_cost, stopped


def _under_noise(
    x: Array, counts: Array, root_weight: Array, root_noise: Array, best: Array, inverse: Array
) -> tuple[Array, Array]:
    """Return the covariance and the chi-squared for pixels of this noise."""
    residual, jacobian = _evaluate(x, counts, root_weight, best)
    used = root_weight > 0
    residual *= np.divide(root_noise, root_weight, out=np.zeros_like(residual), where=used)
    jacobian *= np.divide(root_weight, root_noise, out=np.zeros_like(residual), where=used)[:, None]
    scattered = inverse @ (jacobian @ jacobian.transpose(0, 2, 1)) @ inverse
    return scattered, np.einsum("ij,ij->i", residual, residual)


def _compiled() -> "Fit | None":
    try:
        from labharness.analysis.compiled import fit_rows
    except (ImportError, RuntimeError):  # no numba, or no folder for the machine code
        return None
    return fit_rows


def _inverse(curvature: Array) -> Array:
    """Invert each curvature after scaling its diagonal to one, so that units do not matter."""
    diagonal = np.einsum("ijj->ij", curvature)
    floor = np.maximum(CURVATURE_FLOOR * diagonal.max(axis=1, keepdims=True), np.finfo(float).tiny)
    scale = np.sqrt(np.maximum(diagonal, floor))
    outer = scale[:, :, None] * scale[:, None, :]
    ridge = CURVATURE_FLOOR * np.eye(curvature.shape[1])
    return np.linalg.inv(curvature / outer + ridge) / outer


WIDEST_CM1 = 110.0
"""A wider hill is background: luminescence, glass."""

SIGMA_MIN = 4.0
"""A line rises by so many errors over both its sides."""

SURELY_SIGMA = 3.0
"""Rises are compared less so many errors: the highest of many narrow boxes is high by chance."""

HELD_MAX = 48
"""Most lines kept of one spectrum, the highest first."""

APART_WIDTHS = 0.75
"""Of two lines nearer than this share of the wider one's width the higher is kept."""

FAR_NARROWER, TOP_SHARE = 8.0, 0.4
"""A line so many times narrower stands on a hill, and is not its top unless it is this near."""

CENTRE_SHARE = 0.64
"""A box as wide as a Lorentz line, less the boxes beside it, has this share of its height."""

FOOT_WIDTHS, FOOT_SHARE = 3.0, 0.10
"""So near to a far higher line stands its foot or shoulder: no line has an exact shape."""


class FoundLines(NamedTuple):
    """The lines of each spectrum (rows x lines), the highest first.

    Attributes:
        position_cm1: Of its middle, to some 0.3 widths; NaN where a row has fewer lines.
        fwhm_cm1: To some third.
        height_counts: Over the background on both sides, to some third; 0 without a line.
        sigma: By how many errors it rises.
        is_foot: It stands so near to a far higher line that it may be its foot.
    """

    position_cm1: Array
    fwhm_cm1: Array
    height_counts: Array
    sigma: Array
    is_foot: Mask

    def of(self, rows: Rows) -> "FoundLines":
        """Return the lines of some of the spectra."""
        at, fwhm, height, sigma = (each[rows] for each in self[:4])
        return FoundLines(at, fwhm, height, sigma, self.is_foot[rows])


def find_lines(stack: Stack) -> FoundLines:
    """Compare boxes of rising widths with the boxes beside them, at each pixel of each row."""
    parts = [_found(part) for part in stack.parts(CHUNK_SPECTRA)]
    most = max(part[0].shape[1] for part in parts)
    position, fwhm, height, sigma = (
        np.concatenate(
            [
                np.pad(each, ((0, 0), (0, most - each.shape[1])), constant_values=empty)
                for each in column
            ]
        )
        for column, empty in zip(zip(*parts, strict=True), (np.nan, np.nan, 0, 0), strict=True)
    )
    return FoundLines(position, fwhm, height, sigma, _feet(position, fwhm, height))


def _found(stack: Stack) -> tuple[Array, ...]:
    axis, rows = stack.shift_cm1, len(stack.counts)
    pixel = float(np.median(np.diff(axis)))
    clean = despike(stack.counts)[0]
    sums = np.cumsum(np.pad(clean, ((0, 0), (1, 0))), axis=1)
    read2 = stack.read_noise_counts[:, None] ** 2
    tops = [np.empty((5, 0))]
    width = 1
    while width * pixel <= WIDEST_CM1 and 4 * width < axis.size:
        tops.append(_tops(sums, read2, width))
        width = max(width + 2, round(1.35 * width / 2) * 2 + 1)
    found = np.concatenate(tops, axis=1)
    found = found[:, np.lexsort((-found[4], found[0]))]
    row, at = found[:2].astype(np.intp)
    number = np.arange(row.size) - np.searchsorted(row, row)
    all_of = np.zeros((4, rows, int(number.max(initial=-1)) + 1))
    all_of[0] = np.nan
    all_of[:, row, number] = axis[at], found[2] * pixel, found[3], found[4]
    return _thinned(all_of)


def _tops(sums: Array, read2: Array, width: int) -> Array:
    """Return row, pixel, width, height and clearness where a box rises most over its sides."""
    half, beside, start = width // 2, (width + 1) // 2, max(width, 2)
    first = start + beside - 1
    last = sums.shape[1] - 1 - first

    def mean(low: int, size: int) -> Array:
        part: Array = sums[:, first + low + size : last + low + size]
        return (part - sums[:, first + low : last + low]) / size

    centre = mean(-half, width)
    rise = centre - (mean(-first, beside) + mean(start, beside)) / 2
    noise2 = (np.maximum(centre, 0.0) + read2) * (1 / width + 1 / (2 * beside))
    sigma = rise / np.sqrt(np.maximum(noise2, 1e-12))
    inner = sigma[:, 1:-1]
    top = (inner > SIGMA_MIN) & (inner >= sigma[:, :-2]) & (inner > sigma[:, 2:])
    row, at = np.nonzero(top)
    height = rise[row, at + 1] / CENTRE_SHARE
    return np.stack([row, at + 1 + first, np.full(row.size, width), height, inner[row, at]])


def _thinned(lines: Array) -> tuple[Array, ...]:
    """Keep the highest line of each place; ``lines`` has four values of each line of each row."""
    position, fwhm, height, sigma = lines
    rows = np.arange(position.shape[0])
    alive: Mask = np.asarray(sigma > 0)
    # Of a Lorentz line the rise is highest where the box is as wide as the line.
    surely = height * (1 - SURELY_SIGMA / np.maximum(sigma, SIGMA_MIN))
    kept: list[Array] = []
    while len(kept) < HELD_MAX and alive.any():
        best = np.where(alive, surely, 0.0).argmax(axis=1)
        chosen = lines[:, rows, best]
        chosen[:, ~alive.any(axis=1)] = np.array([[np.nan], [np.nan], [0], [0]])
        kept.append(chosen)
        wide = chosen[1][:, None]
        hill = np.where(fwhm * FAR_NARROWER < wide, TOP_SHARE * wide, wide)
        reach = APART_WIDTHS * np.maximum(fwhm, hill)
        alive &= np.asarray(~(np.abs(position - chosen[0][:, None]) < reach))
    if not kept:
        return tuple(np.zeros((4, rows.size, 0)))
    return tuple(np.stack(kept, axis=2))


def _feet(position: Array, fwhm: Array, height: Array) -> Mask:
    near = np.abs(position[:, :, None] - position[:, None]) < FOOT_WIDTHS * fwhm[:, None]
    lower = height[:, :, None] < FOOT_SHARE * height[:, None]
    return np.asarray((near & lower).any(axis=2), dtype=np.bool_)


LORENTZ_AREA = math.pi / 2
"""Area of a Lorentz line of height one and full width one."""


def line_area(height: Array, fwhm: Array) -> Array:
    """Return the area under each line, in the height's unit times the width's."""
    return height * fwhm * LORENTZ_AREA


def area_sigma(height: Array, fwhm: Array, covariance: Array) -> Array:
    """Return one sigma of the area of each line.

    Args:
        height: Height over the background, shape (n).
        fwhm: Full width at half maximum, shape (n).
        covariance: Covariance of height and width, shape (n, 2, 2).
    """
    slopes = np.stack([fwhm * LORENTZ_AREA, height * LORENTZ_AREA], axis=-1)
    variance = np.einsum("ij,ijk,ik->i", slopes, covariance, slopes)
    return np.sqrt(np.maximum(variance, 0.0))
