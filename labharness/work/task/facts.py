"""The facts of tasks: codes with typed parameters, which a journal keeps as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, get_type_hints

from labharness.core.errors import LabError
from labharness.work.task.record import (
    JobFields,
    ProgressFields,
    RetryPolicy,
    TaskFields,
    plain_fields,
)


class UnknownFact(LabError, ValueError, code="unknown_task_fact"):
    """A record of a task that this version cannot read."""


@dataclass(frozen=True, kw_only=True)
class TaskFact:
    """Something that happened at a second of world time, UTC since 1970; one kind has one code."""

    at_s: float


@dataclass(frozen=True, kw_only=True)
class CommandTaken(TaskFact):
    """A command was accepted; its digest tells a repetition from another command.

    Attributes:
        task_id: The task that it concerned, or the job.
    """

    command: str
    task_id: str
    actor: str
    key: str = ""
    digest: str = ""


@dataclass(frozen=True, kw_only=True)
class CommandRefused(TaskFact):
    """A command was refused, with the code of the reason."""

    command: str
    task_id: str
    actor: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class TaskCreated(TaskFields, TaskFact):
    """A task has an identity and an objective."""

    requested_by: str
    job_id: str = ""
    job_run: str = ""


@dataclass(frozen=True, kw_only=True)
class TaskUpdated(TaskFact):
    """Some fields of a task were changed."""

    task_id: str
    changes: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TaskMoved(TaskFact):
    """A task changed its status.

    Attributes:
        required_action: Id of the action that ends a wait or a block.
    """

    task_id: str
    to: str
    reason: str = ""
    error_code: str = ""
    required_action: str = ""


@dataclass(frozen=True, kw_only=True)
class CancelRequested(TaskFact):
    """The wish to cancel a task, which sticks."""

    task_id: str
    actor: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class AttemptStarted(TaskFact):
    """A new attempt of a task."""

    task_id: str
    run_id: str
    worker: str
    reason: str = ""
    input_refs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AttemptMoved(TaskFact):
    """The open attempt of a task changed its status."""

    task_id: str
    run_id: str
    to: str
    native_status: str = ""


@dataclass(frozen=True, kw_only=True)
class AttemptEnded(TaskFact):
    """An attempt came to its end."""

    task_id: str
    run_id: str
    status: str
    error_code: str = ""
    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class TaskProgressed(ProgressFields, TaskFact):
    """Progress of the open attempt."""


@dataclass(frozen=True, kw_only=True)
class TaskDelivered(TaskFact):
    """The delivery of a task's outputs has a new state."""

    task_id: str
    state: str


@dataclass(frozen=True, kw_only=True)
class EdgeSet(TaskFact):
    """A relationship was made (`active`) or removed; a pair is set at both ends."""

    task_id: str
    kind: str
    target_id: str
    status: str = "active"
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class InstrumentsLeased(TaskFact):
    """A run has its instruments, and a place within the limit of its capability."""

    task_id: str
    run_id: str
    instruments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InstrumentsReleased(TaskFact):
    """Instruments and place of a run are free again."""

    task_id: str
    run_id: str


@dataclass(frozen=True, kw_only=True)
class JobCreated(JobFields, TaskFact):
    """A job that may own tasks, with all that a house needs to make them."""

    created_by: str = ""


@dataclass(frozen=True, kw_only=True)
class JobTicked(TaskFact):
    """The schedule of a job came round: a run is owed. It makes no task by itself."""

    job_id: str
    due_s: int = 0


@dataclass(frozen=True, kw_only=True)
class JobMissed(TaskFact):
    """Runs were due and did not begin; they are not made up for."""

    job_id: str
    reason: str
    first_s: int
    last_s: int
    count: int


@dataclass(frozen=True, kw_only=True)
class JobRunDropped(TaskFact):
    """No task can be made for a run that was owed."""

    job_id: str
    run: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class JobTold(TaskFact):
    """People were told of a failed task or of missed runs of a job."""

    job_id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class JobEnded(TaskFact):
    """A person ended a job; it makes no more tasks."""

    job_id: str
    actor: str
    reason: str = ""


FACTS: Final[dict[str, type[TaskFact]]] = {
    "task.command_taken": CommandTaken,
    "task.command_refused": CommandRefused,
    "task.created": TaskCreated,
    "task.updated": TaskUpdated,
    "task.moved": TaskMoved,
    "task.cancel_requested": CancelRequested,
    "task.attempt_started": AttemptStarted,
    "task.attempt_moved": AttemptMoved,
    "task.attempt_ended": AttemptEnded,
    "task.progressed": TaskProgressed,
    "task.delivered": TaskDelivered,
    "task.edge_set": EdgeSet,
    "task.leased": InstrumentsLeased,
    "task.released": InstrumentsReleased,
    "job.created": JobCreated,
    "job.ticked": JobTicked,
    "job.missed": JobMissed,
    "job.run_dropped": JobRunDropped,
    "job.told": JobTold,
    "job.ended": JobEnded,
}
_CODES: Final = {kind: code for code, kind in FACTS.items()}
_HINTS: Final = {kind: get_type_hints(kind) for kind in FACTS.values()}


def fact_to_json(fact: TaskFact) -> dict[str, Any]:
    """Return a fact as a JSON object with its code."""
    return {"code": _CODES[type(fact)], **plain_fields(fact)}


def fact_from_json(body: Mapping[str, Any]) -> TaskFact:
    """Return the fact that a JSON object holds.

    Raises:
        UnknownFact: Its code or one of its parameters is not known here, or one is missing.
    """
    kind = FACTS.get(str(body.get("code")))
    if kind is None:
        raise UnknownFact(f"{body.get('code')!r} is not a fact of a task")
    given = {name: value for name, value in body.items() if name != "code"}
    if strangers := given.keys() - {each.name for each in fields(kind)}:
        raise UnknownFact(f"{body['code']} has no parameter {min(strangers)!r}")
    try:
        return kind(**{name: _typed(kind, name, value) for name, value in given.items()})
    except TypeError as why:
        raise UnknownFact(f"{body['code']}: {why}") from None


def _typed(kind: type[TaskFact], name: str, value: object) -> Any:  # noqa: ANN401 - a parameter
    if _HINTS[kind][name] is RetryPolicy and isinstance(value, Mapping):
        return RetryPolicy(**{key: _tuples(each) for key, each in value.items()})
    return _tuples(value)


def _tuples(value: Any) -> Any:  # noqa: ANN401 - JSON
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
