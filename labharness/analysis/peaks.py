"""Positions, widths and heights of the MoS2 and silicon lines, with their errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.despike import despike
from labharness.analysis.lines import LineFits, LineWindow, fit_lines
from labharness.analysis.spectrum import Spectrum

__all__ = [
    "SILICON_POSITION_CM1",
    "PeakFit",
    "SiliconFit",
    "cut_window",
    "fit_peaks",
    "fit_silicon",
    "intrinsic_fwhm_cm1",
]

Array = NDArray[np.float64]

PEAK_WINDOW_CM1 = (360.0, 435.0)
"""Both first-order lines of MoS2 with enough straight background on either side."""

E_LINE = LineWindow(374.0, 394.5, 4.0)
"""E'/E2g: 380–386 cm⁻¹ over all layers and strains, and ±5 cm⁻¹ for a shifted axis."""

A_LINE = LineWindow(396.0, 416.0, 5.0)
"""A1'/A1g: 402–409 cm⁻¹ over all layers and dopings, and ±5 cm⁻¹ for a shifted axis."""

SILICON_WINDOW_CM1 = (505.0, 535.0)
SILICON_LINE = LineWindow(508.0, 532.0, 4.0)

SILICON_OFF_CENTRE_CM1 = 2.0

SILICON_POSITION_CM1 = 520.7
"""The silicon line at room temperature; 520.5–521.0 by convention."""

SILICON_NATURAL_FWHM_CM1 = 2.85
"""Natural width of the silicon line, 2.7–3.0 cm⁻¹; what is wider is the instrument."""

VOIGT_LINEAR, VOIGT_SQUARE = 0.5346, 0.2166
"""Width of a Voigt line, good to 0.02 % (Olivero and Longbothum 1977)."""

SNR_DETECTION_MIN = 5.0
"""A line lower than this many times its pixel noise is not called present."""

WINDOW_PIXELS_MIN, SILICON_PIXELS_MIN = 12, 8
"""A window with fewer pixels leaves its 8 or 5 parameters no freedom to be tested."""

COSMIC_REACH_PIXELS = 2.0
"""A cosmic ray this near a line has taken the pixels that carry its position."""

DESPIKE_MARGIN_PIXELS = 12
"""Pixels beside the window that the search for cosmic rays may look at."""


@dataclass(frozen=True, slots=True)
class PeakFit:
    """The two MoS2 lines of one spectrum.

    Errors are one sigma from photon and read noise. ``snr_e`` and ``snr_a`` are heights over the
    noise of one pixel of background. The width includes the instrument's.

    Attributes:
        converged: The fit stopped by itself and no parameter ended at a bound.
        cosmic_near_line: A cosmic ray was removed within ``COSMIC_REACH_PIXELS`` of a line.
        pixel_cm1: Mean distance of two pixels.
    """

    e_position_cm1: float
    e_position_sigma_cm1: float
    e_fwhm_cm1: float
    e_fwhm_sigma_cm1: float
    e_height_counts: float
    e_height_sigma_counts: float
    a_position_cm1: float
    a_position_sigma_cm1: float
    a_fwhm_cm1: float
    a_fwhm_sigma_cm1: float
    a_height_counts: float
    a_height_sigma_counts: float
    separation_cm1: float
    separation_sigma_cm1: float
    snr_e: float
    snr_a: float
    reduced_chi2: float
    converged: bool
    cosmic_near_line: bool
    pixel_cm1: float


@dataclass(frozen=True, slots=True)
class SiliconFit:
    """The silicon line of one spectrum: the ruler of its axis and of its intensities.

    ``fwhm_cm1`` includes the instrument's width.
    """

    position_cm1: float
    position_sigma_cm1: float
    fwhm_cm1: float
    height_counts: float
    height_sigma_counts: float

    @property
    def offset_cm1(self) -> float:
        """What must be added to the axis to put silicon where it belongs."""
        return SILICON_POSITION_CM1 - self.position_cm1

    @property
    def instrument_fwhm_cm1(self) -> float:
        """Gaussian width of the instrument, from the Voigt width of the line."""
        lorentz = SILICON_NATURAL_FWHM_CM1
        if self.fwhm_cm1 <= lorentz:
            return 0.0
        gauss2 = (self.fwhm_cm1 - VOIGT_LINEAR * lorentz) ** 2 - VOIGT_SQUARE * lorentz**2
        return math.sqrt(max(gauss2, 0.0))


def intrinsic_fwhm_cm1(measured_fwhm_cm1: float, instrument_fwhm_cm1: float) -> float:
    """Take the instrument's Gaussian width out of a measured Voigt width; 0 when it explains all.

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

    Two Lorentz lines on a straight background over 360–435 cm⁻¹, pixels weighted with
    1/sqrt(counts + read noise²). Cosmic rays are found first and left out of the fit.

    Raises:
        ValueError: When the spectra do not share one axis or it does not cover 360–435 cm⁻¹.
    """
    if not spectra:
        return ()
    axis = spectra[0].shift_cm1
    for index, spectrum in enumerate(spectra):
        if not np.array_equal(spectrum.shift_cm1, axis):
            raise ValueError(f"spectrum {index} has another axis than spectrum 0; fit it apart")
    if axis[0] > PEAK_WINDOW_CM1[0] or axis[-1] < PEAK_WINDOW_CM1[1]:
        raise ValueError(
            f"the MoS2 lines need {PEAK_WINDOW_CM1[0]:g}–{PEAK_WINDOW_CM1[1]:g} cm⁻¹, "
            f"the axis covers {axis[0]:g}–{axis[-1]:g}"
        )
    x, counts, root_weight, flagged = cut_window(spectra, PEAK_WINDOW_CM1)
    if x.size < WINDOW_PIXELS_MIN:
        raise ValueError(
            f"the MoS2 lines need {WINDOW_PIXELS_MIN} px in their window, the axis has {x.size}"
        )
    fits = fit_lines(x, counts, root_weight, (E_LINE, A_LINE))
    return _peak_fits(fits, x, spectra, root_weight, flagged)


def _peak_fits(
    fits: LineFits,
    x: Array,
    spectra: Sequence[Spectrum],
    root_weight: Array,
    flagged: NDArray[np.bool_],
) -> tuple[PeakFit, ...]:
    p, covariance = fits.parameters, fits.covariance
    sigma = np.sqrt(np.maximum(np.einsum("ijj->ij", covariance), 0.0))
    variance = covariance[:, 1, 1] + covariance[:, 4, 4] - 2 * covariance[:, 1, 4]
    freedom = np.maximum((root_weight > 0).sum(axis=1) - p.shape[1], 1)
    pixel = float(x[-1] - x[0]) / (x.size - 1)
    read2 = np.array([spectrum.read_noise_counts for spectrum in spectra])[:, None] ** 2
    background = p[:, 6:7] + p[:, 7:8] * (p[:, [1, 4]] - fits.centre_cm1)
    snr = p[:, [0, 3]] / np.sqrt(np.maximum(np.maximum(background, 0.0) + read2, 1.0))
    reach = COSMIC_REACH_PIXELS * pixel
    cosmic = [
        bool((np.abs(x[mask, None] - row[[1, 4]]) <= reach).any())
        for mask, row in zip(flagged, p, strict=True)
    ]
    separation_sigma = np.sqrt(np.maximum(variance, 0.0)).tolist()
    reduced_chi2 = (fits.chi2 / freedom).tolist()
    return tuple(
        PeakFit(
            e_position_cm1=value[1],
            e_position_sigma_cm1=error[1],
            e_fwhm_cm1=value[2],
            e_fwhm_sigma_cm1=error[2],
            e_height_counts=value[0],
            e_height_sigma_counts=error[0],
            a_position_cm1=value[4],
            a_position_sigma_cm1=error[4],
            a_fwhm_cm1=value[5],
            a_fwhm_sigma_cm1=error[5],
            a_height_counts=value[3],
            a_height_sigma_counts=error[3],
            separation_cm1=value[4] - value[1],
            separation_sigma_cm1=separation_sigma[index],
            snr_e=ratio[0],
            snr_a=ratio[1],
            reduced_chi2=reduced_chi2[index],
            converged=bool(fits.converged[index]),
            cosmic_near_line=cosmic[index],
            pixel_cm1=pixel,
        )
        for index, (value, error, ratio) in enumerate(
            zip(p.tolist(), sigma.tolist(), snr.tolist(), strict=True)
        )
    )


def fit_silicon(spectrum: Spectrum) -> SiliconFit | None:
    """Fit the silicon line; None when the axis does not hold it or it does not stand out.

    One Lorentz line on a straight background over 505–535 cm⁻¹; a line more than 2 cm⁻¹ off is
    fitted again in a window that moved with it, because a cut wing pulls. A bright line shows that
    it is not quite a Lorentz line; its errors are then enlarged by the root of the reduced
    chi-squared.
    """
    found = _fit_silicon_within(spectrum, 0.0)
    if found is None or abs(found.offset_cm1) <= SILICON_OFF_CENTRE_CM1:
        return found
    return _fit_silicon_within(spectrum, -found.offset_cm1) or found


def _fit_silicon_within(spectrum: Spectrum, moved_cm1: float) -> SiliconFit | None:
    low, high = (edge + moved_cm1 for edge in SILICON_WINDOW_CM1)
    axis = spectrum.shift_cm1
    if axis[0] > low or axis[-1] < high:
        return None
    x, counts, root_weight, _ = cut_window([spectrum], (low, high))
    if x.size < SILICON_PIXELS_MIN:
        return None
    line = SILICON_LINE._replace(
        low_cm1=SILICON_LINE.low_cm1 + moved_cm1, high_cm1=SILICON_LINE.high_cm1 + moved_cm1
    )
    fits = fit_lines(x, counts, root_weight, (line,))
    height, position, fwhm, level, slope = fits.parameters[0].tolist()
    background = max(level + slope * (position - fits.centre_cm1), 0.0)
    noise = np.sqrt(max(background + spectrum.read_noise_counts**2, 1.0))
    if not fits.converged[0] or height < SNR_DETECTION_MIN * noise:
        return None
    freedom = max(int((root_weight > 0).sum()) - fits.parameters.shape[1], 1)
    inflation = max(1.0, float(fits.chi2[0]) / freedom)
    sigma = np.sqrt(np.maximum(np.diagonal(fits.covariance[0]), 0.0) * inflation)
    return SiliconFit(position, float(sigma[1]), fwhm, height, float(sigma[0]))


def cut_window(
    spectra: Sequence[Spectrum], window_cm1: tuple[float, float]
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Return axis, cleaned counts, 1/sigma (0 at a cosmic ray) and the flags of a window."""
    axis = spectra[0].shift_cm1
    first = int(np.searchsorted(axis, window_cm1[0], side="left"))
    last = int(np.searchsorted(axis, window_cm1[1], side="right"))
    wide = slice(max(first - DESPIKE_MARGIN_PIXELS, 0), last + DESPIKE_MARGIN_PIXELS)
    clean, flagged = despike(np.stack([spectrum.counts[wide] for spectrum in spectra]))
    inner = slice(first - wide.start, last - wide.start)
    # A pixel that fell low by chance must not weigh more for it: its neighbours share the estimate.
    near = np.pad(clean, ((0, 0), (1, 1)), mode="edge")
    expected = ((near[:, :-2] + near[:, 1:-1] + near[:, 2:]) / 3)[:, inner]
    clean, flagged = clean[:, inner], flagged[:, inner]
    read = np.array([spectrum.read_noise_counts for spectrum in spectra])
    variance = np.maximum(np.maximum(expected, 0.0) + read[:, None] ** 2, 1.0)
    return axis[first:last], clean, np.where(flagged, 0.0, 1 / np.sqrt(variance)), flagged
