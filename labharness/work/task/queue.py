"""Which task is next: by priority, then by age, once all that it waits for is completed.

A task whose instruments are leased, or whose capability is at its limit, lets those behind it go
first: it would not begin sooner for it. A lease is the right of a run to instruments, and to a
place of its capability.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from labharness.core.vocabulary.texts import Text
from labharness.work.task.commands import ReportStatus, TaskCommand
from labharness.work.task.record import Task, Tasks

QUEUED_MAX: Final = 100
"""Most tasks of one lab that wait; one more is refused (ruling 6)."""

PRIORITIES: Final = ("urgent", "high", "normal", "low")
"""HCP L4, `constraints.priority`; a word that is not among them counts as normal."""

QUEUE: Final = ("draft", "accepted", "queued", "blocked", "waiting_resource")
READY: Final = ("queued", "waiting_resource")


@dataclass(frozen=True, slots=True)
class Need:
    """The need of a run: it is carried out once it has all of it.

    Attributes:
        instruments: Empty for a capability without physical resources.
        places: The declared ``concurrent_limit`` of its capability.
    """

    instruments: tuple[str, ...]
    places: int = 1


Needs = Callable[[Task], Need]
"""The need of a run of a task."""


def waiting(tasks: Tasks) -> tuple[Task, ...]:
    """Return the tasks that wait for their turn, the next one first."""
    found = filter(_waits, tasks.unended_tasks)
    return tuple(sorted(found, key=lambda each: (_rank(each), each.created_at_s)))


def is_full(tasks: Tasks) -> bool:
    """Return whether no further task may wait."""
    return sum(map(_waits, tasks.unended_tasks)) >= QUEUED_MAX


def _waits(task: Task) -> bool:
    return task.status in QUEUE and not task.attempts


def _rank(task: Task) -> int:
    known = task.priority if task.priority in PRIORITIES else "normal"
    return PRIORITIES.index(known)


def blockers(tasks: Tasks, task: Task) -> tuple[str, ...]:
    """Return the tasks that must be completed before this one."""
    named = tasks.targets(task.task_id, "blocked_by")
    return tuple(each for each in named if not tasks.by_id[each].was_completed)


def next_task(tasks: Tasks, needs: Needs) -> Task | None:
    """Return the task whose turn it is; ``None`` where no task can begin.

    Args:
        tasks: The state of all tasks.
        needs: Of each task.
    """
    ready = (each for each in waiting(tasks) if each.status in READY)
    return next((t for t in ready if not obstacle(tasks, t, needs(t))), None)


def waits(tasks: Tasks, needs: Needs, held: str = "", away: str = "") -> Iterator[TaskCommand]:
    """Return the commands that tell of each ready task what it waits for, if that has changed.

    Args:
        tasks: The state of all tasks.
        needs: Of each task.
        held: Why the line takes no run now; it concerns the next task alone.
        away: Why it will take none; it concerns each task with instruments.
    """
    first = next_task(tasks, needs)
    for task in waiting(tasks):
        if task.status in READY:
            need = needs(task)
            gone = away if need.instruments else ""
            why = gone or (held if task is first else obstacle(tasks, task, need))
            yield from _told(task, why, "line" if gone or task is first else "lease")


def _told(task: Task, why: str, action: str) -> Iterator[TaskCommand]:
    if task.status == "queued":
        told = not why
    else:  # what holds a line may be worded anew each time, with a time or a process in it
        told = task.status_reason == why or (bool(why) and task.required_action == action == "line")
    if told:
        return
    if task.status == "waiting_resource":
        yield ReportStatus(task_id=task.task_id, to="queued")
    if why:
        what = {"to": "waiting_resource", "reason": why, "required_action": action}
        yield ReportStatus(task_id=task.task_id, **what)


def reviewed(tasks: Tasks) -> Iterator[TaskCommand]:
    """Return the commands that bring the queue in line with its dependencies."""
    for task in waiting(tasks):
        yield from reviewed_task(tasks, task)


def reviewed_task(tasks: Tasks, task: Task) -> Iterator[TaskCommand]:
    """Return the commands that bring one waiting task in line with its dependencies."""
    if task.status == "draft":
        yield ReportStatus(task_id=task.task_id, to="accepted")
    open_ = blockers(tasks, task)
    if open_ and task.status != "blocked":
        yield ReportStatus(
            task_id=task.task_id, to="blocked", reason="dependency", required_action=open_[0]
        )
    elif not open_ and task.status not in READY:
        yield ReportStatus(task_id=task.task_id, to="queued")


def obstacle(tasks: Tasks, task: Task, need: Need) -> str:
    """Return why a run of a task can have no lease now; ``""`` where it can."""
    if tasks.at_work(task) >= need.places:
        return Text("queue.no_place", capability=task.task_family, places=need.places)
    if taken := sorted(tasks.leased.keys() & set(need.instruments)):
        return Text("queue.leased", names=", ".join(taken))
    return ""
