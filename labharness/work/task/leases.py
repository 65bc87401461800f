"""Instruments and places that the runs of a lab have leased, and the need of a run."""

from collections.abc import Callable
from dataclasses import dataclass

from labharness.core.vocabulary.texts import Text
from labharness.work.task.record import InstrumentLease, Task, Tasks

__all__ = ["Need", "Needs", "at_work", "leased", "obstacle"]


@dataclass(frozen=True, slots=True)
class Need:
    """The need of a run: it is carried out once it has all of it.

    Attributes:
        instruments: Empty for a capability without physical resources.
        places: The declared ``concurrent_limit`` of its capability.
    """

    instruments: tuple[str, ...]
    places: int = 1


Needs = Callable[[str], Need]
"""The need of a capability, by its name."""


def leased(tasks: Tasks) -> dict[str, InstrumentLease]:
    """Return the lease of each instrument that has one."""
    return {name: lease for lease in tasks.leases.values() for name in lease.instruments}


def at_work(tasks: Tasks, capability: str) -> int:
    """Return how many runs of a capability have a place."""
    runs = tasks.leases.values()
    return sum(tasks.by_id[each.task_id].task_family == capability for each in runs)


def obstacle(tasks: Tasks, task: Task, need: Need) -> str:
    """Return why a run of a task can have no lease now; ``""`` where it can."""
    if at_work(tasks, task.task_family) >= need.places:
        return Text("queue.no_place", capability=task.task_family, places=need.places)
    if taken := sorted(leased(tasks).keys() & set(need.instruments)):
        return Text("queue.leased", names=", ".join(taken))
    return ""
