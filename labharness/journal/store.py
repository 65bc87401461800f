"""The writer of one run's journal, on SQLite."""

import math
import sqlite3
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol, Self
from zlib import compress

import labharness.journal.chain as chain
import labharness.journal.layout as layout
from labharness.core.vocabulary.texts import Text
from labharness.journal.committing import COMMIT_S_MAX, CommitThread
from labharness.journal.disk import check_free, file_ids, make_room
from labharness.journal.encryption import RunKey
from labharness.journal.heads import HeadKeeper
from labharness.journal.reading import unsealed, verify_file
from labharness.journal.rows import Row, Rows, definition

PACKING: Final = 5
"""Level of zlib: of a growth's samples 6 saves 3 % and takes 1.6 times as long; 4 adds 15 %."""

COMMIT_RECORDS: Final = 1_000
"""Number of queued records that triggers a commit."""

BLOCK_LAB_S: Final = 60.0
"""Lab time (s) of one block of samples in virtual time, where no power can fail. Wall time is not
used: the same seed must give the same journal."""

QUEUE_RECORDS_MAX: Final = 100_000
"""Most queued records, some 50 MB. With a thread that commits, a record beyond them is refused: a
commit in its place would stop the loop, which sends the trips, behind a disk that is stuck."""

KEPT_S_MAX: Final = 4.0
"""Longest real time (s) until a measurement or an action is on its way to the disk. A full disk is
noticed by the next one. With one poll, both take at most 5 s."""

OPEN_TIMEOUT_S: Final = 1.0  # nothing is driven yet, and its house may be looking at the new file
BUSY_TIMEOUT_S: Final = 0.01
"""Longest wait (s) of the writer for another process's lock. Without a thread the wait blocks the
loop that must send a trip's first wave within 50 ms; sqlite3's own 5 s would also starve a
heartbeat. Readers do not block the writer (WAL), so only another writer is waited for."""

STREAMS_MAX: Final = 1_000
"""Most streams of one journal."""

COLUMNS_MAX: Final = 64
"""Most values in one row of a stream."""


class Journal(Protocol):
    """The methods of a journal that the harness uses.

    Attributes:
        keeps: Whether committed records are stored.
    """

    keeps: bool

    @property
    def head(self) -> chain.Head:
        """The newest record, committed or not."""

    def append(self, kind: str, body: Mapping[str, Any], at_s: float) -> int:
        """Chain a record and queue it; return its number."""

    def commit(self) -> None:
        """Write the queued records durably."""

    async def durable(self, seq: int) -> None:
        """Return when a record survives a power cut."""

    def stream(self, name: str, columns: Sequence[str]) -> int:
        """Declare a stream of samples; return its number."""

    def sample(self, stream: int, at_s: float, values: Sequence[float]) -> None:
        """Add one row of numbers to a stream."""


@dataclass(slots=True)
class _Stream:
    name: str
    columns: tuple[str, ...]
    form: struct.Struct
    pack: Callable[..., bytes]
    block: bytearray

    @property
    def last_at_s(self) -> float:
        return float(self.form.unpack_from(self.block, len(self.block) - self.form.size)[0])


@dataclass(eq=False, repr=False)
class SqliteJournal:
    """A journal in one SQLite file (WAL, synchronous FULL), with one writer.

    A second writer is refused at its first commit; readers in other processes see the committed
    records.

    Attributes:
        path: The file. An existing one is continued; its run header must be the same.
        run: Facts that identify the run (seed, digests, epoch). Hashed into the chain's genesis.
        about: Facts about this process and machine (pid, path, versions). Stored beside the chain
            and not hashed, so that the same seed gives the same chain everywhere.
        block_s: Lab time (s) of one block of samples. The end of a block commits the queue.
        speed: Lab seconds per real second: a thread then does the commits that `append`, `sample`
            and `durable` ask for. ``None`` for virtual time, where the loop itself does them: it
            would not wait for a thread, and the same seed must give the same journal.
        heads: Keeps the signed head of the chain elsewhere, now and then and at the end.
        key: Encrypts each record before it is chained; such a file is not continued later.

    Raises:
        JournalFailed: The file cannot be opened, or belongs to another run.
        JournalDamaged: Its chain does not hold: `salvage` opens its valid beginning.
    """

    path: Path
    run: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    block_s: float = BLOCK_LAB_S
    speed: float | None = None
    heads: HeadKeeper | None = None
    key: RunKey | None = None

    keeps = True

    def __post_init__(self) -> None:
        self._queue: list[Row] = []
        self._newest_at_s = 0.0
        self._streams: list[_Stream] = []
        self._block_end_s = -math.inf
        self._failure: str | None = None
        self._head_due_s = -math.inf
        self._disk = Lock()  # its holder may use the database
        with layout.sqlite_errors(self.path, "open"):
            self._database = sqlite3.connect(
                self.path, timeout=OPEN_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._open({**self.run, "format": layout.FORMAT})
                if self.speed is not None:  # virtual time stands still meanwhile
                    make_room(self._database, self.path)
                self._database.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000:.0f}")
                self._opened_ids = file_ids(self.path)
            except BaseException:
                self._database.close()
                raise
        self._thread: CommitThread | None = None
        if self.speed is not None:
            self._thread = CommitThread(self.commit, lambda: self._committed_seq, self.speed)

    def _open(self, run: Mapping[str, Any]) -> None:
        execute = self._database.execute
        execute(f"PRAGMA page_size={layout.PAGE_BYTES}")  # of a new file
        mode = execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise layout.JournalFailed(f"{self.path}: the file system allows no WAL (got {mode!r})")
        execute("PRAGMA synchronous=FULL")
        execute("BEGIN IMMEDIATE")
        known = execute("SELECT name FROM sqlite_master WHERE name = 'header'").fetchone()
        if known is None:
            execute(layout.HEADER_TABLE)
            execute(definition())
            parts = (("run", chain.canonical(run)), ("about", chain.canonical(self.about)))
            self._database.executemany("INSERT INTO header VALUES (?, ?)", parts)
        stored = execute("SELECT CAST(value AS BLOB) FROM header WHERE part = 'run'").fetchone()
        if stored != (chain.canonical(run),):
            raise layout.JournalFailed(f"{self.path} is the journal of another run: {stored}")
        run_first = "SELECT CAST(value AS BLOB) FROM header ORDER BY part DESC"
        self._headers = tuple(value for (value,) in execute(run_first))  # run, about
        self._rows = Rows(self._database)
        execute("COMMIT")
        self._seq, self._hash = chain.FIRST_SEQ - 1, chain.genesis_of(run)
        last = self._rows.last()
        if last is not None:
            self._must_hold()
            self._seq, self._hash = last.seq, last.hash
            self._newest_at_s = unsealed(self.path, last).at_s
        for each in self._rows.saying(b'"kind":"stream"'):
            record = unsealed(self.path, each)
            if record.kind == "stream":
                self._add_stream(record.body["name"], tuple(record.body["columns"]))
        self._committed_seq = self._seq
        if last is not None:  # the last head may say that nothing follows
            self._keep_head(self.head)

    def _must_hold(self) -> None:
        """Refuse to continue a damaged chain: what is added would hide where it broke."""
        if self.key is not None:
            raise layout.JournalFailed(f"{self.path}: an encrypted journal is not continued")
        found = verify_file(self.path)
        if not found.ok:
            path, seq, good = str(self.path), found.first_bad_seq, found.head.seq
            why, rows = found.reason, found.rows_lost
            raise layout.JournalDamaged(
                Text("journal.damaged", path=path, seq=seq, why=why, good=good, rows=rows)
            )

    @property
    def head(self) -> chain.Head:
        """The newest record, committed or not."""
        return chain.Head(self._seq, self._hash.hex())

    def append(self, kind: str, body: Mapping[str, Any], at_s: float) -> int:
        """Chain a record and queue it; return its number.

        Args:
            kind: Kind of the fact, for example ``command_intent``.
            body: JSON values. A missing number is ``None``.
            at_s: Lab time in seconds.

        Raises:
            ValueError: The body or the time holds NaN or infinity. Nothing is appended.
            JournalFailed: An earlier commit failed and none has succeeded since, or the disk is
                stuck (nothing is appended); or, without a thread, the commit that this record
                triggers fails (the record stays queued).
        """
        ended = at_s >= self._block_end_s and self._turn_block(at_s)
        seq = self._chain(kind, body, at_s, None)
        if ended:
            self._commit_soon()
        return seq

    def append_block(self, kind: str, body: Mapping[str, Any], block: bytes, at_s: float) -> int:
        """Chain a record with bytes of its own, as `append` does; return its number.

        Args:
            kind: One of `BLOCK_KINDS`.
            body: JSON values; the hash of the block is added to them.
            block: The bytes. They are stored compressed, beside the record.
            at_s: Lab time in seconds.

        Raises:
            ValueError: As `append`; or the kind has no block, or the block is too long.
            JournalFailed: As `append`.
        """
        if kind not in chain.BLOCK_KINDS or len(block) > layout.BLOCK_BYTES_MAX:
            raise ValueError(f"a record {kind!r} takes no block of {len(block)} bytes")
        packed = compress(block, PACKING)
        ended = at_s >= self._block_end_s and self._turn_block(at_s)
        seq = self._chain(kind, {**body, "sha256": sha256(block).hexdigest()}, at_s, packed)
        if ended:
            self._commit_soon()
        return seq

    def _chain(self, kind: str, body: Mapping[str, Any], at_s: float, block: bytes | None) -> int:
        if len(self._queue) >= QUEUE_RECORDS_MAX and kind != "samples":
            raise layout.JournalFailed(
                f"{self.path}: {QUEUE_RECORDS_MAX} records wait for the disk"
            )
        seq = self._seq + 1
        data = chain.record_bytes(seq, at_s, kind, body)
        if self.key is not None:
            data, block = self.key.record(seq, at_s, data, block)
        self._hash = chain.link_hash(self._hash, data)
        self._seq = seq
        self._newest_at_s = at_s
        self._queue.append((seq, data, self._hash, block))
        if len(self._queue) >= COMMIT_RECORDS:
            self._commit_soon()
        return seq

    def _commit_soon(self) -> None:
        if self._thread is None:
            self.commit()
        else:
            self._thread.ask()

    def commit(self) -> None:
        """Write the queue in one transaction; after the return it survives a power cut.

        A failed commit keeps the queue, so that it can be tried again once there is room.

        Raises:
            JournalFailed: SQLite refused (disk full, lock held, file damaged, another writer), the
                file was removed or replaced, or another thread's commit takes too long.
        """
        if not self._disk.acquire(timeout=COMMIT_S_MAX):
            raise layout.JournalFailed(
                f"{self.path}: cannot write: no answer in {COMMIT_S_MAX:g} s"
            )
        try:
            self._commit_queue()
        finally:
            self._disk.release()

    def _commit_queue(self) -> None:
        rows = self._queue[:]  # while they are written, others may join the queue
        if not rows:
            return
        try:
            if file_ids(self.path) != self._opened_ids:
                raise layout.JournalFailed(f"{self.path}: cannot write: it was removed or replaced")
            check_free(self.path)
            with layout.sqlite_errors(self.path, "write"):
                self._write_queue(rows)
        except Exception as error:
            self._failure = str(error) or repr(error)
            # This ends the block: the next sample or record meets the same failure.
            self._block_end_s = -math.inf
            raise
        self._failure = None
        self._committed_seq, _, newest, _ = rows[-1]
        del self._queue[: len(rows)]
        if self._newest_at_s >= self._head_due_s:
            self._keep_head(chain.Head(self._committed_seq, newest.hex()))

    def _keep_head(self, head: chain.Head, *, ended: bool = False) -> None:
        """Put the newest head on the disk where the run's folder is not."""
        if self.heads is not None:
            self._head_due_s = self._newest_at_s + self.heads.every_s
            self.heads.keep(head, *self._headers, ended=ended)

    def _write_queue(self, rows: Sequence[Row]) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._rows.add(rows)
            self._database.execute("COMMIT")
        except sqlite3.Error:
            # SQLite itself rolls back after some errors, for example a full disk.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    async def durable(self, seq: int) -> None:
        """Return when a record survives a power cut; all that is queued is committed with it.

        Raises:
            JournalFailed: The commit failed.
            ValueError: There is no such record.
        """
        if not chain.FIRST_SEQ <= seq <= self._seq:
            raise ValueError(f"no record {seq}; the journal holds {chain.FIRST_SEQ} to {self._seq}")
        if seq <= self._committed_seq:
            return
        if self._thread is None:
            self.commit()
        else:
            await self._thread.durable(seq)

    def stream(self, name: str, columns: Sequence[str]) -> int:
        """Declare a stream of samples, once, and return the number that `sample` takes.

        Raises:
            ValueError: The name is known with other columns, or a limit is exceeded.
        """
        for number, known in enumerate(self._streams):
            if known.name == name:
                if known.columns != tuple(columns):
                    raise ValueError(f"stream {name!r} has the columns {', '.join(known.columns)}")
                return number
        if len(self._streams) >= STREAMS_MAX or not 1 <= len(columns) <= COLUMNS_MAX:
            bound = f"at most {STREAMS_MAX} streams of 1 to {COLUMNS_MAX} columns"
            raise ValueError(f"stream {name!r}: {bound}")
        self.append("stream", {"name": name, "columns": list(columns)}, self._newest_at_s)
        return self._add_stream(name, tuple(columns))

    def _add_stream(self, name: str, columns: tuple[str, ...]) -> int:
        form = struct.Struct(f"<{1 + len(columns)}d")
        self._streams.append(_Stream(name, columns, form, form.pack, bytearray()))
        return len(self._streams) - 1

    def sample(self, stream: int, at_s: float, values: Sequence[float]) -> None:
        """Add one row of a declared stream; NaN marks a value that was not measured.

        Rows are packed as little-endian doubles, the time first. All rows of a block of lab
        time become one chained record of kind ``samples``, compressed and committed.

        Raises:
            struct.error: The number of values differs from the number of columns.
            JournalFailed: As in `append`.
        """
        # the negated comparison also catches NaN
        ended = not at_s < self._block_end_s and self._turn_block(at_s)
        to = self._streams[stream]
        to.block += to.pack(at_s, *values)
        if ended:
            self._commit_soon()

    def _turn_block(self, at_s: float) -> bool:
        """Begin a block; return whether one ended. The caller then commits it."""
        if not math.isfinite(at_s):
            raise ValueError(f"lab time must be finite, got {at_s}")
        # The next block opens before the last one is chained: chaining may commit, and a failed
        # commit resets this bound. The thread does so at any time, hence the look for a failure
        # behind it.
        ended = math.isfinite(self._block_end_s)
        self._block_end_s = (at_s // self.block_s + 1) * self.block_s
        failure = self._failure
        if not failure and self._thread is not None and self._thread.late:
            failure = f"a commit takes more than {COMMIT_S_MAX:g} s"
        if failure:
            self._block_end_s = -math.inf
            raise layout.JournalFailed(f"{self.path}: nothing is appended since: {failure}")
        self._chain_blocks()
        return ended

    def _chain_blocks(self) -> None:
        """Chain what all streams hold as one record, stream by stream."""
        parts = [(number, each) for number, each in enumerate(self._streams) if each.block]
        if not parts:
            return
        block = b"".join(each.block for _, each in parts)
        body = {
            "of": [[number, len(each.block) // each.form.size] for number, each in parts],
            "sha256": sha256(block).hexdigest(),
        }
        last_at_s = max(each.last_at_s for _, each in parts)
        for _, each in parts:
            each.block.clear()
        self._chain("samples", body, last_at_s, compress(block, PACKING))

    def flush(self) -> None:
        """Chain the open blocks of samples and commit, for example before an export.

        Raises:
            JournalFailed: The commit failed.
        """
        self._chain_blocks()
        self.commit()

    def close(self) -> None:
        """Chain the open blocks, commit and close the file, within twice `COMMIT_S_MAX`.

        Raises:
            JournalFailed: The commit failed; the file is closed all the same, unless a commit is
                stuck in it.
        """
        usable = self._thread is None or self._thread.end()
        try:
            self.commit()
            self.flush()
            self._keep_head(self.head, ended=True)
        finally:
            if usable:
                self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def block_lab_s(speed: float | None) -> float:
    """Return the lab time (s) of one block of samples, for a loop of this speed.

    Args:
        speed: Lab seconds per real second; ``None`` for virtual time.
    """
    return BLOCK_LAB_S if speed is None else min(BLOCK_LAB_S, KEPT_S_MAX * speed)
