"""Many spectra on one axis in one array, to process all of them at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array, Mask, Rows
from labharness.analysis.despike import despike
from labharness.analysis.spectrum import Spectrum

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
        return SpectralWindow(
            self.shift_cm1,
            self.counts[rows],
            self.root_weight[rows],
            self.root_noise[rows],
            self.cosmic[rows],
        )


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
