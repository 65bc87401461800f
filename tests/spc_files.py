"""Galactic SPC written again from the vendor's published header file ``SPC.H``."""

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]

AXIS = np.linspace(600.0, 100.0, 60, dtype=np.float32)
ROWS = np.arange(180, dtype=np.float32).reshape(3, 60)
FLOATS = -128
NEW, OLD, BIG_ENDIAN = 0x4B, 0x4D, 0x4C


def new_spc(
    rows: Rows = ROWS,
    *,
    listed: bool = True,
    many: bool = False,
    exponent: int = FLOATS,
    bits: int = 32,
    unit: int = 13,
    log: bytes = b"",
    order: str = "<",
) -> bytes:
    """Write the new format with one axis for all spectra, listed or even."""
    flags = (0x80 if listed else 0) | (0x04 if many else 0) | (0x01 if bits == 16 else 0)
    ends = (float(AXIS[0]), float(AXIS[-1]))
    version = NEW if order == "<" else BIG_ENDIAN
    head = bytearray(512)
    struct.pack_into(
        f"{order}BBBbiddiB", head, 0, flags, version, 0, exponent, 60, *ends, len(rows), unit
    )
    body = AXIS.astype(f"{order}f4").tobytes() if listed else b""
    for index, row in enumerate(rows):
        body += _subheader(index, exponent, order=order) + _packed(row, exponent, bits, order)
    if log:
        struct.pack_into(f"{order}i", head, 248, 512 + len(body))
        body += struct.pack(f"{order}iiiii44x", 64 + len(log), 4096, 64, 0, 0) + log + b"\0"
    return bytes(head) + body


def pairs_spc(
    pieces: Sequence[tuple[Rows, Rows]], *, directory: bool = False, unit: int = 13
) -> bytes:
    """Write the new format with an axis for each spectrum (XYXY), with or without a directory."""
    body = b""
    entries = b""
    for index, (axis, row) in enumerate(pieces):
        one = _subheader(index, FLOATS, points=len(axis))
        one += axis.astype("<f4").tobytes() + row.astype("<f4").tobytes()
        entries += struct.pack("<iif", 512 + len(body), len(one), 0.0)
        body += one
    head = bytearray(512)
    at = 512 + len(body) if directory else 0
    flags = 0x40 | 0x80 | 0x04
    struct.pack_into("<BBBbiddiB", head, 0, flags, NEW, 0, FLOATS, at, 0.0, 0.0, len(pieces), unit)
    return bytes(head) + body + (entries if directory else b"")


def old_spc(rows: Rows = ROWS, *, exponent: int = 10, unit: int = 1) -> bytes:
    """Write the old format: 256 bytes, the first subheader among them, high words first."""
    head = bytearray(224)
    many = 0x04 if len(rows) > 1 else 0
    struct.pack_into(
        "<BBhfffB", head, 0, many, OLD, exponent, 60.0, float(AXIS[0]), float(AXIS[-1]), unit
    )
    body = b""
    for index, row in enumerate(rows):
        whole = np.round(row * 2.0 ** (32 - exponent)).astype(np.int64).astype(np.int32)
        high, low = (whole >> 16) & 0xFFFF, whole & 0xFFFF
        words = np.stack([high, low], axis=1).astype("<u2")
        body += _subheader(index, exponent) + words.tobytes()
    return bytes(head) + body


def _subheader(index: int, exponent: int, *, points: int = 0, order: str = "<") -> bytes:
    sub = bytearray(32)
    struct.pack_into(f"{order}Bbh", sub, 0, 0, exponent, index)
    struct.pack_into(f"{order}i", sub, 16, points)
    return bytes(sub)


def _packed(row: Rows, exponent: int, bits: int, order: str) -> bytes:
    if exponent == FLOATS:
        return row.astype(f"{order}f4").tobytes()
    kind = f"{order}i2" if bits == 16 else f"{order}i4"
    return np.round(row * 2.0 ** (bits - exponent)).astype(kind).tobytes()
