"""JCAMP-DX: labelled records, intensities plain or packed (PAC, SQZ, DIF, DUP).

Packing as in McDonald and Wilks 1988, 10.1366/0003702884428734, and JCAMP-DX 4.24.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.tables import number_of

__all__ = ["parse_jcamp"]

Array = NDArray[np.float64]

NAME = "JCAMP-DX"
UNITS = {"1/CM": "1/cm", "NANOMETERS": "nm", "NM": "nm", "CM-1": "1/cm"}
POINTS_MAX = 1_000_000
CHECK_TOLERANCE = 1.0
"""A Y-check differs from the value it repeats by rounding alone, in packed integers."""

# An E is an exponent only before a sign: in packed form it is the digit 5.
TOKEN = re.compile(r"[@A-Ia-i%J-Rj-rS-Zs+-]?\d*\.?\d*(?:[eE][+-]\d+)?")
SQUEEZED = {c: str(n) for n, c in enumerate("@ABCDEFGHI")} | {
    c: f"-{n}" for n, c in enumerate("abcdefghi", 1)
}
DIFFERENCE = {c: str(n) for n, c in enumerate("%JKLMNOPQR")} | {
    c: f"-{n}" for n, c in enumerate("jklmnopqr", 1)
}
REPEAT = {c: str(n) for n, c in enumerate("STUVWXYZs", 1)}


def parse_jcamp(text: str) -> Recording:
    """Read the first spectrum of a file.

    Raises:
        BadFile: On an infrared or other spectrum, an unknown axis, a failed check of packed
            values, or another number of points than NPOINTS states.
    """
    records = _records(text)
    kind = records.get("DATATYPE", "RAMAN SPECTRUM").upper()
    if "RAMAN" not in kind:
        raise BadFile(f"{NAME}: DATA TYPE is {kind}, not RAMAN SPECTRUM")
    stated = records.get("XUNITS", "1/CM").upper()
    if stated not in UNITS:
        raise BadFile(f"{NAME}: XUNITS is {stated!r}; known are {', '.join(UNITS)}")
    x_factor, y_factor = _number(records, "XFACTOR", 1.0), _number(records, "YFACTOR", 1.0)
    for label in ("XYPOINTS", "XYDATA", "PEAKTABLE"):
        if label in records:
            break
    else:
        raise BadFile(f"{NAME}: neither XYDATA nor XYPOINTS")
    form, *lines = records[label].splitlines()
    if "(XY..XY)" in form.replace(" ", ""):
        x, y = _pairs(lines)
        x = x * x_factor
    else:
        y = _packed(lines)
        first, last = _number(records, "FIRSTX", None), _number(records, "LASTX", None)
        x = np.linspace(first, last, y.size)
    points = int(_number(records, "NPOINTS", float(y.size)))
    if points != y.size:
        raise BadFile(f"{NAME}: {y.size} points, NPOINTS states {points}")
    laser = records.get("LASERWAVELENGTH") or records.get("EXCITATIONWAVELENGTH", "")
    header = {key: value for key, value in records.items() if "\n" not in value}
    return Recording(NAME, x, UNITS[stated], y * y_factor, laser_nm=number_of(laser), header=header)


def _records(text: str) -> dict[str, str]:
    """Give label and value of each record; labels without blanks, dashes and case, as ruled."""
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
        return float(records[key].replace(",", "."))
    except (KeyError, ValueError):
        raise BadFile(f"{NAME}: {key} is {records.get(key)!r}, not a number") from None


def _pairs(lines: Sequence[str]) -> tuple[Array, Array]:
    try:
        flat = np.array([float(n) for n in re.split(r"[\s,;]+", " ".join(lines).strip()) if n])
    except ValueError as why:
        raise BadFile(f"{NAME}: XYPOINTS: {why}") from None
    if flat.size % 2 or not flat.size:
        raise BadFile(f"{NAME}: XYPOINTS has {flat.size} numbers, not pairs")
    return flat[::2], flat[1::2]


def _packed(lines: Sequence[str]) -> Array:
    """Unpack ``(X++(Y..Y))``: each line begins with its X, which the records state already."""
    values: list[float] = []
    check = False
    for line in lines:
        row, check_next = _unpack(line, values[-1] if check else None)
        values += row
        check = check_next
        if len(values) > POINTS_MAX:
            raise BadFile(f"{NAME}: more than {POINTS_MAX} points")
    return np.array(values)


def _unpack(line: str, before: float | None) -> tuple[list[float], bool]:
    """Give the values of one line, and whether the next one repeats the last as a check."""
    tokens = [token for token in TOKEN.findall(line) if token]
    if "".join(tokens) != re.sub(r"[\s,;]", "", line):
        raise BadFile(f"{NAME}: {line[:60]!r} is no row of packed numbers")
    try:
        values, step = _values(tokens[1:])
    except (ValueError, IndexError):
        raise BadFile(f"{NAME}: {line[:60]!r} is no row of packed numbers") from None
    if before is not None and values:
        if abs(values[0] - before) > CHECK_TOLERANCE:
            raise BadFile(
                f"{NAME}: a line begins with {values[0]:g}, the one before ended with {before:g}"
            )
        values = values[1:]
    return values, step is not None


def _values(tokens: Sequence[str]) -> tuple[list[float], float | None]:
    """Give the values, and the last difference if the line ended in differences."""
    values: list[float] = []
    step: float | None = None
    for token in tokens:
        head, rest = token[0], token[1:]
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
