"""The measured lines of all spectra of a file: position, width, height, area and their errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labharness.analysis.areas import area_sigma, line_area
from labharness.analysis.arrays import Array, Mask
from labharness.analysis.baseline import arpls
from labharness.analysis.lines import LineFits, fit_window
from labharness.analysis.material_table import LineGroup
from labharness.analysis.spectrum import Spectrum
from labharness.analysis.stack import Stack, cut_window, stacked

BASELINES = ("straight", "arpls")
"""The background of the lines: a straight line that is fitted together with them, or a smooth curve
through the whole spectrum, subtracted before the fit."""

HEIGHT_SIGMA_MIN = 6.0
"""A line stands out if its height exceeds this many errors, as for naming a material."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredLine:
    """One line in every spectrum of a file: each attribute has one value per spectrum.

    Errors are one sigma from the noise of the pixels, enlarged by the root of the reduced
    chi-squared if that is above one.

    Attributes:
        name: Its usual name.
        stands_out: The fit converged, and the line is ``HEIGHT_SIGMA_MIN`` errors high. Otherwise
            the numbers have no meaning.
        height_counts: Height over the background, in the file's unit of intensity.
        area_counts_cm1: Area of the Lorentz line, in that unit times cm⁻¹.
    """

    name: str
    stands_out: Mask
    position_cm1: Array
    position_sigma_cm1: Array
    fwhm_cm1: Array
    fwhm_sigma_cm1: Array
    height_counts: Array
    height_sigma_counts: Array
    area_counts_cm1: Array
    area_sigma_counts_cm1: Array


@dataclass(frozen=True, slots=True, eq=False)
class FittedRange:
    """The fit within one range of all spectra, with the data to draw it.

    Attributes:
        range_cm1: From low to high.
        lines: The lines fitted together.
        shift_cm1: Shift of each pixel, shape (pixels).
        counts: In the unit of the file, shape (spectra, pixels).
        noise_counts: One sigma of each pixel; infinite for a removed cosmic ray.
        baseline_counts: Background subtracted before the fit; zeros for a straight one.
        level_counts: The straight background at ``centre_cm1``, one value per spectrum.
        slope_counts_per_cm1: Its slope.
        centre_cm1: Position of the level.
        reduced_chi2: One value per spectrum.
    """

    range_cm1: tuple[float, float]
    lines: tuple[MeasuredLine, ...]
    shift_cm1: Array
    counts: Array
    noise_counts: Array
    baseline_counts: Array
    level_counts: Array
    slope_counts_per_cm1: Array
    centre_cm1: float
    reduced_chi2: Array

    def ground(self, index: int, shift_cm1: Array) -> Array:
        """Return the background of one spectrum, including the one subtracted before the fit."""
        straight = self.level_counts[index] + self.slope_counts_per_cm1[index] * (
            shift_cm1 - self.centre_cm1
        )
        curved = np.interp(shift_cm1, self.shift_cm1, self.baseline_counts[index])
        total: Array = straight + curved
        return total

    def model(self, index: int, shift_cm1: Array) -> Array:
        """Return the fitted curve of one spectrum."""
        total = self.ground(index, shift_cm1)
        for line in self.lines:
            reach = (shift_cm1 - line.position_cm1[index]) / (line.fwhm_cm1[index] / 2)
            total = total + line.height_counts[index] / (1 + reach * reach)
        return total


def measure(
    spectra: Sequence[Spectrum],
    units_per_count: Array,
    ranges: Sequence[LineGroup],
    baseline: str = "straight",
    judged: Mask | None = None,
) -> tuple[FittedRange, ...]:
    """Fit the lines of each range in all spectra at once.

    The lines are Lorentzian. The weight of a pixel contains its noise and the usual misfit of such
    lines. The noise is that before any background was subtracted: photons of the background scatter
    also after the subtraction.

    Args:
        spectra: On one axis, in electrons.
        units_per_count: Factor from electrons to the file's unit, shape (spectra).
        ranges: The lines to fit.
        baseline: One of ``BASELINES``.
        judged: Mask of the valid spectra, shape (spectra); in a dead or saturated one no line
            stands out. None takes all.

    Raises:
        ValueError: When the baseline is unknown.
    """
    if baseline not in BASELINES:
        raise ValueError(f"no baseline {baseline!r}; there are {', '.join(BASELINES)}")
    if not spectra:
        return ()
    grounds = None
    if baseline == "arpls":
        grounds = np.stack([arpls(each.shift_cm1, each.counts) for each in spectra])
    stack = stacked(spectra)
    usable = np.ones(len(spectra), dtype=bool) if judged is None else judged
    return tuple(_fitted(stack, units_per_count, each, grounds, usable) for each in ranges)


def _fitted(
    stack: Stack,
    units_per_count: Array,
    wanted: LineGroup,
    grounds: Array | None,
    usable: Mask,
) -> FittedRange:
    window = cut_window(stack, wanted.range_cm1)
    x, counts = window.shift_cm1, window.counts
    ground = np.zeros_like(counts)
    if grounds is not None:
        first = int(np.searchsorted(stack.shift_cm1, x[0]))
        ground = grounds[:, first : first + x.size]
    fits = fit_window(window._replace(counts=counts - ground), wanted.windows)
    unit = units_per_count[:, None]
    with np.errstate(divide="ignore"):
        noise = unit / window.root_noise
    level, slope = fits.parameters[:, -2:].T * units_per_count
    return FittedRange(
        range_cm1=wanted.range_cm1,
        lines=tuple(
            _line(name, fits, fits.converged & usable, units_per_count, 3 * at)
            for at, name in enumerate(wanted.names)
        ),
        shift_cm1=x,
        counts=counts * unit,
        noise_counts=noise,
        baseline_counts=ground * unit,
        level_counts=level,
        slope_counts_per_cm1=slope,
        centre_cm1=fits.centre_cm1,
        reduced_chi2=fits.chi2 / fits.freedom,
    )


def _line(
    name: str, fits: LineFits, converged: Mask, units_per_count: Array, at: int
) -> MeasuredLine:
    height, position, fwhm = fits.parameters[:, at : at + 3].T
    variance = fits.variance[:, at : at + 3] * fits.inflation[:, None]
    height_sigma, position_sigma, fwhm_sigma = np.sqrt(variance).T
    of_area = fits.covariance[:, [[at], [at + 2]], [at, at + 2]] * fits.inflation[:, None, None]
    return MeasuredLine(
        name=name,
        stands_out=converged & (height > HEIGHT_SIGMA_MIN * height_sigma),
        position_cm1=position,
        position_sigma_cm1=position_sigma,
        fwhm_cm1=fwhm,
        fwhm_sigma_cm1=fwhm_sigma,
        height_counts=height * units_per_count,
        height_sigma_counts=height_sigma * units_per_count,
        area_counts_cm1=line_area(height, fwhm) * units_per_count,
        area_sigma_counts_cm1=area_sigma(height, fwhm, of_area) * units_per_count,
    )
