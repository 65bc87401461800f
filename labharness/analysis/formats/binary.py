"""Binary files: headers by tables of their fields, and numbers within the bounds of the file."""

import struct
from typing import Any, NamedTuple

import numpy as np

from labharness.analysis.arrays import Array


class Layout(NamedTuple):
    """The fields of a header: a format of ``struct`` (``8x`` skips 8 bytes), and their names."""

    kinds: str
    names: str


def header_at(data: bytes, at: int, layout: Layout, order: str = "<") -> dict[str, Any]:
    """Return the fields of a header, which must lie within the file, by their names."""
    values = struct.unpack_from(order + layout.kinds, data, at)
    return dict(zip(layout.names.split(), values, strict=True))


def array_at(data: bytes, at: int, count: int, kind: str) -> Array | None:
    """Return numbers of a kind (as in NumPy) as doubles; None if the file ends before them."""
    if len(data) < at + count * np.dtype(kind).itemsize:
        return None
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes NaN, which is left out later
        return np.frombuffer(data, kind, count, at).astype(np.float64)
