"""Builds the commands and messages of the house: create, lease or reject a task, open a session.

The names of its workers are here too.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from labharness.core.errors import LabError
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage, submission_of
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.task.commands import (
    CreateTask,
    FailTask,
    LeaseInstruments,
    ReportStatus,
    TaskCommand,
)
from labharness.work.task.queue import PRIORITIES, READY, Need, Needs
from labharness.work.task.record import Attempt, RetryPolicy, Task, Tasks

WORKER: Final = "line"
DESK: Final = "desk"
"""Worker of a task whose capability needs no instruments: the house itself."""

CHECKPOINT: Final = "checkpoint:"
"""Beginning of the reference of a checkpoint: its session and its id follow."""

TITLE_CHARACTERS: Final = 120


class TaskRefused(LabError, RuntimeError, code="task_refused"):
    """The house does not do what was asked of a task; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A submission that the house keeps.

    Attributes:
        fresh: It was not known before; a repeated key gives the task of the first time.
        rejected: It can never run, and its answer says why.
        caller_id: Of its caller.
        session_id: Of the task's first session.
        opening: The message that opens its session, and maybe its acceptance, for its caller.
    """

    task_id: str
    fresh: bool
    rejected: bool = False
    caller_id: str = ""
    session_id: str = ""
    opening: tuple[HcpMessage, ...] = ()


def create_command(
    task_id: str,
    key: str,
    payload: TaskSubmit,
    lab: str,
    seed: int | None,
    retry: RetryPolicy,
) -> CreateTask:
    """Return the command that makes a task of a submission."""
    submission = submission_of(payload)
    priority = submission.priority or "normal"
    constraints = payload.constraints
    return CreateTask(
        task_id=task_id,
        key=key,
        objective=payload.intent,
        title=payload.capability[:TITLE_CHARACTERS],
        task_kind="hcp_task",
        task_family=payload.capability,
        priority=priority if priority in PRIORITIES else "normal",
        owner=lab,
        assignee=WORKER,
        scope={"lab": lab},
        constraints={} if constraints is None else constraints.model_dump(exclude_none=True),
        profile={"capability": payload.capability, "seed": seed},
        acceptance=submission.required_fields,
        retry=retry,
    )


def lease_command(task_id: str, run_id: str, need: Need) -> LeaseInstruments:
    """Return the command by which a run takes what it needs."""
    return LeaseInstruments(
        task_id=task_id, run_id=run_id, instruments=need.instruments, places=need.places
    )


def reject_commands(task_id: str, rejected: Rejected) -> Iterator[TaskCommand]:
    """Return the commands that end a task which can never run."""
    yield ReportStatus(task_id=task_id, to="accepted")
    code, why = rejected.reason_code, rejected.reason_message
    yield FailTask(task_id=task_id, error_code=code, reason=why)


def called_elsewhere(tasks: Tasks, needs: Needs, begun: Callable[[str], bool]) -> list[Task]:
    """Return the tasks of callers elsewhere that wait for the line, or whose order is not taken.

    Args:
        tasks: The state of all tasks.
        needs: Of each task.
        begun: Returns whether a run has left anything.
    """

    def waits(task: Task) -> bool:
        if not task.attempts:
            return task.status in READY
        first = task.attempts[0]
        return task.status == "preparing" and first is task.current and not begun(first.run_id)

    theirs = (each for each in tasks.unended_tasks if each.profile.get("via"))
    return [each for each in theirs if needs(each).instruments and waits(each)]


def latched_commands(tasks: Iterable[Task], why: str) -> Iterator[TaskCommand]:
    """Return the commands that answer callers elsewhere whose line is latched (ruling 6).

    They do not see what their tasks wait for, and can clear nothing.
    """
    for task in tasks:
        code = "resource_unavailable"
        yield FailTask(task_id=task.task_id, error_code=code, reason=why)


def attempt_of(task: Task, run_id: str) -> Attempt | None:
    """Return the attempt of a task with a session; ``None`` where it has none."""
    return next((each for each in task.attempts if each.run_id == run_id), None)


def session_created(
    message_id: str, timestamp: str, session_id: str, in_reply_to: str
) -> HcpMessage:
    """Return the message that opens a session."""
    return answers.event(
        message_id=message_id,
        timestamp=timestamp,
        session_id=session_id,
        event_type="session_created",
        sequence=1,
        data={"state": "PENDING", "risk_level": None, "session_token": None},
        in_reply_to=in_reply_to,
    )


def resumed_from(run: Attempt) -> dict[str, str] | None:
    """Return the checkpoint that an attempt goes on from, as ``task_submit`` names it."""
    for ref in run.input_refs:
        if ref.startswith(CHECKPOINT):
            session_id, _, checkpoint_id = ref.removeprefix(CHECKPOINT).partition("/")
            return {"session_id": session_id, "checkpoint_id": checkpoint_id}
    return None
