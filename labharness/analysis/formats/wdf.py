"""Renishaw WDF: blocks with the spectra (``DATA``), their axis (``XLST``) and places (``ORGN``).

The vendor publishes no layout; this one is from the MIT-licensed reader py-wdf-reader, and the
tests compare with that package. It is not used here because it opens files itself.
"""

import struct

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.formats.recording import BadFile, Recording

__all__ = ["MAGIC", "parse_wdf"]

Array = NDArray[np.float64]

NAME = "Renishaw WDF"
MAGIC = b"WDF1"
HEADER_BYTES, BLOCK_HEADER_BYTES = 512, 16
BLOCKS_MAX = 100_000
POINTS_MAX, SPECTRA_MAX = 1_000_000, 10_000_000
UNITS = {1: "1/cm", 3: "nm"}
PLACES = {3: "x_um", 4: "y_um", 5: "z_um"}
"""Data types of an origin list; flags, times and others are left out."""

ORIGIN_HEADER_BYTES = 24
NM_PER_CM1 = 1e7


def parse_wdf(data: bytes) -> Recording:
    """Read all spectra measured so far; a map that was stopped has fewer than planned.

    Raises:
        BadFile: When a block is missing or ends too early, or the axis is not a shift or
            wavelength.
    """
    if len(data) < HEADER_BYTES:
        raise BadFile(f"{NAME}: {len(data)} bytes; the header alone has {HEADER_BYTES}")
    points, capacity, count = struct.unpack_from("<iqq", data, 0x3C)
    (origins,) = struct.unpack_from("<i", data, 0x5C)
    (laser_cm1,) = struct.unpack_from("<f", data, 0x9C)
    if not (2 <= points <= POINTS_MAX and 1 <= count <= capacity <= SPECTRA_MAX):
        raise BadFile(f"{NAME}: the header states {count} of {capacity} spectra of {points} points")
    blocks = _blocks(data)
    for wanted in (b"DATA", b"XLST"):
        if wanted not in blocks:
            raise BadFile(f"{NAME}: there is no block {wanted.decode()}")
    axis_at = blocks[b"XLST"]
    (unit,) = struct.unpack_from("<i", data, axis_at + 4)
    if unit not in UNITS:
        raise BadFile(f"{NAME}: the axis has unit {unit}, not Raman shift (1) or nm (3)")
    axis = _take(data, axis_at + 8, points, "<f4", "XLST")
    counts = _take(data, blocks[b"DATA"], count * points, "<f4", "DATA").reshape(count, points)
    places = {}
    if b"ORGN" in blocks:
        places = _places(data, blocks[b"ORGN"], origins, capacity, count)
    return Recording(
        NAME,
        axis,
        UNITS[unit],
        counts,
        laser_nm=NM_PER_CM1 / laser_cm1 if laser_cm1 > 0 else None,
        places=places,
        header={"title": data[0xF0:0x200].split(b"\0", 1)[0].decode("utf-8", "replace")},
    )


def _blocks(data: bytes) -> dict[bytes, int]:
    """Return the start of each kind of block; of doubled ones the first."""
    found: dict[bytes, int] = {}
    at = 0
    for _ in range(BLOCKS_MAX):
        if len(data) < at + BLOCK_HEADER_BYTES:
            break
        name, _, size = struct.unpack_from("<4siq", data, at)
        if size < BLOCK_HEADER_BYTES:
            raise BadFile(f"{NAME}: the block at byte {at} states a size of {size}")
        found.setdefault(name, at + BLOCK_HEADER_BYTES)
        at += size
    return found


def _places(data: bytes, at: int, lists: int, capacity: int, count: int) -> dict[str, Array]:
    found = {}
    at += 4  # number of lists, stated in the header too
    step = ORIGIN_HEADER_BYTES + 8 * capacity
    for start in range(at, min(at + lists * step, len(data) - step + 1), step):
        (kind,) = struct.unpack_from("<I", data, start)
        name = PLACES.get(kind & 0x7FFFFFFF)
        if name:
            found[name] = _take(data, start + ORIGIN_HEADER_BYTES, count, "<f8", "ORGN")
    return found


def _take(data: bytes, at: int, count: int, kind: str, block: str) -> Array:
    if len(data) < at + count * np.dtype(kind).itemsize:
        raise BadFile(f"{NAME}: the file ends within the block {block}, at byte {len(data)}")
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes NaN, which is left out later
        return np.frombuffer(data, kind, count, at).astype(np.float64)
