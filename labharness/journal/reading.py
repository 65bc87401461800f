"""Reads, verifies and exports a journal file, also while its writer is at work."""

import base64
import contextlib
import hashlib
import json
import sqlite3
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import labharness.journal.chain as chain
import labharness.journal.layout as layout
from labharness.core.vocabulary.texts import Text
from labharness.journal.encryption import KEY_NAME, KeyMissing, RunKey, key_of
from labharness.journal.rows import Rows

NOTHING_BESIDE = (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN)
HIDDEN = f'"kind":"{chain.ENCRYPTED}"'.encode()
"""Stands in the text of each record that holds another one, and perhaps in others."""

READ_S_MAX = 0.25  # longest wait of a reader for a lock; a journal under recovery is locked


def read(path: Path, until_seq: int | None = None) -> Iterator[chain.Record]:
    """Return the committed records in their order.

    They are not checked. Of a file that may be damaged, `verify_file` returns the last good record,
    up to which it can be read.

    Args:
        path: The journal.
        until_seq: Number of the last record; ``None`` for all.

    Raises:
        JournalFailed: The file cannot be opened or read.
    """
    for record in sealed(path, until_seq):
        yield unsealed(path, record)


def read_after(path: Path, seq: int) -> Iterator[chain.Record]:
    """Return the committed records after one, without their blocks of samples.

    A reader that follows a run asks this again and again.

    Raises:
        JournalFailed: The file cannot be opened or read.
    """
    with _stored(path) as rows:
        for one in _decrypted(path, rows.after(seq, blocks=False)):
            yield unsealed(path, one)


def sealed(path: Path, until_seq: int | None = None) -> Iterator[chain.Sealed]:
    """Return the committed records as `stored` does, those of a confidential run decrypted.

    Raises:
        JournalFailed: As `stored`.
        KeyMissing: They are encrypted, and their key cannot be had.
    """
    return _decrypted(path, stored(path, until_seq))


def _decrypted(path: Path, found: Iterable[chain.Sealed]) -> Iterator[chain.Sealed]:
    key: RunKey | None = None
    for one in found:
        if HIDDEN in one.data and (record := unsealed(path, one)).kind == chain.ENCRYPTED:
            key = key or key_of(path.parent / KEY_NAME)
            if key is None:
                raise KeyMissing(Text("encrypted.destroyed", path=str(path), name=KEY_NAME))
            data, block = key.read_record(one.seq, record.body, one.block)
            yield replace(one, data=data, block=None if block is None else _unpacked(block))
        else:
            yield one


def stored(path: Path, until_seq: int | None = None) -> Iterator[chain.Sealed]:
    """Return the committed records as they were chained, their samples unpacked.

    Of a block that cannot be unpacked no samples are returned; they do not fit the record's hash.

    Args:
        path: The journal.
        until_seq: Number of the last record; ``None`` for all.

    Raises:
        JournalFailed: The file cannot be opened or read, or is of a newer format.
    """
    found = run_header(path).get("format", 1)
    if not isinstance(found, int) or found > layout.FORMAT:
        raise layout.JournalFailed(
            f"{path} is of format {found}; this version reads up to {layout.FORMAT}"
        )
    packed = found >= layout.PACKED_SINCE
    last = sys.maxsize if until_seq is None else until_seq
    with _stored(path) as rows:
        for one in rows.after(chain.FIRST_SEQ - 1, last):
            yield replace(one, block=_unpacked(one.block)) if packed and one.block else one


def samples(
    path: Path, until_seq: int | None = None
) -> Iterator[tuple[str, float, tuple[float, ...]]]:
    """Return every sampled row as stream name, lab time (s) and values; NaN means not measured.

    Rows come block by block: in order of time within a stream, and by minute across streams.

    Args:
        path: The journal.
        until_seq: Number of the last record that is read; ``None`` for all.

    Raises:
        JournalFailed: The file cannot be read, or a block does not fit its stream.
    """
    for name, row, part in sample_blocks(path, until_seq):
        for at_s, *values in row.iter_unpack(part):
            yield name, at_s, tuple(values)


def sample_blocks(
    path: Path, until_seq: int | None = None
) -> Iterator[tuple[str, struct.Struct, bytes]]:
    """Return sampled rows as they are packed: stream name, form of one row, all rows of a block.

    A row is made of little-endian doubles, the lab time (s) first. For order, arguments and errors
    see `samples`.
    """
    streams: list[tuple[str, struct.Struct]] = []
    for one in sealed(path, until_seq):
        record = unsealed(path, one)
        if record.kind == "stream":
            row = struct.Struct(f"<{1 + len(record.body['columns'])}d")
            streams.append((record.body["name"], row))
        elif record.kind == "samples":
            try:
                yield from _parts(record.body, one.block or b"", streams)
            except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
                raise layout.JournalFailed(
                    f"{path}: samples of record {one.seq}: {error}"
                ) from error


def _parts(
    body: dict[str, Any], block: bytes, streams: list[tuple[str, struct.Struct]]
) -> Iterator[tuple[str, struct.Struct, bytes]]:
    """Return what a record of samples has of each stream."""
    at = 0
    for stream, rows in body["of"] if "of" in body else [(body["stream"], body["rows"])]:
        name, row = streams[stream]
        part = block[at : at + rows * row.size]
        if len(part) != rows * row.size:
            raise ValueError(f"{len(block)} bytes, which end within {rows} rows of {name}")
        yield name, row, part
        at += len(part)
    if at != len(block):
        raise ValueError(f"{len(block)} bytes, of which {at} are said to be rows")


def run_header(path: Path) -> dict[str, Any]:
    """Return the facts that identify the run and are hashed into the chain."""
    return _header(path, "run")


def about(path: Path) -> dict[str, Any]:
    """Return the facts about the process that wrote the file; they are not part of the chain."""
    return _header(path, "about")


def verify_file(path: Path, outside: chain.Head | None = None) -> chain.VerifyReport:
    """Check the chain of a journal file; report the first record that does not fit or is not there.

    Raises:
        JournalFailed: The file cannot be opened, or has no readable header.
    """
    genesis = hashlib.sha256(chain.GENESIS + header_bytes(path, "run")).digest()
    run_header(path)
    broken = ""

    def readable() -> Iterator[chain.Sealed]:
        nonlocal broken
        try:
            yield from stored(path)
        except layout.JournalFailed as why:
            broken = str(why)

    report = chain.verify(readable(), genesis=genesis, outside=outside)
    if broken:
        bad = report.head.seq + 1
        report = replace(report, ok=False, first_bad_seq=bad, reason=broken, tail_known=False)
    if report.ok:
        return report
    return replace(report, rows_lost=_rows_behind(path, report.head.seq))


def _rows_behind(path: Path, good: int) -> int | None:
    """Return how many records are stored behind the good ones, as far as the file can tell."""
    for counted in (Rows.count, Rows.highest):
        with contextlib.suppress(layout.JournalFailed), _stored(path) as rows:
            return max(counted(rows) - good, 0)
    return None


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
    for one in stored(path, until_seq):
        block = b"" if one.block is None else b'"block":"' + base64.b64encode(one.block) + b'",'
        digest = one.hash.hex().encode("ascii")
        out.write(b"{" + block + b'"hash":"' + digest + b'","record":' + one.data + b"}\n")
        count += 1
    return count


def _unpacked(block: bytes) -> bytes:
    """Return the samples of a block; none if it is not exactly one packed block."""
    packed = zlib.decompressobj()
    try:
        samples = packed.decompress(block, layout.BLOCK_BYTES_MAX)
    except zlib.error:
        return b""
    return samples if packed.eof and not packed.unused_data else b""


def unsealed(path: Path, one: chain.Sealed) -> chain.Record:
    """Decode a record of a journal.

    Raises:
        JournalFailed: Its bytes are not a record.
    """
    try:
        return chain.unseal(one)
    except ValueError as error:
        raise layout.JournalFailed(f"{path}: {error}") from error


def _header(path: Path, part: str) -> dict[str, Any]:
    try:
        value = json.loads(header_bytes(path, part))
    except (ValueError, RecursionError) as error:
        raise layout.JournalFailed(
            f"{path}: the header {part!r} cannot be read: {error}"
        ) from error
    if not isinstance(value, dict):
        raise layout.JournalFailed(f"{path}: the header {part!r} is not an object")
    return value


def header_bytes(path: Path, part: str) -> bytes:
    """Return the text of a header as it is stored: ``run`` or ``about``.

    Raises:
        JournalFailed: The file cannot be opened, or it has no such header.
    """
    with _opened(path) as database:
        row = database.execute(
            "SELECT CAST(value AS BLOB) FROM header WHERE part = ?", (part,)
        ).fetchone()
    if row is None or row[0] is None:
        raise layout.JournalFailed(f"{path}: the header {part!r} is missing")
    return bytes(row[0])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with layout.sqlite_errors(path, "read"), contextlib.closing(_connected(path)) as database:
        yield database


@contextlib.contextmanager
def _stored(path: Path) -> Iterator[Rows]:
    """Open the records of a journal, as they are at one moment."""
    with _opened(path) as database:
        database.execute("BEGIN")
        yield Rows(database)


def _connected(path: Path) -> sqlite3.Connection:
    """Open a journal for reading.

    SQLite makes a file beside it. In a directory that is read-only, such as an archive, a closed
    journal is opened as immutable; one with records in its write-ahead log is refused.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    database = sqlite3.connect(uri, uri=True, timeout=READ_S_MAX)
    tables = 1
    try:
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        database.execute("SELECT 1 FROM header LIMIT 1").fetchone()
    except sqlite3.Error as why:
        database.close()
        code = getattr(why, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_ERROR and not tables:
            raise layout.JournalEmpty(f"{path} has no journal yet") from None
        if code not in NOTHING_BESIDE or _pending(path.with_name(f"{path.name}-wal")):
            raise
        return sqlite3.connect(f"{uri}&immutable=1", uri=True)
    return database


def _pending(log: Path) -> bool:
    """Return whether a write-ahead log holds records, or may hold some (it cannot be read)."""
    try:
        return log.stat().st_size > 0
    except OSError as why:
        return not isinstance(why, FileNotFoundError)
