"""Split a file into windows of one spectrum, or into spectra, where the axis jumps back."""

import itertools
from collections.abc import Sequence

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile

Piece = tuple[Array, Array]
"""An axis, and the intensities on it, one spectrum a row."""

RUN_POINTS_MIN = 8
"""A shorter run is only a few points out of order."""

RUNS_SHARE_MIN = 0.5
"""If the runs hold less than half of all points, the axis is not an axis."""

GAP_STEPS = 10.0
"""Pixels of one window differ in width by less than this; those of a grating by a factor of two."""

SAME_AXIS_STEPS = 0.01
"""Axes that agree to a hundredth of a pixel are the same axis, printed twice."""

COMMON_SHARE_MIN = 0.5
"""Spectra whose axes share less than half of their range are windows."""


def runs_of(axis: Array) -> list[slice]:
    """Split an axis where it jumps back.

    Returns:
        Start and end of each run of one direction; a single run if there is no jump, or if the
        parts are too short to be windows.
    """
    if axis.size < 2 * RUN_POINTS_MIN or not np.isfinite(axis).all():
        return [slice(0, axis.size)]
    step = np.diff(axis)
    jumps = np.nonzero(step <= 0 if np.median(step) > 0 else step >= 0)[0] + 1
    if jumps.size == 0:
        return [slice(0, axis.size)]
    # Among windows a wide step forward separates two of them, like a step back.
    gaps = np.nonzero(np.abs(step) > GAP_STEPS * np.median(np.abs(step)))[0] + 1
    ends = [0, *np.union1d(jumps, gaps).tolist(), axis.size]
    runs = [slice(a, b) for a, b in itertools.pairwise(ends) if b - a >= RUN_POINTS_MIN]
    held = sum(run.stop - run.start for run in runs)
    if len(runs) < 2 or held < RUNS_SHARE_MIN * axis.size:
        return [slice(0, axis.size)]
    return runs


def split_runs(format_name: str, axis: Array, rows: Array) -> tuple[Array, Array, tuple[str, ...]]:
    """Split spectra where their axis jumps back, and bring the parts to one axis.

    Args:
        format_name: For messages.
        axis: Axis of one or more spectra, or windows, in sequence.
        rows: Intensities, one value or one column a point.

    Raises:
        BadFile: As `on_one_axis` does.
    """
    return on_one_axis(format_name, [(axis[run], rows[..., run]) for run in runs_of(axis)])


def on_one_axis(format_name: str, pieces: Sequence[Piece]) -> tuple[Array, Array, tuple[str, ...]]:
    """Bring pieces with different axes to one axis.

    Pieces on the same axis are spectra. Pieces with little overlap are windows of one spectrum, and
    are joined. Others are interpolated onto the axis of the first, in the common range.

    Returns:
        The axis, one spectrum a row, and notes on what was done.

    Raises:
        BadFile: When there is no piece, or the pieces fit in none of these ways.
    """
    pieces = [_ascending(piece) for piece in pieces if piece[0].size >= 2]
    if not pieces:
        raise BadFile("spectra.no_spectrum", format=format_name)
    first, _ = pieces[0]
    if all(_same(axis, first) for axis, _ in pieces):
        return first, np.concatenate([rows for _, rows in pieces]), ()
    if _are_windows(pieces):
        return joined(format_name, pieces)
    low = max(float(axis[0]) for axis, _ in pieces)
    high = min(float(axis[-1]) for axis, _ in pieces)
    kept = first[(first >= low) & (first <= high)]
    if kept.size < 2 or any((np.diff(axis) <= 0).any() for axis, _ in pieces):
        raise BadFile("spectra.own_axes", format=format_name)
    rows = [np.interp(kept, axis, row) for axis, several in pieces for row in several]
    note = (
        f"{len(rows)} spectra had axes of their own and are interpolated onto that of the first, "
        f"{low:g} to {high:g}: their noise is somewhat too small"
    )
    return kept, np.stack(rows), (note,)


def joined(format_name: str, pieces: Sequence[Piece]) -> tuple[Array, Array, tuple[str, ...]]:
    """Join windows to one spectrum a row; of an overlap each gives one half.

    The counts are not changed, so a step may remain where windows meet.

    Raises:
        BadFile: When the windows hold different numbers of spectra.
    """
    if len({len(rows) for _, rows in pieces}) != 1:
        raise BadFile("spectra.windows", format=format_name)
    ordered = sorted((_ascending(piece) for piece in pieces), key=lambda piece: float(piece[0][0]))
    kept = ordered[:1]
    inside = 0
    for axis, rows in ordered[1:]:
        before, below = kept[-1]
        if axis[-1] <= before[-1]:
            inside += 1
            continue
        middle = (float(axis[0]) + float(before[-1])) / 2
        left, right = before < middle, axis >= middle
        kept[-1] = (before[left], below[:, left])
        kept.append((axis[right], rows[:, right]))
    where = ", ".join(f"{axis[0]:g}–{axis[-1]:g}" for axis, _ in ordered[:6])
    more = ", …" if len(ordered) > 6 else ""
    notes = [f"{len(ordered)} windows are joined to one spectrum ({where}{more})"]
    if inside:
        notes.append(f"{inside} of them lie within another and are left out")
    return (
        np.concatenate([axis for axis, _ in kept]),
        np.concatenate([rows for _, rows in kept], axis=1),
        tuple(notes),
    )


def _holds(outer: tuple[float, float], inner: tuple[float, float]) -> bool:
    within = outer[0] <= inner[0] and inner[1] <= outer[1]
    return within and inner[1] - inner[0] < COMMON_SHARE_MIN * (outer[1] - outer[0])


def _ascending(piece: Piece) -> Piece:
    axis, rows = piece
    rows = np.atleast_2d(rows)
    return (axis[::-1], rows[:, ::-1]) if axis[0] > axis[-1] else (axis, rows)


def _same(axis: Array, other: Array) -> bool:
    if axis is other or axis.size != other.size:  # infinite places differ from themselves
        return axis is other
    step = abs(float(other[-1] - other[0])) / other.size
    return bool(np.abs(axis - other).max() <= SAME_AXIS_STEPS * step)


def _are_windows(pieces: Sequence[Piece]) -> bool:
    """Return whether each piece overlaps its neighbour by less than half of the shorter one.

    A piece inside another one, and shorter than half of it, is a window too.
    """
    ends = [(float(axis[0]), float(axis[-1])) for axis, _ in pieces]
    ordered = sorted(one for one in ends if not any(_holds(other, one) for other in ends))
    if len(ordered) < 2 and len(ends) > 2:
        return False
    return all(
        before[1] - after[0] < COMMON_SHARE_MIN * min(before[1] - before[0], after[1] - after[0])
        for before, after in itertools.pairwise(ordered)
    )
