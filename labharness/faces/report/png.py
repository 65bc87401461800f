"""A picture of coloured cells as the bytes of a PNG file: a map of many spectra, small."""

import struct
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
EIGHT_BITS, RGBA, DEFLATE, NO_FILTER, PLAIN = 8, 6, 0, 0, 0
"""PNG (third edition), 11.2.1: bits a channel, colour type, compression, filter, no interlace."""


def png_bytes(cells: "NDArray[np.uint8]") -> bytes:
    """Write cells as a PNG image.

    Args:
        cells: Red, green, blue and opacity of each, shape (height, width, 4), from the top.

    Raises:
        ValueError: When they have another shape.
    """
    if cells.ndim != 3 or cells.shape[2] != 4 or cells.size == 0:
        raise ValueError(f"a picture has the shape (height, width, 4), got {cells.shape}")
    height, width, _ = cells.shape
    lines = b"".join(b"\0" + row.tobytes() for row in cells)  # each begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, RGBA, DEFLATE, NO_FILTER, PLAIN)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
