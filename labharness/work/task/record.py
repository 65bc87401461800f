"""A task, its attempts and what belongs to them, as frozen values that facts make."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from labharness.work.task.persistent_map import PersistentMap

EDGE_KINDS: Final = (
    *("parent", "child", "blocks", "blocked_by", "source_task", "source_attempt"),
    *("spawned_subagent", "assigned_thread", "produced_artifact", "consumed_artifact", "evidence"),
)
"""The nine relationships of the contract; `parent`/`child` and `blocks`/`blocked_by` are pairs."""

INVERSE: Final = MappingProxyType(
    {"parent": "child", "child": "parent", "blocks": "blocked_by", "blocked_by": "blocks"}
)

DELIVERY_STATES: Final = (
    *("pending", "delivered", "queued", "failed", "parent_missing", "not_applicable", "unknown"),
)
ABSENCE: Final = "house_away"
"""Reason of runs that were missed because no house was there; it is told each time."""

WITHOUT_LINE: Final = "without_line"
"""Key of the profile of a task that needs no line, of a capability that also works on one."""

VISIBILITIES: Final = ("foreground", "background", "internal", "hidden", "unknown")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of the attempts of one task.

    Attributes:
        attempts_max: Most attempts; one means that nothing is retried.
        back_off_s: World time between the end of an attempt and the next one.
        not_retried: Codes of errors after which no attempt is made.
        inactivity_timeout_s: Longest time without a fact of progress; ``None`` for no bound.
    """

    attempts_max: int = 1
    back_off_s: float = 0.0
    not_retried: tuple[str, ...] = ()
    inactivity_timeout_s: float | None = None


@lru_cache(256)
def _as_plain(policy: RetryPolicy) -> dict[str, Any]:
    return asdict(policy)


def plain_fields(made: object) -> dict[str, Any]:
    """Return the parameters of a command or a fact, all of them plain.

    They are only read: `asdict`, which copies each leaf, takes several times as long.
    """
    return {
        name: _as_plain(value) if isinstance(value, RetryPolicy) else value
        for name, value in vars(made).items()
    }


@dataclass(frozen=True, slots=True)
class TaskStep:
    """One ordered item of an attempt: an instruction, an approval, an artifact, a warning."""

    step_id: str
    kind: str
    status: str
    at_s: float


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One line of a checklist: a hint of progress, never the authority on a status."""

    item_id: str
    text: str
    done: bool


@dataclass(frozen=True, slots=True)
class MissedRuns:
    """Runs of a schedule that did not begin, from the first due time to the last."""

    name: str
    reason: str
    first_s: int
    last_s: int
    count: int


@dataclass(frozen=True, kw_only=True)
class JobFields:
    """A job as it is asked for: in the command that makes it, in its fact and in its record.

    Attributes:
        every: When a schedule runs (`jobs.schedule_of`); ``""`` for a batch, whose ``runs`` are
            owed at once.
        runs: The values of each run of a batch, by their paths in the payload.
        digest: Of the job's ``task_submit`` message, which lies beside the journal.
        seed: Of simulated runs.
    """

    job_id: str
    title: str
    every: str = ""
    runs: tuple[Mapping[str, Any], ...] = ()
    digest: str = ""
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class Job(JobFields):
    """A durable batch or schedule that owns tasks; its ticks are facts of the job.

    Attributes:
        due_s: The last due time that was dealt with.
        owed: Runs whose tasks are still to be made: due times, or numbers of a batch.
        missed: Number of missed runs.
        last_miss: The newest of them.
        in_row: Reason of the newest missed run, if none has begun since.
        untold: Missed runs that people are still to be told of.
        told: Names of failures that they were told of.
    """

    created_at_s: float
    created_by: str = ""
    ticks: int = 0
    due_s: float = 0.0
    owed: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    missed: int = 0
    last_miss: MissedRuns | None = None
    in_row: str = ""
    untold: tuple[MissedRuns, ...] = ()
    told: frozenset[str] = frozenset()
    ended_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """One relationship of a task.

    Attributes:
        source_id: The task it is an edge of.
        status: `active` or `removed`; a removed edge stays in the record.
    """

    source_id: str
    kind: str
    target_id: str
    created_at_s: float
    updated_at_s: float
    status: str = "active"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a task; a retry adds another and overwrites none.

    Attributes:
        ordinal: Its number, from 1.
        output_offsets: Bytes written so far to each output, by reference.
        summary: How it ended, in words for people.
    """

    run_id: str
    ordinal: int
    status: str
    worker: str
    started_at_s: float
    reason: str = ""
    native_status: str = ""
    ended_at_s: float | None = None
    error_code: str = ""
    summary: str = ""
    input_refs: tuple[str, ...] = ()
    output_offsets: Mapping[str, int] = field(default_factory=dict)
    checkpoint_refs: tuple[str, ...] = ()
    steps: tuple[TaskStep, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The progress of a task as facts: an empty value means that nothing was reported."""

    phase: str = "unknown"
    current_step: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    covered: frozenset[str] = frozenset()
    plan: tuple[PlanItem, ...] = ()


@dataclass(frozen=True, slots=True)
class PersonRequest:
    """A request of a run to a person; it stays open while the run is held.

    Attributes:
        status: The status of its task meanwhile.
        reason: The request in words.
        action: Id of the action that ends the wait.
    """

    status: str
    reason: str
    action: str


@dataclass(frozen=True, slots=True)
class InstrumentLease:
    """The right of a run to be carried out: its instruments, and a place of its capability.

    It outlasts the attempt for as long as the line watches what the run has left warm.
    """

    run_id: str
    task_id: str
    instruments: tuple[str, ...]
    since_s: float


@dataclass(frozen=True, kw_only=True)
class TaskFields:
    """A task as it is asked for: in the command that makes it, in its fact and in its record.

    Attributes:
        acceptance: Criteria that must all be covered before it is `completed`.
    """

    task_id: str
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
    scope: Mapping[str, Any] = field(default_factory=dict)
    constraints: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)
    acceptance: tuple[str, ...] = ()
    retry: RetryPolicy = RetryPolicy()


@dataclass(frozen=True, kw_only=True)
class ProgressFields:
    """Progress of an open attempt, as it is reported and as a fact; empty fields say nothing new.

    Attributes:
        step: Id, kind and status of a step, or empty.
        plan: Id, text and `done` or `open` of each line of the checklist.
    """

    task_id: str
    phase: str = ""
    current_step: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    output_offsets: Mapping[str, int] = field(default_factory=dict)
    checkpoint_refs: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    step: tuple[str, ...] = ()
    plan: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Task(TaskFields):
    """One task as its facts leave it; times are seconds of world time since 1970, UTC.

    Attributes:
        cancel_requested: The cancellation sticks, whatever its status is now.
        last_activity_s: Time of its newest sign of work.
    """

    requested_by: str
    created_at_s: float
    updated_at_s: float
    last_activity_s: float
    root_task_id: str
    status: str = "draft"
    native_status: str = ""
    status_reason: str = ""
    required_action: str = ""
    request: PersonRequest | None = None
    progress: TaskProgress = TaskProgress()
    delivery: str = "unknown"
    attempts: tuple[Attempt, ...] = ()
    error_code: str = ""
    cancel_requested: bool = False
    started_at_s: float | None = None
    ended_at_s: float | None = None

    @property
    def current(self) -> Attempt | None:
        """Return the attempt that has not ended, if there is one."""
        last = self.attempts[-1] if self.attempts else None
        return last if last is not None and last.ended_at_s is None else None

    @property
    def form(self) -> tuple[str, bool]:
        """Return its capability, and whether it is the form of it that needs no line."""
        return self.task_family, bool(self.profile.get(WITHOUT_LINE))

    @property
    def was_completed(self) -> bool:
        """Whether it is completed, or was before it was archived."""
        put_aside = self.status == "archived" and bool(self.attempts)
        return self.status == "completed" or (put_aside and self.attempts[-1].status == "completed")


@dataclass(frozen=True, slots=True)
class Tasks:
    """All tasks of a lab with their edges, jobs and used idempotency keys.

    Attributes:
        unended: Ids of the tasks that have not ended: few, of all that the lab ever had.
        sessions: Session -> its task, in the order in which sessions were opened.
        edges_of: Source -> its edges.
        keys: ``(actor, key)`` -> digest of the command and the task that it concerned.
        leases: Of the runs that have one, by their ids.
        refusals: Number of refused commands.
    """

    by_id: PersistentMap[str, Task] = field(default_factory=PersistentMap)
    unended: tuple[str, ...] = ()
    sessions: PersistentMap[str, str] = field(default_factory=PersistentMap)
    edges_of: PersistentMap[str, tuple[Edge, ...]] = field(default_factory=PersistentMap)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    keys: PersistentMap[tuple[str, str], tuple[str, str]] = field(default_factory=PersistentMap)
    leases: Mapping[str, InstrumentLease] = field(default_factory=dict)
    refusals: int = 0

    @property
    def unended_tasks(self) -> tuple[Task, ...]:
        """Return the tasks that have not ended, the oldest first."""
        return tuple(self.by_id[each] for each in self.unended)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Return all edges, those of one source together."""
        return tuple(each for of_one in self.edges_of.values() for each in of_one)

    @property
    def leased(self) -> dict[str, InstrumentLease]:
        """Return the lease of each instrument that has one."""
        return {name: lease for lease in self.leases.values() for name in lease.instruments}

    def at_work(self, task: Task) -> int:
        """Return how many runs of a task's capability, in the same form, have a place."""
        return sum(self.by_id[each.task_id].form == task.form for each in self.leases.values())

    def targets(self, task_id: str, kind: str) -> tuple[str, ...]:
        """Return the targets of a task's active edges of one kind."""
        mine = (each for each in self.edges_of.get(task_id, ()) if each.kind == kind)
        return tuple(each.target_id for each in mine if each.status == "active")

    def descendants(self, task_id: str) -> tuple[str, ...]:
        """Return all tasks below a task, nearest first, each once."""
        found: list[str] = []
        todo = list(self.targets(task_id, "child"))
        while todo:
            each = todo.pop(0)
            if each != task_id and each not in found:
                found.append(each)
                todo += self.targets(each, "child")
        return tuple(found)
