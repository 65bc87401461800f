"""Turns new records of a run's journal into commands on its task.

The run writes its facts for itself, and the house learns of them by reading alone. The same records
always make the same commands, and the number of the last one read is kept with them, so that a
house that starts again goes on where it was.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from labharness.core.vocabulary.texts import Text, several
from labharness.journal.chain import Record
from labharness.work.task.commands import (
    AppendProgress,
    CancelTask,
    CompleteTask,
    FailTask,
    LinkTasks,
    PauseTask,
    ReportStatus,
    ResumeTask,
    TaskCommand,
)
from labharness.work.task.record import Attempt, PersonRequest, Task


def journal_ref(run_id: str) -> str:
    """Return the reference of a run's journal, whose offset is the number of the last record."""
    return f"journal:{run_id}"


def read_up_to(run: Attempt) -> int:
    """Return the number of the last record of a run's journal that its task has followed."""
    return run.output_offsets.get(journal_ref(run.run_id), 0)


def followed(task: Task, run: Attempt, records: Iterable[Record]) -> Iterator[TaskCommand]:
    """Return the commands that new records of a run make, the number of the last record first.

    Args:
        task: The task as it is.
        run: Its open attempt.
        records: The records after `read_up_to`, in their order.
    """
    found = list(records)
    if not found:
        return
    ref = journal_ref(run.run_id)
    if task.status in ("lost", "unknown"):
        yield from found_again(task, "")
    first = read_up_to(run) == 0
    counters = _counted({} if first else task.progress.counters, found)
    offsets = {ref: found[-1].seq}
    yield AppendProgress(task_id=task.task_id, output_offsets=offsets, counters=counters)
    if first:
        for kind in ("produced_artifact", "evidence"):
            yield LinkTasks(task_id=task.task_id, kind=kind, target_id=ref)
    cancelled, request = task.cancel_requested, task.request
    for record in found:
        if record.kind == "event" and _aborts(record.body):
            if not cancelled:  # at the line, not by a command on the task
                yield CancelTask(task_id=task.task_id, reason=record.body["data"]["reason"])
            cancelled, request = True, None
        elif record.kind == "event":
            yield from _of_event(task.task_id, record.body)
            before, request = request, _request(request, record.body)
            if request is None and before is not None and _confirms(record.body):
                yield ReportStatus(task_id=task.task_id, to="running", reason="confirmed")
            elif request is not None and (request != before or _goes_on(record.body)):
                yield _asked(task.task_id, request)
        elif record.kind == "step":
            step = (record.body["instruction"], "instruction", record.body["status"])
            yield AppendProgress(task_id=task.task_id, step=step)
        elif record.kind == "terminal":
            yield from _ended(task, cancelled, record.body)


def _counted(before: Mapping[str, int], records: Iterable[Record]) -> dict[str, int]:
    """Return the counters of an attempt after more of its records; none says what is expected."""
    count = {"steps": 0, "steps_completed": 0, "results": 0, "checkpoints": 0, **before}
    for record in records:
        kind, body = record.kind, record.body
        if kind == "planned":
            count["steps"] = len(body.get("instructions", {}).get("instructions", ()))
        count["steps_completed"] += kind == "step" and body["status"] == "COMPLETED"
        count["results"] += kind == "queried"
        count["checkpoints"] += kind == "checkpoint"
    return count


def found_again(task: Task, reason: str = "found") -> Iterator[TaskCommand]:
    """Return that a run whose worker was lost goes on, or still waits for a person."""
    yield ReportStatus(task_id=task.task_id, to="running", reason=reason)
    if task.request is not None:
        yield _asked(task.task_id, task.request)


def _asked(task_id: str, request: PersonRequest) -> TaskCommand:
    return ReportStatus(
        task_id=task_id,
        to=request.status,
        reason=request.reason,
        required_action=request.action,
    )


def _request(open_: PersonRequest | None, body: Mapping[str, Any]) -> PersonRequest | None:
    """Return what is asked of a person after one more event of the run."""
    data, kind = body["data"], body["event_type"]
    details = data.get("details", {})
    if kind == "log" and "required_action" in details:
        action = str(details["required_action"])
        what = Text("pair", what=action.removeprefix("confirm:"), why=data["message"])
        about = [Text("named", name=name, value=v) for name, v in details.get("about", {}).items()]
        return PersonRequest("waiting_input", several(what, *about), action)
    if kind == "progress" and getattr(data["message"], "code", "") == "approval.waiting":
        return PersonRequest("waiting_permission", data["message"], "approve")
    answered = kind == "state_changed" and data["from_state"] != "PAUSED"
    answered = answered and data["to_state"] != "PAUSED"
    return None if answered or _confirms(body) else open_


def _confirms(body: Mapping[str, Any]) -> bool:
    return body["event_type"] == "log" and "confirmed_by" in body["data"].get("details", {})


def _goes_on(body: Mapping[str, Any]) -> bool:
    return (body["event_type"], body["data"].get("from_state")) == ("state_changed", "PAUSED")


def _aborts(body: Mapping[str, Any]) -> bool:
    return (body["event_type"], body["data"].get("to_state")) == ("state_changed", "ABORTING")


def _of_event(task_id: str, body: Mapping[str, Any]) -> Iterator[TaskCommand]:
    data, kind = body["data"], body["event_type"]
    if kind == "checkpoint_created":
        yield AppendProgress(task_id=task_id, checkpoint_refs=(str(data["checkpoint_id"]),))
    elif kind == "progress":
        message = data["message"]
        yield AppendProgress(task_id=task_id, phase=data["stage"], current_step=message)
    elif kind == "state_changed" and data["to_state"] == "PAUSED":
        yield PauseTask(task_id=task_id, reason=data["reason"])
    elif kind == "state_changed" and data["to_state"] == "RUNNING":
        if data["from_state"] == "PAUSED":
            yield ResumeTask(task_id=task_id)
        else:
            yield ReportStatus(task_id=task_id, to="running", reason=data["reason"])


def _ended(task: Task, cancelled: bool, body: Mapping[str, Any]) -> Iterator[TaskCommand]:
    """Return the end of a task: its outputs first, so that nothing is completed without them."""
    payload, task_id = body["payload"], task.task_id
    yield from _outputs(task, payload)
    if body["type"] == "task_rejected" and payload["reason_code"] != "aborted":
        why = payload.get("reason_message", "")
        yield FailTask(task_id=task_id, error_code=payload["reason_code"], reason=why)
    elif body["type"] == "task_failed":
        why = payload.get("error_message", "")
        yield FailTask(task_id=task_id, error_code=payload["error_code"], reason=why)
    elif body["type"] == "task_completed" and not cancelled:
        finding = payload.get("execution_summary", {}).get("finding", "")
        yield CompleteTask(task_id=task_id, summary=finding)
    else:  # aborted; what a cancelled task has completed all the same stays linked to it
        reason = payload.get("reason_message") or payload.get("data", {}).get("reason", "")
        if not cancelled:
            yield CancelTask(task_id=task_id, reason=reason)
        yield ReportStatus(task_id=task_id, to="cancelled", reason=reason)


def _outputs(task: Task, payload: Mapping[str, Any]) -> Iterator[TaskCommand]:
    artifacts = {each["uri"]: each["size_bytes"] for each in payload.get("artifacts", ())}
    outputs = payload.get("outputs", {})
    delivery = "" if task.delivery == "delivered" else "queued"  # it may have been sent before
    if "via" not in task.profile:
        delivery = "not_applicable"  # it lies in the run's folder
    yield AppendProgress(
        task_id=task.task_id,
        phase="delivering",
        output_offsets=artifacts,
        covered=tuple(each for each in task.acceptance if each in outputs),
        delivery=delivery,
    )
    for uri in artifacts:
        yield LinkTasks(task_id=task.task_id, kind="produced_artifact", target_id=uri)
