"""One more line at the end of a file of lines: whole, and on the disk before anybody goes on."""

import errno
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["append_durably"]


def append_durably(path: Path, line: str) -> None:
    """Add a line, whole or not at all; it outlives a power cut from when this returns.

    Where a power cut left half a line, ours begins on its own.

    Raises:
        OSError: The disk does not take it.
    """
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        cut_short = before and not path.read_bytes().endswith(b"\n")
        data = (b"\n" if cut_short else b"") + line.encode() + b"\n"
        try:
            if file.write(data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(before)
            raise
