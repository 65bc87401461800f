"""Survey a spot: detect MoS2 quickly, and measure the height of its photoluminescence."""

import numpy as np
from numpy.typing import ArrayLike

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.peaks import NEEDS, PEAK_WINDOW_CM1, holds_peaks
from labharness.analysis.spectrum import (
    SpectralWindow,
    Spectrum,
    Stack,
    cut_window,
    despike,
    stacked,
)
from labharness.core.vocabulary.texts import Text

A_FILM_CM1 = (399.0, 413.0)
"""A1g of MoS2, on an axis up to 4 cm⁻¹ off."""

A_POSITIONS_CM1 = np.arange(396.0, 425.0, 1.0)
"""Tried positions extend past the film's, so that a neighbouring line (A1' of WS2 at 418 cm⁻¹) is
recognised instead of being taken at the film's edge."""

SEPARATIONS_CM1 = (18.5, 20.5, 22.5, 25.0)
"""The survey's templates, for any shift of the axis, any strain and any number of layers."""

E_FWHM_CM1, A_FWHM_CM1 = 4.0, 5.5
A_OVER_E = 2.0
"""Ratio of heights in the template; 1–2.6 in films at 532 nm, and texture changes it."""

PRESENT_SIGMA = 5.0
"""Score of a film in noise sigmas. Noise alone reaches it in far fewer than 1 of 100 spectra
although 116 templates are tried."""

E_LINE_SIGMA_MIN = 1.5
"""Both lines must be present: a lone line near 405 cm⁻¹ is another material."""

CHUNK_SPECTRA = 512
"""Rows processed together; 116 templates times 512 rows are half a megabyte."""

PL_BLOCKS = 32
"""Number of equal blocks for the photoluminescence; its band fills many of them."""

PL_CENTRES = 33
PL_WIDTHS_OF_SPAN = np.geomspace(0.15, 2.0, 13)
"""FWHM tried, in spans of the axis: an A exciton of 18 nm on a survey of 120 nm, or on one grating
position of 13 nm."""

PL_CHI2_SLACK = 9.0
"""A wider band must fit better by three sigma; otherwise a flat background would pass for one."""


def film_signal(spectrum: Spectrum) -> float | None:
    """Return the height of A1g in counts, None unless the film's two lines stand out of the noise.

    A matched filter of both lines in their usual ratio; fast and reliable, not exact.

    A parabola removes the substrate (silicon's slope, the broad silica band near 440 cm⁻¹) and the
    photoluminescence. The height is good to some 20 %; `fit_peaks` measures it.

    Raises:
        ValueError: When the axis does not cover 374–414 cm⁻¹.
    """
    axis = spectrum.shift_cm1
    if not holds_peaks(axis):
        raise ValueError(Text("survey.axis", needs=NEEDS, first=axis[0], last=axis[-1]))
    height, present = film_rows(stacked([spectrum]))
    return float(height[0]) if present[0] else None


def film_rows(stack: Stack) -> tuple[Array, Mask]:
    """Survey each row like `film_signal`; return heights of A1g and whether film is present.

    The axis must reach over both lines with enough pixels, see ``holds_peaks``.
    """
    parts = [
        _matched(cut_window(part, PEAK_WINDOW_CM1), part.read_noise_counts)
        for part in stack.parts(CHUNK_SPECTRA)
    ]
    heights, present = (np.concatenate(each) for each in zip(*parts, strict=True))
    return heights, present


def _matched(window: SpectralWindow, read_noise: Array) -> tuple[Array, Mask]:
    """Correlate all templates with all rows, after removing a weighted parabola from both."""
    x, y = window.shift_cm1, window.counts
    smooth = np.pad(y, ((0, 0), (1, 1)), mode="edge")
    smooth = (smooth[:, :-2] + smooth[:, 1:-1] + smooth[:, 2:]) / 3
    # A pixel filled in after a cosmic ray counts like its neighbours.
    weight = 1 / np.maximum(np.maximum(smooth, 0.0) + read_noise[:, None] ** 2, 1.0)
    u = (x - x.mean()) / np.ptp(x)
    powers = np.stack([u**0, u, u**2])
    position = np.repeat(A_POSITIONS_CM1, len(SEPARATIONS_CM1))
    separation = np.tile(SEPARATIONS_CM1, A_POSITIONS_CM1.size)
    a_line = _line(x, position, A_FWHM_CM1)
    e_line = _line(x, position - separation, E_FWHM_CM1)

    # Inner products under the weights of each row (r), without the part that the parabola explains.
    normal = np.linalg.inv(np.einsum("ip,jp,rp->rij", powers, powers, weight, optimize=True))
    data_on = (weight * y) @ powers.T
    explained = np.einsum("rij,rj->ri", normal, data_on)

    def onto(template: Array) -> Array:
        by_powers: Array = np.stack([(template * power) @ weight.T for power in powers], axis=2)
        return by_powers  # templates x rows x powers

    def product(one: Array, other: Array, one_on: Array, other_on: Array) -> Array:
        whole = (one * other) @ weight.T
        return whole - np.einsum("tri,rij,trj->tr", one_on, normal, other_on, optimize=True)

    a_on, e_on = onto(a_line), onto(e_line)
    aa = product(a_line, a_line, a_on, a_on)
    ee = product(e_line, e_line, e_on, e_on)
    ae = product(a_line, e_line, a_on, e_on)
    a_data = a_line @ (weight * y).T - np.einsum("tri,ri->tr", a_on, explained)
    e_data = e_line @ (weight * y).T - np.einsum("tri,ri->tr", e_on, explained)

    length = np.sqrt(aa + 2 * ae / A_OVER_E + ee / A_OVER_E**2)
    score = (a_data + e_data / A_OVER_E) / length
    best = np.argmax(score, axis=0)
    at = best, np.arange(len(y))
    # Solve for both heights: the two by two equations of the best template.
    determinant = aa[at] * ee[at] - ae[at] ** 2
    a_height = (ee[at] * a_data[at] - ae[at] * e_data[at]) / determinant
    e_height = (aa[at] * e_data[at] - ae[at] * a_data[at]) / determinant
    present = (
        (score[at] >= PRESENT_SIGMA)
        & (position[best] >= A_FILM_CM1[0])
        & (position[best] <= A_FILM_CM1[1])
        & (a_height >= E_LINE_SIGMA_MIN * np.sqrt(ee[at] / determinant))
        & (e_height >= E_LINE_SIGMA_MIN * np.sqrt(aa[at] / determinant))
    )
    height: Array = score[at] / length[at]
    return height, present


def _line(x: Array, position: Array, fwhm: float) -> Array:
    return 1 / (1 + (2 * (x - position[:, None]) / fwhm) ** 2)


def peak_height(axis: ArrayLike, counts: ArrayLike) -> float:
    """Return the height of one broad band over its background, in counts; 0 without a band.

    For photoluminescence. One grating position often shows less than the whole band, so there may
    be no background beside it; the curvature of the band determines it. Cosmic rays are removed,
    pixels reduced to medians over ``PL_BLOCKS`` equal spans, and a Gaussian on a constant (neither
    negative) is tried at every centre and width. The narrowest one that fits within
    ``PL_CHI2_SLACK`` of the best gives the height.

    Args:
        axis: Wavelength or shift of each pixel, strictly ascending.
        counts: Raw counts of each pixel.

    Raises:
        ValueError: When axis and counts are not a spectrum.
    """
    measured = Spectrum(np.asarray(axis), np.asarray(counts))
    clean, _ = despike(measured.counts)
    x, y, weight = _blocks(measured, clean)
    span = x[-1] - x[0]
    width, centre = (
        grid.ravel()[:, None]
        for grid in np.meshgrid(
            PL_WIDTHS_OF_SPAN * span, np.linspace(x[0], x[-1], PL_CENTRES), indexing="ij"
        )
    )
    band = np.exp(-4 * np.log(2) * ((x - centre) / width) ** 2)
    total = weight.sum()
    band_mean, y_mean = band @ weight / total, y @ weight / total
    varying = band - band_mean[:, None]
    height = np.maximum(varying @ (weight * y) / (varying**2 @ weight), 0.0)
    level = y_mean - height * band_mean
    # The background is never negative; if it would be, fit the band alone.
    sunk = level < 0
    height[sunk] = np.maximum(band[sunk] @ (weight * y) / (band[sunk] ** 2 @ weight), 0.0)
    level[sunk] = 0.0
    chi2 = (y - level[:, None] - height[:, None] * band) ** 2 @ weight
    # Rows are ordered from narrow to wide; within one width the best centre counts.
    chi2_of_width = chi2.reshape(PL_WIDTHS_OF_SPAN.size, PL_CENTRES)
    narrowest = int(np.argmax(chi2_of_width.min(axis=1) <= chi2.min() + PL_CHI2_SLACK))
    best = narrowest * PL_CENTRES + int(np.argmin(chi2_of_width[narrowest]))
    return float(height[best])


def _blocks(measured: Spectrum, clean: Array) -> tuple[Array, Array, Array]:
    axis = measured.shift_cm1
    edges = np.searchsorted(axis, np.linspace(axis[0], axis[-1], PL_BLOCKS + 1)[1:-1])
    parts = [
        (part_x, part_y)
        for part_x, part_y in zip(np.split(axis, edges), np.split(clean, edges), strict=True)
        if part_x.size
    ]
    x = np.array([part_x.mean() for part_x, _ in parts])
    y = np.array([np.median(part_y) for _, part_y in parts])
    pixels = np.array([part_x.size for part_x, _ in parts])
    # A median's variance is pi/2 that of a mean.
    variance = np.pi / 2 * (np.maximum(y, 0.0) + measured.read_noise_counts**2) / pixels
    return x, y, 1 / np.maximum(variance, 1e-6)
