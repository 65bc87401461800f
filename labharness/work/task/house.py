"""The durable shell of tasks: facts go into a chained journal first, and the state follows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.chain import VerifyReport
from labharness.journal.reading import read
from labharness.journal.salvage import salvage
from labharness.work.task.commands import TaskActor, TaskCommand
from labharness.work.task.deciding import decide, expired
from labharness.work.task.facts import TaskFact, fact_from_json, fact_to_json
from labharness.work.task.fold import folded
from labharness.work.task.record import Tasks

__all__ = ["HouseJournal"]

KIND: Final = "task_facts"
"""Kind of a record: all facts of one command, so that a cut never leaves a part of them."""


class HouseJournal:
    """The tasks of a lab, which outlive the process.

    After `JournalFailed` the state on the disk is not known here, so nothing more is decided: open
    the journal again.

    Args:
        path: The file; an existing one is folded into the state.
        salvaging: Whether a damaged file is opened to its valid beginning, with the bad one kept
            beside it (`salvage`). Facts behind the damage are then lost, so a person decides it.

    Attributes:
        tasks: The state that the committed facts make.
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
        self.tasks = Tasks()
        for record in read(path):
            if record.kind == KIND:
                facts = [fact_from_json(each) for each in record.body["facts"]]
                self.tasks = folded(facts, self.tasks)

    def give(self, command: TaskCommand, actor: TaskActor, now_s: float) -> tuple[TaskFact, ...]:
        """Decide a command and return its facts, which are then on the disk.

        Raises:
            JournalFailed: The facts could not be written, now or before; the state is as it was.
        """
        self._must_know()
        return self._kept(decide(self.tasks, command, actor, now_s), now_s)

    def expire(self, now_s: float) -> tuple[TaskFact, ...]:
        """Time out what was silent for too long; return the facts, which are then on the disk.

        Raises:
            JournalFailed: The facts could not be written, now or before; the state is as it was.
        """
        self._must_know()
        return self._kept(expired(self.tasks, now_s), now_s)

    def _must_know(self) -> None:
        if self._failure:
            raise JournalFailed(f"nothing is decided since, open it again: {self._failure}")

    def _kept(self, facts: Sequence[TaskFact], now_s: float) -> tuple[TaskFact, ...]:
        if facts:
            body = {"facts": [fact_to_json(each) for each in facts]}
            try:
                self._journal.append(KIND, body, now_s)
                self._journal.commit()
            except JournalFailed as why:  # a later commit would write them, unknown to `tasks`
                self._failure = str(why)
                raise
            self.tasks = folded(facts, self.tasks)
        return tuple(facts)

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
