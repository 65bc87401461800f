"""Recognise files that are not read here, and say how to export their spectra.

They are listed in ``others.toml``. None of these files is opened any further.
"""

import tomllib
from pathlib import Path

TEXT = "save its spectra as text or CSV"

_TABLE = tomllib.loads(Path(__file__).with_name("others.toml").read_text("utf-8"))
SIGNATURES: tuple[tuple[int, bytes, str], ...] = tuple(
    (row.get("at", 0), row["begins"].encode("latin-1"), row["is"]) for row in _TABLE["file"]
)
"""Position of a signature, its bytes, and what the file seems to be."""

SPE_HEADER_BYTES, SPE_FOOTER = 4100, b"<SpeFormat"
BITMAP_MARK, BITMAP_SIZE_AT = b"BM", 2


def known_other(data: bytes) -> str | None:
    """Return what a binary file seems to be, or None if it is not recognised."""
    for at, signature, what in SIGNATURES:
        if data[at : at + len(signature)] == signature:
            return f"it seems to be {what.format(text=TEXT)}"
    size = int.from_bytes(data[BITMAP_SIZE_AT : BITMAP_SIZE_AT + 4], "little")
    if data.startswith(BITMAP_MARK) and size == len(data):
        return "it seems to be a BMP picture; the numbers are needed"
    if len(data) > SPE_HEADER_BYTES and SPE_FOOTER in data[-1_000_000:]:
        return f"it seems to be a Princeton LightField file (.spe 3.x); {TEXT} there"
    return None


def seems_text(text: str) -> str:
    """Return what a text without a table seems to be."""
    head = text[:4096].lstrip().lower()
    for row in _TABLE["text"]:
        if head.startswith(row["begins"]):
            return f"it seems to be {row['is']}"
    lines = [line for line in text[:4096].splitlines() if line.strip()]
    shown = lines[0].strip()[:60] if lines else ""
    return f"it begins with {shown!r}, and no line holds two numbers, an axis and an intensity"
