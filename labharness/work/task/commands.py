"""The commands of the control plane of tasks and jobs, their actors, and who may give which."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from labharness.core.operations import Operation
from labharness.work.task.operations import OPERATIONS
from labharness.work.task.record import JobFields, ProgressFields, TaskFields

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

    @property
    def concerns(self) -> str:
        """Return the id of its task or job."""
        return self.task_id


@dataclass(frozen=True, kw_only=True)
class CreateTask(TaskFields, TaskCommand):
    """Make a task with an identity; a draft is not yet accepted."""

    job_id: str = ""
    job_run: str = ""


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
class AppendProgress(ProgressFields, TaskCommand):
    """Add progress, outputs, checkpoints, coverage, steps, or the state of delivery."""

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
    """Start one more attempt, for a reason that is stated, under the same constraints.

    Attributes:
        input_refs: Its beginning, such as a checkpoint of an attempt before it.
    """

    run_id: str
    worker: str
    reason: str
    input_refs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CompleteTask(TaskCommand):
    """End a task whose acceptance, artifacts, children and delivery are reconciled.

    Attributes:
        summary: The finding in one line.
    """

    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class FailTask(TaskCommand):
    """End a task with the code of its error, and with its reason in words."""

    error_code: str
    reason: str = ""


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
class LeaseInstruments(TaskCommand):
    """Take the instruments of an open attempt, and a place of its capability.

    Attributes:
        places: Most runs of its capability that are carried out at once.
    """

    run_id: str
    instruments: tuple[str, ...]
    places: int


@dataclass(frozen=True, kw_only=True)
class ReleaseInstruments(TaskCommand):
    """End the lease of a run whose attempt has ended and that the line does not carry out."""

    run_id: str


@dataclass(frozen=True, kw_only=True)
class ListTasks(TaskCommand):
    """Read all tasks that the actor may see; it makes no fact."""


@dataclass(frozen=True, kw_only=True)
class GetTask(TaskCommand):
    """Read one task; it makes no fact."""


@dataclass(frozen=True, kw_only=True)
class JobCommand(TaskCommand):
    """One command for one job; it is about no task."""

    job_id: str
    task_id: str = ""

    @property
    def concerns(self) -> str:
        """Return the id of its task or job."""
        return self.job_id


@dataclass(frozen=True, kw_only=True)
class CreateJob(JobFields, JobCommand):
    """Make a job: a batch of numbered runs at once, or a schedule."""


@dataclass(frozen=True, kw_only=True)
class TickJob(JobCommand):
    """A due time of a schedule has come; its run is owed from now on."""

    due_s: int


@dataclass(frozen=True, kw_only=True)
class MissRuns(JobCommand):
    """Runs of a schedule were missed, from the first due time to the last."""

    reason: str
    first_s: int
    last_s: int
    count: int


@dataclass(frozen=True, kw_only=True)
class DropRun(JobCommand):
    """Drop a run that is owed, because no task can be made for it."""

    run: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class TellJob(JobCommand):
    """Keep that people were told of something (`jobs.untold`)."""

    name: str


@dataclass(frozen=True, kw_only=True)
class EndJob(JobCommand):
    """End a job: it makes no more tasks; those that it has made go on."""

    reason: str = ""


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
    LeaseInstruments: "lease_instruments",
    ReleaseInstruments: "release_instruments",
    ListTasks: "list_tasks",
    GetTask: "get_task",
    CreateJob: "create_job",
    TickJob: "tick_job",
    MissRuns: "miss_runs",
    DropRun: "drop_run",
    TellJob: "tell_job",
    EndJob: "end_job",
}

BESIDE: Final = {"fail_task": ("operator", "runtime")}
"""The roles that may give a command without a row of its own."""


def rights(rows: Iterable[Operation]) -> dict[type[TaskCommand], frozenset[str]]:
    """Return the roles that may give each command, as the rows of the table of operations say.

    An HCP caller creates tasks, reads and cancels its own, and pauses none. Only the runtime
    reports work, because a person's word about an instrument is not a fact of the instrument.
    """
    asked = {row.request: row.right for row in rows if row.request}
    said = {**BESIDE, **asked}
    return {kind: frozenset(said.get(name, ("runtime",))) for kind, name in COMMANDS.items()}


MAY: Final = rights(OPERATIONS)
