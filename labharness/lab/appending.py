"""One more line at the end of a file of lines: whole, and on the disk before anybody goes on."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from labharness.safety.guard.named import open_own

__all__ = ["append_durably"]


def append_durably(path: Path, line: str) -> None:
    """Add a line, whole or not at all; it outlives a power cut from when this returns.

    Where a power cut left half a line, ours begins on its own.

    Raises:
        OSError: The disk does not take it.
    """
    handle = open_own(path, os.O_RDWR | os.O_APPEND)
    with os.fdopen(handle, "ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        cut_short = before and not _ends_well(handle, before)
        data = (b"\n" if cut_short else b"") + line.encode() + b"\n"
        try:
            if file.write(data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(before)
            raise


def _ends_well(handle: int, size: int) -> bool:
    os.lseek(handle, size - 1, os.SEEK_SET)  # what is appended goes to the end all the same
    return os.read(handle, 1) == b"\n"
