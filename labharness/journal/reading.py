"""Read a journal file without its writer."""

import base64
import contextlib
import json
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from labharness.journal.chain import Head, Record, Sealed, VerifyReport, genesis_of, unseal, verify
from labharness.journal.store import (
    BLOCK_BYTES_MAX,
    FORMAT,
    PACKED_SINCE,
    SELECT,
    JournalFailed,
    sqlite_errors,
)

__all__ = ["about", "export_jsonl", "read", "run_header", "samples", "sealed", "verify_file"]

NOTHING_BESIDE = (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN)
READ_S_MAX = 0.25  # longest wait of a reader for a lock; a journal under recovery is locked


def read(path: Path) -> Iterator[Record]:
    """Return the committed records in their order.

    Raises:
        JournalFailed: The file cannot be opened or read.
    """
    for record in sealed(path):
        yield _unsealed(path, record)


def sealed(path: Path) -> Iterator[Sealed]:
    """Return the committed records as they were chained, their samples unpacked.

    Of a block that cannot be unpacked no samples are returned; they do not fit the record's hash.

    Raises:
        JournalFailed: The file cannot be opened or read, or is of a newer format.
    """
    packed = _format(path) >= PACKED_SINCE
    with _opened(path) as database:
        for seq, data, chained, block in database.execute(f"{SELECT} ORDER BY seq"):
            yield Sealed(
                seq, data, chained, _unpacked(block) if packed and block is not None else block
            )


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
                yield from _rows(record.body, one.block or b"", streams)
            except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
                raise JournalFailed(f"{path}: samples of record {one.seq}: {error}") from error


def _rows(
    body: dict[str, Any], block: bytes, streams: list[tuple[str, struct.Struct]]
) -> Iterator[tuple[str, float, tuple[float, ...]]]:
    """Return the rows of a record of samples, stream by stream."""
    at = 0
    for stream, rows in body["of"] if "of" in body else [(body["stream"], body["rows"])]:
        name, row = streams[stream]
        part = block[at : at + rows * row.size]
        if len(part) != rows * row.size:
            raise ValueError(f"{len(block)} bytes, which end within {rows} rows of {name}")
        for at_s, *values in row.iter_unpack(part):
            yield name, at_s, tuple(values)
        at += len(part)
    if at != len(block):
        raise ValueError(f"{len(block)} bytes, of which {at} are said to be rows")


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


def _format(path: Path) -> int:
    found = run_header(path).get("format", 1)
    if not isinstance(found, int) or found > FORMAT:
        raise JournalFailed(f"{path} is of format {found}; this version reads up to {FORMAT}")
    return found


def _unpacked(block: bytes) -> bytes:
    """Return the samples of a block; none if it is not exactly one packed block."""
    packed = zlib.decompressobj()
    try:
        samples = packed.decompress(block, BLOCK_BYTES_MAX)
    except zlib.error:
        return b""
    return samples if packed.eof and not packed.unused_data else b""


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
