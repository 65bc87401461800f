"""Identify the material of spectra by comparing their lines with the table of materials."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from labharness.analysis.areas import area_sigma, line_area
from labharness.analysis.arrays import Array, Mask, Rows
from labharness.analysis.despike import despike
from labharness.analysis.film import film_rows
from labharness.analysis.lines import ITERATIONS_MAX, LineFits, LineWindow, fit_window
from labharness.analysis.material_table import (
    MATERIALS,
    MOS2_PAIR,
    SILICON,
    SUBSTRATES,
    UNKNOWN,
    Form,
    LayerLimit,
    LineGroup,
    Material,
)
from labharness.analysis.near import lowest_near, mean_of_three
from labharness.analysis.peaks import PeakFit, SiliconFit
from labharness.analysis.spectrum import Spectrum
from labharness.analysis.stack import SpectralWindow, Stack, covers, cut_window, stacked

__all__ = [
    "LaOverE",
    "Named",
    "SeenLine",
    "identify",
    "identify_rows",
    "la_over_e",
    "la_over_e_rows",
]

HEIGHT_SIGMA_MIN = 6.0
"""A line must exceed this many of its own errors, of its height or of its area."""

ALONE_SIGMA_MIN = 10.0
"""The limit for a line that is the only one of its material."""

PROMISING_SIGMA = 3.0
"""A window whose smoothed top rises by less is not fitted: no line would reach six errors."""

ITERATIONS_ALONE = 16
"""Steps for a single line: a present one needs 5 to 10, an absent one never converges."""

OUTSHONE_MAX = 1.5
"""A line this many times as high as a material's own, in its main range, belongs to something
unknown."""

SILICON_LINES_CM1 = ((290.0, 316.0), (505.0, 536.0), (920.0, 1000.0))
"""2TA, the first order and 2TO of silicon, which may be higher than any film's lines."""

BACKGROUND_CM1 = 25.0
"""A line rises over the lowest points within this distance; wider features are background."""

LA_GROUP = LineGroup(("LA(M)",), (LineWindow(219.0, 235.0, 15.0),), (205.0, 255.0), (205.0, 255.0))
"""LA(M) of MoS2 at 227 cm⁻¹."""

LA_SIGMA_MIN = 3.0

CHUNK_SPECTRA = 2000
"""Rows identified together; this bounds the memory for a map of any size."""


class LaOverE(NamedTuple):
    """Height of LA(M) over the height of E, 0 if LA(M) does not stand out, and its error."""

    ratio: float
    sigma: float


@dataclass(frozen=True, slots=True)
class SeenLine:
    """One fitted line: position, width, height, and their errors, misfit included."""

    position_cm1: float
    position_sigma_cm1: float
    fwhm_cm1: float
    fwhm_sigma_cm1: float
    height_counts: float
    height_sigma_counts: float


@dataclass(frozen=True, slots=True)
class Named:
    """The material of one spectrum, and its lines by their names in the table."""

    material: Material
    lines: Mapping[str, SeenLine] = field(default_factory=dict)

    def ratio(self, line: str, over: str) -> tuple[float, float] | None:
        """Return the ratio of two heights and its error; None without the second line."""
        below = self.lines.get(over)
        if below is None:
            return None
        above = self.lines.get(line)
        if above is None:
            return 0.0, below.height_sigma_counts / below.height_counts
        value = above.height_counts / below.height_counts
        return value, value * math.hypot(
            above.height_sigma_counts / above.height_counts,
            below.height_sigma_counts / below.height_counts,
        )


class _Fitted(NamedTuple):
    """One group fitted in some rows of a stack; the height is 0 in rows without a fit.

    Attributes:
        values: Position, width and height and their errors (rows x lines x 6).
        stands: Whether each line stands out and is at no bound (rows x lines).
        sure: The same by the limit for a single line.
    """

    values: Array
    stands: Mask
    sure: Mask


def identify(spectrum: Spectrum, silicon: SiliconFit | None) -> Material:
    """Return the material of one spectrum; see `identify_rows`."""
    return identify_rows(stacked([spectrum]), [silicon])[0].material


def identify_rows(stack: Stack, silicon: Sequence[SiliconFit | None]) -> tuple[Named, ...]:
    """Return the material of each row, on an axis already calibrated to silicon.

    Materials are tried in the order of the table, each by its required lines; the first one whose
    lines stand out is taken. Silicon and other substrates come after the films.

    Args:
        stack: The spectra.
        silicon: The silicon line of each, or None.
    """
    named: list[Named] = []
    for first in range(0, len(stack.counts), CHUNK_SPECTRA):
        part = np.arange(first, min(first + CHUNK_SPECTRA, len(stack.counts)))
        named += _Naming(stack.of(part), [silicon[row] for row in part.tolist()]).names()
    return tuple(named)


class _Naming:
    """The rows of one stack while they are identified; each group of lines is fitted once."""

    def __init__(self, stack: Stack, silicon: Sequence[SiliconFit | None]) -> None:
        self._stack = stack
        self._calibrated = np.array([line is not None for line in silicon])
        self._fitted: dict[LineGroup, tuple[_Fitted, Mask]] = {}
        self._relief: Array | None = None
        self._names: list[Named | None] = [None] * len(stack.counts)

    def names(self) -> list[Named]:
        """Try the whole table; the remaining rows are silicon or unknown."""
        self._ask(MATERIALS, np.arange(len(self._names)))
        bare = [row for row, name in enumerate(self._names) if name is None]
        for row in bare:
            if self._calibrated[row]:
                self._names[row] = Named(SILICON)
        self._ask(SUBSTRATES, np.array([r for r in bare if self._names[r] is None], dtype=np.intp))
        return [name or Named(UNKNOWN) for name in self._names]

    def _ask(self, materials: Sequence[Material], rows: Rows) -> None:
        for material in materials:
            for form in material.forms:
                rows = np.array([r for r in rows.tolist() if self._names[r] is None], dtype=np.intp)
                if rows.size == 0:
                    return
                groups = (*form.groups, *material.besides)
                showing = self._showing(material, form, rows)
                fitted = [(group, self._fit(group, showing)) for group in groups]
                for row in showing.tolist():
                    self._names[row] = Named(material, _standing(fitted, row))

    def _showing(self, material: Material, form: Form, rows: Rows) -> Rows:
        """Return the rows that show the material in this form."""
        axis = self._stack.shift_cm1
        if form.without is not None and covers(axis, *form.without.needs_cm1):
            return rows[:0]
        if form.calibrated:
            rows = rows[self._calibrated[rows]]
        for group in form.groups:
            if not covers(axis, *group.needs_cm1, 4 * len(group.names) + 4):
                return rows[:0]
        if MOS2_PAIR in form.groups and rows.size:
            # A survey trusts its camera, but the scale of an external file is a guess. So the lines
            # are tested again, against the misfit of their fit.
            rows = rows[film_rows(self._stack.of(rows))[1]]
        for group in form.groups:
            fitted = self._fit(group, rows)
            stands = fitted.sure if form.alone else fitted.stands
            rows = rows[stands[rows].all(axis=1)]
        for limit in form.limits:
            rows = rows[self._within(material, form, limit, rows)]
        if material.outshines_cm1 is not None and rows.size:
            rows = rows[self._outshines(material, form, material.outshines_cm1, rows)]
        return rows

    def _within(self, material: Material, form: Form, limit: LayerLimit, rows: Rows) -> Mask:
        groups = (*form.groups, *material.besides)
        value, stands = self._value(groups, limit.line, rows, 1 if not limit.over else 2)
        if limit.distance:
            value, _ = self._value(groups, limit.line, rows, 0)
            value = value - self._value(groups, limit.over, rows, 0)[0]
        elif limit.over:
            below, there = self._value(groups, limit.over, rows, 2)
            value = np.divide(
                np.where(stands, value, 0.0),
                below,
                out=np.full(rows.size, np.inf),
                where=there & (below > 0),
            )
        inside: Mask = (value >= limit.low) & (value <= limit.high)
        return inside

    def _value(
        self, groups: Sequence[LineGroup], line: str, rows: Rows, which: int
    ) -> tuple[Array, Mask]:
        for group in groups:
            if line in group.names:
                at = group.names.index(line)
                fitted = self._fit(group, rows)
                return fitted.values[rows, at, 2 * which], fitted.stands[rows, at]
        return np.zeros(rows.size), np.zeros(rows.size, dtype=bool)

    def _fit(self, group: LineGroup, rows: Rows) -> _Fitted:
        if group not in self._fitted:
            shape = (len(self._names), len(group.names))
            nothing = _Fitted(np.zeros((*shape, 6)), np.zeros(shape, bool), np.zeros(shape, bool))
            self._fitted[group] = nothing, np.zeros(len(self._names), dtype=bool)
        fitted, done = self._fitted[group]
        todo = rows[~done[rows]]
        if todo.size:
            done[todo] = True
            values, stands, sure = _fit_group(self._stack.of(todo), group)
            fitted.values[todo], fitted.stands[todo], fitted.sure[todo] = values, stands, sure
        return fitted

    def _outshines(
        self, material: Material, form: Form, range_cm1: tuple[float, float], rows: Rows
    ) -> Mask:
        """Return where no other line is much higher than the material's own."""
        axis = self._stack.shift_cm1
        other = (axis >= range_cm1[0]) & (axis <= range_cm1[1])
        for group in (*form.groups, *material.besides, *_all_groups(material)):
            for window in group.windows:
                reach = window.fwhm_cm1
                other &= (axis < window.low_cm1 - reach) | (axis > window.high_cm1 + reach)
        for first, last in SILICON_LINES_CM1:
            other &= (axis < first) | (axis > last)
        if not other.any():
            return np.ones(rows.size, dtype=bool)
        if self._relief is None:
            self._relief = _relief(self._stack)
        own = np.max(
            [self._fit(group, rows).values[rows, :, 4].max(axis=1) for group in form.groups],
            axis=0,
        )
        highest: Mask = self._relief[np.ix_(rows, other)].max(axis=1) <= (OUTSHONE_MAX * own)
        return highest


def _standing(fitted: Sequence[tuple[LineGroup, _Fitted]], row: int) -> dict[str, SeenLine]:
    """Return the lines of these groups that stand out in one row, each from its first group."""
    lines: dict[str, SeenLine] = {}
    for group, found in fitted:
        stands = found.stands[row].tolist()
        for at, name in enumerate(group.names):
            if stands[at] and name not in lines:
                lines[name] = SeenLine(*found.values[row, at].tolist())
    return lines


def _all_groups(material: Material) -> list[LineGroup]:
    return [group for form in material.forms for group in form.groups]


def _relief(stack: Stack) -> Array:
    """Return each pixel's height over the lowest ones near it, with smoothed noise."""
    pixel = float(np.median(np.diff(stack.shift_cm1)))
    # A cosmic ray is higher than anything, but not a line.
    smooth = mean_of_three(despike(stack.counts)[0])
    relief: Array = smooth - lowest_near(smooth, max(round(BACKGROUND_CM1 / pixel), 1))
    # Noise alone rises above its own lowest points; this usual amount is subtracted.
    return relief - np.median(relief, axis=1, keepdims=True)


def _fit_group(stack: Stack, group: LineGroup) -> tuple[Array, Mask, Mask]:
    """Fit a group in every row; return values, which lines stand out, and which do so alone."""
    rows, lines = len(stack.counts), len(group.windows)
    values = np.zeros((rows, lines, 6))
    stands = np.zeros((rows, lines), dtype=bool)
    sure = np.zeros((rows, lines), dtype=bool)
    if not covers(stack.shift_cm1, *group.needs_cm1, 4 * lines + 4):
        return values, stands, sure
    window = cut_window(stack, group.range_cm1)
    at = np.nonzero(_promises(window, group))[0]
    if at.size == 0:
        return values, stands, sure
    iterations_max = ITERATIONS_ALONE if lines == 1 else ITERATIONS_MAX
    fits = fit_window(window.of(at), group.windows, iterations_max)
    sigma = np.sqrt(fits.variance * fits.inflation[:, None])
    for line in range(lines):
        for column, parameter in ((0, 1), (2, 2), (4, 0)):  # position, width, height
            values[at, line, column] = fits.parameters[:, 3 * line + parameter]
            values[at, line, column + 1] = sigma[:, 3 * line + parameter]
        clear = _clear(fits, line)
        stands[at, line] = fits.converged & (clear > HEIGHT_SIGMA_MIN)
        sure[at, line] = fits.converged & (clear > ALONE_SIGMA_MIN)
    return values, stands, sure


def _clear(fits: LineFits, line: int) -> Array:
    """Return by how many of its own errors a line stands out, of its height or of its area.

    For a line two pixels wide only the product of height and width is known.
    """
    height, fwhm = fits.parameters[:, 3 * line], fits.parameters[:, 3 * line + 2]
    covariance = fits.covariance[:, [[3 * line], [3 * line + 2]], [3 * line, 3 * line + 2]]
    of_height = np.sqrt(fits.variance[:, 3 * line])
    of_area = area_sigma(height, fwhm, covariance)
    tiny = np.finfo(float).tiny
    clear: Array = np.maximum(
        height / np.maximum(of_height, tiny), line_area(height, fwhm) / np.maximum(of_area, tiny)
    ) / np.sqrt(fits.inflation)
    return clear


def _promises(window: SpectralWindow, group: LineGroup) -> Mask:
    """Return in which rows a fit could find the lines; fits without lines take longest.

    A line that is not a shoulder has a top, from which the spectrum falls on both sides.
    """
    x = window.shift_cm1
    smooth = mean_of_three(window.counts)
    quiet = 1 / np.median(np.where(window.cosmic, np.inf, window.root_noise), axis=1)
    least = PROMISING_SIGMA * quiet / math.sqrt(3)
    hopeful = np.ones(len(smooth), dtype=bool)
    for name, place in zip(group.names, group.windows, strict=True):
        if name in group.shoulders:
            continue
        reach = 2 * place.fwhm_cm1
        about = (x >= place.low_cm1 - reach) & (x <= place.high_cm1 + reach)
        near = smooth[:, about]
        left = np.minimum.accumulate(near, axis=1)
        right = np.minimum.accumulate(near[:, ::-1], axis=1)[:, ::-1]
        allowed = (x[about] >= place.low_cm1) & (x[about] <= place.high_cm1)
        rise = (near - np.maximum(left, right))[:, allowed]
        hopeful &= rise.max(axis=1, initial=-np.inf) > least
    return hopeful


def la_over_e(spectrum: Spectrum, fit: PeakFit) -> LaOverE | None:
    """Return LA(M)/E; None if the axis does not cover it, or the fit fails."""
    return la_over_e_rows(stacked([spectrum]), [fit])[0]


def la_over_e_rows(stack: Stack, fits: Sequence[PeakFit]) -> tuple[LaOverE | None, ...]:
    """Return LA(M)/E of each row; see `la_over_e`."""
    axis = stack.shift_cm1
    if not fits or not covers(axis, *LA_GROUP.needs_cm1, 8):
        return (None,) * len(fits)
    window = cut_window(stack, LA_GROUP.range_cm1)
    found = fit_window(window, LA_GROUP.windows)
    error = np.sqrt(found.variance[:, 0] * found.inflation)
    heights = found.parameters[:, 0].tolist()
    shares: list[LaOverE | None] = []
    for converged, height, sigma, fit in zip(
        found.converged.tolist(), heights, error.tolist(), fits, strict=True
    ):
        if not converged or fit.e_height_counts <= 0:
            shares.append(None)
        elif height <= LA_SIGMA_MIN * sigma:
            shares.append(LaOverE(0.0, sigma / fit.e_height_counts))
        else:
            ratio = height / fit.e_height_counts
            relative = math.hypot(sigma / height, fit.e_height_sigma_counts / fit.e_height_counts)
            shares.append(LaOverE(ratio, ratio * relative))
    return tuple(shares)
