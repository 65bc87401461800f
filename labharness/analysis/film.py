"""Whether a spot has film at all, and how bright it shines: what a survey asks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labharness.analysis.despike import despike
from labharness.analysis.spectrum import Spectrum

__all__ = ["FilmSignal", "film_signal", "peak_height"]

Array = NDArray[np.float64]

FILM_WINDOW_CM1 = (360.0, 435.0)
A_FILM_CM1 = (399.0, 413.0)
"""A1g of MoS2, on an axis up to 4 cm⁻¹ off."""

A_POSITIONS_CM1 = np.arange(396.0, 425.0, 1.0)
"""Tried positions reach past the film's, so that a neighbour's line (A1' of WS2 at 418 cm⁻¹) is
recognised as a neighbour instead of being taken at the film's edge."""

SEPARATIONS_CM1 = (18.5, 20.5, 22.5, 25.0)
"""The survey's templates: any shift of the axis, any strain and any number of layers."""

E_FWHM_CM1, A_FWHM_CM1 = 4.0, 5.5
A_OVER_E = 2.0
"""Ratio of heights in the template; 1–2.6 in films at 532 nm, and texture changes it."""

PRESENT_SIGMA = 5.0
"""A film stands this far out of the noise. Noise alone does so in far fewer than 1 of 100
spectra although 116 templates are tried."""

E_LINE_SIGMA_MIN = 1.5
"""Both lines must be there: a lone line near 405 cm⁻¹ is another material."""

PL_BLOCKS = 32
"""Blocks of equal span the photoluminescence is reduced to; its band fills many of them."""

PL_CENTRES = 33
PL_WIDTHS_OF_SPAN = np.geomspace(0.15, 2.0, 13)
"""FWHM tried, in spans of the axis: an A exciton of 18 nm on a survey of 120 nm, or on one grating
position of 13 nm."""

PL_CHI2_SLACK = 9.0
"""A wider band must fit better by three sigma, or a flat background would pass for one."""


@dataclass(frozen=True, slots=True)
class FilmSignal:
    """What a survey saw at one spot.

    Attributes:
        a1g_height_counts: Height of A1g if the film's two lines are there in their usual ratio.
        present: Both lines stand out of the noise.
    """

    a1g_height_counts: float
    present: bool


def film_signal(spectrum: Spectrum) -> FilmSignal:
    """Look for MoS2 with a matched filter of both lines; fast, and sure rather than exact.

    A parabola takes the substrate (silicon's slope, the broad silica band near 440 cm⁻¹) and the
    photoluminescence. The height is good to some 20 %; `fit_peaks` measures it.

    Raises:
        ValueError: When the axis does not cover 360–435 cm⁻¹.
    """
    axis = spectrum.shift_cm1
    if axis[0] > FILM_WINDOW_CM1[0] or axis[-1] < FILM_WINDOW_CM1[1]:
        raise ValueError(
            f"a survey needs {FILM_WINDOW_CM1[0]:g}–{FILM_WINDOW_CM1[1]:g} cm⁻¹, "
            f"the axis covers {axis[0]:g}–{axis[-1]:g}"
        )
    clean, _ = despike(spectrum.counts)
    inside = (axis >= FILM_WINDOW_CM1[0]) & (axis <= FILM_WINDOW_CM1[1])
    x, y = axis[inside], clean[inside]
    smooth = np.convolve(np.pad(y, 1, mode="edge"), np.full(3, 1 / 3), mode="valid")
    root_weight = 1 / np.sqrt(
        np.maximum(np.maximum(smooth, 0.0) + spectrum.read_noise_counts**2, 1.0)
    )
    u = (x - x.mean()) / np.ptp(x)
    background, _ = np.linalg.qr(np.stack([u**0, u, u**2], axis=1) * root_weight[:, None])

    def rest(rows: Array) -> Array:
        weighted = rows * root_weight
        left: Array = weighted - (weighted @ background) @ background.T
        return left

    position = np.repeat(A_POSITIONS_CM1, len(SEPARATIONS_CM1))
    separation = np.tile(SEPARATIONS_CM1, A_POSITIONS_CM1.size)
    a_line = rest(_line(x, position, A_FWHM_CM1))
    e_line = rest(_line(x, position - separation, E_FWHM_CM1))
    template = a_line + e_line / A_OVER_E
    data = rest(y[None, :])[0]
    length = np.sqrt(np.einsum("ij,ij->i", template, template))
    score = template @ data / length
    best = int(np.argmax(score))
    return FilmSignal(
        a1g_height_counts=float(score[best] / length[best]),
        present=bool(
            score[best] >= PRESENT_SIGMA
            and A_FILM_CM1[0] <= position[best] <= A_FILM_CM1[1]
            and _has_both(a_line[best], e_line[best], data)
        ),
    )


def _line(x: Array, position: Array, fwhm: float) -> Array:
    lines: Array = 1 / (1 + (2 * (x - position[:, None]) / fwhm) ** 2)
    return lines


def _has_both(a_line: Array, e_line: Array, data: Array) -> bool:
    """Ask each line for a height of its own."""
    lines = np.stack([a_line, e_line])
    covariance = np.linalg.inv(lines @ lines.T)
    height = covariance @ (lines @ data)
    return bool((height >= E_LINE_SIGMA_MIN * np.sqrt(np.diagonal(covariance))).all())


def peak_height(axis: ArrayLike, counts: ArrayLike) -> float:
    """Return the height of one broad band over its background, in counts; 0 when there is none.

    For photoluminescence. One grating position often shows less than the whole band, so the
    background cannot be read beside it: the curvature of the band tells it instead. Cosmic rays
    are removed, pixels reduced to medians over ``PL_BLOCKS`` equal spans, and a Gaussian on a
    constant (neither negative) is tried at every centre and width; the narrowest that fits within
    ``PL_CHI2_SLACK`` of the best gives the height.

    Args:
        axis: Wavelength or shift of each pixel, strictly ascending.
        counts: Raw counts of each pixel.

    Raises:
        ValueError: When the two are no spectrum.
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
    # A camera counts no negative background: without one the band alone carries the counts.
    sunk = level < 0
    height[sunk] = np.maximum(band[sunk] @ (weight * y) / (band[sunk] ** 2 @ weight), 0.0)
    level[sunk] = 0.0
    chi2 = (y - level[:, None] - height[:, None] * band) ** 2 @ weight
    # Rows run from narrow to wide; within one width the best centre counts.
    chi2_of_width = chi2.reshape(PL_WIDTHS_OF_SPAN.size, PL_CENTRES)
    narrowest = int(np.argmax(chi2_of_width.min(axis=1) <= chi2.min() + PL_CHI2_SLACK))
    best = narrowest * PL_CENTRES + int(np.argmin(chi2_of_width[narrowest]))
    return float(height[best])


def _blocks(measured: Spectrum, clean: Array) -> tuple[Array, Array, Array]:
    """Return centre, median and 1/variance of blocks of equal span."""
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
