"""Durable writes: each is whole, and on the disk before it returns."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from labharness.core.files.named import open_own

NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a new file must not follow a link that has its name


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


def write_durably(path: Path, text: str | bytes, *, synced: bool = True) -> None:
    """Put a small file in its place whole, and where it is synced on the disk before this returns.

    Raises:
        OSError: The disk does not take it.
    """
    fresh = path.with_suffix(".new")
    with os.fdopen(open_own(fresh, os.O_WRONLY | os.O_TRUNC | NO_LINK), "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
        file.flush()
        if synced:
            os.fsync(file.fileno())
    fresh.replace(path)
    if synced:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was renamed or removed in a folder outlive a power cut."""
    if os.name != "posix":
        return  # Windows makes a rename durable by itself and cannot open a folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
