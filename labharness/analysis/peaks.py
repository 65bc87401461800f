"""Fit the MoS2 and silicon lines: positions, widths and heights with their errors."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from labharness.analysis.arrays import Array, Mask, Rows
from labharness.analysis.lines import LineFits, LineWindow, SeenLine, fit_window
from labharness.analysis.spectrum import (
    SpectralWindow,
    Spectrum,
    Stack,
    covers,
    cut_window,
    stacked,
)
from labharness.core.vocabulary.texts import Text

PEAK_WINDOW_CM1 = (360.0, 435.0)
"""Both first-order lines of MoS2 with enough straight background on either side."""

PEAKS_NEED_CM1 = (374.0, 414.0)
"""Part of it that the axis must cover: the lines of usual films and some 8 cm⁻¹ beside them."""

NEEDS = Text(
    "peaks.needs",
    low=PEAK_WINDOW_CM1[0],
    high=PEAK_WINDOW_CM1[1],
    from_cm1=PEAKS_NEED_CM1[0],
    to_cm1=PEAKS_NEED_CM1[1],
)

E_LINE = LineWindow(374.0, 394.5, 4.0)
"""E'/E2g: 380–386 cm⁻¹ over all layers and strains, and ±5 cm⁻¹ for a shifted axis."""

A_LINE = LineWindow(396.0, 416.0, 5.0)
"""A1'/A1g: 402–409 cm⁻¹ over all layers and dopings, and ±5 cm⁻¹ for a shifted axis."""

A_LINE_BESIDE = A_LINE._replace(high_cm1=412.5)
THIRD_LINE = LineWindow(413.5, 423.5, 5.0, 20.0)
"""A1g of sapphire at 418 cm⁻¹ under a film, or the satellite near 420 that appears with a red
laser."""

THIRD_LINE_SIGMA_MIN = 6.0
THIRD_LINE_DIP = 0.08
"""A third line is fitted if the spectrum rises again beyond A1g by this share of its height and by
this many errors; a shoulder without a top is left to the background."""

SILICON_WINDOW_CM1 = (505.0, 535.0)
SILICON_LINE = LineWindow(508.0, 532.0, 4.0)

SILICON_NEEDS_CM1 = (511.0, 530.0)
"""Part of the window that the axis must cover."""

SILICON_OFF_CENTRE_CM1 = 2.0
SILICON_MOVE_STEP_CM1 = 0.5

SILICON_FWHM_MIN_CM1, SILICON_PIXELS_WIDE_MIN = 2.0, 1.5
"""The natural width of the line is 2.7–3.0 cm⁻¹. A narrower feature, or one of a single pixel, is
noise or a cosmic ray, and does not shift the axis."""

SILICON_POSITION_CM1 = 520.7
"""The silicon line at room temperature; 520.5–521.0 by convention."""

SILICON_NATURAL_FWHM_CM1 = 2.85
"""Natural width of the silicon line, 2.7–3.0 cm⁻¹; more is due to the instrument."""

VOIGT_LINEAR, VOIGT_SQUARE = 0.5346, 0.2166
"""Width of a Voigt line, good to 0.02 % (Olivero and Longbothum 1977)."""

SNR_DETECTION_MIN = 5.0
"""A line lower than this many times its pixel noise does not count as present."""

WINDOW_PIXELS_MIN, SILICON_PIXELS_MIN = 12, 8
"""With fewer pixels in a window its 8 or 5 parameters cannot be tested."""

CLEAR_SNR_MIN = 20.0
"""Only a line this clear limits the instrument's width; that of a weaker one is too uncertain."""

MPA_PER_CM1 = -434.0
"""Uniaxial stress along [100] in backscattering from (001): De Wolf 1996,
10.1088/0268-1242/11/2/001. For a biaxial stress it is the sum of both components."""

COSMIC_REACH_PIXELS = 2.0
"""A cosmic ray this near a line has removed the pixels that determine its position."""


@dataclass(frozen=True, slots=True)
class PeakFit:
    """The two MoS2 lines of one spectrum, E and A.

    Errors are one sigma from photon and read noise. ``snr_e`` and ``snr_a`` are heights over the
    noise of one pixel of background. The width includes the instrument's.

    Attributes:
        converged: The fit stopped by itself, with no parameter at a bound.
        cosmic_near_line: A cosmic ray was removed within ``COSMIC_REACH_PIXELS`` of a line.
        pixel_cm1: Mean distance of two pixels.
    """

    e: SeenLine[float]
    a: SeenLine[float]
    separation_cm1: float
    separation_sigma_cm1: float
    snr_e: float
    snr_a: float
    reduced_chi2: float
    converged: bool
    cosmic_near_line: bool
    pixel_cm1: float


@dataclass(frozen=True, slots=True)
class SiliconFit(SeenLine[float]):
    """The silicon line of one spectrum: the reference for its axis and its intensities.

    ``fwhm_cm1`` includes the instrument's width.

    Attributes:
        narrowest_fwhm_cm1: Width of the narrowest line in the same spectra. The instrument cannot
            be wider, even if silicon is: doping makes silicon wide and lopsided.
    """

    narrowest_fwhm_cm1: float = math.inf

    @property
    def offset_cm1(self) -> float:
        """Shift of the axis that puts silicon at its place."""
        return SILICON_POSITION_CM1 - self.position_cm1

    @property
    def instrument_fwhm_cm1(self) -> float:
        """Gaussian width of the instrument, from the Voigt width of the line, or the bound."""
        return min(self._gaussian_cm1, self.narrowest_fwhm_cm1)

    @property
    def is_wider_than_instrument(self) -> bool:
        """Whether another line is narrower, so that silicon cannot show the instrument's width."""
        return self._gaussian_cm1 > self.narrowest_fwhm_cm1

    @property
    def _gaussian_cm1(self) -> float:
        lorentz = SILICON_NATURAL_FWHM_CM1
        if self.fwhm_cm1 <= lorentz:
            return 0.0
        gauss2 = (self.fwhm_cm1 - VOIGT_LINEAR * lorentz) ** 2 - VOIGT_SQUARE * lorentz**2
        return math.sqrt(max(gauss2, 0.0))


def intrinsic_fwhm_cm1(measured_fwhm_cm1: float, instrument_fwhm_cm1: float) -> float:
    """Remove the instrument's Gaussian width from a measured Voigt width; 0 if nothing is left.

    Solves f = 0.5346 fL + sqrt(0.2166 fL² + fG²) for fL.
    """
    if measured_fwhm_cm1 <= instrument_fwhm_cm1:
        return 0.0
    square = VOIGT_LINEAR**2 - VOIGT_SQUARE
    half = VOIGT_LINEAR * measured_fwhm_cm1
    rest = measured_fwhm_cm1**2 - instrument_fwhm_cm1**2
    return (half - math.sqrt(half * half - square * rest)) / square


def fit_peaks(spectra: Sequence[Spectrum]) -> tuple[PeakFit, ...]:
    """Fit both MoS2 lines of all spectra of a map at once.

    Two Lorentz lines on a straight background over 360–435 cm⁻¹, as far as the axis reaches. The
    weight of a pixel contains photon noise, read noise and the usual misfit of the lines' shape;
    the stated errors are those from photon and read noise under these weights. Cosmic rays are
    found first and left out.

    Raises:
        ValueError: When the spectra do not share one axis or it does not cover 374–414 cm⁻¹.
    """
    return fit_peak_rows(stacked(spectra)) if spectra else ()


def holds_peaks(shift_cm1: Array) -> bool:
    """Return whether an axis covers both MoS2 lines with enough pixels."""
    return covers(shift_cm1, *PEAKS_NEED_CM1, WINDOW_PIXELS_MIN)


def fit_peak_rows(stack: Stack) -> tuple[PeakFit, ...]:
    """Fit both MoS2 lines of each row; see `fit_peaks`."""
    axis = stack.shift_cm1
    if not holds_peaks(axis):
        least, first, last = WINDOW_PIXELS_MIN, axis[0], axis[-1]
        raise ValueError(
            Text("peaks.axis", needs=NEEDS, least=least, first=first, last=last, pixels=axis.size)
        )
    window = cut_window(stack, PEAK_WINDOW_CM1)
    fits = fit_window(window, (E_LINE, A_LINE))
    third = np.nonzero(rises_again(window))[0]
    if third.size:
        fits = _with_third(fits, window.of(third), third)
    return _peak_fits(fits, window, stack.read_noise_counts)


def rises_again(window: SpectralWindow) -> Mask:
    """Return whether each row has a third top at the place of sapphire or a satellite."""
    x = window.shift_cm1
    smooth = np.pad(window.counts, ((0, 0), (1, 1)), mode="edge")
    smooth = (smooth[:, :-2] + smooth[:, 1:-1] + smooth[:, 2:]) / 3
    noise = 1 / np.maximum(np.median(window.root_noise, axis=1), np.finfo(float).tiny)
    top = smooth[:, (x >= THIRD_LINE.low_cm1) & (x <= THIRD_LINE.high_cm1)]
    before = smooth[:, (x >= A_LINE.low_cm1 + 6) & (x < THIRD_LINE.low_cm1 + 3)]
    after = smooth[:, x > THIRD_LINE.low_cm1 + 3]
    if 0 in (top.shape[1], before.shape[1], after.shape[1]):
        return np.zeros(len(smooth), dtype=bool)
    rise = top.max(axis=1) - np.maximum(before.min(axis=1), after.min(axis=1))
    highest = smooth.max(axis=1) - np.median(smooth, axis=1)
    return rise > np.maximum(THIRD_LINE_SIGMA_MIN * noise / math.sqrt(3), THIRD_LINE_DIP * highest)


def _with_third(fits: LineFits, window: SpectralWindow, rows: Rows) -> LineFits:
    """Fit a third line in the rows of ``window``; keep it, unreported, if it stands out."""
    more = fit_window(window, (E_LINE, A_LINE_BESIDE, THIRD_LINE))
    error = np.sqrt(more.variance[:, 6] * more.inflation)
    better = more.converged & (more.parameters[:, 6] > THIRD_LINE_SIGMA_MIN * error)
    kept = [0, 1, 2, 3, 4, 5, 9, 10]
    target = rows[better]
    fits.parameters[target] = more.parameters[better][:, kept]
    fits.covariance[target] = more.covariance[better][:, kept][:, :, kept]
    fits.chi2[target] = more.chi2[better]
    fits.converged[target] = True
    return fits


def _peak_fits(fits: LineFits, window: SpectralWindow, read_noise: Array) -> tuple[PeakFit, ...]:
    p, covariance, x = fits.parameters, fits.covariance, window.shift_cm1
    variance = covariance[:, 1, 1] + covariance[:, 4, 4] - 2 * covariance[:, 1, 4]
    pixel = float(x[-1] - x[0]) / (x.size - 1)
    read2 = read_noise[:, None] ** 2
    background = p[:, 6:7] + p[:, 7:8] * (p[:, [1, 4]] - fits.centre_cm1)
    snr = p[:, [0, 3]] / np.sqrt(np.maximum(np.maximum(background, 0.0) + read2, 1.0))
    reach = COSMIC_REACH_PIXELS * pixel
    near = [
        bool((np.abs(x[mask, None] - row[[1, 4]]) <= reach).any())
        for mask, row in zip(window.cosmic, p, strict=True)
    ]
    # In the order of SeenLine: position, width and height of E and A, each before its error.
    order = [1, 2, 0, 4, 5, 3]
    lines = np.stack([p[:, order], np.sqrt(fits.variance)[:, order]], axis=2).reshape(len(p), 12)
    separation, sigma = p[:, 4] - p[:, 1], np.sqrt(np.maximum(variance, 0.0))
    numbers = np.column_stack([lines, separation, sigma, snr, fits.chi2 / fits.freedom])
    return tuple(
        PeakFit(SeenLine(*row[:6]), SeenLine(*row[6:12]), *(*row[12:], converged, cosmic, pixel))
        for row, converged, cosmic in zip(
            numbers.tolist(), fits.converged.tolist(), near, strict=True
        )
    )


def fit_silicon(spectrum: Spectrum) -> SiliconFit | None:
    """Fit the silicon line; None if the axis does not cover it or it does not stand out.

    One Lorentz line on a straight background over 505–535 cm⁻¹; a line more than 2 cm⁻¹ off is
    fitted again in a window shifted with it, because a cut wing pulls the position. A bright line
    is not exactly Lorentzian; its errors are then enlarged by the root of the reduced chi-squared.
    A line narrower than silicon's, or than 1.5 pixels, is rejected.
    """
    return fit_silicon_rows(stacked([spectrum]))[0]


def fit_silicon_rows(stack: Stack) -> tuple[SiliconFit | None, ...]:
    """Fit the silicon line of each row; see `fit_silicon`."""
    found = _fit_silicon_within(stack, 0.0)
    # Rows with equal shifts share a window, so that a map needs few fits.
    moves: dict[float, list[int]] = {}
    for row, line in enumerate(found):
        if line is not None and abs(line.offset_cm1) > SILICON_OFF_CENTRE_CM1:
            steps = round(-line.offset_cm1 / SILICON_MOVE_STEP_CM1)
            moves.setdefault(steps * SILICON_MOVE_STEP_CM1, []).append(row)
    for moved_cm1, rows in moves.items():
        again = _fit_silicon_within(stack.of(np.array(rows)), moved_cm1)
        for row, line in zip(rows, again, strict=True):
            found[row] = line or found[row]
    pixel = _pixel_cm1(stack.shift_cm1)
    narrowest = max(SILICON_FWHM_MIN_CM1, SILICON_PIXELS_WIDE_MIN * pixel)
    return tuple(
        line if line is not None and line.fwhm_cm1 >= narrowest else None for line in found
    )


def _pixel_cm1(shift_cm1: Array) -> float:
    """Return the usual pixel distance near silicon's line, or on the whole axis."""
    low, high = SILICON_WINDOW_CM1
    near = shift_cm1[(shift_cm1 >= low) & (shift_cm1 <= high)]
    return float(np.median(np.diff(near if near.size > 1 else shift_cm1)))


def _fit_silicon_within(stack: Stack, moved_cm1: float) -> list[SiliconFit | None]:
    nothing: list[SiliconFit | None] = [None] * len(stack.counts)
    low, high = (edge + moved_cm1 for edge in SILICON_NEEDS_CM1)
    if not covers(stack.shift_cm1, low, high, SILICON_PIXELS_MIN):
        return nothing
    window = cut_window(
        stack, (SILICON_WINDOW_CM1[0] + moved_cm1, SILICON_WINDOW_CM1[1] + moved_cm1)
    )
    line = SILICON_LINE._replace(
        low_cm1=SILICON_LINE.low_cm1 + moved_cm1, high_cm1=SILICON_LINE.high_cm1 + moved_cm1
    )
    fits = fit_window(window, (line,))
    height, position, _, level, slope = fits.parameters.T
    background = np.maximum(level + slope * (position - fits.centre_cm1), 0.0)
    noise = np.sqrt(np.maximum(background + stack.read_noise_counts**2, 1.0))
    seen = fits.converged & (height >= SNR_DETECTION_MIN * noise)
    numbers = astuple(fits.line(0))[:6]
    for row in np.nonzero(seen)[0].tolist():
        nothing[row] = SiliconFit(*(float(each[row]) for each in numbers))
    return nothing


def bounded(
    silicon: Sequence[SiliconFit | None], fits: Iterable[PeakFit], others: Iterable[float] = ()
) -> list[SiliconFit | None]:
    """Return silicon's lines, each with the width of the narrowest line in the same spectra.

    Doped silicon is up to 11 cm⁻¹ wide and does not show the instrument's width.

    Args:
        silicon: The silicon line of each spectrum, or None.
        fits: The film's lines in the same spectra.
        others: Widths of other clear lines in them, in cm⁻¹.
    """
    widths = [
        *others,
        *(
            min(fit.e.fwhm_cm1, fit.a.fwhm_cm1)
            for fit in fits
            if fit.converged and min(fit.snr_e, fit.snr_a) > CLEAR_SNR_MIN
        ),
    ]
    if not widths:
        return list(silicon)
    # The lowest tenth of a map: the narrowest of ten thousand fits is narrow by chance.
    narrowest = float(np.quantile(widths, 0.1))
    return [line and replace(line, narrowest_fwhm_cm1=narrowest) for line in silicon]


def silicon_stress_mpa(moved_cm1: float) -> float:
    """Return the uniaxial stress in MPa, tension positive, for a shift of silicon's line.

    It holds only relative to unstressed silicon in the same run: an axis calibrated by this same
    line shows no stress. Heat also moves the line, by -0.022 cm⁻¹ per kelvin.
    """
    return MPA_PER_CM1 * moved_cm1
