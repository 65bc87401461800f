"""A canary: a text that stands in confidential data, and a search for it in all that is kept.

The search knows nothing of our formats. It looks for the text in the encodings that a program, a
database or a broker may give it, and into whatever zlib has packed.
"""

import base64
import re
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

CANARY = "Kanarienvogel7431Q"
NUMBER = 7431.912837465
"""A canary among measured values."""

PACKED = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
"""The first bytes of what zlib packs with its usual window (RFC 1950)."""

UNPACKED_BYTES_MAX = 16 * 2**20


def needles(canary: str = CANARY) -> tuple[bytes, ...]:
    """Return the bytes by which a canary, or the number, would be seen."""
    text = canary.encode()
    coded = [_in_base64(text, shift) for shift in range(3)]
    wide = [canary.encode(each) for each in ("utf-16-le", "utf-16-be")]
    hexed = [text.hex().encode(), text.hex().upper().encode()]
    numbers = [repr(NUMBER).encode(), *_packed(NUMBER)]
    with suppress(ValueError):  # a number of a test's own is searched for as one, too
        numbers += _packed(float(canary))
    return (text, *coded, *wide, *hexed, *numbers)


def _packed(number: float) -> list[bytes]:
    return [struct.pack(order, number) for order in ("<d", ">d")]


def _in_base64(text: bytes, shift: int) -> bytes:
    """Return the characters that stand for a text alone, wherever three bytes are cut."""
    padded = bytes(shift) + text
    first, last = -(-shift * 8 // 6), len(padded) * 8 // 6
    return base64.b64encode(padded)[first:last]


def traces(data: bytes, canary: str = CANARY) -> bool:
    """Return whether a canary stands in some bytes, or in what they hold packed."""
    wanted = needles(canary)
    return any(each in part for part in (data, *_unpacked(data)) for each in wanted)


def _unpacked(data: bytes) -> Iterator[bytes]:
    for start in PACKED.finditer(data):
        inside = zlib.decompressobj()
        try:
            yield inside.decompress(data[start.start() :], UNPACKED_BYTES_MAX)
        except zlib.error:
            continue


def found_in(*places: Path, canary: str = CANARY) -> list[str]:
    """Return each file, and each row of a database, that shows a canary.

    Args:
        places: Folders and files.
        canary: The text.
    """
    files = sorted({each for place in places for each in _files(place)})
    assert files, "a search of nothing proves nothing"
    return [name for each in files for name, data in _parts(each) if traces(data, canary)]


def _files(place: Path) -> Iterator[Path]:
    yield from (each for each in place.rglob("*") if each.is_file())
    if place.is_file():
        yield place


def _parts(file: Path) -> Iterator[tuple[str, bytes]]:
    yield str(file), file.read_bytes()
    yield f"name of {file}", str(file).encode()
    if file.suffix == ".sqlite":  # a row may be cut where a page ends
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in names.fetchall():
                for row in database.execute(f"SELECT * FROM {table}"):
                    for value in row:
                        told = value if isinstance(value, bytes) else str(value).encode()
                        yield f"{file}: {table}", told
