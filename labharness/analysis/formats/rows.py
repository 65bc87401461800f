"""Rows of numbers in a text, and notes on the rows that were left out."""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import LASER_NM_MAX, LASER_NM_MIN, BadFile

LEFT_OUT_SHARE_MAX = 0.1
"""With a larger share of bad rows the file is something else. One bad row is always allowed, so
that a single edited line does not refuse a file."""

SHOWN_CHARACTERS = 60

LASER = re.compile(r"laser|excitation|exciting|激光|激发", re.IGNORECASE)
NOT_LASER = re.compile(r"power|filter|intens|level|attenu|%|mw|功率", re.IGNORECASE)
"""Words of a header entry that names the wavelength of the laser, and of one that does not."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of numbers, all of one length.

    Attributes:
        values: One row a line.
        notes: The lines that were left out, and why; may be empty.
    """

    values: Array
    notes: tuple[str, ...] = ()


def cells_of(line: str) -> tuple[list[str], bool]:
    """Split a line at its tabs or semicolons, else at its blanks, else at its commas.

    Returns:
        The cells, with empty ones, and whether a comma inside a cell is a decimal point.
    """
    for mark in "\t;":
        if mark in line:
            return [cell.strip(' "') for cell in line.split(mark)], True
    if '"' in line:  # "100,5","3": commas inside quotation marks do not separate
        return next(csv.reader([line], skipinitialspace=True), []), True
    parts = line.split()
    if len(parts) > 1 and not any(
        part.startswith(",") or part.endswith(",") or part.count(",") > 1 for part in parts
    ):
        return parts, True
    if "," in line:
        return [cell.strip() for cell in line.split(",")], False
    return parts, False


def numbers_of(line: str) -> list[float] | None:
    """Return the numbers of a row without empty cells; None if a cell is not a number."""
    try:
        if "\t" in line:  # most maps; a row of a thousand cells must not take a millisecond
            return [float(cell) for cell in line.replace(",", ".").split("\t") if cell.strip()]
        cells, comma_is_point = cells_of(line)
        if comma_is_point:
            return [float(cell.replace(",", ".")) for cell in cells if cell]
        return [float(cell) for cell in cells if cell]
    except (ValueError, csv.Error):
        return None


def entry_of(line: str, mark: str = "=", around: str | None = None) -> tuple[str, str]:
    """Return key and value of a header line; ``around`` are the characters to strip from it."""
    key, _, value = line.partition(mark)
    return key.strip(), value.strip(around)


def number_of(text: str) -> float | None:
    """Return the number at the start of a header entry, or None."""
    found = re.match(r"\s*[-+]?\d{1,15}(?:[.,]\d{1,15})?", text)
    return float(found[0].replace(",", ".")) if found else None


def laser_of(text: str) -> float | None:
    """Return the laser wavelength in a header; None if it is not plausible, such as 0."""
    found = number_of(text)
    return found if found is not None and LASER_NM_MIN <= found <= LASER_NM_MAX else None


def laser_in(header: Mapping[str, str]) -> float | None:
    """Return the laser wavelength that a header names in whatever entry, or None."""
    named = (v for k, v in header.items() if LASER.search(k) and not NOT_LASER.search(k))
    return next((found for value in named if (found := laser_of(value)) is not None), None)


def table_of(format_name: str, lines: Sequence[str], first_line: int = 1) -> Table:
    """Return the rows of numbers that have the most common length.

    Lines without numbers after the last row are a footer. A few other bad lines are left out and
    named.

    Args:
        format_name: For messages.
        lines: Text below the header.
        first_line: Number of the first of them in the file.

    Raises:
        BadFile: When there is no row, or more than a tenth of the rows is bad; the message names
            the first one.
    """
    whole = _whole(lines)
    if whole is not None:
        return Table(whole)
    rows = [
        (number, line, numbers_of(line))
        for number, line in enumerate(lines, first_line)
        if line.strip(" \t;,\r\n")
    ]
    while rows and rows[-1][2] is None:
        rows.pop()
    lengths = Counter(len(row) for _, _, row in rows if row)
    if not lengths:
        raise BadFile(f"{format_name}: it holds no row of numbers")
    length = lengths.most_common(1)[0][0]
    good = [row for _, _, row in rows if row is not None and len(row) == length]
    bad = [(number, line) for number, line, row in rows if row is None or len(row) != length]
    allowed = max(1.0, LEFT_OUT_SHARE_MAX * len(rows)) if len(good) > 1 else 0.0
    if len(bad) > allowed:
        number, line = bad[0]
        raise BadFile(
            f"{format_name}: line {number} is not {_numbers(length)}: "
            f"{line.strip()[:SHOWN_CHARACTERS]!r}"
            + (f", and {len(bad) - 1} more like it" if len(bad) > 1 else "")
        )
    return Table(np.array(good), left_out("line", [number for number, _ in bad], _numbers(length)))


def _whole(lines: Sequence[str]) -> Array | None:
    """Read rows without any fault, four times as fast; return None if one has a fault."""
    first = next((line for line in lines if line.strip()), "")
    cells, comma_is_point = cells_of(first)
    if "\t" in first:
        mark: str | None = "\t"
    elif ";" in first or (comma_is_point and "," in first):
        return None
    else:
        mark = None if comma_is_point else ","
    if len(cells) < 2:
        return None
    try:
        return np.loadtxt(lines, delimiter=mark, comments=None, ndmin=2)
    except ValueError:
        return None


def _numbers(length: int) -> str:
    return "one number" if length == 1 else f"{length} numbers"


def left_out(kind: str, numbers: Sequence[int], wanted: str) -> tuple[str, ...]:
    """Return one sentence about what was left out, or nothing.

    Args:
        kind: ``line``, ``spectrum`` or another noun with a plural in s; the plural of spectrum is
            known.
        numbers: Their numbers, counted from 1.
        wanted: The form that they do not have, as ``2 numbers``.
    """
    if not numbers:
        return ()
    if len(numbers) == 1:
        return (f"{kind} {numbers[0]} is left out: it is not {wanted}",)
    several = "spectra" if kind == "spectrum" else f"{kind}s"
    return (
        f"{len(numbers)} {several} are left out, the first is {kind} {numbers[0]}: "
        f"they are not {wanted}",
    )
