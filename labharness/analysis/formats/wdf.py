"""Renishaw WDF: blocks with the spectra (``DATA``), their axis (``XLST``) and places (``ORGN``).

The vendor publishes no layout; this one is from the MIT-licensed reader py-wdf-reader, and the
tests compare with that package. It is not used here because it opens files itself.
"""

from labharness.analysis.arrays import Array
from labharness.analysis.formats.binary import Layout, array_at, header_at
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.spectrum import NM_TO_CM1

NAME = "Renishaw WDF"
MAGIC = b"WDF1"
HEADER_BYTES, BLOCK_HEADER_BYTES = 512, 16
HEADER = Layout("60x i q q 12x i 60x f", "points capacity count origins laser_cm1")
BLOCK = Layout("4s i q", "name id size")
BLOCKS_MAX = 100_000
POINTS_MAX, SPECTRA_MAX = 1_000_000, 10_000_000
UNITS = {1: "1/cm", 3: "nm"}
PLACES = {3: "x_um", 4: "y_um", 5: "z_um"}
"""Data types of an origin list; flags, times and others are left out."""

ORIGIN_HEADER_BYTES = 24


def parse_wdf(data: bytes) -> Recording:
    """Read all spectra measured so far; a map that was stopped has fewer than planned.

    Raises:
        BadFile: When a block is missing or ends too early, or the axis is not a shift or
            wavelength.
    """
    if len(data) < HEADER_BYTES:
        raise BadFile("spectra.header", format=NAME, bytes=len(data), header=HEADER_BYTES)
    head = header_at(data, 0, HEADER)
    points, capacity, count = head["points"], head["capacity"], head["count"]
    if not (2 <= points <= POINTS_MAX and 1 <= count <= capacity <= SPECTRA_MAX):
        raise BadFile(
            "spectra.wdf_spectra", format=NAME, count=count, capacity=capacity, points=points
        )
    blocks = _blocks(data)
    for wanted in (b"DATA", b"XLST"):
        if wanted not in blocks:
            raise BadFile("spectra.no_block", format=NAME, block=wanted.decode())
    axis_at = blocks[b"XLST"]
    axis = _take(data, axis_at + 8, points, "<f4", "XLST")
    unit = header_at(data, axis_at, Layout("4x i", "unit"))["unit"]
    if unit not in UNITS:
        raise BadFile("spectra.wdf_unit", format=NAME, unit=unit)
    counts = _take(data, blocks[b"DATA"], count * points, "<f4", "DATA").reshape(count, points)
    places = {}
    if b"ORGN" in blocks:
        places = _places(data, blocks[b"ORGN"], head["origins"], capacity, count)
    return Recording(
        NAME,
        axis,
        UNITS[unit],
        counts,
        laser_nm=NM_TO_CM1 / head["laser_cm1"] if head["laser_cm1"] > 0 else None,
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
        block = header_at(data, at, BLOCK)
        if block["size"] < BLOCK_HEADER_BYTES:
            raise BadFile("spectra.block_size", format=NAME, at=at, size=block["size"])
        found.setdefault(block["name"], at + BLOCK_HEADER_BYTES)
        at += block["size"]
    return found


def _places(data: bytes, at: int, lists: int, capacity: int, count: int) -> dict[str, Array]:
    found = {}
    at += 4  # number of lists, stated in the header too
    step = ORIGIN_HEADER_BYTES + 8 * capacity
    for start in range(at, min(at + lists * step, len(data) - step + 1), step):
        kind = header_at(data, start, Layout("I", "kind"))["kind"]
        name = PLACES.get(kind & 0x7FFFFFFF)
        if name:
            found[name] = _take(data, start + ORIGIN_HEADER_BYTES, count, "<f8", "ORGN")
    return found


def _take(data: bytes, at: int, count: int, kind: str, block: str) -> Array:
    found = array_at(data, at, count, kind)
    if found is None:
        raise BadFile("spectra.short_block", format=NAME, block=block, bytes=len(data))
    return found
