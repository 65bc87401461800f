"""Spectra: one, checked when it is made; many on one axis; and both without cosmic rays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from labharness.analysis.arrays import Array, Mask, Rows
from labharness.core.vocabulary.texts import Text

SPIKE_WIDTH_MAX_PIXELS = 2
"""A cosmic ray lights one pixel, or two if it crosses a border (30 % of them)."""

SPIKE_SIGMA = 8.0
"""A spike is this many standard deviations above both outer neighbours."""

NEIGHBOUR_EXCESS_MAX = {1: 0.20, 2: 0.065}
"""Largest share of a lone spike's excess in its two neighbours, in the mean, by its width in
pixels. A line of FWHM >= 1.5 px, the least on coarse pixels, has more at any position of its
top."""

NEIGHBOUR_SIGMA = 0.9
"""Noise allowed in their mean: half of the spikes are found at 10 sigma, and 99 of 100 at 20."""

OVER_LINE_MIN = 1.5
"""On a line, or beside one, a spike is this many times as high as the Lorentz line through its four
neighbours. A double or lopsided line is less than 1.3 times so."""

BACKGROUND_HALF_WIDTH_PIXELS = 8
"""The local background is the median over this many pixels to either side."""

QUIET = 0.25
"""Quantile of them that a lone spike is compared with: on coarse pixels two lines of a film and
their feet fill half of them."""

NOISE_FLOOR_COUNTS = 4.0
"""Read noise of a cooled camera (4–8 electrons): the noise is never taken as lower."""


def despike(counts: ArrayLike) -> tuple[Array, Mask]:
    """Replace cosmic rays by the line between their neighbours, and mark their pixels.

    Rules on the first difference (Whitaker and Hayes 2018, 10.1016/j.chemolab.2018.06.009) flag the
    slopes of Raman lines when a pixel is 1 cm⁻¹ or more. This one looks for widths below those of
    any line that the spectrometer resolves.

    Args:
        counts: One spectrum, or one spectrum per row.

    Returns:
        The cleaned counts, and a mask of the replaced pixels, both in the shape of ``counts``.

    Raises:
        ValueError: When ``counts`` is not one or two-dimensional, is shorter than the background
            window, or holds NaN or infinity.
    """
    given = np.asarray(counts, dtype=np.float64)
    window = 2 * BACKGROUND_HALF_WIDTH_PIXELS + 1
    if given.ndim not in (1, 2) or given.shape[-1] < window:
        raise ValueError(Text("spectrum.despike", least=window, shape=str(given.shape)))
    if not np.isfinite(given).all():
        raise ValueError("despike needs finite counts")
    rows = np.atleast_2d(given)
    usual = np.median(rows, axis=1)
    slope = np.diff(rows, axis=1)
    spread = np.median(np.abs(slope - np.median(slope, axis=1, keepdims=True)), axis=1)
    # 1.4826 turns a median deviation into a sigma; a difference of two pixels has sqrt(2) of it.
    noise = np.maximum(1.4826 / np.sqrt(2) * spread, NOISE_FLOOR_COUNTS)

    # Past the ends the last pixel repeats, so that a spike there has one real neighbour.
    edge = BACKGROUND_HALF_WIDTH_PIXELS
    padded = np.pad(rows, ((0, 0), (edge, edge)), mode="edge")
    surroundings = sliding_window_view(padded, window, axis=1)
    flagged = np.zeros(rows.shape, dtype=bool)
    for width in range(1, SPIKE_WIDTH_MAX_PIXELS + 1):
        run = rows[:, 1:-width]
        for further in range(1, width):
            run = np.minimum(run, rows[:, 1 + further : rows.shape[1] - width + further])
        left, right = rows[:, : -width - 1], rows[:, width + 1 :]
        stands = run - np.maximum(left, right)
        # The background is slow, so it is taken only at pixels that already stand out.
        row, start = np.nonzero(stands > SPIKE_SIGMA * noise[:, None])
        if row.size == 0:
            continue
        low, high = left[row, start], right[row, start]
        background = np.minimum(
            np.median(surroundings[row, start + 1], axis=1), np.minimum(low, high)
        )
        # The noise is that of the usual pixel; a brighter one has the shot noise of its own counts,
        # also on top of a line that is wider than the window.
        brighter = np.maximum(np.maximum(low, high) - usual[row], 0.0)
        sigma = np.sqrt(noise[row] ** 2 + brighter)
        top = run[row, start] - background
        last = rows.shape[1] - 1
        farther = (
            rows[row, np.maximum(start - 1, 0)],
            rows[row, np.minimum(start + width + 2, last)],
        )
        near = [(side - background) / top for side in (low, high)]
        # A pixel farther off that rises again is another feature, for example another cosmic ray.
        far = [
            np.minimum((side - background) / top, beside)
            for side, beside in zip(farther, near, strict=True)
        ]
        carried, wings = (near[0] + near[1]) / 2, (far[0] + far[1]) / 2
        most = NEIGHBOUR_EXCESS_MAX[width]
        quiet = np.minimum(np.quantile(surroundings[row, start + 1], QUIET, axis=1), background)
        shared = ((low + high) / 2 - quiet) / (run[row, start] - quiet)
        alone = shared < most + NEIGHBOUR_SIGMA * sigma / top
        beyond = OVER_LINE_MIN * _lorentz_top(carried, wings, width) < 1
        for inner, outer in zip(near, far, strict=True):
            # As steep on one side as a line may be, and another line on the other side.
            beyond &= (inner < most) | np.isfinite(_lorentz_top(inner, outer, width))
        spike = (stands[row, start] > SPIKE_SIGMA * sigma) & (alone | beyond)
        for offset in range(width):
            flagged[row[spike], start[spike] + 1 + offset] = True

    clean = rows.copy()
    for index in np.nonzero(flagged.any(axis=1))[0]:
        bad = flagged[index]
        clean[index, bad] = np.interp(np.nonzero(bad)[0], np.nonzero(~bad)[0], rows[index, ~bad])
    return clean.reshape(given.shape), flagged.reshape(given.shape)


def _lorentz_top(near: Array, far: Array, width: int) -> Array:
    """Return the height of a Lorentz line between neighbours of these heights over the background.

    The inverse of such a line is a parabola. If the farther neighbours are too low for one, the
    line is steeper, and its height has no limit.
    """
    inner, outer = (((width + 1) / 2 + step) ** 2 for step in (0, 1))
    below = outer * far - inner * near
    unlimited = np.full(near.shape, np.inf)
    return np.divide(near * far * (outer - inner), below, out=unlimited, where=below > 0)


PIXELS_MIN = 20
"""A line, its background, cosmic rays and an estimate of the noise need at least this many."""

NM_TO_CM1 = 1e7
"""Wavenumber in cm⁻¹ of a wavelength of 1 nm."""

EV_NM = 1239.841984
"""Energy of a photon in eV times its wavelength in nm: hc/e (CODATA 2018, exact)."""


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Raw detector counts against Raman shift.

    The counts must be raw (one electron per count, no baseline subtracted): their size is the
    estimate of their Poisson noise.

    Attributes:
        shift_cm1: Raman shift of each pixel in cm⁻¹, strictly ascending.
        counts: Counts of each pixel.
        read_noise_counts: Standard deviation of the camera's read noise.

    Raises:
        ValueError: On NaN or infinity, unequal lengths, an axis that does not ascend, fewer than
            ``PIXELS_MIN`` pixels, or a negative read noise.
    """

    shift_cm1: Array
    counts: Array
    read_noise_counts: float = 6.0

    def __post_init__(self) -> None:
        shift = np.array(self.shift_cm1, dtype=np.float64)
        counts = np.array(self.counts, dtype=np.float64)
        if shift.ndim != 1 or shift.shape != counts.shape:
            shapes = f"{shift.shape} and {counts.shape}"
            raise ValueError(Text("spectrum.shapes", shapes=shapes))
        if shift.size < PIXELS_MIN:
            raise ValueError(f"a spectrum needs at least {PIXELS_MIN} pixels, got {shift.size}")
        for name, values in (("shift_cm1", shift), ("counts", counts)):
            if not np.isfinite(values).all():
                pixel = int(np.argmin(np.isfinite(values)))
                raise ValueError(f"{name}[{pixel}] is {values[pixel]}; a measurement is finite")
        if not (np.diff(shift) > 0).all():
            pixel = int(np.argmin(np.diff(shift) > 0))
            here, then = str(shift[pixel]), str(shift[pixel + 1])
            raise ValueError(Text("spectrum.ascends", here=here, then=then, pixel=pixel))
        if not 0 <= self.read_noise_counts < np.inf:
            raise ValueError(Text("spectrum.read_noise", found=str(self.read_noise_counts)))
        shift.setflags(write=False)
        counts.setflags(write=False)
        object.__setattr__(self, "shift_cm1", shift)
        object.__setattr__(self, "counts", counts)


def shift_from_wavelength(laser_nm: float, wavelength_nm: ArrayLike) -> Array:
    """Convert wavelengths to Raman shifts in cm⁻¹, in the order given.

    An ascending wavelength gives an ascending shift; the anti-Stokes side is negative. Both
    wavelengths must be of one medium, air or vacuum: mixing them moves 400 cm⁻¹ by about 5 cm⁻¹.

    Args:
        laser_nm: Wavelength of the laser.
        wavelength_nm: Wavelength of each pixel.

    Raises:
        ValueError: When a wavelength is not positive and finite.
    """
    wavelength = np.asarray(wavelength_nm, dtype=np.float64)
    if not 0 < laser_nm < np.inf:
        raise ValueError(f"laser_nm must be positive and finite, got {laser_nm}")
    if not ((wavelength > 0) & np.isfinite(wavelength)).all():
        raise ValueError("wavelength_nm must be positive and finite in every pixel")
    return NM_TO_CM1 / laser_nm - NM_TO_CM1 / wavelength


DESPIKE_MARGIN_PIXELS = 12
"""Pixels beside a window that the search for cosmic rays may use."""

GAP_PIXELS = 4.0
"""A step this many times the usual one is a gap between two windows of a file."""

RECURS_ROWS_MIN, RECURS_SHARE_MIN = 4, 0.1
RECURS_NEIGHBOUR_MIN = 0.15
"""A feature that this many rows of a map show in the same pixel is not a cosmic ray. It is a line
of two pixels if its neighbours carry some of it, otherwise a hot pixel of the camera."""

MISFIT_SHARE = 0.03
"""Uncertainty of the shape of a line, as a share of the highest line in a window: shoulders,
second-order bands and bent backgrounds are 1–10 % of it in real spectra. The fit weighs pixels with
this beside the photon noise. A bright spectrum is then weighed evenly, like those behind the tables
of separations."""


class Stack(NamedTuple):
    """Spectra of one axis.

    Attributes:
        shift_cm1: Raman shift of each pixel (px), ascending.
        counts: Electrons of each pixel (rows x px).
        read_noise_counts: Standard deviation of the read noise of each spectrum (rows).
    """

    shift_cm1: Array
    counts: Array
    read_noise_counts: Array

    def of(self, rows: Rows) -> "Stack":
        """Return some of the spectra, in the given order."""
        return Stack(self.shift_cm1, self.counts[rows], self.read_noise_counts[rows])

    def parts(self, rows: int) -> Iterator["Stack"]:
        """Return so many of the spectra at a time."""
        for first in range(0, len(self.counts), rows):
            yield self.of(np.arange(first, min(first + rows, len(self.counts))))

    def moved(self, offset_cm1: float) -> "Stack":
        """Return the same spectra on a shifted axis."""
        return self._replace(shift_cm1=self.shift_cm1 + offset_cm1)


class SpectralWindow(NamedTuple):
    """A part of the axis, ready to be fitted.

    Attributes:
        shift_cm1: Raman shift of each pixel (px).
        counts: Electrons without cosmic rays (rows x px).
        root_weight: Weight of a pixel in a fit: 1 over the root of noise and misfit together; 0 at
            a cosmic ray.
        root_noise: 1 over the noise of each pixel alone; 0 at a cosmic ray.
        cosmic: Mask of the cosmic rays.
    """

    shift_cm1: Array
    counts: Array
    root_weight: Array
    root_noise: Array
    cosmic: Mask

    def of(self, rows: Rows) -> "SpectralWindow":
        """Return the window of some of the spectra."""
        counts, weight, noise = (each[rows] for each in self[1:4])
        return SpectralWindow(self.shift_cm1, counts, weight, noise, self.cosmic[rows])


def stacked(spectra: Sequence[Spectrum]) -> Stack:
    """Put spectra of one axis into one array.

    Raises:
        ValueError: When they do not share one axis, or there is none.
    """
    if not spectra:
        raise ValueError("a stack needs at least one spectrum")
    axis = spectra[0].shift_cm1
    for index, spectrum in enumerate(spectra):
        if spectrum.shift_cm1 is not axis and not np.array_equal(spectrum.shift_cm1, axis):
            raise ValueError(f"spectrum {index} has another axis than spectrum 0; fit it apart")
    return Stack(
        axis,
        np.stack([spectrum.counts for spectrum in spectra]),
        np.array([spectrum.read_noise_counts for spectrum in spectra]),
    )


def covers(shift_cm1: Array, low_cm1: float, high_cm1: float, pixels_min: int = 2) -> bool:
    """Return whether an axis covers a range, without a gap and with enough pixels in it."""
    if shift_cm1[0] > low_cm1 or shift_cm1[-1] < high_cm1:
        return False
    first = max(int(np.searchsorted(shift_cm1, low_cm1, side="right")) - 1, 0)
    inside = shift_cm1[first : int(np.searchsorted(shift_cm1, high_cm1, side="left")) + 1]
    if inside.size < max(pixels_min, 2):
        return False
    step = np.diff(inside)
    return bool(step.max() <= GAP_PIXELS * np.median(step))


def cut_window(stack: Stack, window_cm1: tuple[float, float]) -> SpectralWindow:
    """Cut out a window, find its cosmic rays, and estimate the noise of each pixel.

    The noise is that of photons and camera. The weight also contains ``MISFIT_SHARE`` of the
    highest line in the window.
    """
    axis = stack.shift_cm1
    first = int(np.searchsorted(axis, window_cm1[0], side="left"))
    last = int(np.searchsorted(axis, window_cm1[1], side="right"))
    wide = slice(max(first - DESPIKE_MARGIN_PIXELS, 0), last + DESPIKE_MARGIN_PIXELS)
    raw = stack.counts[:, wide]
    clean, cosmic = despike(raw)
    cosmic[:, _recurs(raw, cosmic)] = False
    clean = np.where(cosmic, clean, raw)
    inner = slice(first - wide.start, last - wide.start)
    # A pixel that is low by chance must not weigh more: it shares the estimate of its neighbours.
    near = np.pad(clean, ((0, 0), (1, 1)), mode="edge")
    expected = ((near[:, :-2] + near[:, 1:-1] + near[:, 2:]) / 3)[:, inner]
    clean, cosmic = clean[:, inner], cosmic[:, inner]
    read2 = stack.read_noise_counts[:, None] ** 2
    variance = np.maximum(np.maximum(expected, 0.0) + read2, 1.0)
    rise = expected.max(axis=1, keepdims=True) - np.median(expected, axis=1, keepdims=True)
    misfit = (MISFIT_SHARE * rise) ** 2
    return SpectralWindow(
        shift_cm1=axis[first:last],
        counts=clean,
        root_weight=np.where(cosmic, 0.0, 1 / np.sqrt(variance + misfit)),
        root_noise=np.where(cosmic, 0.0, 1 / np.sqrt(variance)),
        cosmic=cosmic,
    )


def _recurs(raw: Array, cosmic: Mask) -> Rows:
    """Return the pixels with a narrow line that was taken for cosmic rays."""
    often = cosmic.sum(axis=0) >= max(RECURS_ROWS_MIN, RECURS_SHARE_MIN * len(raw))
    lines = []
    for pixel in np.nonzero(often)[0].tolist():
        rows = raw[cosmic[:, pixel]]
        usual = np.median(rows, axis=1)
        beside = rows[:, [max(pixel - 1, 0), min(pixel + 1, raw.shape[1] - 1)]].min(axis=1)
        share = np.median((beside - usual) / (rows[:, pixel] - usual))
        if share > RECURS_NEIGHBOUR_MIN:
            lines.append(pixel)
    return np.array(lines, dtype=np.intp)
