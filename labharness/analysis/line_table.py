"""Choose the lines to fit in a file: those of its material, of silicon, or of a person's ranges."""

from collections.abc import Collection, Sequence

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.lines import LineWindow
from labharness.analysis.material import OpenLine
from labharness.analysis.material_table import (
    MATERIALS,
    SILICON,
    SUBSTRATES,
    Form,
    LineGroup,
    Material,
)
from labharness.analysis.peaks import SILICON_LINE, SILICON_NEEDS_CM1, SILICON_WINDOW_CM1

SILICON_LINE_NAME = "Si"

OPEN_FITTED, TOGETHER_MAX, ROOM_WIDTHS = 12, 4, 3.0
"""Most lines without a name that are fitted, the highest; most of them on one background, and the
room beside them in widths of a line. Lines within the room of each other are fitted together."""

WIDEST_SHARE, START_SHARE = 1.0, 0.125
"""Largest and initial width of the one line in a person's range, as shares of the range."""


_SILICON_GROUP = LineGroup(
    (SILICON_LINE_NAME,), (SILICON_LINE,), SILICON_WINDOW_CM1, SILICON_NEEDS_CM1
)
_ROWS = {row.name: row for row in (*MATERIALS, *SUBSTRATES, SILICON)}

MATERIAL_NAMES = tuple(_ROWS)
"""Materials whose lines are known."""


def ratio_of(material: str) -> tuple[str, str] | None:
    """Return the two lines of the main intensity ratio of a material, or None."""
    row = _ROWS.get(material)
    return None if row is None or not row.ratios else row.ratios[0]


def ranges_of(
    material: str,
    axis_cm1: Array,
    windows_cm1: Sequence[tuple[float, float]] = (),
    seen: Sequence[Collection[str]] = (),
) -> tuple[LineGroup, ...]:
    """Return the groups to fit on an axis: the material's and silicon's, or a person's.

    In a person's range the known lines of material and silicon that lie in it are fitted; without
    any, the highest line. A range is cut at the end of the axis; lines with too little range or too
    few pixels are not fitted.

    Args:
        material: Name from the analysis; without known lines only silicon is fitted.
        axis_cm1: Shift of each pixel, ascending.
        windows_cm1: A person's ranges, each from low to high.
        seen: The lines that stand out in each spectrum; the form of the material that most spectra
            show is fitted.
    """
    row = _ROWS.get(material)
    known = [*(_groups(row, seen) if row is not None else ()), _SILICON_GROUP]
    if windows_cm1:
        first, last = float(axis_cm1[0]), float(axis_cm1[-1])
        cut = ((max(low, first), min(high, last)) for low, high in windows_cm1)
        known = [_group_in(each, known) for each in cut if each[0] < each[1]]
    return tuple(_cut(axis_cm1, each) for each in known if each.fits_on(axis_cm1))


def open_ranges(lines: Sequence[OpenLine], axis_cm1: Array) -> tuple[LineGroup, ...]:
    """Return groups that measure lines which nothing explains, each named ``?`` and its place.

    Args:
        lines: The lines, the highest first.
        axis_cm1: Shift of each pixel, ascending.
    """
    pixel = float(np.median(np.diff(axis_cm1)))
    groups: list[list[tuple[float, float]]] = []
    for at, fwhm in sorted((each[0], max(each[1], 2 * pixel)) for each in lines[:OPEN_FITTED]):
        last = groups[-1] if groups else []
        if 0 < len(last) < TOGETHER_MAX and at - last[-1][0] < ROOM_WIDTHS * (fwhm + last[-1][1]):
            last.append((at, fwhm))
        else:
            groups.append([(at, fwhm)])
    found = []
    for each in groups:
        windows = tuple(LineWindow(at - fwhm, at + fwhm, fwhm, 6 * fwhm) for at, fwhm in each)
        room = ROOM_WIDTHS * max(fwhm for _, fwhm in each)
        names = tuple(f"? {at:.0f}" for at, _ in each)
        edges = each[0][0] - room, each[-1][0] + room
        found.append(_cut(axis_cm1, LineGroup(names, windows, edges, edges)))
    return tuple(found)


def _groups(row: Material, seen: Sequence[Collection[str]]) -> list[LineGroup]:
    """Return the groups of a material without repeated lines."""

    def times(form: Form) -> int:
        names = {name for group in form.groups for name in group.names}
        return sum(names <= set(each) for each in seen)

    # An additional line does not make another material: of equally frequent forms take the one with
    # most lines.
    forms = sorted(
        row.forms, key=lambda form: (times(form), sum(len(each.names) for each in form.groups))
    )
    forms = forms[::-1] if seen else list(row.forms)
    groups: list[LineGroup] = []
    names: set[str] = set()
    for group in (*(group for form in forms for group in form.groups), *row.besides):
        if names.isdisjoint(group.names):
            names.update(group.names)
            groups.append(group)
    return sorted(groups, key=lambda group: group.range_cm1)


def _group_in(window_cm1: tuple[float, float], known: Sequence[LineGroup]) -> LineGroup:
    low, high = window_cm1
    lines = [
        (name, window)
        for each in known
        for name, window in zip(each.names, each.windows, strict=True)
        if low <= window.low_cm1 and window.high_cm1 <= high
    ]
    if not lines:
        span = high - low
        lines = [
            (f"{low:g}-{high:g}", LineWindow(low, high, START_SHARE * span, WIDEST_SHARE * span))
        ]
    names, windows = zip(*lines, strict=True)
    inner = min(each.low_cm1 for each in windows), max(each.high_cm1 for each in windows)
    return LineGroup(names, windows, window_cm1, inner)


def _cut(axis_cm1: Array, wanted: LineGroup) -> LineGroup:
    low = max(wanted.range_cm1[0], float(axis_cm1[0]))
    high = min(wanted.range_cm1[1], float(axis_cm1[-1]))
    return wanted._replace(range_cm1=(low, high))
