"""Galactic SPC, new format (version byte 0x4B, little-endian): one or many spectra on one axis.

Layout from the vendor's published header file ``SPC.H``: 512 bytes of header, the axis if it is not
even, then each spectrum behind a subheader of 32 bytes. Read from public descriptions; tried on
files written in tests, not on every program's.
"""

import struct

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.formats.recording import BadFile, Recording

__all__ = ["is_spc", "parse_spc"]

Array = NDArray[np.float64]

NAME = "Galactic SPC"
NEW, OLD, BIG_ENDIAN = 0x4B, 0x4D, 0x4C
HEADER_BYTES, SUBHEADER_BYTES = 512, 32
# Bits of the first byte.
INTEGERS_16_BIT, MANY_SPECTRA, AXIS_EACH, AXIS_LISTED = 0x01, 0x04, 0x40, 0x80
FLOATS = -128
"""Exponent that says that intensities are float32."""

UNITS = {1: "1/cm", 3: "nm", 13: "1/cm"}
"""Axis types: wavenumber, nanometres, Raman shift."""

POINTS_MAX, SPECTRA_MAX = 1_000_000, 1_000_000


def is_spc(data: bytes) -> bool:
    """Tell the format by its version byte; text has no zero bytes and is left to others."""
    return (
        len(data) > HEADER_BYTES
        and data[1] in (NEW, OLD, BIG_ENDIAN)
        and b"\0" in data[:HEADER_BYTES]
    )


def parse_spc(data: bytes) -> Recording:
    """Read the spectra of a file.

    Raises:
        BadFile: On the old or the big-endian format, an axis for each spectrum, an unknown unit,
            or a file that ends too early.
    """
    if data[1] != NEW:
        kind = "the old" if data[1] == OLD else "the big-endian"
        raise BadFile(f"{NAME}: this is {kind} format; save it in the new one (0x4B)")
    flags, _, _, exponent, points, first, last, spectra, unit = struct.unpack_from(
        "<BBBbiddiB", data
    )
    if flags & AXIS_EACH:
        raise BadFile(f"{NAME}: each spectrum has an axis of its own; save them one by one")
    if unit not in UNITS:
        raise BadFile(f"{NAME}: axis type {unit} is no Raman shift (13, 1) and no wavelength (3)")
    many = bool(flags & MANY_SPECTRA)
    spectra = spectra if many else 1
    if not (2 <= points <= POINTS_MAX and 1 <= spectra <= SPECTRA_MAX):
        raise BadFile(f"{NAME}: the header states {spectra} spectra of {points} points")
    at = HEADER_BYTES
    if flags & AXIS_LISTED:
        axis = _take(data, at, points, "<f4")
        at += 4 * points
    else:
        axis = np.linspace(first, last, points)
    rows = []
    for _ in range(spectra):
        if len(data) < at + SUBHEADER_BYTES:
            raise BadFile(f"{NAME}: the file ends within a subheader, at byte {len(data)}")
        own = struct.unpack_from("<b", data, at + 1)[0]
        at += SUBHEADER_BYTES
        power = own if many else exponent
        if FLOATS in (exponent, power):
            rows.append(_take(data, at, points, "<f4"))
            at += 4 * points
        elif flags & INTEGERS_16_BIT:
            rows.append(_take(data, at, points, "<i2") * 2.0 ** (power - 16))
            at += 2 * points
        else:
            rows.append(_take(data, at, points, "<i4") * 2.0 ** (power - 32))
            at += 4 * points
    return Recording(NAME, axis, UNITS[unit], np.stack(rows), header=_log(data))


def _take(data: bytes, at: int, count: int, kind: str) -> Array:
    size = np.dtype(kind).itemsize
    if len(data) < at + count * size:
        raise BadFile(
            f"{NAME}: the file ends at byte {len(data)}, the header promises {at + count * size}"
        )
    return np.frombuffer(data, kind, count, at).astype(np.float64)


def _log(data: bytes) -> dict[str, str]:
    """Give the ``key=value`` lines of the log, if there is one."""
    (offset,) = struct.unpack_from("<i", data, 248)
    if not HEADER_BYTES <= offset <= len(data) - 64:
        return {}
    (text_at,) = struct.unpack_from("<i", data, offset + 8)
    text = data[offset + max(text_at, 0) :].decode("latin-1").split("\0", 1)[0]
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}
