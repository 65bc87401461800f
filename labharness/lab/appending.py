"""One more line at the end of a file of lines, on the disk before anybody goes on."""

import os
from pathlib import Path

__all__ = ["append_durably"]


def append_durably(path: Path, line: str) -> None:
    """Add a line; it outlives a power cut from when this returns.

    Where a power cut left half a line, ours begins on its own.

    Raises:
        OSError: The disk does not take it.
    """
    with path.open("ab") as file:
        cut_short = file.tell() and not path.read_bytes().endswith(b"\n")
        file.write((b"\n" if cut_short else b"") + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
