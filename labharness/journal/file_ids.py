"""Which files a journal and its write-ahead log are, asked without their times."""

import os
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from labharness.journal.layout import JournalFailed

# From linux/fcntl.h, linux/stat.h: paths from the working directory; the inode and nothing else.
AT_FDCWD: Final = -100
STATX_INO: Final = 0x100
STATX: Final = struct.Struct("=32xQ96xII112x")
"""Inode, major and minor number of the device in Linux's ``struct statx``."""


def file_ids(path: Path) -> Sequence[tuple[int, int]]:
    """Return device and inode of a journal and its write-ahead log.

    SQLite goes on writing into removed files and reports success.

    Raises:
        JournalFailed: One of them is gone.
    """
    name = os.fsencode(path)
    try:
        return [_id_of(name), _id_of(name + b"-wal")]
    except OSError as why:
        text = f"{path}: cannot write: it was removed or replaced ({why.strerror})"
        raise JournalFailed(text) from None


def _id_of(name: bytes) -> tuple[int, int]:
    # Since Linux 6.13 a file whose times were asked for gets new ones with its next write. The sync
    # behind each record then took half as long again (measured on ext4).
    statx = _statx()
    if statx is not None:
        told = bytearray(STATX.size)
        if statx(name, told) == 0:
            inode, major, minor = STATX.unpack(told)
            return os.makedev(major, minor), inode
    found = os.stat(name)  # which also says why there is none
    return found.st_dev, found.st_ino


@cache
def _statx() -> Callable[[bytes, bytearray], int] | None:
    """Return Linux's call that is asked for single facts; ``None`` where there is none."""
    if sys.platform != "linux":
        return None
    import ctypes

    told = ctypes.c_char * STATX.size
    try:
        call: Any = ctypes.CDLL(None).statx
    except AttributeError:  # a C library without it
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    return lambda name, into: call(AT_FDCWD, name, 0, STATX_INO, told.from_buffer(into))
