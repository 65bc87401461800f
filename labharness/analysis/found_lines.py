"""Find every line of spectra, known or not: its place, its width and its height."""

from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array, Mask, Rows
from labharness.analysis.despike import despike
from labharness.analysis.stack import Stack

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

CHUNK_SPECTRA = 128
"""Spectra searched together; they then stay in a core's second-level cache."""


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
        at, fwhm, height, sigma, is_foot = self
        return FoundLines(at[rows], fwhm[rows], height[rows], sigma[rows], is_foot[rows])


def find_lines(stack: Stack) -> FoundLines:
    """Compare boxes of rising widths with the boxes beside them, at each pixel of each row."""
    parts = [
        _found(stack.of(np.arange(first, min(first + CHUNK_SPECTRA, len(stack.counts)))))
        for first in range(0, len(stack.counts), CHUNK_SPECTRA)
    ]
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
