"""Galactic SPC, new format (0x4B little-endian, 0x4C big-endian) and old (0x4D).

Layout from the vendor's published header file ``SPC.H``: 512 bytes of header (256 in the old
format), the axis unless it is even, then each spectrum behind a subheader of 32 bytes. The tests
check the new format against the package spc-io; the old one was checked by hand against spc-spectra
0.4.0. No author of a reader has reported a big-endian file.
"""

from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.binary import Layout, array_at, header_at
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import entry_of, laser_of
from labharness.analysis.formats.windows import on_one_axis

NAME = "Galactic SPC"
NEW, OLD, BIG_ENDIAN = 0x4B, 0x4D, 0x4C
HEADER_BYTES, SUBHEADER_BYTES = 512, 32
OLD_HEADER_BYTES = 224
"""The first subheader of an old file counts as part of its header of 256 bytes."""

# Bits of the first byte.
INTEGERS_16_BIT, MANY_SPECTRA, AXIS_EACH, AXIS_LISTED = 0x01, 0x04, 0x40, 0x80
FLOATS = -128
"""Exponent that marks intensities as float32."""

UNITS = {1: "1/cm", 3: "nm", 13: "1/cm"}
"""Axis types: wavenumber, nanometres, Raman shift."""

MICROMETRES, NM_PER_UM = 2, 1e3
NAMED = {0: "arbitrary units", 4: "seconds", 5: "minutes", 14: "eV", 17: "channels", 22: "points"}
"""Axis types that Raman programs write although the axis is a shift."""

SHIFT_REACHED_CM1, SHIFT_MAX_CM1 = 200.0, 5000.0
"""An axis that is not stated to be a shift must reach into this range."""

EXPONENT_MAX = 900
"""A 32-bit integer times two to this power is still a double, though no plausible count."""

AXIS_MAX = 1e9
POINTS_MAX, SPECTRA_MAX = 1_000_000, 1_000_000
NUMBERS_MAX = 64_000_000
"""Half a gigabyte of memory; larger files are refused."""


# The number of spectra of an old file follows only from the file's end.
HEADERS = {
    NEW: Layout("B 2x b i d d i B 219x i", "flags exponent points first last spectra unit log_at"),
    OLD: Layout("B x h f f f B", "flags exponent points first last unit"),
}
SUBHEADER = Layout("x b 14x i", "exponent points")
ENTRY = Layout("i i f", "place size time")
"""A spectrum in the directory of a file of pairs."""

ENTRY_BYTES = 12


class _Head(NamedTuple):
    """The values in the header of either format."""

    order: str
    flags: int
    exponent: int
    points: int
    first: float
    last: float
    unit: int
    spectra: int = SPECTRA_MAX
    log_at: int = 0


def is_spc(data: bytes) -> bool:
    """Recognise the format by its version byte; text has no zero bytes and is left to others."""
    return (
        len(data) > OLD_HEADER_BYTES + SUBHEADER_BYTES
        and data[1] in (NEW, OLD, BIG_ENDIAN)
        and b"\0" in data[: OLD_HEADER_BYTES + SUBHEADER_BYTES]
    )


def parse_spc(data: bytes) -> Recording:
    """Read the spectra of a file.

    Raises:
        BadFile: On an unknown unit, or a file that ends too early.
    """
    if data[1] != OLD and len(data) < HEADER_BYTES:
        raise BadFile("spectra.header", format=NAME, bytes=len(data), header=HEADER_BYTES)
    head = _head(data)
    if head.flags & AXIS_EACH:
        pieces = _pairs(data, head)
    else:
        pieces = [_old_spectra(data, head) if data[1] == OLD else _spectra(data, head)]
    axis, rows, notes = on_one_axis(NAME, pieces)
    axis, unit, stated, more = _in_known_unit(axis, head.unit)
    log = _log(data, head)
    return Recording(
        NAME,
        axis,
        unit,
        rows,
        laser_nm=_laser(log),
        header=log,
        unit_stated=stated,
        notes=(*notes, *more),
    )


def _head(data: bytes) -> _Head:
    order = ">" if data[1] == BIG_ENDIAN else "<"
    found = header_at(data, 0, HEADERS[OLD if data[1] == OLD else NEW], order)
    points, first, last = found["points"], found["first"], found["last"]
    if not all(abs(each) <= AXIS_MAX for each in (points, first, last)):
        raise BadFile("spectra.header_axis", format=NAME, points=points, first=first, last=last)
    if data[1] != OLD and not found["flags"] & (MANY_SPECTRA | AXIS_EACH):
        found["spectra"] = 1
    return _Head(**{**found, "order": order, "points": int(points)})


def _spectra(data: bytes, head: _Head) -> tuple[Array, Array]:
    if not (
        2 <= head.points <= POINTS_MAX
        and 1 <= head.spectra <= SPECTRA_MAX
        and head.points * head.spectra <= NUMBERS_MAX
    ):
        raise BadFile(
            "spectra.header_spectra", format=NAME, spectra=head.spectra, points=head.points
        )
    at = HEADER_BYTES
    if head.flags & AXIS_LISTED:
        axis = _take(data, at, head.points, f"{head.order}f4")
        at += 4 * head.points
    else:
        axis = np.linspace(head.first, head.last, head.points)
    rows = []
    for _ in range(head.spectra):
        own = _subheader(data, at, head)[0]
        at += SUBHEADER_BYTES
        power = own if head.flags & MANY_SPECTRA else head.exponent
        counts, at = _counts(data, at, head.points, power, head)
        rows.append(counts)
    return axis, np.stack(rows)


def _pairs(data: bytes, head: _Head) -> list[tuple[Array, Array]]:
    """Read spectra that each have an axis, in sequence or at the places in a directory."""
    if not 1 <= head.spectra <= SPECTRA_MAX:
        raise BadFile("spectra.header_count", format=NAME, spectra=head.spectra)
    places = [HEADER_BYTES]
    # The number of points is the start of the directory; some programs leave the points there.
    if HEADER_BYTES < head.points <= len(data) - ENTRY_BYTES * head.spectra and head.spectra > 1:
        listed = [
            header_at(data, head.points + ENTRY_BYTES * n, ENTRY, head.order)["place"]
            for n in range(head.spectra)
        ]
        if all(HEADER_BYTES <= place < head.points for place in listed):
            places = listed
    pieces = []
    at = places[0]
    total = 0
    for index in range(head.spectra):
        at = places[index] if index < len(places) else at
        own, points = _subheader(data, at, head)
        points = points if points > 0 else head.points
        total += max(points, 0)
        if not 1 <= points <= POINTS_MAX or total > NUMBERS_MAX:
            raise BadFile("spectra.spc_points", format=NAME, number=index + 1, points=points)
        at += SUBHEADER_BYTES
        axis = _take(data, at, points, f"{head.order}f4")
        power = own if head.flags & MANY_SPECTRA else head.exponent
        counts, at = _counts(data, at + 4 * points, points, power, head)
        pieces.append((axis, counts[None, :]))
    return pieces


def _old_spectra(data: bytes, head: _Head) -> tuple[Array, Array]:
    """Read spectra until the file ends; integers have their high 16 bits first."""
    if not 2 <= head.points <= POINTS_MAX:
        raise BadFile("spectra.header_points", format=NAME, points=head.points)
    axis = np.linspace(head.first, head.last, head.points)
    size = 2 if head.flags & INTEGERS_16_BIT else 4
    rows: list[Array] = []
    at = OLD_HEADER_BYTES
    while at + SUBHEADER_BYTES + size * head.points <= len(data) and (
        not rows or head.flags & MANY_SPECTRA
    ):
        own = _subheader(data, at, head)[0]
        at += SUBHEADER_BYTES
        power = own if own > 0 else head.exponent
        if FLOATS in (own, head.exponent) or head.exponent == -FLOATS:
            rows.append(_take(data, at, head.points, "<f4"))
        elif size == 2:
            rows.append(_take(data, at, head.points, "<i2") * _scale(power, 16))
        else:
            words = np.frombuffer(data, "<u2", 2 * head.points, at).astype(np.uint32)
            whole = ((words[::2] << np.uint32(16)) | words[1::2]).view(np.int32)
            rows.append(whole.astype(np.float64) * _scale(power, 32))
        at += size * head.points
        if len(rows) * head.points > NUMBERS_MAX:
            raise BadFile("spectra.numbers_most", format=NAME, most=NUMBERS_MAX)
    if not rows:
        needed = at + SUBHEADER_BYTES + size * head.points
        raise BadFile("spectra.short", format=NAME, bytes=len(data), needed=needed)
    return axis, np.stack(rows)


def _subheader(data: bytes, at: int, head: _Head) -> tuple[int, int]:
    if len(data) < at + SUBHEADER_BYTES:
        raise BadFile("spectra.short_subheader", format=NAME, bytes=len(data))
    found = header_at(data, at, SUBHEADER, head.order)
    return found["exponent"], found["points"]


def _counts(data: bytes, at: int, points: int, power: int, head: _Head) -> tuple[Array, int]:
    if FLOATS in (head.exponent, power):
        return _take(data, at, points, f"{head.order}f4"), at + 4 * points
    size = 2 if head.flags & INTEGERS_16_BIT else 4
    counts = _take(data, at, points, f"{head.order}i{size}")
    return counts * _scale(power, 8 * size), at + size * points


def _scale(power: int, bits: int) -> float:
    return float(np.ldexp(1.0, min(power - bits, EXPONENT_MAX)))


def _take(data: bytes, at: int, count: int, kind: str) -> Array:
    found = array_at(data, at, count, kind)
    if found is None:
        needed = at + count * np.dtype(kind).itemsize
        raise BadFile("spectra.short", format=NAME, bytes=len(data), needed=needed)
    return found


def _in_known_unit(axis: Array, kind: int) -> tuple[Array, str, bool, tuple[str, ...]]:
    """Return axis, unit, whether the file states it, and a note if it states another one.

    Raises:
        BadFile: When the axis cannot be a Raman shift.
    """
    if kind in UNITS:
        return axis, UNITS[kind], True, ()
    if kind == MICROMETRES:
        return axis * NM_PER_UM, "nm", True, ()
    stated = NAMED.get(kind, f"axis type {kind}")
    numbers = axis[np.isfinite(axis)]
    farthest = float(np.abs(numbers).max()) if numbers.size else 0.0
    if not SHIFT_REACHED_CM1 <= farthest <= SHIFT_MAX_CM1:
        raise BadFile("spectra.spc_axis", format=NAME, stated=stated, farthest=farthest)
    note = () if kind == 0 else (f"the file says that its axis is in {stated}; taken for cm⁻¹",)
    return axis, "1/cm", False, note


def _log(data: bytes, head: _Head) -> dict[str, str]:
    """Return the ``key=value`` lines of the log, if any."""
    if not HEADER_BYTES <= head.log_at <= len(data) - 64:
        return {}
    text_at = header_at(data, head.log_at, Layout("8x i", "text_at"), head.order)["text_at"]
    text = data[head.log_at + max(text_at, 0) :].decode("latin-1").split("\0", 1)[0]
    return dict(entry_of(line) for line in text.splitlines() if "=" in line)


def _laser(log: dict[str, str]) -> float | None:
    """Return the wavelength under a key that names the laser; its power may be in the log too."""
    for key, value in log.items():
        plain = key.lower()
        if plain in ("laser", "excitation") or (
            ("laser" in plain or "excit" in plain) and ("wave" in plain or "nm" in plain)
        ):
            found = laser_of(value)
            if found is not None:
                return found
    return None
