"""Which task is next: by priority, then by age, once all that it waits for is completed."""

from collections.abc import Iterator
from typing import Final

from labharness.work.task.commands import ReportStatus, TaskCommand
from labharness.work.task.record import Task, Tasks

__all__ = ["PRIORITIES", "QUEUED_MAX", "blockers", "next_task", "reviewed", "waiting"]

QUEUED_MAX: Final = 100
"""Most tasks of one lab that wait; one more is refused (ruling 6)."""

PRIORITIES: Final = ("urgent", "high", "normal", "low")
"""HCP L4, `constraints.priority`; a word that is not among them counts as normal."""

QUEUE: Final = ("draft", "accepted", "queued", "blocked", "waiting_resource")
READY: Final = ("queued", "waiting_resource")


def waiting(tasks: Tasks) -> tuple[Task, ...]:
    """Return the tasks that wait for their turn, the next one first."""
    found = [each for each in tasks.by_id.values() if each.status in QUEUE and not each.attempts]
    return tuple(sorted(found, key=lambda each: (_rank(each), each.created_at_s)))


def _rank(task: Task) -> int:
    known = task.priority if task.priority in PRIORITIES else "normal"
    return PRIORITIES.index(known)


def blockers(tasks: Tasks, task: Task) -> tuple[str, ...]:
    """Return the tasks that must be completed before this one."""
    named = tasks.targets(task.task_id, "blocked_by")
    return tuple(each for each in named if tasks.by_id[each].status != "completed")


def next_task(tasks: Tasks) -> Task | None:
    """Return the task whose turn it is; ``None`` where no task can begin."""
    return next((each for each in waiting(tasks) if each.status in READY), None)


def reviewed(tasks: Tasks) -> Iterator[TaskCommand]:
    """Return the commands that bring the queue in line with its dependencies."""
    for task in waiting(tasks):
        if task.status == "draft":
            yield ReportStatus(task_id=task.task_id, to="accepted")
        open_ = blockers(tasks, task)
        if open_ and task.status != "blocked":
            yield ReportStatus(
                task_id=task.task_id, to="blocked", reason="dependency", required_action=open_[0]
            )
        elif not open_ and task.status not in READY:
            yield ReportStatus(task_id=task.task_id, to="queued")
