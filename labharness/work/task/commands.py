"""The commands of the control plane of tasks, their actors, and who may give which."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from labharness.work.task.record import RetryPolicy

__all__ = [
    "COMMANDS",
    "MAY",
    "AppendProgress",
    "ArchiveTask",
    "CancelTask",
    "CompleteTask",
    "CreateTask",
    "FailTask",
    "GetTask",
    "LinkTasks",
    "ListTasks",
    "PauseTask",
    "ReportStatus",
    "ResumeTask",
    "RetryTask",
    "StartTask",
    "TaskActor",
    "TaskCommand",
    "UnlinkTasks",
    "UpdateTask",
]

ActorRole = Literal["caller", "operator", "runtime"]


@dataclass(frozen=True, slots=True)
class TaskActor:
    """The one who gives a command: an HCP caller, an operator of the lab, or the runtime."""

    name: str
    role: ActorRole


@dataclass(frozen=True, kw_only=True)
class TaskCommand:
    """One command for one task.

    Attributes:
        key: Idempotency key of its actor; a repetition with the same key changes nothing.
    """

    task_id: str
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class CreateTask(TaskCommand):
    """Make a task with an identity; a draft is not yet accepted."""

    objective: str
    parent_task_id: str = ""
    session_id: str = ""
    title: str = ""
    task_kind: str = "unknown"
    task_family: str = "unknown"
    visibility: str = "foreground"
    priority: str = "normal"
    owner: str = ""
    assignee: str = ""
    job_id: str = ""
    scope: Mapping[str, Any] = field(default_factory=dict)
    constraints: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)
    acceptance: tuple[str, ...] = ()
    retry: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True, kw_only=True)
class UpdateTask(TaskCommand):
    """Change some of the fields in `UPDATABLE`."""

    changes: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ReportStatus(TaskCommand):
    """Report what the runtime sees: acceptance, queue, waits, blocks, work, doubt."""

    to: str
    reason: str = ""
    required_action: str = ""


@dataclass(frozen=True, kw_only=True)
class StartTask(TaskCommand):
    """Start the first attempt, or one for a task whose attempts have ended."""

    run_id: str
    worker: str
    input_refs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AppendProgress(TaskCommand):
    """Add progress, outputs, checkpoints, coverage, steps, or the state of delivery."""

    phase: str = ""
    current_step: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    output_offsets: Mapping[str, int] = field(default_factory=dict)
    checkpoint_refs: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    step: tuple[str, ...] = ()
    plan: tuple[tuple[str, ...], ...] = ()
    delivery: str = ""


@dataclass(frozen=True, kw_only=True)
class PauseTask(TaskCommand):
    """Pause on purpose; graph and attempts stay."""

    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ResumeTask(TaskCommand):
    """Go on after a pause, in the same attempt."""


@dataclass(frozen=True, kw_only=True)
class CancelTask(TaskCommand):
    """Cancel a task and all that is below it."""

    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class RetryTask(TaskCommand):
    """Start one more attempt, for a reason that is stated, under the same constraints."""

    run_id: str
    worker: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class CompleteTask(TaskCommand):
    """End a task whose acceptance, artifacts, children and delivery are reconciled."""


@dataclass(frozen=True, kw_only=True)
class FailTask(TaskCommand):
    """End a task with the code of its error."""

    error_code: str


@dataclass(frozen=True, kw_only=True)
class LinkTasks(TaskCommand):
    """Make a relationship."""

    kind: str
    target_id: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class UnlinkTasks(TaskCommand):
    """Remove a relationship; it stays in the record as removed."""

    kind: str
    target_id: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ArchiveTask(TaskCommand):
    """Take an ended task, or a draft, out of the schedule."""


@dataclass(frozen=True, kw_only=True)
class ListTasks(TaskCommand):
    """Read all tasks that the actor may see; it makes no fact."""


@dataclass(frozen=True, kw_only=True)
class GetTask(TaskCommand):
    """Read one task; it makes no fact."""


COMMANDS: Final[dict[type[TaskCommand], str]] = {
    CreateTask: "create_task",
    UpdateTask: "update_task",
    ReportStatus: "report_status",
    StartTask: "start_task",
    AppendProgress: "append_task_progress",
    PauseTask: "pause_task",
    ResumeTask: "resume_task",
    CancelTask: "cancel_task",
    RetryTask: "retry_task",
    CompleteTask: "complete_task",
    FailTask: "fail_task",
    LinkTasks: "link_tasks",
    UnlinkTasks: "unlink_tasks",
    ArchiveTask: "archive_task",
    ListTasks: "list_tasks",
    GetTask: "get_task",
}

_ALL: Final = frozenset({"caller", "operator", "runtime"})
_STAFF: Final = frozenset({"operator", "runtime"})
_RUNTIME: Final = frozenset({"runtime"})

# An HCP caller creates tasks, reads and cancels its own, and pauses none. Only the runtime reports
# work, because a person's word about an instrument is not a fact of the instrument.
MAY: Final[dict[type[TaskCommand], frozenset[str]]] = {
    CreateTask: _ALL,
    UpdateTask: _STAFF,
    ReportStatus: _RUNTIME,
    StartTask: _RUNTIME,
    AppendProgress: _RUNTIME,
    PauseTask: _STAFF,
    ResumeTask: _STAFF,
    CancelTask: _ALL,
    RetryTask: _STAFF,
    CompleteTask: _RUNTIME,
    FailTask: _STAFF,
    LinkTasks: _STAFF,
    UnlinkTasks: _STAFF,
    ArchiveTask: _STAFF,
    ListTasks: _ALL,
    GetTask: _ALL,
}
