"""Room in the write-ahead log that is written before it is needed, on a disk that has more."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from labharness.journal.layout import JournalFailed

ROOM_BYTES: Final = 2**20
"""Length of a log with room: SQLite begins it anew at 1,000 pages (`PAGE_BYTES`). A sync of records
in the room allocates nothing, and takes as long as a sync of their bytes alone."""

FREE_BYTES_MIN: Final = 4 * ROOM_BYTES
"""Least bytes that are free on the disk at a commit. Records in the room would meet a full disk
when the room is used up, and not before. SQLite moves them into the file later, and the trip that
a full disk makes has a latch and an answer to write."""


def make_room(database: sqlite3.Connection, path: Path) -> None:
    """Write zeros behind the end of a journal's log, where SQLite reads an end of the records.

    Args:
        database: The opened journal. SQLite's lock of writers is held meanwhile.
        path: The journal.

    Raises:
        JournalFailed: The disk does not take them.
    """
    database.execute("BEGIN IMMEDIATE")
    try:
        with path.with_name(f"{path.name}-wal").open("r+b", buffering=0) as log:
            _lengthen(log.fileno())
    except OSError as why:
        raise JournalFailed(f"{path}: cannot open: {why.strerror or why}") from None
    finally:
        database.execute("ROLLBACK")


def _lengthen(log: int) -> None:
    end = os.fstat(log).st_size
    os.lseek(log, end, os.SEEK_SET)
    missing = ROOM_BYTES - end
    try:
        while missing > 0:
            missing -= os.write(log, bytes(missing))
        os.fsync(log)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(log, end)
        raise


def check_free(path: Path) -> None:
    """Refuse a commit where the disk is full, or nearly so.

    Raises:
        JournalFailed: Less than `FREE_BYTES_MIN` bytes are free.
    """
    try:
        total, _, free = shutil.disk_usage(path)
    except OSError as why:
        raise JournalFailed(f"{path}: cannot write: {why.strerror or why}") from None
    if free < FREE_BYTES_MIN and total:  # a file system that does not tell has a total of 0
        raise JournalFailed(
            f"{path}: cannot write: the disk is full (free {free} bytes, at least {FREE_BYTES_MIN})"
        )
