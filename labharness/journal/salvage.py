"""Go on after damage: the bad file is kept aside, and its valid beginning takes its place."""

import contextlib
import os
import sqlite3
from pathlib import Path
from shutil import copyfileobj
from typing import Final

from labharness.core.files.durable import sync_folder
from labharness.journal.chain import FIRST_SEQ, VerifyReport, link_hash, record_bytes, unseal
from labharness.journal.layout import HEADER_TABLE, PAGE_BYTES, JournalFailed, sqlite_errors
from labharness.journal.reading import verify_file
from labharness.journal.rows import Rows

ASIDE_MAX: Final = 100
"""Most damaged files that are kept beside one journal; a disk that damages more needs a person."""


def salvage(path: Path) -> VerifyReport:
    """Put the valid beginning of a damaged journal in its place; return what was found.

    The damaged file and its write-ahead log are first copied to a free name beside it,
    ``<name>.damaged-1`` and so on. The new file holds the records before the first bad one as they
    were, and then one of kind ``salvaged`` with what was lost. A whole journal is left as it is.

    Raises:
        JournalFailed: The file cannot be opened, has no readable header, is in use, or the disk is
            full. The journal is then still in its place.
    """
    report = verify_file(path)
    if report.ok:
        return report
    try:
        aside = _kept_aside(path)
        try:
            fresh = _made(path, report, aside.name)
        except BaseException:
            for each in (aside, _beside(aside, "-wal")):
                each.unlink(missing_ok=True)
            raise
        for part in ("-wal", "-shm"):
            _beside(path, part).unlink(missing_ok=True)
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as why:
        raise JournalFailed(f"{path}: cannot salvage: {why}") from why
    return report


def _made(path: Path, report: VerifyReport, aside: str) -> Path:
    """Write the valid beginning beside the journal, and leave nothing in the journal's log."""
    fresh = _beside(path, ".salvaged")
    fresh.unlink(missing_ok=True)
    with sqlite_errors(path, "salvage"):
        _copy_good(path, fresh, report, aside)
        # A crash before the new file has its name then finds all that was written in the old one.
        _empty_log(path)
    return fresh


def _beside(path: Path, end: str) -> Path:
    return path.with_name(f"{path.name}{end}")


def _kept_aside(path: Path) -> Path:
    """Copy file and write-ahead log to a free name, durably."""
    for number in range(1, ASIDE_MAX + 1):
        aside = _beside(path, f".damaged-{number}")
        with contextlib.suppress(FileExistsError):
            _copy(path, aside)
            log = _beside(path, "-wal")
            if log.exists():
                _copy(log, _beside(aside, "-wal"))
            sync_folder(path.parent)
            return aside
    raise JournalFailed(f"{path}: {ASIDE_MAX} damaged files are kept beside it already")


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as read, target.open("xb") as written:
        copyfileobj(read, written)
        written.flush()
        os.fsync(written.fileno())


def _copy_good(path: Path, fresh: Path, report: VerifyReport, aside: str) -> None:
    """Write the good records and the one about the loss."""
    last = report.head.seq
    with (
        contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as old,
        contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as new,
    ):
        new.execute(f"PRAGMA page_size={PAGE_BYTES}")
        new.execute("PRAGMA synchronous=FULL")
        new.execute("BEGIN")
        stored = Rows(old)
        for table in (HEADER_TABLE, stored.definition):
            new.execute(table)
        headers = old.execute("SELECT part, CAST(value AS BLOB) FROM header").fetchall()
        new.executemany("INSERT INTO header VALUES (?, ?)", headers)
        rows = Rows(new)
        good = stored.after(FIRST_SEQ - 1, last)
        rows.add((one.seq, one.data, one.hash, one.block) for one in good)
        newest = rows.last()
        at_s = unseal(newest).at_s if newest else 0.0
        body = {
            "lost_from": last + 1,
            "rows": report.rows_lost,
            "why": report.reason,
            "kept": aside,
        }
        data = record_bytes(last + 1, at_s, "salvaged", body)
        previous = bytes.fromhex(report.head.hash)
        rows.add([(last + 1, data, link_hash(previous, data), None)])
        new.execute("COMMIT")


def _empty_log(path: Path) -> None:
    """Move what the write-ahead log holds into the file."""
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as old:
        busy = old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise JournalFailed(f"{path}: cannot salvage: another process uses it")
