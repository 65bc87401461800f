"""Text in columns: numbers between tabs, semicolons, commas or blanks, point or decimal comma."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.formats.recording import BadFile, Recording

__all__ = ["number_of", "numbers_of", "parse_bwtek", "parse_columns", "parse_wire_text", "table_of"]

Array = NDArray[np.float64]

HEADER_LINES_MAX = 500
"""Lines without numbers before the first row; more is no table."""

NM_MARKS = ("wavelength", "nm")
"""Words of a heading that say that the first column is no Raman shift."""

SHIFT_MARKS = ("shift", "cm-1", "cm^-1", "cm⁻¹", "1/cm", "cm1", "wavenumber")
"""Words of a heading that say that it is one."""

PLACES = {"X": "x_um", "Y": "y_um", "Z": "z_um", "Time": "time_s"}


def _fields(line: str) -> tuple[list[str], bool]:
    """Part a row; say also whether a comma within a field is a decimal point."""
    if "\t" in line or ";" in line:
        return [part for part in re.split(r"[\t;]", line) if part.strip()], True
    parts = line.split()
    if len(parts) > 1 and not any(part.startswith(",") or part.endswith(",") for part in parts):
        return parts, True
    return (
        ([part for part in line.split(",") if part.strip()], False)
        if "," in line
        else (parts, False)
    )


def numbers_of(line: str) -> list[float] | None:
    """Give the numbers of a row; None when a field is no number."""
    fields, comma_is_point = _fields(line)
    try:
        return [float(f.replace(",", ".") if comma_is_point else f) for f in fields]
    except ValueError:
        return None


def number_of(text: str) -> float | None:
    """Give the number a header entry begins with, None when there is none."""
    found = re.match(r"\s*[-+]?\d+(?:[.,]\d+)?", text)
    return float(found[0].replace(",", ".")) if found else None


def table_of(format_name: str, lines: Sequence[str], first_line: int = 1) -> Array:
    """Give the rows of numbers, all of one length.

    Raises:
        BadFile: When a row is no numbers, or has more or fewer than the first; names its line.
    """
    rows: list[list[float]] = []
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        row = numbers_of(line)
        if row is None or (rows and len(row) != len(rows[0])):
            wanted = f"{len(rows[0])} numbers" if rows else "numbers"
            raise BadFile(f"{format_name}: line {number} is not {wanted}: {line.strip()[:60]!r}")
        rows.append(row)
    if not rows:
        raise BadFile(f"{format_name}: it holds no row of numbers")
    return np.array(rows)


def parse_columns(text: str) -> Recording:
    """Read text of two columns, axis and intensity; this program's CSV may have more spectra.

    Lines before the first row of numbers are a header. A first column is a Raman shift in cm⁻¹
    unless its heading says wavelength or nm.

    Raises:
        BadFile: When there is no table, or it has a third column whose meaning nobody states.
    """
    name = "text in two columns"
    lines = text.splitlines()
    start = 0
    while start < len(lines):
        row = numbers_of(lines[start])
        if row is not None and len(row) >= 2:
            break
        start += 1
        if start > HEADER_LINES_MAX:
            break
    else:
        raise BadFile(f"{name}: no line holds two numbers, an axis and an intensity")
    if start > HEADER_LINES_MAX:
        raise BadFile(f"{name}: no row of numbers within the first {HEADER_LINES_MAX} lines")
    table = table_of(name, lines[start:], start + 1)
    head = [line.strip() for line in lines[:start] if line.strip()]
    heading = head[-1].lower() if head else ""
    own = heading.startswith(("raman_shift_cm1,", "wavelength_nm,"))
    if table.shape[1] != 2 and not own:
        raise BadFile(
            f"{name}: it has {table.shape[1]} columns; give a file of two, axis and intensity"
        )
    first = re.split(r"[\t;,]", heading)[0]
    unit = "nm" if any(mark in first for mark in NM_MARKS) else "1/cm"
    pairs = dict(_pair(line) for line in head if "=" in line)
    laser = number_of(pairs.get("laser_nm", ""))
    return Recording(
        "CSV" if own else name,
        table[:, 0],
        unit,
        table[:, 1:].T,
        laser_nm=laser,
        header=pairs,
        unit_stated=unit == "nm" or any(mark in first for mark in SHIFT_MARKS),
    )


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.lstrip("# ").partition("=")
    return key.strip(), value.strip()


def parse_wire_text(text: str) -> Recording:
    """Read Renishaw WiRE text: ``#Wave #Intensity``, for maps with ``#X #Y`` or ``#Time`` before.

    Raises:
        BadFile: When a column is missing or the spectra do not share one axis.
    """
    name = "WiRE text"
    lines = text.splitlines()
    columns = [part.strip("# ") for part in lines[0].split("\t") if part.strip("# ")]
    if columns[-2:] != ["Wave", "Intensity"]:
        raise BadFile(f"{name}: the columns are {columns}, the last two must be Wave, Intensity")
    table = table_of(name, lines[1:], 2)
    if table.shape[1] != len(columns):
        raise BadFile(f"{name}: {table.shape[1]} columns of numbers under {len(columns)} headings")
    wave = table[:, -2]
    # A spectrum ends where the axis jumps back to where the first one began.
    starts = np.nonzero(wave == wave[0])[0]
    points = int(starts[1]) if starts.size > 1 else wave.size
    if wave.size % points or not np.array_equal(wave, np.tile(wave[:points], wave.size // points)):
        raise BadFile(f"{name}: the spectra of this map do not share one axis")
    places = {
        PLACES.get(column, column): table[::points, index]
        for index, column in enumerate(columns[:-2])
    }
    return Recording(name, wave[:points], "1/cm", table[:, -1].reshape(-1, points), places=places)


def parse_bwtek(text: str) -> Recording:
    """Read a B&W Tek raw export (``File Version;BWRam…``): dark-subtracted against Raman shift.

    Pixels outside the calibrated range have blanks for a shift and are left out.

    Raises:
        BadFile: When the two columns are missing or empty.
    """
    name = "B&W Tek export"
    lines = text.splitlines()
    head = [line.split(";") for line in lines[:HEADER_LINES_MAX]]
    start = next((n for n, parts in enumerate(head) if parts[0] == "Pixel"), None)
    if start is None:
        raise BadFile(f"{name}: no heading line that begins with Pixel")
    columns = head[start]
    wanted = ("Raman Shift", "Dark Subtracted #1")
    if any(each not in columns for each in wanted):
        raise BadFile(f"{name}: the columns {' and '.join(wanted)} are missing")
    shift_at, counts_at = (columns.index(each) for each in wanted)
    rows = []
    for number, line in enumerate(lines[start + 1 :], start + 2):
        parts = [part.strip().replace(",", ".") for part in line.split(";")]
        if len(parts) <= max(shift_at, counts_at) or not parts[shift_at]:
            continue
        try:
            rows.append((float(parts[shift_at]), float(parts[counts_at])))
        except ValueError:
            raise BadFile(f"{name}: line {number} is not numbers: {line[:60]!r}") from None
    if not rows:
        raise BadFile(f"{name}: no pixel has a Raman shift")
    pairs = {parts[0]: parts[1] for parts in head[:start] if len(parts) > 1}
    table = np.array(rows)
    return Recording(
        name,
        table[:, 0],
        "1/cm",
        table[:, 1],
        laser_nm=number_of(pairs.get("laser_wavelength", "")),
        header=pairs,
    )
