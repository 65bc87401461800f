"""The records in the file of a journal, looked at and changed as a program that knows SQLite does.

The layout is written here again, apart from the code that is tested.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from labharness.journal.layout import FORMAT

SHARED, SINGLE = "groups", "records"
HASH_BYTES = 32

Row = tuple[int, bytes, bytes, bytes | None]


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file; what is done to it is kept."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous=OFF")
        yield database


def begun_before(path: Path, run: dict[str, Any]) -> Path:
    """Begin a journal as earlier versions did, with a row for each record; return its path."""
    with opened(path) as database:
        database.execute("CREATE TABLE header (part TEXT PRIMARY KEY, value BLOB NOT NULL)")
        database.execute(
            "CREATE TABLE records (seq INTEGER PRIMARY KEY, data BLOB NOT NULL,"
            " hash BLOB NOT NULL, block BLOB)"
        )
        for part, said in (("run", {**run, "format": FORMAT}), ("about", {})):
            text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode("ascii")
            database.execute("INSERT INTO header VALUES (?, ?)", (part, text))
    return path


def table_of(database: sqlite3.Connection) -> str:
    named = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    return SINGLE if SINGLE in named else SHARED


def rows(path: Path) -> list[Row]:
    """Return the rows as they are stored."""
    with opened(path) as database:
        return database.execute(f"SELECT * FROM {table_of(database)} ORDER BY seq").fetchall()


def store_rows(path: Path, fresh: list[Row]) -> None:
    """Store rows in place of those that are there; of two with one number the later one stays."""
    with opened(path) as database:
        table = table_of(database)
        database.execute(f"DELETE FROM {table}")
        database.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", fresh)


def records(path: Path) -> list[Row]:
    """Return the records, each as a row of its own."""
    return [
        (first + number, text, chained[number * HASH_BYTES :][:HASH_BYTES], block)
        for first, data, chained, block in rows(path)
        for number, text in enumerate(data.split(b"\n"))
    ]


def changed(
    path: Path, seq: int, *, data: bytes | None = None, digest: bytes | None = None
) -> None:
    """Store another text or another hash of one record, in its place in its row."""
    fresh = []
    for first, stored, chained, block in rows(path):
        texts = stored.split(b"\n")
        digests = [chained[at : at + HASH_BYTES] for at in range(0, len(chained), HASH_BYTES)]
        if first <= seq < first + len(texts):
            texts[seq - first] = data or texts[seq - first]
            digests[seq - first] = digest or digests[seq - first]
        fresh.append((first, b"\n".join(texts), b"".join(digests), block))
    store_rows(path, fresh)


def replaced(path: Path, old: bytes, new: bytes) -> None:
    """Store another text for one, wherever it stands."""
    store_rows(path, [(row[0], row[1].replace(old, new), *row[2:]) for row in rows(path)])
