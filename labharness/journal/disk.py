"""The disk under a journal: whether its files are still the same, room in the log, free space."""

import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from labharness.journal.layout import JournalFailed

ROOM_BYTES: Final = 2**20
"""Length of a write-ahead log with room: SQLite begins it anew at 1,000 pages (`PAGE_BYTES`). A
sync of records in the room allocates nothing."""

FREE_BYTES_MIN: Final = 4 * ROOM_BYTES
"""Least bytes that are free on the disk at a commit. Records in the room would meet a full disk
when the room is used up, and not before. SQLite moves them into the file later, and the trip that
a full disk makes has a latch and an answer to write."""

SPILL_PAGES: Final = 10
"""Pages of a transaction that SQLite holds in memory meanwhile; the others it writes."""


def make_room(database: sqlite3.Connection, path: Path) -> None:
    """Have SQLite write its log up to `ROOM_BYTES` with what it then takes back.

    Args:
        database: The opened journal.
        path: The journal.

    Raises:
        sqlite3.Error: The disk does not take it.
    """
    missing = ROOM_BYTES - path.with_name(f"{path.name}-wal").stat().st_size
    if missing <= 0:
        return
    (pages,) = database.execute("PRAGMA cache_size").fetchone()
    database.execute(f"PRAGMA cache_size={SPILL_PAGES}")
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute("CREATE TABLE room (zeros)")
        database.execute("INSERT INTO room VALUES (zeroblob(?))", (missing,))
    finally:
        if database.in_transaction:  # a full disk ends it by itself
            database.execute("ROLLBACK")
    database.execute(f"PRAGMA cache_size={pages}")


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


def file_ids(path: Path) -> Sequence[tuple[int, int]]:
    """Return device and inode of a journal and its write-ahead log.

    SQLite goes on writing into removed files and reports success.

    Raises:
        JournalFailed: One of them is gone.
    """
    try:
        found = [os.stat(path.with_name(f"{path.name}{end}")) for end in ("", "-wal")]
    except OSError as why:
        text = f"{path}: cannot write: it was removed or replaced ({why.strerror})"
        raise JournalFailed(text) from None
    return [(each.st_dev, each.st_ino) for each in found]
