"""Text in columns: an axis with one spectrum, or with many spectra side by side."""

import re
from collections.abc import Sequence

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.maps import parse_long
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import (
    NM_MARKS,
    SHIFT_MARKS,
    Table,
    axis_under,
    axis_unit_of,
    cells_of,
    entry_of,
    numbers_of,
    table_of,
)
from labharness.analysis.formats.windows import on_one_axis, runs_of, split_runs

HEADER_LINES_MAX = 500
"""Most lines without numbers before the first row of a table."""

PIXEL_WORDS = {"pixel", "pixels", "px", "channel", "channels", "index", "point", "points"}
"""Words of a heading that say that the first column only numbers the pixels."""

OTHER_MARKS = (
    *("pixel", "dark", "reference", "background", "baseline", "fit", "residual", "error", "sigma"),
    *("stdev", "std dev", "uncertainty", *NM_MARKS, *SHIFT_MARKS),
)
"""Words of a heading of a column that is not a spectrum."""

NUMBER_TITLES = ("", "#", "no", "no.", "nr", "id", "index", "point", "row")
"""Headings of a column that only numbers the rows; pandas writes one without a heading."""

PLACE_NAMES = ("x", "y", "z", "t", "time")
ROWS_TO_TELL = 10
"""With fewer rows a second axis may look like a spectrum that rises by chance."""


class NoTable(BadFile, code="no_table"):
    """A text in which no line holds two numbers."""


OWN = ("raman_shift_cm1,", "wavelength_nm,")
"""The first words of the CSV that this program writes."""


def parse_columns(text: str) -> Recording:
    """Read text in columns: axis and intensity, or axis and one column a spectrum.

    Lines before the first row of numbers are a header, those after the last a footer. A first
    column is a Raman shift in cm⁻¹ unless its heading says wavelength or nm. An axis that jumps
    back begins another spectrum, or another window of the same one.

    Raises:
        BadFile: When there is no table, or the meaning of a third column is not stated.
    """
    name = "text in two columns"
    lines = text.splitlines()
    start = first_row(name, lines)
    head = [line.strip() for line in lines[:start] if line.strip()]
    heading = head[-1] if head else ""
    pairs = dict(
        entry_of(line.lstrip("#% "), "=" if "=" in line else ":", " \t,;")
        for line in head
        if "=" in line or ":" in line
    )
    table = table_of(name, lines[start:], start + 1, pairs)
    width = table.values.shape[1]
    titles = _titles(heading, width)
    own = heading.lower().startswith(OWN)
    if width > 2 and titles and _places(titles):
        return parse_long(titles, table, "text of a map")
    if _are_pairs(table.values, titles):
        return _paired(table, titles)
    at = _axis_column(titles)
    columns = [1 - at] if width == 2 else _spectra(table.values, titles, at, own)
    if own:
        name = "CSV"
    elif len(columns) > 1:
        name = "text in columns"
    title = titles[at] if titles else heading.lower()
    values, unit, stated = axis_under(name, title, table.values[:, at])
    if not stated and set(re.findall(r"[a-z]+", title)) & PIXEL_WORDS:
        raise BadFile("spectra.pixels", format=name, title=title.strip())
    axis, rows, notes = _split_runs(name, values, table.values[:, columns].T)
    return table.recording(axis, unit, rows, stated=stated, notes=notes, name=name)


def _are_pairs(values: Array, titles: Sequence[str]) -> bool:
    """Return whether the columns are x1, y1, x2, y2: an axis before each spectrum."""
    width = values.shape[1]
    if width < 4 or width % 2 or len(values) < ROWS_TO_TELL:
        return False
    axes, rows = values.T[::2], values.T[1::2]
    spans = np.sort(axes[:, [0, -1]], axis=1)
    alike = (spans[:, 0].max() < spans[:, 1].min()) or bool(titles)
    return (
        alike
        and all(_runs_one_way(each) for each in axes)
        and not any(_runs_one_way(each) for each in rows)
        and not any(mark in title for title in titles[1::2] for mark in OTHER_MARKS)
        and not any(title in NUMBER_TITLES for title in titles[::2])
    )


def _paired(table: Table, titles: Sequence[str]) -> Recording:
    name = "text in pairs of columns"
    title = titles[0] if titles else ""
    pieces = []
    for x, y in zip(table.values.T[::2], table.values.T[1::2], strict=True):
        values, unit, stated = axis_under(name, title, x)
        pieces.append((values, y))
    axis, rows, notes = on_one_axis(name, pieces)
    return table.recording(axis, unit, rows, stated=stated, notes=notes, name=name)


def _split_runs(name: str, axis: Array, rows: Array) -> tuple[Array, Array, tuple[str, ...]]:
    """Split axis and spectra where the axis jumps back: further spectra, or further windows."""
    runs = runs_of(axis)
    if len(runs) == 1:
        return axis, rows, ()
    lost = axis.size - sum(run.stop - run.start for run in runs)
    axis, rows, notes = split_runs(name, axis, rows)
    if lost:
        notes = (*notes, f"{lost} points between them are left out: the axis turns there")
    return axis, rows, notes


def first_row(name: str, lines: Sequence[str]) -> int:
    """Return the index of the first line of numbers that is followed by one of the same length.

    Raises:
        BadFile: When there is none, or none soon enough.
    """
    alone = None
    for at, line in enumerate(lines[: HEADER_LINES_MAX + 1]):
        row = numbers_of(line)
        if row is None or len(row) < 2:
            continue
        alone = at if alone is None else alone
        following = (numbers_of(later) for later in lines[at + 1 : at + 4] if later.strip())
        if any(later is not None and len(later) == len(row) for later in following):
            return _with_bad_rows(lines, at, len(row))
    if alone is not None:
        return alone
    if len(lines) > HEADER_LINES_MAX:
        raise NoTable("spectra.no_row_early", format=name, most=HEADER_LINES_MAX)
    raise NoTable("spectra.no_pairs", format=name)


def _with_bad_rows(lines: Sequence[str], at: int, width: int) -> int:
    """Add a line above to the rows if half of it are numbers, so that it is reported as bad.

    A line of two cells needs more: ``532 nm`` above a table is its header.
    """
    while at > 0 and width > 2:
        cells = cells_of(lines[at - 1])
        if 2 * sum(bool(numbers_of(cell)) for cell in cells) < width:
            break
        at -= 1
    return at


def _titles(heading: str, width: int) -> list[str]:
    """Split a heading like its table; return nothing if it has not one title per column."""
    plain = heading.lstrip("# ").lower()
    for mark in ("\t", ";", ",", None):
        titles = [cell.strip(' "') for cell in plain.split(mark)]
        while titles and not titles[-1]:
            titles.pop()
        if len(titles) == width:
            return titles
    return []


def _places(titles: Sequence[str]) -> bool:
    return re.split(r"\W", titles[0])[0] in PLACE_NAMES and any(
        axis_unit_of(title)[1] or title.startswith("wave") for title in titles[1:]
    )


def _axis_column(titles: Sequence[str]) -> int:
    """Return the column of the axis: a shift before a wavelength, else the first."""
    for marks in (SHIFT_MARKS, NM_MARKS):
        for at, title in enumerate(titles):
            if any(mark in title for mark in marks):
                return at
    return 0


def _spectra(values: Array, titles: Sequence[str], at: int, own: bool) -> list[int]:
    """Return the columns that hold spectra.

    Raises:
        BadFile: When the headings do not tell them.
    """
    others = [column for column in range(values.shape[1]) if column != at]
    if own:
        return others
    if titles:
        found = [
            column
            for column in others
            if titles[column] not in NUMBER_TITLES
            and not any(mark in titles[column] for mark in OTHER_MARKS)
        ]
        if found:
            return found
    elif len(values) >= ROWS_TO_TELL and not any(_runs_one_way(values[:, n]) for n in others):
        return others
    raise BadFile("spectra.two_columns", columns=values.shape[1])


def _runs_one_way(column: Array) -> bool:
    step = np.diff(column)
    return bool((step > 0).all() or (step < 0).all())
