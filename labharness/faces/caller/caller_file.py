"""The file of a caller: what it has submitted, what it has heard, and how far it was read.

It is written before a message is sent, and before one is acknowledged, so that a caller that was
killed goes on where it was. Several programs of one account may use it at once; one of them hears
the broker's queue for all.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from labharness.core.vocabulary.texts import CodedError
from labharness.faces.caller import task_state
from labharness.faces.caller.task_state import Gap, KnownTask, Update
from labharness.protocols.hcp.codec import HcpMessage, decode, encode

TABLES: Final = """
CREATE TABLE IF NOT EXISTS task (
    n INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT UNIQUE NOT NULL,
    submission BLOB, known TEXT NOT NULL, position INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS session (session_id TEXT PRIMARY KEY, task TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS told (
    n INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT NOT NULL, message_id TEXT, body BLOB NOT NULL,
    session TEXT, number INTEGER
);
CREATE INDEX IF NOT EXISTS told_of ON told (task, n);
CREATE INDEX IF NOT EXISTS told_as ON told (message_id);
"""

BUSY_S_MAX: Final = 10.0
"""Longest wait (s) for another program that writes the file."""

TASKS_MAX: Final = 1_000
"""Most tasks that are kept; of those that have ended and were read, the oldest goes first."""

EVENTS_KEPT_MAX: Final = 20_000
"""Most events that are kept of one task; the oldest goes first, and an unread one is a gap then."""

PRUNED_EVERY: Final = 1_000
"""Messages of all tasks between two looks at that bound."""

READ_AT_ONCE: Final = 100
"""Most messages that are read from the file at once."""


class CallerFileFailed(CodedError, OSError, code="caller_file_failed"):
    """The file of a caller cannot be read or written; the message says which and why."""


class KeyReused(CodedError, ValueError, code="key_reused"):
    """A message_id was used before, for another submission."""


class UnknownTask(CodedError, KeyError, code="unknown_task"):
    """The file of the caller has no such task."""

    def __str__(self) -> str:
        return str(self.args[0])


class CallerFile:
    """The file of one account.

    Args:
        path: The file; its folder is made.

    Raises:
        CallerFileFailed: It cannot be opened, or is not such a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._hearing: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)  # tokens are in it
            self._database = _opened(path, BUSY_S_MAX)
            with _named(path):
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=FULL")
                self._database.executescript(TABLES)
        except OSError as why:
            raise CallerFileFailed("pair", what=str(path), why=why.strerror or str(why)) from None

    def hear(self) -> bool:
        """Return whether this program is the one that hears the queue for all; it stays so.

        The operating system lets go of it when this program ends, in whatever way.

        Raises:
            CallerFileFailed: The lock beside the file cannot be used.
        """
        if self._hearing is not None:
            return True
        path = self.path.with_name(f"{self.path.name}.lock")
        with _named(path):
            lock = _opened(path, 0.0)
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as why:
                lock.close()
                if why.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                    return False
                raise
        self._hearing = lock
        return True

    def version(self) -> int:
        """Return a number that changes when another program has written the file."""
        return int(self._rows("PRAGMA data_version")[0][0])

    # ---- what was submitted

    def submit(self, callee_id: str, message: HcpMessage) -> bool:
        """Keep a submission before it is sent; return whether it is new.

        Raises:
            KeyReused: Its `message_id` belongs to another submission.
        """
        message_id, body = message.message_id, encode(message)
        with self._written():
            row = self._row(message_id)
            if row is not None and row[0] is not None:
                known = _known(row[1])
                before = decode(row[0])
                if (known.callee_id, before.payload) != (callee_id, message.payload):
                    raise KeyReused("call.key_reused", message_id=message_id)
                self._know(task_state.again(known))
                return False
            known = KnownTask(message_id, callee_id)
            if row is not None:  # its answers were heard, and another program has submitted it
                known = task_state.again(replace(_known(row[1]), callee_id=callee_id))
            self._know(known)
            self._database.execute(
                "UPDATE task SET submission = ? WHERE message_id = ?", (body, message_id)
            )
            self._forget_old()
        return row is None

    def withdraw(self, message_id: str) -> None:
        """Forget a submission that has reached no queue."""
        with self._written():
            self._forget(message_id)

    def unended(self) -> Iterator[tuple[KnownTask, HcpMessage]]:
        """Return the submissions that have not ended, as they were made, the oldest first."""
        asked = "SELECT known, submission FROM task WHERE submission IS NOT NULL ORDER BY n"
        for known, submission in self._rows(asked):
            task = _known(known)
            if not task.end:
                yield task, decode(submission)

    def submission(self, message_id: str) -> HcpMessage:
        """Return a submission as it was made.

        Raises:
            UnknownTask: There is none of this id.
        """
        asked = "SELECT submission FROM task WHERE message_id = ? AND submission IS NOT NULL"
        return decode(self._found(asked, message_id)[0])

    # ---- what was heard

    def heard(self, message: HcpMessage) -> tuple[KnownTask, Update] | None:
        """Keep a message before it is acknowledged; ``None`` where it belongs to no known task."""
        reply_to = getattr(message.payload, "in_reply_to", None)
        with self._written():
            known = self._task_of(reply_to, message.session_id)
            if known is None:
                return None
            after, news = task_state.apply(known, message)
            if news.fresh:
                self._know(after)
                if message.session_id is not None:
                    row = message.session_id, after.message_id
                    self._database.execute("INSERT OR IGNORE INTO session VALUES (?, ?)", row)
                self._tell(after.message_id, message, news.gap)
        return after, news

    def task(self, message_id: str) -> KnownTask:
        """Return a task as it is known.

        Raises:
            UnknownTask: There is none of this id.
        """
        return _known(self._found("SELECT known FROM task WHERE message_id = ?", message_id)[0])

    def named(self, name: str) -> KnownTask:
        """Return the one task whose `message_id` or session begins so.

        Raises:
            UnknownTask: There is none, or more than one.
        """
        found = []
        for each in self.tasks():
            ids = (each.message_id, *(session.session_id for session in each.sessions))
            if any(one.startswith(name) for one in ids):
                found.append(each)
        whole = [each for each in found if each.message_id == name]
        if len(whole or found) != 1:
            code = "call.ambiguous" if found else "call.unknown"
            raise UnknownTask(code, name=name, path=str(self.path), count=len(found))
        return (whole or found)[0]

    def tasks(self) -> list[KnownTask]:
        """Return all tasks, the oldest first."""
        return [_known(known) for (known,) in self._rows("SELECT known FROM task ORDER BY n")]

    def message(self, message_id: str) -> HcpMessage:
        """Return a message that was heard.

        Raises:
            UnknownTask: There is none of this id.
        """
        return decode(self._found("SELECT body FROM told WHERE message_id = ?", message_id)[0])

    # ---- how far it was read

    def position(self, message_id: str) -> int:
        """Return the position up to which a task was read.

        Raises:
            UnknownTask: There is none of this id.
        """
        return int(self._found("SELECT position FROM task WHERE message_id = ?", message_id)[0])

    def after(self, message_id: str, position: int) -> list[tuple[int, HcpMessage | Gap]]:
        """Return the next messages and gaps of a task behind a position, each with its own."""
        asked = "SELECT n, message_id, body FROM told WHERE task = ? AND n > ? ORDER BY n LIMIT ?"
        return [
            (n, Gap(*json.loads(body)) if named is None else decode(body))
            for n, named, body in self._rows(asked, message_id, position, READ_AT_ONCE)
        ]

    def read(self, message_id: str, position: int) -> None:
        """Keep that a task was read up to a position; another reader may be further."""
        with self._written():
            self._database.execute(
                "UPDATE task SET position = max(position, ?) WHERE message_id = ?",
                (position, message_id),
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()
            if self._hearing is not None:
                self._hearing.close()
                self._hearing = None

    # ---- rows

    def _found(self, asked: str, message_id: str) -> tuple[Any, ...]:
        """Return the row of a message; raises ``UnknownTask`` where there is none."""
        found = self._rows(asked, message_id)
        if not found:
            raise UnknownTask("call.unknown", name=message_id, path=str(self.path))
        return found[0]

    def _rows(self, asked: str, *values: str | int) -> list[tuple[Any, ...]]:
        with self._lock, _named(self.path):
            return self._database.execute(asked, values).fetchall()

    def _row(self, message_id: str) -> tuple[bytes | None, str] | None:
        found: tuple[bytes | None, str] | None = self._database.execute(
            "SELECT submission, known FROM task WHERE message_id = ?", (message_id,)
        ).fetchone()
        return found

    def _task_of(self, reply_to: str | None, session_id: str | None) -> KnownTask | None:
        """Return the task of a message; one that another program has submitted is adopted."""
        if reply_to is None:
            row = self._database.execute(
                "SELECT task FROM session WHERE session_id = ?", (session_id,)
            ).fetchone()
            if row is None:
                return None
            reply_to = str(row[0])
        found = self._row(reply_to)
        return KnownTask(reply_to) if found is None else _known(found[1])

    def _know(self, task: KnownTask) -> None:
        self._database.execute(
            "INSERT INTO task (message_id, known) VALUES (?, ?) "
            "ON CONFLICT (message_id) DO UPDATE SET known = excluded.known",
            (task.message_id, msgspec.json.encode(task).decode()),
        )

    def _tell(self, task: str, message: HcpMessage, gap: Gap | None) -> None:
        insert = "INSERT INTO told (task, message_id, body, session, number) VALUES (?, ?, ?, ?, ?)"
        if gap is not None:
            self._database.execute(insert, (task, None, json.dumps(astuple(gap)), None, None))
        number = getattr(message.payload, "sequence", None)
        row = (task, message.message_id, encode(message), message.session_id, number)
        if (self._database.execute(insert, row).lastrowid or 0) % PRUNED_EVERY == 0:
            self._prune(task)

    def _prune(self, task: str) -> None:
        """Drop the oldest events beyond the bound; a gap stands for those of one session."""
        dropped = self._database.execute(
            "SELECT session, min(number), max(number), max(n) FROM (SELECT * FROM told "
            "WHERE task = ? AND number IS NOT NULL ORDER BY n DESC LIMIT -1 OFFSET ?) "
            "GROUP BY session",
            (task, EVENTS_KEPT_MAX),
        ).fetchall()
        for session, first, last, n in dropped:
            gap = json.dumps((session, first, last))
            self._database.execute(
                "DELETE FROM told WHERE task = ? AND session = ? AND number IS NOT NULL AND n < ?",
                (task, session, n),
            )
            self._database.execute(
                "UPDATE told SET message_id = NULL, body = ?, number = NULL WHERE n = ?", (gap, n)
            )

    def _forget(self, message_id: str) -> None:
        for table in ("told", "session"):
            self._database.execute(f"DELETE FROM {table} WHERE task = ?", (message_id,))
        self._database.execute("DELETE FROM task WHERE message_id = ?", (message_id,))

    def _forget_old(self) -> None:
        """Forget the oldest tasks that have ended, beyond the bound."""
        rows = self._database.execute("SELECT message_id, known FROM task ORDER BY n").fetchall()
        over = len(rows) - TASKS_MAX
        for message_id, known in rows[: max(over, 0)]:
            if _known(known).end:
                self._forget(message_id)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Write all or nothing; it is on the disk when this ends."""
        with self._lock, _named(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


def _known(body: str) -> KnownTask:
    return msgspec.json.decode(body, type=KnownTask)


def _opened(path: Path, busy_s: float) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file where SQLite refuses something."""
    try:
        yield
    except sqlite3.Error as why:
        raise CallerFileFailed("pair", what=str(path), why=str(why)) from why
