"""Which run holds which instruments and places of a capability, and what a run has to wait for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from labharness.core.vocabulary.texts import Text
from labharness.work.task.record import InstrumentLease, Task, Tasks


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

WITHOUT_LINE: Final = "without_line"
"""Key of the profile of a task that needs no line, of a capability that also works on one."""


def leased(tasks: Tasks) -> dict[str, InstrumentLease]:
    """Return the lease of each instrument that has one."""
    return {name: lease for lease in tasks.leases.values() for name in lease.instruments}


def at_work(tasks: Tasks, task: Task) -> int:
    """Return how many runs of a task's capability, in the same form, have a place."""
    runs = (tasks.by_id[each.task_id] for each in tasks.leases.values())
    return sum(_form(each) == _form(task) for each in runs)


def _form(task: Task) -> tuple[str, bool]:
    return task.task_family, bool(task.profile.get(WITHOUT_LINE))


def obstacle(tasks: Tasks, task: Task, need: Need) -> str:
    """Return why a run of a task can have no lease now; ``""`` where it can."""
    if at_work(tasks, task) >= need.places:
        return Text("queue.no_place", capability=task.task_family, places=need.places)
    if taken := sorted(leased(tasks).keys() & set(need.instruments)):
        return Text("queue.leased", names=", ".join(taken))
    return ""
