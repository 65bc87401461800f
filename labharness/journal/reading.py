"""Read a journal file without its writer."""

import base64
import contextlib
import json
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from labharness.journal.chain import Head, Record, Sealed, VerifyReport, genesis_of, unseal, verify
from labharness.journal.store import FORMAT, SELECT, JournalFailed, sqlite_errors

__all__ = ["about", "export_jsonl", "read", "run_header", "samples", "sealed", "verify_file"]

NOTHING_BESIDE = (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN)
READ_S_MAX = 0.25  # longest wait of a reader for a lock; a journal under recovery is locked


def read(path: Path) -> Iterator[Record]:
    """Return the committed records in their order.

    Raises:
        JournalFailed: The file cannot be opened or read.
    """
    found = run_header(path).get("format", 1)
    if not isinstance(found, int) or found > FORMAT:
        raise JournalFailed(f"{path} is of format {found}; this version reads up to {FORMAT}")
    for record in sealed(path):
        yield _unsealed(path, record)


def sealed(path: Path) -> Iterator[Sealed]:
    """Return the committed records as stored on disk.

    Raises:
        JournalFailed: The file cannot be opened or read.
    """
    with _opened(path) as database:
        for row in database.execute(f"{SELECT} ORDER BY seq"):
            yield Sealed(*row)


def samples(path: Path) -> Iterator[tuple[str, float, tuple[float, ...]]]:
    """Return every sampled row as stream name, lab time (s) and values; NaN means not measured.

    Rows come block by block: in order of time within a stream, and by minute across streams.

    Raises:
        JournalFailed: The file cannot be read, or a block does not fit its stream.
    """
    streams: list[tuple[str, struct.Struct]] = []
    for one in sealed(path):
        record = _unsealed(path, one)
        if record.kind == "stream":
            row = struct.Struct(f"<{1 + len(record.body['columns'])}d")
            streams.append((record.body["name"], row))
        elif record.kind == "samples":
            try:
                name, row = streams[record.body["stream"]]
                rows = list(row.iter_unpack(one.block or b""))
            except (IndexError, KeyError, TypeError, struct.error) as error:
                raise JournalFailed(f"{path}: samples of record {one.seq}: {error}") from error
            for at_s, *values in rows:
                yield name, at_s, tuple(values)


def run_header(path: Path) -> dict[str, Any]:
    """Return the facts that identify the run and are hashed into the chain."""
    return _header(path, "run")


def about(path: Path) -> dict[str, Any]:
    """Return the facts about the process that wrote the file; they are not part of the chain."""
    return _header(path, "about")


def verify_file(path: Path, outside: Head | None = None) -> VerifyReport:
    """Check the chain of a journal file; report the first record that does not fit.

    Raises:
        JournalFailed: The file cannot be opened or read.
    """
    return verify(sealed(path), genesis=genesis_of(run_header(path)), outside=outside)


def export_jsonl(path: Path, out: BinaryIO, until_seq: int | None = None) -> int:
    """Write the run's header and its records as JSON Lines; return the number of records.

    The same chain gives the same bytes: each record is written as the text that was hashed, with
    its hash and, for samples, its block in base64.

    Raises:
        JournalFailed: The file cannot be opened or read.
    """
    run = json.dumps(run_header(path), sort_keys=True, separators=(",", ":"))
    out.write(b'{"run":' + run.encode("ascii") + b"}\n")
    count = 0
    for one in sealed(path):
        if until_seq is not None and one.seq > until_seq:
            break
        block = b"" if one.block is None else b'"block":"' + base64.b64encode(one.block) + b'",'
        digest = one.hash.hex().encode("ascii")
        out.write(b"{" + block + b'"hash":"' + digest + b'","record":' + one.data + b"}\n")
        count += 1
    return count


def _unsealed(path: Path, one: Sealed) -> Record:
    try:
        return unseal(one)
    except ValueError as error:
        raise JournalFailed(f"{path}: {error}") from error


def _header(path: Path, part: str) -> dict[str, Any]:
    with _opened(path) as database:
        row = database.execute(
            "SELECT CAST(value AS BLOB) FROM header WHERE part = ?", (part,)
        ).fetchone()
    if row is None:
        raise JournalFailed(f"{path}: the header {part!r} is missing")
    try:
        value = json.loads(row[0])
    except ValueError as error:
        raise JournalFailed(f"{path}: the header {part!r} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise JournalFailed(f"{path}: the header {part!r} is no object")
    return value


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with sqlite_errors(path, "read"), contextlib.closing(_connected(path)) as database:
        yield database


def _connected(path: Path) -> sqlite3.Connection:
    """Open a journal for reading.

    SQLite makes a file beside it. In a directory that is read-only, such as an archive, a closed
    journal is opened as immutable; one with records in its write-ahead log is refused.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    database = sqlite3.connect(uri, uri=True, timeout=READ_S_MAX)
    try:
        database.execute("SELECT part FROM header LIMIT 1").fetchone()
    except sqlite3.Error as why:
        database.close()
        code = getattr(why, "sqlite_errorcode", None)
        if code not in NOTHING_BESIDE or _pending(path.with_name(f"{path.name}-wal")):
            raise
        return sqlite3.connect(f"{uri}&immutable=1", uri=True)
    return database


def _pending(log: Path) -> bool:
    """Return whether a write-ahead log holds records, or may hold some (it cannot be read)."""
    try:
        return log.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True
