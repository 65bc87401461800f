"""The 23 published events of tasks, as projections of facts; a fact may make none or several."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from labharness.work.task import facts as f
from labharness.work.task.record import Task, Tasks
from labharness.work.task.snapshot import attempt_of, edge_of, last_error, named, progress_of, utc
from labharness.work.task.states import STATUSES, WAITING

# A status that a task takes -> its event. The wish to cancel has a fact and an event of its own.
_BY_STATUS: Final = {
    **{each: f"task.{each}" for each in STATUSES if each != "draft"},
    **dict.fromkeys(WAITING, "task.waiting"),
    **dict.fromkeys(("preparing", "running", "cancelling", "stale", "unknown"), "task.updated"),
}
_ATTEMPT: Final = ("task.attempt.started", "task.attempt.completed", "task.attempt.failed")

EVENTS: Final = frozenset(
    {
        *_BY_STATUS.values(),
        *("task.created", "task.started", "task.progress", "task.resumed"),
        *("task.cancel_requested", "task.delegated", "task.dependency.updated", *_ATTEMPT),
    }
)

Event = tuple[str, dict[str, Any]]


def events_of(fact: f.TaskFact, before: Tasks, after: Tasks, event_id: str) -> list[dict[str, Any]]:
    """Return the events that a fact makes.

    Args:
        fact: A fact that was written down.
        before: The state without it.
        after: The state with it.
        event_id: Of the fact's record, so that the same fact makes the same events again.
    """
    make = _MAKE.get(type(fact))
    made = list(make(fact, before, after)) if make else []
    head = {"timestamp": utc(fact.at_s)}
    return [
        {"type": name, "eventId": f"{event_id}.{i}", **head, **body}
        for i, (name, body) in enumerate(made)
    ]


def _ids(task: Task) -> dict[str, Any]:
    ids = named(task, "taskId", "rootTaskId", "parentTaskId", "sessionId")
    ids |= named(task, "status", "nativeStatus", "statusReason")
    return {name: value for name, value in ids.items() if value}


def _task(task: Task, **more: object) -> dict[str, Any]:
    return {"taskId": task.task_id, "status": task.status, **more}


def _created(fact: f.TaskCreated, before: Tasks, after: Tasks) -> Iterator[Event]:
    task = after.by_id[fact.task_id]
    yield "task.created", {**_ids(task), "task": _task(task, objective=task.objective)}


def _moved(fact: f.TaskMoved, before: Tasks, after: Tasks) -> Iterator[Event]:
    was, task = before.by_id[fact.task_id], after.by_id[fact.task_id]
    body = _ids(task)
    if fact.to in ("failed", "timed_out"):
        body["task"] = _task(task, lastError=last_error(task) or {"code": "unknown"})
    name, begins = _BY_STATUS[fact.to], was.status in ("accepted", "queued", "preparing")
    if was.status == "paused" and fact.to in ("running", "queued", "preparing"):
        name = "task.resumed"
    elif fact.to == "running" and begins and len(was.attempts) <= 1:
        name = "task.started"
    yield name, body


def _updated(fact: f.TaskUpdated, before: Tasks, after: Tasks) -> Iterator[Event]:
    yield "task.updated", _ids(after.by_id[fact.task_id])


def _cancel(fact: f.CancelRequested, before: Tasks, after: Tasks) -> Iterator[Event]:
    task = after.by_id[fact.task_id]
    body = {"task": _task(task, statusReason=fact.reason or "not_applicable")}
    yield "task.cancel_requested", {**_ids(task), **body}


def _progressed(fact: f.TaskProgressed, before: Tasks, after: Tasks) -> Iterator[Event]:
    task = after.by_id[fact.task_id]
    body = {**_ids(task), "phase": task.progress.phase, "taskProgress": progress_of(task)}
    run = task.attempts[-1]
    refs = [{"ref": ref, "offset": n} for ref, n in run.output_offsets.items()]
    yield "task.progress", {**body, "runId": run.run_id, "refs": {"outputRefs": refs}}


def _delivered(fact: f.TaskDelivered, before: Tasks, after: Tasks) -> Iterator[Event]:
    task = after.by_id[fact.task_id]
    yield "task.progress", {**_ids(task), "deliveryState": {"status": task.delivery}}


def _edge(fact: f.EdgeSet, before: Tasks, after: Tasks) -> Iterator[Event]:
    task = after.by_id[fact.task_id]
    mine = after.edges_of[fact.task_id]
    edges = (e for e in mine if (e.kind, e.target_id) == (fact.kind, fact.target_id))
    body = {**_ids(task), "taskRelationship": edge_of(next(edges))}
    yield "task.dependency.updated", body
    if fact.status == "active" and fact.kind in ("child", "spawned_subagent"):
        yield "task.delegated", body


def _run(fact: f.OfAttempt, before: Tasks, after: Tasks) -> Iterator[Event]:
    """Return the event of an attempt; one that was cancelled or lost did not complete."""
    task, name = after.by_id[fact.task_id], "task.updated"
    run = next(each for each in task.attempts if each.run_id == fact.run_id)
    if isinstance(fact, f.AttemptStarted):
        name = "task.attempt.started"
    elif isinstance(fact, f.AttemptEnded):
        done = fact.status == "completed"
        name = "task.attempt.completed" if done else "task.attempt.failed"
    ids = {"runId": run.run_id, "attemptId": run.run_id}
    more = {"taskAttempt": attempt_of(after, run, task), "worker": {"id": run.worker}}
    yield name, {**_ids(task), **ids, **more}


_MAKE: Final[dict[type[f.TaskFact], Callable[[Any, Tasks, Tasks], Iterator[Event]]]] = {
    f.TaskCreated: _created,
    f.TaskMoved: _moved,
    f.TaskUpdated: _updated,
    f.CancelRequested: _cancel,
    f.TaskProgressed: _progressed,
    f.TaskDelivered: _delivered,
    f.EdgeSet: _edge,
    **dict.fromkeys((f.AttemptStarted, f.AttemptEnded), _run),
    **dict.fromkeys((f.InstrumentsLeased, f.InstrumentsReleased), _run),
}
