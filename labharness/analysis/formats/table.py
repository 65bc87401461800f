"""Tables in text: numbers, their heading, decimal commas, separators, and units of axes.

The header that a single program writes above its table is read in the module of that format.
"""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import (
    LASER_NM_MAX,
    LASER_NM_MIN,
    BadFile,
    Recording,
    left_out,
)
from labharness.analysis.spectrum import EV_NM, NM_TO_CM1

LEFT_OUT_SHARE_MAX = 0.1
"""With a larger share of bad rows the file is something else. One bad row is always allowed, so
that a single edited line does not refuse a file."""

SHOWN_CHARACTERS = 60

LASER = re.compile(r"laser|excitation|exciting|激光|激发", re.IGNORECASE)
NOT_LASER = re.compile(r"power|filter|intens|level|attenu|%|mw|功率", re.IGNORECASE)
"""Words of a header entry that names the wavelength of the laser, and of one that does not."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of numbers, all of one length, and what stands around them.

    Attributes:
        name: Name of the format.
        values: One row a line.
        notes: The lines that were left out, and why; may be empty.
        header: The entries above.
    """

    name: str
    values: Array
    notes: tuple[str, ...] = ()
    header: Mapping[str, str] = field(default_factory=dict)

    def recording(
        self,
        axis: Array,
        unit: str,
        rows: Array,
        *,
        places: Mapping[str, Array] | None = None,
        stated: bool = True,
        notes: Sequence[str] = (),
        name: str = "",
        laser_nm: float | None = None,
    ) -> Recording:
        """Return spectra of this table; without a laser, the one that its header names."""
        return Recording(
            name or self.name,
            axis,
            unit,
            rows,
            laser_nm=laser_nm or laser_in(self.header),
            places=places or {},
            header=self.header,
            unit_stated=stated,
            notes=(*self.notes, *notes),
        )


def cells_of(line: str) -> list[str]:
    """Return the cells of a line as `split` finds them, with decimal points in place of commas."""
    cells, comma_is_point = split(line)
    return [cell.replace(",", ".") for cell in cells] if comma_is_point else cells


def split(line: str) -> tuple[list[str], bool]:
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
        return [float(cell) for cell in cells_of(line) if cell]
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


def table_of(
    name: str,
    lines: Sequence[str],
    first_line: int = 1,
    header: Mapping[str, str] | None = None,
) -> Table:
    """Return the rows of numbers that have the most common length.

    Lines without numbers after the last row are a footer. A few other bad lines are left out and
    named.

    Args:
        name: Name of the format.
        lines: Text below the header.
        first_line: Number of the first of them in the file.
        header: The entries of the header.

    Raises:
        BadFile: When there is no row, or more than a tenth of the rows is bad; the message names
            the first one.
    """
    whole = _whole(lines)
    if whole is not None:
        return Table(name, whole, (), header or {})
    rows = [
        (number, line, numbers_of(line))
        for number, line in enumerate(lines, first_line)
        if line.strip(" \t;,\r\n")
    ]
    while rows and rows[-1][2] is None:
        rows.pop()
    lengths = Counter(len(row) for _, _, row in rows if row)
    if not lengths:
        raise BadFile("spectra.no_row", format=name)
    length = lengths.most_common(1)[0][0]
    good = [row for _, _, row in rows if row is not None and len(row) == length]
    bad = [(number, line) for number, line, row in rows if row is None or len(row) != length]
    allowed = max(1.0, LEFT_OUT_SHARE_MAX * len(rows)) if len(good) > 1 else 0.0
    if len(bad) > allowed:
        number, line = bad[0]
        raise BadFile(
            f"{name}: line {number} is not {_numbers(length)}: "
            f"{line.strip()[:SHOWN_CHARACTERS]!r}"
            + (f", and {len(bad) - 1} more like it" if len(bad) > 1 else "")
        )
    numbers = [number for number, _ in bad]
    notes = (left_out("line", numbers, wanted=_numbers(length)),) if bad else ()
    return Table(name, np.array(good), notes, header or {})


def _whole(lines: Sequence[str]) -> Array | None:
    """Read rows without any fault, four times as fast; return None if one has a fault."""
    first = next((line for line in lines if line.strip()), "")
    cells, comma_is_point = split(first)
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


# ---- what the heading of an axis says

NM_MARKS = (
    *("wavelength", "nm", "wellenlänge", "longueur d'onde", "longitud de onda", "波长", "波長"),
)
"""Words of a heading that say that the first column is a wavelength."""

SHIFT_MARKS = (
    *("shift", "cm-1", "cm^-1", "cm⁻¹", "1/cm", "cm1", "wavenumber", "wellenzahl", "verschiebung"),
    *("nombre d'onde", "número de onda", "拉曼位移", "波数", "ラマンシフト"),
)
"""Words of a heading that say that it is a Raman shift."""

SHIFT_WORDS = ("shift", "loss", "verschiebung")
UM_WORDS = ("um", "µm", "μm", "micron", "microns", "micrometer")
SHIFT_MEV_MAX = 620.0
"""5000 cm⁻¹; a photon of so little energy is in the far infrared."""


def axis_under(name: str, title: str, values: Array) -> tuple[Array, str, bool]:
    """Return an axis in cm⁻¹, nm or eV, its unit by its heading, and whether this states it.

    Args:
        name: Name of the format, for messages.
        title: The heading, in lower case.
        values: The axis in the file.

    Raises:
        BadFile: When the numbers contradict the heading.
    """
    other = _in_other_unit(name, title, values)
    return (*other, True) if other is not None else (values, *axis_unit_of(title))


def axis_unit_of(title: str) -> tuple[str, bool]:
    """Return the unit of an axis by its heading, and whether the heading states it."""
    if any(mark in title for mark in SHIFT_MARKS):
        return "1/cm", True
    return ("nm", True) if any(mark in title for mark in NM_MARKS) else ("1/cm", False)


def _in_other_unit(name: str, title: str, axis: Array) -> tuple[Array, str] | None:
    """Convert energies in eV and meV, of photons or as a shift, µm, and absolute wave numbers."""
    words = set(re.findall(r"[a-zµμ]+", title))
    is_shift = any(word in title for word in SHIFT_WORDS)
    if words & {"ev", "mev"}:
        milli = "mev" in words
        is_shift |= milli and bool(np.abs(axis).max() < SHIFT_MEV_MAX)
        energy_ev = axis / 1000 if milli else axis
        if is_shift:
            return energy_ev * (NM_TO_CM1 / EV_NM), "1/cm"
        return energy_ev, "eV"
    if words & set(UM_WORDS) and "wavel" in title:
        return axis * 1000, "nm"
    if "abs" in title and words & {"cm", "wavenumber", "wavenumbers"} and not is_shift:
        if not (axis > 0).all():
            raise BadFile("spectra.wave_number", format=name, found=axis.min())
        return NM_TO_CM1 / axis, "nm"
    return None


# ---- unusual numbers: exponents after D, and thousands separators

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
        cells, comma_parts_nothing = split(_with_blanks_kept(line))
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
