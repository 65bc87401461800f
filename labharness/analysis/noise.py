"""The noise of a file: its rows scaled to photon noise, and its dead or saturated rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.spectrum import Spectrum, Stack, despike
from labharness.core.vocabulary.texts import Text

RAW_RATIO_MIN, RAW_RATIO_MAX = 0.5, 2.0
"""Variance over level of raw counts from a camera of about one electron per count."""

READ_NOISE_COUNTS = 6.0
"""Cooled cameras: 4–8 electrons."""

SECOND_DIFFERENCE_SIGMA = np.sqrt(6.0)
"""Standard deviation of y[-1] - 2 y[0] + y[1] in units of a pixel's."""

SMOOTHED_PIXELS, SMOOTHED_MIN, SMOOTHED_MOST, SMOOTHED_OF_ONE = 4, 1.6, 4.0, 1.22
"""Second differences of pixels four apart scatter like those of neighbours; real spectra have at
most 1.2 times as much, a running mean of three 1.9 times. A mean of n hides the noise by n, and its
ratio is the root of 1.5 n."""

MAD_TO_SIGMA = 1.4826
FLAT_MAX = 1e-9
"""With a smaller relative scatter the numbers are a calculated curve, not a measurement."""

CHUNK_SPECTRA = 1000
"""Rows measured together; this bounds the memory for a map of any size."""

NO_NOISE = Text("note.no_noise")

ELECTRONS_MAX = 1e6
"""Most electrons of the brightest pixel: no line shape is accurate to better than 0.1 %."""


class QuietStretch(NamedTuple):
    """The quieter half of the pixels of each row.

    Attributes:
        level: Their median (rows), in the file's unit.
        scatter: Standard deviation of one of them (rows).
        top: Highest value of the whole row (rows), without cosmic rays.
        smoothed: By how much smoothing or interpolation hides the noise (rows); 1 without. It is
            in ``scatter`` already.
    """

    level: Array
    scatter: Array
    top: Array
    smoothed: Array

    def of(self, rows: Sequence[int]) -> "QuietStretch":
        """Return the values of some of the rows."""
        chosen = np.array(rows, dtype=np.intp)
        return QuietStretch(*(each[chosen] for each in self))


def in_electrons(shift_cm1: Array, intensity: Array) -> Spectrum:
    """Scale a spectrum so that the scatter of quiet pixels is photon noise.

    Raw counts are not changed. Averaged, corrected or normalised intensities are scaled so that the
    variance of quiet pixels equals their level; without a level (background subtracted) every pixel
    gets the scatter of the quiet ones.

    Raises:
        ValueError: When the numbers are not a spectrum, or have no noise and so no errors.
    """
    stack, _ = rows_in_electrons(shift_cm1, np.atleast_2d(intensity))
    return Spectrum(shift_cm1, stack.counts[0], float(stack.read_noise_counts[0]))


def rows_in_electrons(
    shift_cm1: Array, intensity: Array, quiet: QuietStretch | None = None
) -> tuple[Stack, tuple[str, ...]]:
    """Scale each row of a file by itself, see `in_electrons`; return a note for each.

    Args:
        shift_cm1: Raman shift of each pixel (px).
        intensity: One spectrum per row.
        quiet: Result of `quiet_half` for these rows, if known.

    Raises:
        ValueError: When a row has no noise, so that errors cannot be estimated.
    """
    level, scatter, top, _ = quiet = quiet or quiet_half(intensity)
    if not has_noise(quiet).all():
        raise ValueError(NO_NOISE)
    variance = scatter**2
    raw_ratio = variance / (np.maximum(level, 0.0) + READ_NOISE_COUNTS**2)
    raw = (raw_ratio >= RAW_RATIO_MIN) & (raw_ratio <= RAW_RATIO_MAX)
    most = ELECTRONS_MAX / top
    photons = ~raw & (level > 0) & (variance < RAW_RATIO_MAX * level)
    scale = np.where(raw, 1.0, np.where(photons, np.minimum(level / variance, most), most))
    # The gain is unknown: take so many electrons that photon noise adds little to the scatter.
    read_noise = np.where(raw, READ_NOISE_COUNTS, np.where(photons, 0.0, scatter * most))
    notes = tuple(
        "" if is_raw else (Text("note.scaled", gain=gain)) if has_level else (Text("note.scatter"))
        for is_raw, has_level, gain in zip(
            raw.tolist(), photons.tolist(), scale.tolist(), strict=True
        )
    )
    return Stack(shift_cm1, intensity * scale[:, None], read_noise), notes


def has_noise(quiet: QuietStretch) -> Mask:
    """Return whether each row is a measurement, not a constant or a calculated curve."""
    return quiet.scatter > FLAT_MAX * quiet.top


def quiet_half(intensity: Array) -> QuietStretch:
    """Measure the quieter half of each row, some rows at a time."""
    parts = [
        _quiet(intensity[first : first + CHUNK_SPECTRA])
        for first in range(0, len(intensity), CHUNK_SPECTRA)
    ]
    return QuietStretch(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _quiet(intensity: Array) -> QuietStretch:
    clean, _ = despike(intensity)
    second = _second_differences(clean, 1)
    # The quieter half, because slopes of lines also make second differences.
    local = clean[:, 1:-1]
    quiet = local <= np.median(local, axis=1, keepdims=True)
    scatter = MAD_TO_SIGMA * _median_of(second, quiet)
    # With few photons most second differences are 0, but their mean square is not.
    square = np.sqrt(np.where(quiet, second**2, 0.0).sum(axis=1) / quiet.sum(axis=1))
    near = np.where(scatter > 0, scatter, square)
    apart = slice(SMOOTHED_PIXELS - 1, 1 - SMOOTHED_PIXELS)
    far = MAD_TO_SIGMA * _median_of(_second_differences(clean, SMOOTHED_PIXELS), quiet[:, apart])
    ratio = far / np.maximum(near, np.finfo(float).tiny)
    hidden = np.minimum(ratio, SMOOTHED_MOST) ** 2 / SMOOTHED_OF_ONE
    smoothed = np.where((ratio > SMOOTHED_MIN) & (scatter > 0), hidden, 1.0)
    scatter = near * smoothed / SECOND_DIFFERENCE_SIGMA
    level, top = _median_of(local, quiet), np.max(np.abs(clean), axis=1)
    return QuietStretch(level, scatter, top, smoothed)


def _second_differences(clean: Array, apart: int) -> Array:
    middle = clean[:, apart:-apart]
    return np.abs(clean[:, : -2 * apart] - 2 * middle + clean[:, 2 * apart :])


def _median_of(values: Array, chosen: Mask) -> Array:
    ordered = np.sort(np.where(chosen, values, np.inf), axis=1)
    count = chosen.sum(axis=1)
    rows = np.arange(len(values))
    return (ordered[rows, (count - 1) // 2] + ordered[rows, count // 2]) / 2


DEAD, SATURATED = Text("spectrum.dead"), Text("spectrum.saturated")

PLATEAU_PIXELS = 5
PLATEAU_SHARE = 0.005
EDGE_PIXELS, EDGE_DROP = 2, 0.04
"""Five pixels within 0.5 % of the highest are the top of a line only if it is 70 pixels wide; then
it falls by 1.6 % two pixels further on. A fall by 4 % there means that the top was cut off."""

RISE_MIN_SIGMA = 20.0
"""A lower plateau, in noise sigmas, is a row of few counts."""

FULL_SHARE = 0.2
"""A camera that is full everywhere has no edges: it has this share of pixels at the same top
value."""

EQUAL_TOPS = 4
"""So many pixels, or three beside each other, have the very same highest value only where it is
the most that the converter can write."""

LASER_REACH_CM1 = 80.0
"""Light of the laser behind the edge filter ends within this shift."""

ROWS_TOLD = 5


def faults(shift_cm1: Array, intensity: Array, quiet: QuietStretch) -> tuple[str, ...]:
    """Return the fault of each row; empty for a good one.

    Args:
        shift_cm1: Raman shift of each pixel; the laser's own line may have any brightness.
        intensity: One spectrum per row, as in the file.
        quiet: Its noise.
    """
    away = np.abs(shift_cm1) > LASER_REACH_CM1
    full = np.zeros(len(intensity), dtype=bool)
    if away.sum() > PLATEAU_PIXELS:
        full = _is_cut_off(intensity[:, away], quiet)
    noisy = has_noise(quiet)
    return tuple(
        DEAD if not is_noisy else SATURATED if is_full else ""
        for is_noisy, is_full in zip(noisy.tolist(), full.tolist(), strict=True)
    )


def told(found: Sequence[str]) -> tuple[Text, ...]:
    """Return one sentence per fault with its rows, counted from 1; empty when all are good."""
    sentences = []
    for fault in dict.fromkeys(each for each in found if each):
        rows = [str(row + 1) for row, each in enumerate(found) if each == fault]
        over = len(rows) - ROWS_TOLD
        code = "note.left_out.one" if len(rows) == 1 else "note.left_out"
        more = Text("and_more", count=over) if over > 0 else ""
        shown = tuple(rows[:ROWS_TOLD])
        sentences.append(Text(code, rows=shown, more=more, count=len(found), fault=fault))
    return tuple(sentences)


def _is_cut_off(rows: Array, quiet: QuietStretch) -> Mask:
    """Return whether each row has a flat top with sharp edges, or is at the top everywhere."""
    top = rows.max(axis=1, keepdims=True)
    span = top - quiet.level[:, None]
    full = (rows == top).sum(axis=1) > FULL_SHARE * rows.shape[1]
    clear = span > RISE_MIN_SIGMA * quiet.scatter[:, None]
    equal = (rows == top) & clear
    full |= equal.sum(axis=1) >= EQUAL_TOPS
    run = equal[:, 2:] & equal[:, 1:-1] & equal[:, :-2]
    full |= run.any(axis=1)
    near = clear & (rows >= top - PLATEAU_SHARE * span)
    for row in np.nonzero(near.sum(axis=1) >= PLATEAU_PIXELS)[0].tolist():
        full[row] |= _has_edges(rows[row], near[row], float(top[row, 0]), float(span[row, 0]))
    return np.asarray(full, dtype=np.bool_)


def _has_edges(row: Array, near: Mask, top: float, span: float) -> bool:
    """Return whether a run of top pixels falls off sharply on both sides."""
    ends = np.flatnonzero(np.diff(np.pad(near, 1).astype(int)))  # of each run, and one behind it
    for first, end in ends.reshape(-1, 2).tolist():
        ways = (first - EDGE_PIXELS, end - 1 + EDGE_PIXELS)
        beside = [row[at] < top - EDGE_DROP * span for at in ways if 0 <= at < row.size]
        if end - first >= PLATEAU_PIXELS and beside and all(beside):
            return True
    return False
