"""The tasks in a house's journal, whether the house is up or not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from labharness.journal.reading import read
from labharness.work.task.facts import TaskFact, fact_from_json, folded
from labharness.work.task.record import Tasks

HOUSE_JOURNAL: Final = "house.sqlite"
"""In the state directory of a lab."""

KIND: Final = "task_facts"
"""Kind of a record: all facts of one command, so that a cut never leaves a part of them."""


def _facts(path: Path) -> Iterator[tuple[str, TaskFact]]:
    """Return each fact with its id: the number of its record, and its place in it."""
    for record in read(path):
        if record.kind == KIND:
            for number, body in enumerate(record.body["facts"]):
                yield f"{record.seq}.{number}", fact_from_json(body)


def read_tasks(path: Path) -> Tasks:
    """Return the tasks of a house journal, whether its house is up or not.

    Raises:
        JournalFailed: The file cannot be opened or read.
        UnknownFact: A newer version wrote it.
    """
    return folded(fact for _, fact in _facts(path))


def read_history(path: Path) -> Iterator[tuple[str, TaskFact, Tasks, Tasks]]:
    """Return each fact with its id, and the state before and after it; raises as `read_tasks`."""
    tasks = Tasks()
    for fact_id, fact in _facts(path):
        before, tasks = tasks, folded((fact,), tasks)
        yield fact_id, fact, before, tasks
