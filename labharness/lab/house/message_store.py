"""Stores submissions, messages that no run's journal holds, and the house's newest records.

A message that goes to a caller is kept before it is sent, so that a house that starts again sends
the same one. The run's journal keeps events and answers. Kept here, in `messages.sqlite`, are the
submission and what is told on its receipt (what opens the session, and the acceptance or the
rejection of a task that has it at once), in one write with the house's record of the task; the
message that carries the token of a run (no journal has it); and what ends a session whose run has
died.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, Self, cast

from labharness.core.files.durable import write_durably
from labharness.core.vocabulary.texts import from_json, to_json
from labharness.journal.layout import sqlite_errors
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import PAYLOADS
from labharness.work.task.house import PendingRecord

Part = Literal["submission", "answer", "created", "accepted", "after", "ahead"]
"""Of a task its submission, and the rejection on receipt. Of a session what is told on receipt, the
acceptance of a run, and what stands behind its journal's end. Of the house the records that its own
journal may not have on the disk yet."""

MESSAGES_MAX: Final = 16
"""Most messages of one part, and most records of the house that its journal has not yet."""

HOUSE: Final = "house"

FILE: Final = "messages.sqlite"
"""In the state directory of a lab; only the lab's account may read it, because tokens are in it."""

BUSY_S_MAX: Final = 5.0
"""Longest wait (s) for another process that writes: house and line owner both do."""

TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS messages (owner TEXT, part TEXT, number INTEGER, data BLOB,"
    " PRIMARY KEY (owner, part, number)) WITHOUT ROWID"
)
SELECT: Final = "SELECT data FROM messages WHERE owner = ? AND part = ? ORDER BY number LIMIT ?"


@dataclass(frozen=True, slots=True)
class Receipt:
    """A submission, and the messages of its receipt.

    Attributes:
        task_id: The task that it makes.
        submission: Its bytes.
        session_id: The session of the task.
        told: The message that opens the session, and maybe the acceptance.
        answer: The rejection of a task that can never run.
    """

    task_id: str
    submission: bytes
    session_id: str = ""
    told: tuple[HcpMessage, ...] = ()
    answer: HcpMessage | None = None

    def rows(self) -> Iterator[tuple[str, Part, int, bytes]]:
        """Return its rows in the file."""
        yield self.task_id, "submission", 0, self.submission
        for number, each in enumerate(self.told):
            yield self.session_id, "created", number, _written(each)
        if self.answer is not None:
            yield self.task_id, "answer", 0, _written(self.answer)


class MessageStore:
    """The submissions and messages of one lab. Several processes and threads may use them at once.

    Args:
        home: The lab's state directory.

    Raises:
        JournalFailed: The file cannot be opened.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._one_at_a_time = Lock()
        with sqlite_errors(self._path, "open"):
            _make(self._path)
            self._database = sqlite3.connect(
                self._path, timeout=BUSY_S_MAX, isolation_level=None, check_same_thread=False
            )
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(TABLE)

    def receive(self, *receipts: Receipt, pending: PendingRecord | None = None) -> None:
        """Keep submissions with the messages of their receipt; on return all are on the disk.

        Args:
            receipts: The submissions.
            pending: The record of the house that makes tasks of them. It takes the place of the one
                `MESSAGES_MAX` records before it.

        Raises:
            JournalFailed: The disk does not take them.
        """
        rows = [row for each in receipts for row in each.rows()]
        if pending is not None:
            rows.append((HOUSE, "ahead", pending.seq % MESSAGES_MAX, pending.to_bytes()))
        if rows:
            self._write(rows)

    def pending_records(self) -> tuple[PendingRecord, ...]:
        """Return the newest records of the house that came with submissions; raises as `kept`."""
        return tuple(PendingRecord.from_bytes(each) for each in self._read(HOUSE, "ahead"))

    def keep(self, session_id: str, part: Part, *messages: HcpMessage) -> None:
        """Keep the messages of a part, instead of others; raises as `receive`."""
        told = enumerate(messages[:MESSAGES_MAX])
        self._write([(session_id, part, number, _written(each)) for number, each in told])

    def _write(self, rows: Sequence[tuple[str, str, int, bytes]]) -> None:
        """Write rows in one statement, which is its own transaction: whole, or not at all."""
        values = ", ".join(["(?, ?, ?, ?)"] * len(rows))
        insert = f"INSERT OR REPLACE INTO messages VALUES {values}"
        with sqlite_errors(self._path, "write"), self._one_at_a_time:
            self._database.execute(insert, [each for row in rows for each in row])

    def kept(self, owner: str, part: Part) -> tuple[HcpMessage, ...]:
        """Return the messages of a part, in their order; none where nothing was kept.

        Args:
            owner: Id of a session or of a task.
            part: One of its parts.

        Raises:
            JournalFailed: The file cannot be read.
        """
        return tuple(_read_back(each) for each in self._read(owner, part))

    def _read(self, owner: str, part: Part) -> list[bytes]:
        with sqlite_errors(self._path, "read"), self._one_at_a_time:
            rows = self._database.execute(SELECT, (owner, part, MESSAGES_MAX)).fetchall()
        return [data for (data,) in rows]

    def submission(self, task_id: str) -> bytes:
        """Return the submission of a task; ``b""`` where none was kept. Raises as `kept`."""
        return next(iter(self._read(task_id, "submission")), b"")

    def answer(self, task_id: str) -> HcpMessage | None:
        """Return the rejection that a task got on receipt; raises as `kept`."""
        return next(iter(self.kept(task_id, "answer")), None)

    def on_receipt(self, session_id: str) -> HcpMessage | None:
        """Return the acceptance that a session got on receipt; raises as `kept`."""
        told = self.kept(session_id, "created")
        return told[1] if len(told) > 1 else None

    def acceptance(self, session_id: str) -> HcpMessage | None:
        """Return the message with a session's token; ``None`` before it is accepted."""
        kept = self.kept(session_id, "accepted")
        return kept[0] if kept else self.on_receipt(session_id)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


ENVELOPE: Final = ("message_id", "timestamp", "session_id", "type")


def _written(message: HcpMessage) -> bytes:
    """Return a message with its texts as codes: whom it goes to decides what each of them says."""
    body = {name: getattr(message, name) for name in ENVELOPE}
    return to_json({**body, "payload": message.payload.stated()})


def _read_back(data: bytes) -> HcpMessage:
    body = cast("dict[str, Any]", from_json(data))
    payload = PAYLOADS[body["type"]].model_validate(body["payload"])
    return HcpMessage(**{name: body[name] for name in ENVELOPE}, payload=payload)


def _make(path: Path) -> None:
    """Make a file that only this account may read, where there is none.

    A file that exists is not opened: to close it again would end the locks that SQLite has on it
    for all connections of this process.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def keep_message(home: Path, session_id: str, part: Part, message: HcpMessage) -> None:
    """Keep one message of a session; raises as `MessageStore.keep`."""
    with MessageStore(home) as messages:
        messages.keep(session_id, part, message)


def told_on_receipt(home: Path, session_id: str) -> HcpMessage | None:
    """Return the acceptance that a session got on receipt; raises as `MessageStore.kept`."""
    if not (home / FILE).exists():
        return None
    with MessageStore(home) as messages:
        return messages.on_receipt(session_id)


def submit_file(home: Path, task_id: str) -> Path:
    """Return the file of a task's submission, which an order of its run names."""
    return home / "tasks" / f"{task_id}.json"


def made_submit_file(home: Path, messages: MessageStore, task_id: str) -> Path:
    """Return the file of a task's submission, for an order of its run; it is made if it is absent.

    Raises:
        JournalFailed: The submission cannot be read.
        OSError: The disk does not take the file.
    """
    path = submit_file(home, task_id)
    if not path.exists():
        write_durably(path, messages.submission(task_id))
    return path
