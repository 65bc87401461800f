"""Maps in text: the axis in the first row, or one row per pixel with its place first.

Where each row below the axis has a place and its spectrum, LabSpec writes empty cells above the
places, wafer mappers write ``X;Y;`` before the axis, other programs omit these cells. In long form,
of Renishaw WiRE and others, a spectrum begins where the axis jumps back.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile, Recording, left_out
from labharness.analysis.formats.table import Table, axis_under, cells_of, numbers_of, table_of
from labharness.analysis.formats.windows import on_one_axis, runs_of

NAME = "text of a map"
AXIS_POINTS_MIN = 8
"""A first row with fewer ascending numbers may be two or three columns instead."""

COLUMN_ROWS_MIN = 8
"""With fewer rows an ascending first column may be chance: a few places in order."""

TITLE_LINES_MAX = 50
"""Most lines above the axis, as ``Dynamic Sitebased Spectral`` of a wafer mapper."""

PLACE_COLUMNS_MAX = 4
"""X, Y, Z and time."""

UNITS = {"µm": "um", "μm": "um", "um": "um", "mm": "mm", "s": "s"}


def first_cells(line: str) -> tuple[list[str], Array] | None:
    """Split the row that may be the axis.

    Returns:
        The cells before its first number, and its numbers; None when a number is followed by
        another cell, or the numbers are not monotonic.
    """
    cells = cells_of(line.rstrip("\r\n\t;, "))
    before = next((at for at, cell in enumerate(cells) if _is_number(cell)), len(cells))
    if before > PLACE_COLUMNS_MAX or len(cells) - before < 2:
        return None
    try:
        axis = np.array([float(cell) for cell in cells[before:]])
    except ValueError:
        return None
    step = np.diff(axis)
    if not ((step > 0).all() or (step < 0).all()):
        return None
    return cells[:before], axis


def numbers_columns(lines: Sequence[str]) -> bool:
    """Return whether the first row only numbers the columns (0, 1, 2 or 1, 2, 3) of a table.

    pandas writes such a row when the columns have no names; the axis is then the first column.
    """
    body = [line for line in lines[:40] if line.strip() and not line.startswith("#")]
    found = first_cells(body[0]) if body else None
    if found is None:
        return False
    axis = found[1]
    counts = np.arange(axis.size) + axis[0]
    rows = [row for line in body[1:] if (row := numbers_of(line))]
    down = np.diff([row[0] for row in rows])
    runs = down.size >= COLUMN_ROWS_MIN and bool((down > 0).all() or (down < 0).all())
    return axis[0] in (0, 1) and np.array_equal(axis, counts) and runs


def is_grid(lines: Sequence[str]) -> bool:
    """Return whether the lines are a map instead of columns, by the first two rows of numbers."""
    body = [line for line in lines[_titles(lines) :] if line.strip()][:12]
    if len(body) < 2:
        return False
    found = first_cells(body[0])
    if found is None or found[1].size < AXIS_POINTS_MIN or numbers_columns(lines):
        return False
    before, axis = found
    rest = body[1:]
    body = [body[0], *_without_names(rest, len(before))]
    below = [row for line in body[1:] if (row := numbers_of(line)) is not None]
    if before:
        named = body[1:] != rest
        return any(len(row) == axis.size + len(before) * (not named) for row in below)
    more = {len(row) - axis.size for row in below}
    if more & set(range(1, PLACE_COLUMNS_MAX)):
        return True
    # Only numbers: the axis is the first row, or the first column of a wide table.
    column = np.diff([row[0] for row in [numbers_of(body[0]) or [], *below] if row])
    return 0 in more and not ((column > 0).all() or (column < 0).all())


def parse_grid(
    lines: Sequence[str],
    *,
    name: str = NAME,
    unit: str = "",
    header: Mapping[str, str] | None = None,
    titles: Sequence[str] | None = None,
    first_line: int = 1,
) -> Recording:
    """Read the rows of a map.

    Args:
        lines: The axis, and the rows below it.
        name: Name of the format.
        unit: Unit of the axis, if the file states it.
        header: Entries above the map.
        titles: Names of the columns of places; None if the first row names them, or if they have
            none.
        first_line: Number of the first line in the file.

    Raises:
        BadFile: When the first row is not an axis, or the rows below do not fit it.
    """
    above = _titles(lines)
    lines, first_line = lines[above:], first_line + above
    found = first_cells(lines[0]) if lines else None
    if found is None:
        raise BadFile("spectra.no_axis_line", format=name, line=first_line)
    words, axis = found
    rows = _without_names(lines[1:], len(words))
    table = table_of(name, rows, first_line + 1, header)
    width, points = table.values.shape[1], axis.size
    before = len(words) if rows == list(lines[1:]) else 0
    if not words:
        before = max(width - points, 0)
    if width != before + points:
        raise BadFile("spectra.map_rows", format=name, found=width, points=points, places=before)
    places: dict[str, Array] = {}
    for index in range(before):
        title = titles[index] if titles is not None and index < len(titles) else ""
        title = title or _place_name(words[index] if index < len(words) else "", index)
        if title in places:
            title = f"{title}_{index + 1}"
        places[title] = table.values[:, index]
    rows_of = np.ascontiguousarray(table.values[:, before:])
    return table.recording(axis, unit or "1/cm", rows_of, places=places, stated=bool(unit))


def _titles(lines: Sequence[str]) -> int:
    """Return how many lines stand above the axis: comments, blanks, and titles without numbers."""
    for at, line in enumerate(lines[:TITLE_LINES_MAX]):
        if line.strip() and not line.startswith("#"):
            found = first_cells(line)
            if found is not None and found[1].size >= AXIS_POINTS_MIN:
                return at
    return next((n for n, line in enumerate(lines) if line.strip() and line[0] != "#"), 0)


def _without_names(lines: Sequence[str], words: int) -> list[str]:
    """Remove a name before the numbers of a row, as in ``spot 1;100;101``."""
    first = next((line for line in lines if line.strip()), "")
    if not words or not _is_name(cells_of(first)[:1]):
        return list(lines)
    found = []
    for line in lines:
        cells = cells_of(line)
        named = len(cells) > words and _is_name(cells)
        found.append("\t".join(cells[words:]) if named else line)
    return found


def _place_name(word: str, index: int) -> str:
    """Return the name of a column of places: ``X (mm)`` is ``x_mm``; an unknown unit is left out.

    The empty cells of LabSpec have no name; its columns are numbered.
    """
    name, _, unit = word.strip('"[]() ').lower().replace("[", "(").partition("(")
    name, unit = name.strip(" _"), unit.strip(") ")
    if name.partition("_")[2] in UNITS.values():
        return name
    if not name:
        return f"column_{index + 1}"
    return f"{name}_{UNITS[unit]}" if unit in UNITS else name


def _is_name(cells: Sequence[str]) -> bool:
    return bool(cells and cells[0]) and not _is_number(cells[0])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# ---- one row per pixel

PLACES = {each: f"{each.lower()}_um" for each in "XYZxyz"} | dict.fromkeys(
    ("Time", "time", "t"), "time_s"
)
WIRE = "WiRE text"


def parse_wire_text(text: str) -> Recording:
    """Read Renishaw WiRE text: ``#Wave #Intensity``, in maps after ``#X #Y`` or ``#Time``.

    Raises:
        BadFile: When a column is missing or the spectra do not share one axis.
    """
    lines = text.lstrip().splitlines()
    columns = [part.strip("# ") for part in lines[0].split("\t") if part.strip("# ")]
    if columns[-2:] != ["Wave", "Intensity"]:
        raise BadFile("spectra.wire_columns", format=WIRE, columns=columns)
    table = table_of(WIRE, lines[1:], 2)
    if table.values.shape[1] != len(columns):
        raise BadFile(
            "spectra.headings", format=WIRE, found=table.values.shape[1], named=len(columns)
        )
    return parse_long(columns, table, WIRE)


def parse_long(titles: Sequence[str], table: Table, name: str) -> Recording:
    """Read rows of places, axis and intensity; a spectrum begins where the axis jumps back.

    A spectrum whose axis differs from most (a row was cut) is left out and named. If no two axes
    agree, the runs are windows of one spectrum.

    Args:
        titles: Headings of all columns; the last two are axis and intensity.
        table: The rows.
        name: Name of the format.

    Raises:
        BadFile: When the spectra do not share one axis.
    """
    wave, counts = table.values[:, -2], table.values[:, -1]
    runs = _runs(wave)
    axes = [wave[run].tobytes() for run in runs]
    common, times = Counter(axes).most_common(1)[0]
    wave, unit, _ = axis_under(name, titles[-2].lower(), wave)
    if times == 1 and len(runs) > 1:
        if len(titles) > 2:
            raise BadFile("spectra.map_axes", format=name)
        axis, rows, notes = on_one_axis(name, [(wave[run], counts[run]) for run in runs])
        return table.recording(axis, unit, rows, notes=notes, name=name)
    kept = [n for n, axis in enumerate(axes) if axis == common]
    gone = [n + 1 for n, axis in enumerate(axes) if axis != common]
    if len(gone) > max(1, len(kept)):
        raise BadFile("spectra.map_axes", format=name)
    starts = [runs[n].start for n in kept]
    places = {
        PLACES.get(title.strip("# "), title.strip("# ")): table.values[starts, column]
        for column, title in enumerate(titles[:-2])
    }
    notes = (left_out("spectrum", gone, wanted="on the axis of the others"),) if gone else ()
    axis, spectra = wave[runs[kept[0]]], np.stack([counts[runs[n]] for n in kept])
    return table.recording(axis, unit, spectra, places=places, notes=notes, name=name)


def _runs(wave: Array) -> list[slice]:
    """Split at jumps; a map of very short spectra is split where its first pixel repeats."""
    runs = runs_of(wave)
    again = np.nonzero(wave == wave[0])[0]
    if len(runs) > 1 or again.size < 2:
        return runs
    ends = [*again.tolist(), wave.size]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
