"""The outbox of all sessions: which messages are due to which caller, and which were sent.

How far each session was sent is the only thing that it keeps itself. The messages are facts
elsewhere: a position that is lost makes some of them be sent twice, with their old ids, and a
receiver drops what it knows; so nothing of it needs to survive a power cut.
"""

import logging
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.faces.service.open_sessions import OpenSessions, is_over
from labharness.faces.service.session_messages import (
    AFTER,
    LostEnd,
    Outgoing,
    SessionState,
    before_closing,
    closed_already,
    end_of_lost,
    messages_of,
    on_receipt_in_order,
    state_after,
)
from labharness.journal import JournalFailed
from labharness.journal.access_log import AccessNotLogged, data_class_of, log_access
from labharness.journal.chain import Record
from labharness.journal.encryption import KeyMissing
from labharness.lab.house.access import HouseAccess
from labharness.lab.house.message_store import MESSAGES_MAX, MessageStore
from labharness.lab.house.orders import RECORDS_MAX, RunFiles, next_records
from labharness.protocols.hcp.terms import OPEN
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.desk.left_behind import LeftBehind
from labharness.work.task.record import Attempt, Task, Tasks
from labharness.work.task.states import TERMINAL

LOG = logging.getLogger(__name__)

VIA: Final = "amqp"

ANSWERS: Final = ("task_accepted", "task_completed", "task_failed", "task_rejected")
"""The messages that answer a submission; the events between them are told once."""

RESULTS: Final = ("task_completed", "task_failed")
"""The messages that hold results."""

OUTBOX_FILE: Final = "outbox.sqlite"
"""In the state directory of a lab."""

NOTHING_SENT: Final = -1
FINISHED: Final = 1 << 60
"""Position of a session whose last message was sent, so that nothing of it is read again."""

BUSY_S_MAX: Final = 5.0
"""Longest wait (s) for another process that reads the file."""


OPENED: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=OFF",
    "CREATE TABLE IF NOT EXISTS sent (session_id TEXT PRIMARY KEY, position INTEGER)",
)


class Positions:
    """The positions of one lab.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(
            path, timeout=BUSY_S_MAX, isolation_level=None, check_same_thread=False
        )
        for each in OPENED:
            self._database.execute(each)
        self._known: dict[str, int] = dict(self._database.execute("SELECT * FROM sent"))

    def of(self, session_id: str) -> int:
        """Return the position of the last message that was sent."""
        return self._known.get(session_id, NOTHING_SENT)

    def move(self, to: Mapping[str, int]) -> None:
        """Keep new positions."""
        changed = [(name, at) for name, at in to.items() if at != self._known.get(name)]
        if changed:
            self._known.update(changed)
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO sent VALUES (?, ?)", changed)
            self._database.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@dataclass(frozen=True, slots=True)
class Batch:
    """The next messages of one session, in their order.

    Attributes:
        reach: Position of the session once all of them are sent.
        since: Its position before.
        more: Others may stand behind them now.
    """

    caller_id: str
    session_id: str
    messages: tuple[Outgoing, ...]
    reach: int
    since: int = NOTHING_SENT
    more: bool = False


@dataclass(slots=True)
class Outbox:
    """Reads what is kept of each session behind the last message that was sent.

    Attributes:
        kept: The messages that no journal holds.
        runs: The folders of its runs.
        positions: How far each session was sent.
        new_id: Mints the ids of messages that end a lost session.
        timestamp: Returns the time of such a message.
        via: The sessions are those of tasks that came this way.
        secured: Others cannot read what is sent: sessions of confidential tasks are told.
        left_behind: Returns what a killed run has left in its folder.
    """

    kept: MessageStore
    runs: RunFiles
    positions: Positions
    new_id: Callable[[], str]
    timestamp: Callable[[], str]
    via: str = VIA
    secured: bool = True
    left_behind: Callable[[Path], LeftBehind] = lambda folder: LeftBehind()
    _sessions: OpenSessions = field(default_factory=OpenSessions, init=False)

    def due(
        self, tasks: Tasks, away: Container[str] = (), opening: Container[str] = ()
    ) -> Iterator[Batch]:
        """Return what is to be sent now, the oldest session first, each at most once.

        A session whose journal cannot be read now, or whose end cannot be kept, waits; the others
        do not wait for it. Of one with much to send the next `RECORDS_MAX` records are read.

        Args:
            tasks: The state of all tasks.
            away: Callers that nothing can be sent to now; nothing is read for them.
            opening: Sessions that are told of their receipt now, elsewhere.
        """
        for session_id, task, run in self._sessions.look(tasks, self._is_this_way):
            sent = self.positions.of(session_id)
            # all there is of it was sent, because its run has not begun
            only_waits = run is None and sent > NOTHING_SENT and task.status not in TERMINAL
            elsewhere = task.requested_by in away or session_id in opening
            if sent == FINISHED:
                self._sessions.drop(session_id)
            elif not (only_waits or elsewhere) and self.may_tell(task):
                try:
                    yield self._batch(task, session_id, run)
                except (JournalFailed, OSError) as why:
                    LOG.warning("session %s waits: %s", session_id, why)

    def _is_this_way(self, task: Task) -> bool:
        return task.profile.get("via") == self.via

    def may_tell(self, task: Task) -> bool:
        """Return whether a task is open, or the way is secured; a rejection holds nothing."""
        declared = task.constraints.get("data_classification")
        return self.secured or declared in (None, *OPEN) or bool(self._rejection(task))

    def all_ended(self, tasks: Tasks, caller_id: str) -> bool:
        """Return whether all tasks of a caller have ended."""
        return all(task.status in TERMINAL for task in self._of(tasks, caller_id))

    def all_sent(self, tasks: Tasks, caller_id: str) -> bool:
        """Return whether all tasks of a caller have ended, and all of their messages were sent."""
        return self.all_ended(tasks, caller_id) and all(
            self.positions.of(name) == FINISHED
            for task in self._of(tasks, caller_id)
            for name, _ in _sessions(task)
        )

    def _of(self, tasks: Tasks, caller_id: str) -> Iterator[Task]:
        for task in tasks.by_id.values():
            if self._is_this_way(task) and task.requested_by == caller_id:
                yield task

    def is_due(self, batch: Batch) -> bool:
        """Return whether nothing of its session was sent since the batch was made."""
        return self.positions.of(batch.session_id) == batch.since

    def sent(self, batch: Batch, count: int) -> None:
        """Keep that the first messages of a batch were confirmed; log that results were read."""
        for each in batch.messages[:count]:
            if each.message.type in RESULTS:
                self._log_read(batch, each.message.type)
        if count == len(batch.messages):
            self.positions.move({batch.session_id: batch.reach})
        elif count:
            self.positions.move({batch.session_id: batch.messages[count - 1].position})

    def _log_read(self, batch: Batch, what: str) -> None:
        folder = Path(self.runs.folder(batch.session_id))
        if not (folder / JOURNAL_NAME).is_file():  # it was rejected, or left nothing
            return
        try:
            data_class = data_class_of(folder / JOURNAL_NAME)
            log_access(
                folder,
                data_class=data_class,
                of_results=data_class in OPEN,  # of others it names the artifact that holds them
                reader=batch.caller_id,
                via=self.via,
                what=what,
            )
        except AccessNotLogged as why:  # the broker has it already, and the caller its right to it
            LOG.warning("%s", why)

    def again(self, task: Task) -> Iterator[Batch]:
        """Return what a repeated submission is answered with: acceptance and end (ruling 14).

        What was not sent yet is not among it: it is due anyway.
        """
        for session_id, run in _sessions(task):
            sent = self.positions.of(session_id)
            whole = self._from(task, session_id, NOTHING_SENT, self._whole(session_id))
            if run is None or run.ended_at_s is not None:
                whole = chain(whole, self._after(session_id))
            told = tuple(
                each
                for each in (self._rejection(task) or whole)
                if each.position <= sent and each.message.type in ANSWERS
            )
            yield Batch(task.requested_by, session_id, told, sent)

    def closed_already(self, task: Task, session_id: str) -> Batch:
        """Return the answer to an abort that came after the end of its session (ruling 10b)."""
        after = self.kept.kept(session_id, "after")
        number = state_after(self._whole(session_id)).sequence
        number += sum(each.type == "event" for each in after) + 1
        message = closed_already(session_id, number, self.new_id(), self.timestamp())
        if len(after) < MESSAGES_MAX:  # one caller's aborts do not fill the disk
            self.kept.keep(session_id, "after", *after, message)
        told = (Outgoing(AFTER + len(after), message),)
        return Batch(task.requested_by, session_id, told, FINISHED)

    # ---- what is kept of a session

    def _batch(self, task: Task, session_id: str, run: Attempt | None) -> Batch:
        sent = self.positions.of(session_id)
        if rejection := self._rejection(task):
            return Batch(task.requested_by, session_id, rejection, FINISHED, sent)
        if run is not None and run.error_code == KeyMissing.code:
            return self._unreadable(task, session_id, run, sent)
        records = [] if sent >= AFTER else next_records(self.runs, session_id, max(sent, 0))
        more = len(records) == RECORDS_MAX
        records = before_closing(records)
        over = is_over(task, run) and not more
        if over and not any(each.kind == "terminal" for each in records):
            self._end(task, session_id, run, state_after(self._whole(session_id)))
        told = records or sent == NOTHING_SENT
        messages = [*self._from(task, session_id, sent, records)] if told else []
        if over:
            messages += [each for each in self._after(session_id) if each.position > sent]
        reach = records[-1].seq if records else max(sent, 0)
        reach = FINISHED if over else reach
        return Batch(task.requested_by, session_id, tuple(messages), reach, sent, more)

    def _unreadable(self, task: Task, session_id: str, run: Attempt, sent: int) -> Batch:
        """Return the end of a confidential session whose journal takes a key that is lost.

        Its events stay untold. The number of a record is never lower than that of an event before
        it, so that the events of this end come behind all that were told.
        """
        accepted = self.kept.acceptance(session_id) is not None
        found = SessionState("RUNNING" if accepted else "PENDING", max(sent, 1))
        self._end(task, session_id, run, found)
        after = tuple(each for each in self._after(session_id) if each.position > sent)
        return Batch(task.requested_by, session_id, after, FINISHED, sent)

    def _whole(self, session_id: str) -> Iterable[Record]:
        """Return the records of a run, each as it is asked for: a week of them is never held."""
        return self.runs.records(session_id, 0)

    def _end(self, task: Task, session_id: str, run: Attempt | None, found: SessionState) -> None:
        """Keep the end of a session whose run left none, before any of it is sent."""
        if found.ended or self.kept.kept(session_id, "after"):
            return
        unread = run is None or run.error_code == KeyMissing.code
        gone = unread or not self.runs.begun(session_id)
        left = LeftBehind() if gone else self.left_behind(Path(self.runs.folder(session_id)))
        accepted = self.kept.on_receipt(session_id) is not None
        ending = LostEnd(session_id, found, self.new_id, self.timestamp())
        ends = end_of_lost(task, run, ending, left=left, accepted=accepted)
        self.kept.keep(session_id, "after", *ends)

    def _from(
        self, task: Task, session_id: str, sent: int, records: Iterable[Record]
    ) -> Iterator[Outgoing]:
        on_receipt = self.kept.kept(session_id, "created")
        if sent < 0:
            yield from on_receipt_in_order(on_receipt)
        accepted = next(iter(self.kept.kept(session_id, "accepted")), None)
        reply_to, opened = str(task.profile.get("message_id", "")), bool(on_receipt)
        yield from messages_of(
            session_id, records, opened=opened, accepted=accepted, in_reply_to=reply_to
        )

    def _after(self, session_id: str) -> list[Outgoing]:
        kept = self.kept.kept(session_id, "after")
        return [Outgoing(AFTER + number, each) for number, each in enumerate(kept)]

    def _rejection(self, task: Task) -> tuple[Outgoing, ...]:
        """Return the answer to a task that was rejected on receipt."""
        answer = None if task.attempts else self.kept.answer(task.task_id)
        return () if answer is None else (Outgoing(AFTER, answer),)


@contextmanager
def outbox_of(house: HouseAccess, via: str = VIA, *, secured: bool = True) -> Iterator[Outbox]:
    """Open the outbox of a house for the messages that go one way; arguments as of `Outbox`."""
    file = house.home / OUTBOX_FILE
    with closing(Positions(file)) as positions, MessageStore(house.home) as kept:
        new_id, left = Chance(None).uuid4, house.left_behind
        yield Outbox(kept, house.runs, positions, new_id, now_text, via, secured, left)


def now_text() -> str:
    """Return the time of a message that is made now."""
    return utc_text(wall_clock_utc())


def _sessions(task: Task) -> Iterator[tuple[str, Attempt | None]]:
    """Return the sessions of a task, each with its attempt; the first may have none yet."""
    if not task.attempts:
        yield task.session_id, None
    for run in task.attempts:
        yield run.run_id, run
