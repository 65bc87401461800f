"""Builds the commands and messages of the house: create, lease or reject a task, open a session.

The names of its workers are here too.
"""

from collections.abc import Iterator
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
from labharness.work.task.leases import Need
from labharness.work.task.queue import PRIORITIES
from labharness.work.task.record import Attempt, RetryPolicy, Task

__all__ = [
    "ATTEMPTS_MAX",
    "DESK",
    "TITLE_CHARACTERS",
    "WORKER",
    "Submitted",
    "TaskRefused",
    "attempt_of",
    "create_command",
    "lease_command",
    "reject_commands",
    "session_created",
]

WORKER: Final = "line"
DESK: Final = "desk"
"""Worker of a task whose capability needs no instruments: the house itself."""

ATTEMPTS_MAX: Final = 10
"""Most attempts of one task, those included that an operator asks for."""

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
    task_id: str, key: str, payload: TaskSubmit, lab: str, seed: int | None
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
        retry=RetryPolicy(attempts_max=ATTEMPTS_MAX),
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
