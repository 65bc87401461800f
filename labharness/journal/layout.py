"""The layout of a journal file: its formats and tables, and the errors of readers and writer."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from labharness.core.errors import LabError

FORMAT: Final = 3
"""Of what is written now, in the run's header: the samples of all streams in a block of lab time
are one record, stored compressed. In format 2 each stream has a record of its own, stored as it is.
A journal whose header has none is of format 1, and its texts are English sentences in the place of
codes with parameters."""

PACKED_SINCE: Final = 3
"""First format whose blocks are compressed (zlib, RFC 1950). The record holds the hash of the
samples themselves, so that the chain does not depend on how a version of zlib packs them."""

BLOCK_BYTES_MAX: Final = 64 * 2**20
"""Longest block (bytes) before it is compressed. 64 values at 1 kHz for a minute are 31 MB."""

PAGE_BYTES: Final = 1024
"""Page of a new file. A commit writes whole pages, which the disk allocates: of one record it
takes 1.4 times a sync of the bytes alone, and with SQLite's own 4,096 bytes 1.8 times (measured
on ext4)."""

HEADER_TABLE: Final = "CREATE TABLE header (part TEXT PRIMARY KEY, value BLOB NOT NULL)"


class JournalFailed(LabError, code="journal_failed"):
    """The journal cannot write or read records: full disk, lock, damaged or removed file."""


class JournalDamaged(JournalFailed, code="journal_damaged"):
    """A record is bad or missing, so that nothing may be added; those before it can be read."""


class JournalEmpty(JournalFailed, code="journal_empty"):
    """A file whose writer has opened it, and has not begun its journal yet."""


@contextlib.contextmanager
def sqlite_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn every SQLite error into `JournalFailed`, with its cause.

    Of a damaged file, names and messages may be no text, and sizes beyond all memory.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, MemoryError, OverflowError) as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise JournalFailed(f"{path}: cannot {doing}: {error} ({name})") from error
