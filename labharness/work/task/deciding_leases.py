"""Decide leases: an instrument has one run, and a capability no more runs than its places."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from labharness.work.task import facts as f
from labharness.work.task.commands import (
    LeaseInstruments,
    ReleaseInstruments,
    TaskActor,
    TaskCommand,
)
from labharness.work.task.leases import at_work, leased
from labharness.work.task.record import Tasks
from labharness.work.task.refusing import require

LEASE_REFUSALS: Final = frozenset({"leased", "no_place", "not_leased"})
"""Codes of refusals that only leases have."""

Facts = Iterator[f.TaskFact]


def _lease(tasks: Tasks, c: LeaseInstruments, actor: TaskActor, now_s: float) -> Facts:
    if c.run_id in tasks.leases:
        return
    task = tasks.by_id[c.task_id]
    require(task.current is not None and task.current.run_id == c.run_id, "no_attempt")
    require(not leased(tasks).keys() & set(c.instruments), "leased")
    require(at_work(tasks, task) < c.places, "no_place")
    name = {"task_id": c.task_id, "run_id": c.run_id}
    yield f.InstrumentsLeased(at_s=now_s, instruments=c.instruments, **name)


def _release(tasks: Tasks, c: ReleaseInstruments, actor: TaskActor, now_s: float) -> Facts:
    lease = tasks.leases.get(c.run_id)
    require(lease is not None and lease.task_id == c.task_id, "not_leased")
    run = tasks.by_id[c.task_id].current
    require(run is None or run.run_id != c.run_id, "attempt_open")
    yield f.InstrumentsReleased(at_s=now_s, task_id=c.task_id, run_id=c.run_id)


DECIDE_LEASES: Final[dict[type[TaskCommand], Callable[[Tasks, Any, TaskActor, float], Facts]]] = {
    LeaseInstruments: _lease,
    ReleaseInstruments: _release,
}
