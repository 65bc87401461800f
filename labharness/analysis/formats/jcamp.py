"""JCAMP-DX: labelled records, intensities plain or packed (PAC, SQZ, DIF, DUP).

Packing as in McDonald and Wilks 1988, 10.1366/0003702884428734, and JCAMP-DX 4.24.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile, Recording, left_out
from labharness.analysis.formats.table import laser_of

Row = tuple[float, list[float]]
Read = TypeVar("Read")

NAME = "JCAMP-DX"
LASER = re.compile("(LASER|EXCITATION).*WAVELENGTH")
MARK = re.compile(r"^##\s*(JCAMP|XYDATA|XYPOINTS|PEAK\s*TABLE)", re.MULTILINE | re.IGNORECASE)
COLUMNS = re.compile(r"^\s*[-+]?\d[\d.]*\s*,\s*[-+]?\d", re.MULTILINE)
POINTS_MAX = 1_000_000
NUMBER_MAX = 1e9
"""Larger than any axis, factor or number of points."""

BAD_SHARE_MAX, ROWS_MIN = 0.1, 3
"""Largest share of bad rows (one is always allowed), and the fewest rows that show where they
belong."""

X_ROUNDED_MAX = 0.6
"""The X of a row is rounded: by half a step, and by the error of the factor."""

CHECK_TOLERANCE = 1.0
"""A Y-check differs from its value only by rounding, in packed integers."""

# An E is an exponent only before a sign; in packed form it is the digit 5.
TOKEN = re.compile(r"[@A-Ia-i%J-Rj-rS-Zs+-]?\d*\.?\d*(?:[eE][+-]\d+)?")
SQUEEZED = {c: str(n) for n, c in enumerate("@ABCDEFGHI")} | {
    c: f"-{n}" for n, c in enumerate("abcdefghi", 1)
}
DIFFERENCE = {c: str(n) for n, c in enumerate("%JKLMNOPQR")} | {
    c: f"-{n}" for n, c in enumerate("jklmnopqr", 1)
}
REPEAT = {c: str(n) for n, c in enumerate("STUVWXYZs", 1)}


def is_jcamp(text: str) -> bool:
    """Recognise the format by its labels; RRUFF files also begin with ##, but have columns."""
    if not text[:4096].lstrip().startswith("##"):
        return False
    return bool(MARK.search(text[:65536])) or not COLUMNS.search(text)


def parse_jcamp(text: str) -> Recording:
    """Read the first spectrum of a file.

    Raises:
        BadFile: On an infrared or other spectrum, an unknown axis, a failed check of packed values,
            or a number of points that differs from NPOINTS.
    """
    records = _records(text)
    kind = records.get("DATATYPE", "RAMAN SPECTRUM").upper()
    if "RAMAN" not in kind:
        raise BadFile("spectra.data_type", format=NAME, found=kind[:60])
    unit = _unit(records.get("XUNITS", "1/CM"))
    x_factor, y_factor = _number(records, "XFACTOR", 1.0), _number(records, "YFACTOR", 1.0)
    for label in ("XYPOINTS", "XYDATA", "PEAKTABLE"):
        if label in records:
            break
    else:
        raise BadFile("spectra.no_xy", format=NAME)
    form, *lines = records[label].splitlines() or [""]
    points = int(_number(records, "NPOINTS", 0.0))
    notes: tuple[str, ...] = ()
    if "(XY..XY)" in form.replace(" ", ""):
        _, (x, y) = _by_comma(_pairs, lines, points)
        x = x * x_factor
        if points and y.size != points:
            notes = (f"the file has {y.size} points and NPOINTS states {points}",)
    else:
        first = _number(records, "FIRSTX", None)
        count, (rows, bad, why) = _by_comma(_packed, lines, points)
        if bad or (points and count != points):
            last = _last(records, first, points)
            x, y = _placed(rows, len(bad), why, x_factor, first, last, points)
            lost = (left_out("row", bad, wanted="packed numbers"),) if bad else ()
            notes = (*lost, f"the file has {count} points and NPOINTS states {points}")
        else:
            x = np.linspace(first, _last(records, first, count), count)
            y = np.array([value for _, row in rows for value in row])
    with np.errstate(over="ignore"):  # out of range becomes infinity, which is left out later
        y = y * y_factor
    header = {key: value for key, value in records.items() if "\n" not in value}
    laser_nm = next((laser_of(v) for k, v in header.items() if LASER.search(k)), None)
    return Recording(NAME, x, unit, y, laser_nm=laser_nm, header=header, notes=notes)


def _unit(stated: str) -> str:
    plain = stated.upper()
    if plain.startswith("NM") or "NANOMET" in plain:
        return "nm"
    if "CM" in plain or "WAVENUMBER" in plain or "SHIFT" in plain:
        return "1/cm"
    raise BadFile("spectra.jcamp_units", format=NAME, found=stated[:60])


def _last(records: dict[str, str], first: float, points: int) -> float:
    if "LASTX" not in records and "DELTAX" in records:
        return first + (points - 1) * _number(records, "DELTAX", None)
    return _number(records, "LASTX", None)


def _by_comma(
    read: Callable[[Sequence[str]], tuple[int, Read]], lines: Sequence[str], points: int
) -> tuple[int, Read]:
    """Read lines with commas as separators, as the standard says, or as decimal points.

    The comma is a decimal point if only then the number of points is right: some programs use the
    Windows setting.

    Raises:
        BadFile: When a row cannot be read in either way.
    """
    with_points = [line.replace(",", ".") for line in lines]
    if not any("," in line for line in lines):
        return read(lines)
    try:
        found = read(lines)
    except BadFile:
        return read(with_points)
    return found if not points or found[0] == points else read(with_points)


def _placed(
    rows: Sequence[Row], bad: int, why: str, x_factor: float, first: float, last: float, points: int
) -> tuple[Array, Array]:
    """Place rows by their own X, if some rows are missing.

    Raises:
        BadFile: When too many are missing, or X does not fit FIRSTX, LASTX and NPOINTS.
    """
    count = sum(len(row) for _, row in rows)
    refused = BadFile(why or f"{NAME}: {count} points, NPOINTS states {points}")
    step = (last - first) / (points - 1) if points > 1 else 0.0
    allowed = max(1.0, BAD_SHARE_MAX * len(rows))
    if not step or bad > allowed or len(rows) < ROWS_MIN or not 2 <= count <= points:
        raise refused
    x: list[float] = []
    y: list[float] = []
    free = 0
    for at, row in rows:
        index = (at * x_factor - first) / step
        start = round(index) if abs(index) <= points else -1
        if abs(index - start) > X_ROUNDED_MAX or start < free or start + len(row) > points:
            raise refused
        x += [first + step * n for n in range(start, start + len(row))]
        y += row
        free = start + len(row)
    return np.array(x), np.array(y)


def _records(text: str) -> dict[str, str]:
    """Return label and value of each record.

    The standard ignores blanks, dashes and case of a label.
    """
    found: dict[str, str] = {}
    clean = "\n".join(line.split("$$", 1)[0].rstrip() for line in text.splitlines())
    for part in re.split(r"^##", clean, flags=re.MULTILINE)[1:]:
        label, _, value = part.partition("=")
        key = re.sub(r"[\s_/$.-]", "", label).upper()
        if key == "END":
            break
        found.setdefault(key, value.strip())
    return found


def _number(records: dict[str, str], key: str, otherwise: float | None) -> float:
    if key not in records and otherwise is not None:
        return otherwise
    try:
        found = float(records[key].replace(",", "."))
    except (KeyError, ValueError):
        found = NUMBER_MAX * 2
    if not abs(found) <= NUMBER_MAX:
        stated = records.get(key)
        stated = "missing" if stated is None else repr(stated[:60])
        raise BadFile("spectra.key", format=NAME, key=key, found=stated)
    return found


def _pairs(lines: Sequence[str]) -> tuple[int, tuple[Array, Array]]:
    try:
        flat = np.array([float(n) for n in re.split(r"[\s,;]+", " ".join(lines).strip()) if n])
    except ValueError as why:
        raise BadFile("spectra.xy_why", format=NAME, why=str(why)) from None
    if flat.size % 2 or not flat.size:
        raise BadFile("spectra.xy_odd", format=NAME, count=flat.size)
    return flat.size // 2, (flat[::2], flat[1::2])


def _packed(lines: Sequence[str]) -> tuple[int, tuple[list[Row], list[int], str]]:
    """Unpack ``(X++(Y..Y))``: each line begins with its X.

    Returns:
        The number of values; and the rows, the numbers of the bad lines, from 1, and the error in
        the first of these.
    """
    rows: list[Row] = []
    bad: list[int] = []
    why = ""
    total = 0
    before: float | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row, check = _unpack(line, before)
        except BadFile as wrong:
            bad.append(number)
            why = why or str(wrong)
            before = None
            continue
        rows.append(row)
        total += len(row[1])
        if total > POINTS_MAX:
            raise BadFile("spectra.points_most", format=NAME, most=POINTS_MAX)
        before = check
    if total < 2:
        raise BadFile(why or f"{NAME}: XYDATA holds no two points")
    return total, (rows, bad, why)


def _unpack(line: str, before: float | None) -> tuple[Row, float | None]:
    """Return X and the values of one line, and the value that the next line repeats as a check."""
    tokens = [token for token in TOKEN.findall(line) if token]
    if not tokens or "".join(tokens) != re.sub(r"[\s,;]", "", line):
        raise BadFile("spectra.packed", format=NAME, line=line[:60])
    try:
        at = _values(tokens[:1])[0][0]
        values, step = _values(tokens[1:])
    except (ValueError, IndexError):
        raise BadFile("spectra.packed", format=NAME, line=line[:60]) from None
    check = values[-1] if values and step is not None else None
    if before is not None and values:
        if not abs(values[0] - before) <= CHECK_TOLERANCE:
            raise BadFile("spectra.jump", format=NAME, first=values[0], before=before)
        values = values[1:]
    return (at, values), check


def _values(tokens: Sequence[str]) -> tuple[list[float], float | None]:
    """Return the values, and the last difference if the line ends in differences."""
    values: list[float] = []
    step: float | None = None
    for token in tokens:
        head, rest = token[0], token[1:]
        if len(values) > POINTS_MAX:  # a few characters can repeat a value a million times
            raise ValueError
        if head in REPEAT:
            times = min(int(REPEAT[head] + rest), POINTS_MAX)
            for _ in range(times - 1):
                values.append(values[-1] + (step or 0.0))
        elif head in DIFFERENCE:
            step = float(DIFFERENCE[head] + rest)
            values.append(values[-1] + step)
        else:
            step = None
            values.append(float(SQUEEZED[head] + rest if head in SQUEEZED else token))
    return values, step
