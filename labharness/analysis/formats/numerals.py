"""Convert unusual numbers: exponents after D, and thousands separators."""

import re

from labharness.analysis.formats.rows import cells_of

FORTRAN = re.compile(r"(?<=[\d.])[dD](?=[-+]\d{1,3}(?![\w.]))")
"""Fortran writes double precision as ``1.25D+02`` (ISO/IEC 1539-1, 13.7.2.3.3)."""

QUOTES = "'\u2019"
BLANKS = "\u00a0\u202f\u2009"
"""Marks that can only separate thousands: the Swiss apostrophe, and non-breaking blanks."""

GROUPS = r"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+(?![\d{mark}])"
NUMERAL = re.compile(rf"[-+]?[\d.,{QUOTES}{BLANKS}]+(?:[eE][-+]?\d+)?")

SAMPLE_LINES = 5000
"""Lines that are checked for the meaning of comma and point; spectra have fewer."""


def plain_numerals(text: str) -> tuple[str, tuple[str, ...]]:
    """Rewrite a table's numbers in plain form if their meaning is certain; return text and notes.

    A comma or a point separates thousands if three digits follow it every time, and the other one
    of the two marks the decimals in most rows. In doubt the text stays as it is.
    """
    notes = []
    if any(each in text for each in ("D+", "D-", "d+", "d-")):
        text, changed = FORTRAN.subn("E", text)
        if changed:
            notes.append("exponents after D are read as those after E")
    for mark in _between_thousands(text):
        text, changed = _without(mark, text)
        if changed:
            notes.append(f"{_named(mark)} between thousands are left away")
    return text, tuple(notes)


def _without(mark: str, text: str) -> tuple[str, int]:
    grouped = re.compile(rf"(?<![\d.,{mark}]){GROUPS.format(mark=re.escape(mark))}")
    return grouped.subn(lambda found: found[0].replace(mark, ""), text)


def _between_thousands(text: str) -> list[str]:
    marks = [each for each in (*QUOTES, *BLANKS) if each in text]
    if not marks and not ("," in text and "." in text):
        return []
    rows = _rows(text)
    marks = [each for each in marks if any(_is_grouped(cell, each) for row in rows for cell in row)]
    return marks + [
        mark for mark, other in ((",", "."), (".", ",")) if _parts_thousands(rows, mark, other)
    ]


def _rows(text: str) -> list[list[str]]:
    """Return the cells of the first rows of numbers in which a comma does not separate cells."""
    found = []
    for line in text.splitlines()[:SAMPLE_LINES]:
        cells, comma_parts_nothing = cells_of(_with_blanks_kept(line))
        if comma_parts_nothing and len(cells) > 1 and all(map(NUMERAL.fullmatch, cells)):
            found.append(cells)
    return found


def _with_blanks_kept(line: str) -> str:
    """Remove non-breaking blanks, so that they do not separate cells, unless tabs or ``;`` do."""
    return line if "\t" in line or ";" in line else line.translate(dict.fromkeys(map(ord, BLANKS)))


def _parts_thousands(rows: list[list[str]], mark: str, other: str) -> bool:
    having = [cell for row in rows for cell in row if mark in cell]
    if not having or not all(_is_grouped(cell, mark) for cell in having):
        return False
    decimals = sum(any(_is_decimal(cell, other) for cell in row) for row in rows)
    return 2 * decimals > len(rows)


def _is_decimal(cell: str, mark: str) -> bool:
    """Return whether a mark stands before decimals, and cannot separate thousands."""
    return cell.count(mark) == 1 and not _is_grouped(cell, mark)


def _is_grouped(cell: str, mark: str) -> bool:
    """Return whether a number has three digits after each of these marks, decimals apart."""
    return bool(re.match(rf"[-+]?{GROUPS.format(mark=re.escape(mark))}", cell))


def _named(mark: str) -> str:
    return {",": "commas", ".": "points"}.get(mark, "apostrophes" if mark in QUOTES else "blanks")
