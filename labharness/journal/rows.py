"""The rows of a journal file: records that are committed together share them."""

import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from labharness.journal.chain import FIRST_SEQ, Sealed

ROW_RECORDS_MAX: Final = 128
"""Most records of one row."""

ROW_BYTES_MAX: Final = 16 * 2**10
"""Most bytes of the records of one row that holds several. Where a page of a row is lost, all
records of the row are: the bound keeps that near to what a page of 4,096 bytes held before."""

HASH_BYTES: Final = 32
"""Length of the hash of one record (SHA-256)."""

BETWEEN: Final = b"\n"
"""Stands between two records of a row. None of them holds it: JSON escapes control characters."""

BEFORE_ALL: Final = -(2**63)
"""Least number of a row in SQLite: a row that somebody put before the first record is read, too."""

# SQLite accepts a text in a BLOB column. The cast turns a changed row into bytes that do not fit.
COLUMNS: Final = "seq, CAST(data AS BLOB), CAST(hash AS BLOB)"

SHARED: Final = "groups"
"""Table whose rows hold several records each."""

SINGLE: Final = "records"
"""Table of earlier versions, with a row for each record."""

Row = tuple[int, bytes, bytes, bytes | None]
"""Number of the first record, the records, their hashes end to end, and the block of bytes of a
record that has the row for itself."""


def joined(records: Iterable[Row], records_max: int = ROW_RECORDS_MAX) -> Iterator[Row]:
    """Return the rows that hold records.

    Args:
        records: In their order, each as the row of one record.
        records_max: Most records of one row.
    """
    together: list[Row] = []
    size = 0
    for one in records:
        size += len(one[1])
        alone = one[3] is not None
        if together and (alone or len(together) >= records_max or size > ROW_BYTES_MAX):
            yield _one(together)
            together, size = [], len(one[1])
        together.append(one)
        if alone:
            yield one
            together, size = [], 0
    if together:
        yield _one(together)


def _one(records: Sequence[Row]) -> Row:
    if len(records) == 1:
        return records[0]
    texts = BETWEEN.join([data for _, data, _, _ in records])
    return records[0][0], texts, b"".join([digest for _, _, digest, _ in records]), None


def records_of(row: Row) -> Iterator[Sealed]:
    """Return the records of a row.

    A text without a hash and a hash without a text are returned as records that do not verify. A
    block beside several records is returned with each of them.
    """
    first, data, chained, block = row
    hashes = (chained[at : at + HASH_BYTES] for at in range(0, len(chained), HASH_BYTES))
    pairs = zip_longest(data.split(BETWEEN), hashes, fillvalue=b"")
    for seq, (text, digest) in enumerate(pairs, first):
        yield Sealed(seq, text, digest, block)


def definition(table: str = SHARED) -> str:
    """Return the statement that makes a table of records; without a name that of a new file."""
    columns = "seq INTEGER PRIMARY KEY, data BLOB NOT NULL, hash BLOB NOT NULL, block BLOB"
    return f"CREATE TABLE {table} ({columns})"


class Rows:
    """The rows of one file.

    A file that was begun with a row for each record goes on so, in a table of another name. An
    earlier version of labharness says of a file that lacks it that it cannot be read.

    Args:
        database: The opened file, which has its table.

    Attributes:
        definition: The statement that makes the table.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        named = "SELECT 1 FROM sqlite_master WHERE name = ?"
        shared = database.execute(named, (SINGLE,)).fetchone() is None
        self._database = database
        self._records_max = ROW_RECORDS_MAX if shared else 1
        self._table = SHARED if shared else SINGLE
        self.definition = definition(self._table)
        self._insert = f"INSERT INTO {self._table} VALUES (?, ?, ?, ?)"
        self._count = f"min({self._records_max}, max(1, coalesce(length(hash), 0) / {HASH_BYTES}))"

    def add(self, records: Iterable[Row]) -> None:
        """Insert records, each given as the row of one."""
        self._database.executemany(self._insert, joined(records, self._records_max))

    def after(self, seq: int, until: int = sys.maxsize, *, blocks: bool = True) -> Iterator[Sealed]:
        """Return the stored records after one, their blocks as they are stored.

        A row is looked up when it is asked for, and none beyond the last record: a damaged page
        spoils the rows in it, and none before them.

        Args:
            seq: Number of the record before.
            until: Number of the last record.
            blocks: Whether the blocks are read.
        """
        query = self._query(blocks, "WHERE seq >= ? ORDER BY seq LIMIT 1")
        begin, reached = self._begin(seq + 1), seq
        unread = seq if seq >= FIRST_SEQ else BEFORE_ALL
        while reached < until:
            row = self._database.execute(query, (begin,)).fetchone()
            if row is None:
                return
            for one in records_of(_whole(row)):
                if unread < one.seq <= until:
                    yield one
            begin, reached = row[0] + 1, one.seq

    def _begin(self, seq: int) -> int:
        """Return the number of the row that holds a record; without one, the record's own."""
        if seq <= FIRST_SEQ:
            return BEFORE_ALL
        query = f"SELECT seq, {self._count} FROM {self._table} WHERE seq <= ?"
        row = self._database.execute(f"{query} ORDER BY seq DESC LIMIT 1", (seq,)).fetchone()
        first, count = row or (seq, 1)
        return int(first) if first + count > seq else seq

    def last(self) -> Sealed | None:
        """Return the newest record; ``None`` if there is none."""
        query = self._query(True, "ORDER BY seq DESC LIMIT 1")
        row = self._database.execute(query).fetchone()
        return None if row is None else list(records_of(_whole(row)))[-1]

    def saying(self, text: bytes) -> Iterator[Sealed]:
        """Return the records in which a text stands."""
        query = self._query(False, "WHERE instr(data, ?) ORDER BY seq")
        for row in self._database.execute(query, (text,)):
            yield from (one for one in records_of(_whole(row)) if text in one.data)

    def count(self) -> int:
        """Return the number of stored records."""
        query = f"SELECT coalesce(sum({self._count}), 0) FROM {self._table}"
        return int(self._database.execute(query).fetchone()[0])

    def highest(self) -> int:
        """Return the number of the last stored record; 0 if there is none."""
        query = f"SELECT seq + {self._count} - 1 FROM {self._table} ORDER BY seq DESC LIMIT 1"
        (highest,) = self._database.execute(query).fetchone() or (0,)
        return int(highest)

    def _query(self, blocks: bool, which: str) -> str:
        block = "CAST(block AS BLOB)" if blocks else "NULL"
        return f"SELECT {COLUMNS}, {block} FROM {self._table} {which}"


def _whole(row: tuple[int, bytes | None, bytes | None, bytes | None]) -> Row:
    """Return a row in whose columns nothing may be where nothing is allowed: it is damaged."""
    return row[0], row[1] or b"", row[2] or b"", row[3]
