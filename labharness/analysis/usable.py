"""Find the rows of a file that are not usable spectra: dead or saturated ones."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.noise import QuietStretch, has_noise
from labharness.core.vocabulary.texts import Text

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
    runs = sliding_window_view(near, PLATEAU_PIXELS).all(axis=1)
    for first in np.nonzero(runs)[0].tolist():
        if first > 0 and near[first - 1]:
            continue  # inside a run
        last = first
        while last + 1 < row.size and near[last + 1]:
            last += 1
        beside = [at for at in (first - EDGE_PIXELS, last + EDGE_PIXELS) if 0 <= at < row.size]
        if beside and all(row[at] < top - EDGE_DROP * span for at in beside):
            return True
    return False
