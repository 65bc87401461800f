"""Files of Renishaw WDF and JCAMP-DX, made anew by their published layouts."""

import struct

import numpy as np
from numpy.typing import NDArray

AXIS = np.linspace(600.0, 100.0, 60, dtype=np.float32)
ROWS = np.arange(180, dtype=np.float32).reshape(3, 60)


def wdf(rows: NDArray[np.float32], capacity: int | None = None) -> bytes:
    capacity = capacity or len(rows)
    head = bytearray(512)
    struct.pack_into("<4siq", head, 0, b"WDF1", 1, 512)
    struct.pack_into("<iqqiiii", head, 0x3C, 60, capacity, len(rows), 1, 1, 60, 2)
    struct.pack_into("<24s4hii", head, 0x60, b"WiRE", 4, 4, 0, 1, 3, 2)
    struct.pack_into("<if", head, 0x98, 6, 1e7 / 532.0)
    head[0xF0:0xF6] = b"flake1"
    spectra = np.zeros((capacity, 60), dtype="<f4")
    spectra[: len(rows)] = rows
    origins = struct.pack("<i", 2)
    for kind, label in ((3, b"X"), (4, b"Y")):
        places = np.arange(capacity) * 1.5 + kind
        origins += struct.pack("<Ii16s", kind | 1 << 31, 5, label) + places.astype("<f8").tobytes()
    blocks = (
        (b"DATA", spectra.tobytes()),
        (b"YLST", struct.pack("<iif", 0, 16, 0.0)),
        (b"XLST", struct.pack("<ii", 1, 1) + AXIS.astype("<f4").tobytes()),
        (b"ORGN", origins),
    )
    return bytes(head) + b"".join(
        struct.pack("<4siq", name, 0, 16 + len(body)) + body for name, body in blocks
    )


JCAMP = """##TITLE=a film $$ a comment
##JCAMP-DX=4.24
##DATA TYPE=RAMAN SPECTRUM
##XUNITS=1/CM
##YUNITS=ARBITRARY UNITS
##FIRSTX=400
##LASTX=411
##NPOINTS=12
##XFACTOR=1
##YFACTOR=0.5
##XYDATA=(X++(Y..Y))
{rows}
##END=
"""
