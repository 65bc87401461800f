"""The house's journal: writes the facts of tasks durably, and keeps the state that they make."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.chain import Sealed, VerifyReport, record_bytes, unseal
from labharness.journal.salvage import salvage
from labharness.work.task.commands import TaskActor, TaskCommand, expired
from labharness.work.task.facts import TaskFact, fact_from_json, fact_to_json, folded
from labharness.work.task.kept import KIND, read_tasks
from labharness.work.task.record import Tasks


class Draft:
    """Commands that are decided one after the other, before their facts are written together.

    Args:
        tasks: The state that they begin from.
        now_s: Seconds of world time since 1970, UTC.

    Attributes:
        tasks: The state that they lead to.
        facts: Their facts.
        begun: The state that they began from.
        now_s: Time of all facts.
    """

    def __init__(self, tasks: Tasks, now_s: float) -> None:
        self.begun = self.tasks = tasks
        self.now_s = now_s
        self.facts: list[TaskFact] = []

    def give(self, command: TaskCommand, actor: TaskActor) -> tuple[TaskFact, ...]:
        """Decide a command; return its facts, which the next one is decided by."""
        made = command.decide(self.tasks, actor, self.now_s)
        self.tasks = folded(made, self.tasks)
        self.facts += made
        return made

    def take(self, other: "Draft") -> None:
        """Go on from the end of a draft that was begun where this one has come to."""
        self.tasks = other.tasks
        self.facts += other.facts


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A record that is on the disk elsewhere before this journal has it there.

    Attributes:
        seq: Its number.
        before: Hash (hex) of the record that it follows.
        at_s: Its time.
        facts: Its facts, as JSON values.
    """

    seq: int
    before: str
    at_s: float
    facts: list[dict[str, Any]]

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` has made."""
        record = unseal(Sealed(0, data, b""))
        return cls(record.seq, record.body["before"], record.at_s, record.body["facts"])

    def to_bytes(self) -> bytes:
        """Return it as it is kept."""
        return record_bytes(self.seq, self.at_s, KIND, {"before": self.before, "facts": self.facts})


class HouseJournal:
    """The tasks of a lab, which outlive the process.

    After `JournalFailed` the state on the disk is not known here, so nothing more is decided: open
    the journal again.

    Args:
        path: The file; an existing one is folded into the state.
        salvaging: Whether a damaged file is opened to its valid beginning, with the bad one kept
            beside it (`salvage`). Facts behind the damage are then lost, so a person decides it.

    Attributes:
        tasks: The state that the kept facts make.
        pending_count: How many records are kept elsewhere and wait here for `flush`.
        damage: The loss, where a damaged file was salvaged now; ``None`` if it was whole.

    Raises:
        JournalDamaged: The chain does not hold, and the loss was not agreed to.
        JournalFailed: The file cannot be opened or read.
    """

    def __init__(self, path: Path, *, salvaging: bool = False) -> None:
        found = salvage(path) if salvaging and path.exists() else None
        self.damage: VerifyReport | None = None if found is None or found.ok else found
        self._journal = SqliteJournal(path, run={"journal": "house"})
        self._failure = ""
        self.pending_count = 0
        self.tasks = read_tasks(path)

    def give(self, command: TaskCommand, actor: TaskActor, now_s: float) -> tuple[TaskFact, ...]:
        """Decide a command and return its facts, which are then on the disk.

        Raises:
            JournalFailed: The facts could not be written, now or before; the state is as it was.
        """
        return self.give_all((command,), actor, now_s)

    def give_all(
        self, commands: Iterable[TaskCommand], actor: TaskActor, now_s: float
    ) -> tuple[TaskFact, ...]:
        """Decide commands one after the other; their facts are one record, whole or not at all.

        Raises:
            JournalFailed: The facts could not be written, now or before; the state is as it was.
        """
        draft = self.draft(now_s)
        for command in commands:
            draft.give(command, actor)
        return self.keep(draft)

    def draft(self, now_s: float) -> "Draft":
        """Return an empty draft: commands are decided in it, and nothing is written.

        Raises:
            JournalFailed: Facts could not be written before.
        """
        self._must_know()
        return Draft(self.tasks, now_s)

    def keep(self, draft: "Draft") -> tuple[TaskFact, ...]:
        """Write the facts of a draft as one record; return them, which are then on the disk.

        Raises:
            JournalFailed: They could not be written, now or before; the state is as it was.
            ValueError: Other facts came after the draft was begun.
        """
        self._must_follow(draft)
        return self._kept(draft.facts, draft.tasks, draft.now_s)

    def pending_record(self, draft: "Draft") -> PendingRecord | None:
        """Return the record of a draft, to keep it elsewhere; ``None`` where it has no facts."""
        if not draft.facts:
            return None
        head, facts = self._journal.head, [fact_to_json(each) for each in draft.facts]
        return PendingRecord(head.seq + 1, head.hash, draft.now_s, facts)

    def append_pending(self, draft: "Draft", record: PendingRecord | None) -> None:
        """Take the facts of a draft whose record is on the disk elsewhere; raises as `keep`."""
        self._must_follow(draft)
        if record is not None:
            self._take_pending(record)
            self.tasks = draft.tasks

    def flush(self) -> None:
        """Write the pending records; on return they are on the disk here as well.

        Raises:
            JournalFailed: They could not be written, now or before.
        """
        self._must_know()
        if self.pending_count:
            self._commit()

    def catch_up(self, records: Iterable[PendingRecord]) -> None:
        """Write the records that were pending when a process died; raises as `flush`.

        Any other is here already, or was made by a journal that has lost others before it.
        """
        for each in sorted(records, key=lambda record: record.seq):
            head = self._journal.head
            if (each.seq, each.before) == (head.seq + 1, head.hash):
                self._take_pending(each)
                self.tasks = folded(map(fact_from_json, each.facts), self.tasks)
        self.flush()

    def _take_pending(self, record: PendingRecord) -> None:
        self._append(record.facts, record.at_s)
        self.pending_count += 1

    def expire(self, now_s: float) -> tuple[TaskFact, ...]:
        """Time out what was silent for too long; return the facts, which are then on the disk.

        Raises:
            JournalFailed: The facts could not be written, now or before; the state is as it was.
        """
        self._must_know()
        facts = expired(self.tasks, now_s)
        return self._kept(facts, folded(facts, self.tasks), now_s)

    def _must_follow(self, draft: "Draft") -> None:
        self._must_know()
        if draft.begun is not self.tasks:
            raise ValueError("the draft was begun before the newest facts")

    def _must_know(self) -> None:
        if self._failure:
            raise JournalFailed(f"nothing is decided since, open it again: {self._failure}")

    def _kept(
        self, facts: Sequence[TaskFact], leads_to: Tasks, now_s: float
    ) -> tuple[TaskFact, ...]:
        if facts:
            self._append([fact_to_json(each) for each in facts], now_s)
            self._commit()
            self.tasks = leads_to
        return tuple(facts)

    def _append(self, facts: Sequence[dict[str, Any]], now_s: float) -> None:
        try:
            self._journal.append(KIND, {"facts": facts}, now_s)
        except JournalFailed as why:
            self._failure = str(why)
            raise

    def _commit(self) -> None:
        try:
            self._journal.commit()
        except JournalFailed as why:  # a later commit would write them, unknown to `tasks`
            self._failure = str(why)
            raise
        self.pending_count = 0

    def close(self) -> None:
        """Close the file.

        Raises:
            JournalFailed: Facts that could not be written are still not on the disk.
        """
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
