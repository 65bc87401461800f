"""The commands of the control plane of tasks: who may give each, and the facts that it makes.

Nothing is done here; `house.py` writes the facts. A refusal is a fact too, with the code of its
reason, so that it is kept. The commands on jobs are in `jobs.py`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, dataclass_transform

from labharness.core.operations import Operation
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.work.task import facts as f
from labharness.work.task.operations import OPERATIONS
from labharness.work.task.record import (
    DELIVERY_STATES,
    EDGE_KINDS,
    INVERSE,
    VISIBILITIES,
    ProgressFields,
    Task,
    TaskFields,
    Tasks,
    plain_fields,
)
from labharness.work.task.states import ACTIVE, TERMINAL, may_become

ANSWER_S: Final = 300.0
"""Longest time (s) for a worker to end a silent run, with its line made safe."""

TIME_OUTS: Final = frozenset({"timeout", "inactivity"})
"""Codes of a task that took longer than it may, or was silent for longer."""

TITLE_CHARACTERS_MAX: Final = 500
"""Longest title; more is an objective."""

REFUSALS: Final = frozenset(
    {
        *("forbidden", "key_reused", "unknown_task", "task_exists", "unknown_job"),
        *("illegal_status", "bad_field", "cancelled_graph", "no_attempt", "attempt_open"),
        *("run_exists", "attempts_used", "not_retryable", "back_off", "no_reason", "no_error"),
        *("acceptance_open", "artifacts_open", "children_open", "delivery_open", "offset_shrinks"),
        *("unknown_edge", "edge_cycle", "unknown_edge_kind", "leased"),
        *("no_place", "not_leased", "job_exists", "jobs_full", "job_ended", "not_due"),
    }
)
"""All codes of refusals."""

UPDATABLE: Final[Mapping[str, type]] = {
    **dict.fromkeys(("title", "objective", "priority", "owner", "assignee"), str),
    **dict.fromkeys(("scope", "constraints", "profile"), Mapping),
    "acceptance": tuple,
}
REPORTABLE: Final = frozenset(
    {
        *("accepted", "queued", "preparing", "running", "blocked", "cancelled", "timed_out"),
        *("waiting_input", "waiting_permission", "waiting_resource", "lost", "stale", "unknown"),
    }
)
"""Statuses that the runtime may report; the others have commands of their own."""

RECONCILED: Final = ("delivered", "queued", "not_applicable")
"""Deliveries with which a task may be complete. A queued answer is sent until it has arrived."""

BESIDE: Final = {"fail_task": ("operator", "runtime")}
"""The roles that may give a command without a row of its own."""

ActorRole = Literal["caller", "operator", "runtime"]
Facts = Iterator[f.TaskFact]


def rights(rows: Iterable[Operation]) -> dict[str, frozenset[str]]:
    """Return the roles that may give each command, as the rows of the table of operations say.

    An HCP caller creates tasks, reads and cancels its own, and pauses none. Only the runtime
    reports work, because a person's word about an instrument is not a fact of the instrument: any
    other command is for it alone.
    """
    said = {**BESIDE, **{row.request: row.right for row in rows if row.request}}
    return {word: frozenset(roles) for word, roles in said.items()}


MAY: Final = rights(OPERATIONS)
_RUNTIME: Final = frozenset({"runtime"})


class _Refuse(Exception):
    """The refusal of a command; it does not leave `TaskCommand.decide`."""


def require(truth: bool, refusal: str) -> None:
    """Refuse a command with a code unless something is true; the code becomes a fact."""
    if not truth:
        raise _Refuse(refusal)


@dataclass(frozen=True, slots=True)
class TaskActor:
    """The one who gives a command: an HCP caller, an operator of the lab, or the runtime."""

    name: str
    role: ActorRole

    def sees(self, task: Task) -> bool:
        """Return whether it may know of a task: a caller of its own, the lab's people of all."""
        return self.role != "caller" or task.requested_by == self.name


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class TaskCommand:
    """One command for one task; each kind is a frozen dataclass as this one is.

    Attributes:
        key: Idempotency key of its actor; a repetition with the same key changes nothing.
        word: Name of the command.
        minted: Id that a shell makes anew for each try, so that it tells no two commands apart.
    """

    task_id: str
    key: str = ""
    word: ClassVar[str] = ""
    minted: ClassVar[str] = ""

    def __init_subclass__(cls, word: str = "") -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        cls.word = word
        if word:
            COMMANDS[word] = cls

    @property
    def concerns(self) -> str:
        """Return the id of its task or job."""
        return self.task_id

    def decide(self, tasks: Tasks, actor: TaskActor, now_s: float) -> tuple[f.TaskFact, ...]:
        """Return its facts: what it changes, nothing if repeated, or its one refusal.

        Args:
            tasks: The state of all tasks.
            actor: Authenticated elsewhere.
            now_s: Seconds of world time since 1970, UTC.
        """
        about = {"command": self.word, "task_id": self.concerns, "actor": actor.name}
        try:
            if self._repeated(tasks, actor):
                return ()
            require(actor.role in MAY.get(self.word, _RUNTIME), "forbidden")
            self._find(tasks, actor)
            changed = tuple(self._decided(tasks, actor, now_s))
        except _Refuse as why:
            return (f.CommandRefused(at_s=now_s, **about, reason=str(why)),)
        if not changed:
            return ()
        digest = self._digest() if self.key else ""
        return (f.CommandTaken(at_s=now_s, **about, key=self.key, digest=digest), *changed)

    def _repeated(self, tasks: Tasks, actor: TaskActor) -> bool:
        used = tasks.keys.get((actor.name, self.key)) if self.key else None
        if used is None:
            return False
        require(used[0] == self._digest(), "key_reused")
        return True

    def _digest(self) -> str:
        body = plain_fields(self)
        body.pop(self.minted, None)
        return digest_of(json.dumps([self.word, body], sort_keys=True, default=str).encode())

    def _find(self, tasks: Tasks, actor: TaskActor) -> None:
        """Refuse a task that is not there; a caller is told of no task of another caller."""
        task = tasks.by_id.get(self.task_id)
        require(task is not None and actor.sees(task), "unknown_task")

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        """Return the facts of its changes; a command that only reads has none."""
        return iter(())

    def _said(self, *but: str) -> dict[str, Any]:
        """Return the fields that its fact has too."""
        return {name: value for name, value in vars(self).items() if name not in but}


COMMANDS: Final[dict[str, type[TaskCommand]]] = {}
"""All commands, by their names."""


def readable(tasks: Tasks, actor: TaskActor) -> tuple[Task, ...]:
    """Return the tasks that an actor may read: a caller its own, the lab's people all."""
    return tuple(filter(actor.sees, tasks.by_id.values()))


def _move(task: Task, to: str, now_s: float, **more: str) -> f.TaskMoved:
    require(may_become(task.status, to), "illegal_status")
    return f.TaskMoved(at_s=now_s, task_id=task.task_id, to=to, **more)


def _attempt_moves(task: Task, to: str, now_s: float, native: str = "") -> Facts:
    run = task.current
    if run is not None and (run.status, run.native_status) != (to, native):
        name = {"task_id": task.task_id, "run_id": run.run_id}
        yield f.AttemptMoved(at_s=now_s, to=to, native_status=native, **name)


def _attempt_ends(
    task: Task, status: str, now_s: float, error_code: str = "", summary: str = ""
) -> Facts:
    if task.current is not None:
        name = {"task_id": task.task_id, "run_id": task.current.run_id}
        said = {"error_code": error_code, "summary": summary}
        yield f.AttemptEnded(at_s=now_s, status=status, **said, **name)


def _reaches(tasks: Tasks, kind: str, start: str, goal: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        onward = [each for each in tasks.targets(todo.pop(), kind) if each not in seen]
        seen.update(onward)
        todo += onward
    return goal in seen


class CreateTask(TaskFields, TaskCommand, word="create_task"):
    """Make a task with an identity; a draft is not yet accepted."""

    job_id: str = ""
    job_run: str = ""
    minted: ClassVar[str] = "task_id"

    def _find(self, tasks: Tasks, actor: TaskActor) -> None:
        """Find nothing: the task is yet to be made."""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        require(self.task_id not in tasks.by_id, "task_exists")
        require(
            bool(self.task_id and self.objective) and self.visibility in VISIBILITIES, "bad_field"
        )
        require(
            len(self.title) <= TITLE_CHARACTERS_MAX and self.retry.attempts_max >= 1, "bad_field"
        )
        require(not self.job_id or self.job_id in tasks.jobs, "unknown_job")
        require(not self.job_run or self.job_run in tasks.jobs[self.job_id].owed, "not_due")
        if self.parent_task_id:
            parent = tasks.by_id.get(self.parent_task_id)
            if parent is None or not actor.sees(parent):
                raise _Refuse("unknown_task")
            require(not parent.cancel_requested, "cancelled_graph")
            require(parent.status in ACTIVE, "illegal_status")
        yield f.TaskCreated(at_s=now_s, requested_by=actor.name, **self._said("key"))
        if self.parent_task_id:
            ends = {"task_id": self.parent_task_id, "target_id": self.task_id}
            yield f.EdgeSet(at_s=now_s, kind="child", **ends)


class UpdateTask(TaskCommand, word="update_task"):
    """Change some of the fields in `UPDATABLE`."""

    changes: Mapping[str, Any]

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        require(tasks.by_id[self.task_id].status in ACTIVE, "illegal_status")
        fits = all(isinstance(v, UPDATABLE.get(name, ())) for name, v in self.changes.items())
        require(bool(self.changes) and fits and self.changes.get("objective") != "", "bad_field")
        yield f.TaskUpdated(at_s=now_s, task_id=self.task_id, changes=self.changes)


class ReportStatus(TaskCommand, word="report_status"):
    """Report what the runtime sees: acceptance, queue, waits, blocks, work, doubt."""

    to: str
    reason: str = ""
    required_action: str = ""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        require(self.to in REPORTABLE and task.status not in TERMINAL, "illegal_status")
        if self.to in ("preparing", "running"):
            require(
                not task.cancel_requested, "cancelled_graph"
            )  # a found worker is to be cancelled
            require(task.current is not None, "no_attempt")
        moved = _move(
            task, self.to, now_s, reason=self.reason, required_action=self.required_action
        )
        if self.to in ("preparing", "running"):
            yield from _attempt_moves(task, self.to, now_s)
        elif self.to == "cancelled":
            yield from _attempt_ends(task, "cancelled", now_s)
        elif self.to == "timed_out":
            yield from _attempt_ends(task, "failed", now_s, "timed_out")
        yield moved


class _AttemptCommand(TaskCommand):
    """Begins an attempt.

    Attributes:
        input_refs: Its beginning, such as a checkpoint of an attempt before it.
    """

    run_id: str
    worker: str
    input_refs: tuple[str, ...] = ()
    minted: ClassVar[str] = "run_id"

    def _attempt(self, tasks: Tasks, now_s: float, reason: str = "") -> f.AttemptStarted:
        of = tasks.by_id.get(tasks.sessions.get(self.run_id, ""))
        known = of is not None and any(run.run_id == self.run_id for run in of.attempts)
        require(bool(self.run_id) and not known, "run_exists")
        require(bool(self.worker), "bad_field")
        name = {"task_id": self.task_id, "run_id": self.run_id, "worker": self.worker}
        return f.AttemptStarted(at_s=now_s, reason=reason, input_refs=self.input_refs, **name)


class StartTask(_AttemptCommand, word="start_task"):
    """Start the first attempt, or one for a task whose attempts have ended."""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        require(not task.cancel_requested, "cancelled_graph")
        require(task.current is None, "attempt_open")
        require(not task.attempts, "no_reason")  # a second one is a retry, which states its reason
        moved = _move(task, "preparing", now_s)
        yield moved
        yield self._attempt(tasks, now_s)


class AppendProgress(ProgressFields, TaskCommand, word="append_task_progress"):
    """Add progress, outputs, checkpoints, coverage, steps, or the state of delivery."""

    delivery: str = ""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        if self.delivery:
            require(self.delivery in DELIVERY_STATES and task.status != "archived", "bad_field")
            yield f.TaskDelivered(at_s=now_s, task_id=self.task_id, state=self.delivery)
        said = self._said("key", "delivery")
        if not any(value for name, value in said.items() if name != "task_id"):
            return
        self._check(task)
        yield f.TaskProgressed(at_s=now_s, **said)

    def _check(self, task: Task) -> None:
        run = task.current
        if run is None:
            raise _Refuse("no_attempt")
        require(set(self.covered) <= set(task.acceptance), "bad_field")
        require(len(self.step) in (0, 3) and all(len(each) == 3 for each in self.plan), "bad_field")
        grows = all(v >= run.output_offsets.get(ref, 0) for ref, v in self.output_offsets.items())
        require(grows, "offset_shrinks")


class PauseTask(TaskCommand, word="pause_task"):
    """Pause on purpose; graph and attempts stay."""

    reason: str = ""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        moved = _move(task, "paused", now_s, reason=self.reason)
        yield from _attempt_moves(task, "running", now_s, "held")
        yield moved


class ResumeTask(TaskCommand, word="resume_task"):
    """Go on after a pause, in the same attempt."""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        require(task.status == "paused", "illegal_status")
        yield from _attempt_moves(task, "running", now_s)
        yield _move(task, "running" if task.current else "queued", now_s)


class CancelTask(TaskCommand, word="cancel_task"):
    """Cancel a task and all that is below it."""

    reason: str = ""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        require(may_become(tasks.by_id[self.task_id].status, "cancelling"), "illegal_status")
        for task_id in (self.task_id, *tasks.descendants(self.task_id)):
            yield from self._cancelled(tasks.by_id[task_id], actor, now_s)

    def _cancelled(self, task: Task, actor: TaskActor, now_s: float) -> Facts:
        """Return how one task of the graph is cancelled: at once where no attempt has to settle."""
        if not may_become(task.status, "cancelling"):
            return
        name = {"task_id": task.task_id, "reason": self.reason}
        yield f.CancelRequested(at_s=now_s, actor=actor.name, **name)
        yield f.TaskMoved(at_s=now_s, to="cancelling", **name)
        if task.current is None:
            yield f.TaskMoved(at_s=now_s, to="cancelled", **name)


class RetryTask(_AttemptCommand, word="retry_task"):
    """Start one more attempt, for a reason that is stated, under the same constraints."""

    reason: str

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        require(bool(self.reason), "no_reason")
        require(not task.cancel_requested, "cancelled_graph")
        moved = _move(task, "retrying", now_s, reason=self.reason)
        policy = task.retry
        require(len(task.attempts) < policy.attempts_max, "attempts_used")
        require(task.error_code not in policy.not_retried, "not_retryable")
        waited = now_s - (task.ended_at_s or task.updated_at_s) >= policy.back_off_s
        require(waited or actor.role == "operator", "back_off")  # an operator need not wait
        yield from _attempt_ends(task, "unknown", now_s, "worker_lost")
        yield moved
        yield self._attempt(tasks, now_s, self.reason)


class CompleteTask(TaskCommand, word="complete_task"):
    """End a task whose acceptance, artifacts, children and delivery are reconciled.

    Attributes:
        summary: The finding in one line.
    """

    summary: str = ""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        moved = _move(task, "completed", now_s)
        require(task.current is not None, "no_attempt")
        require(set(task.acceptance) <= task.progress.covered, "acceptance_open")
        outputs = {ref for run in task.attempts[-1:] for ref in run.output_offsets}
        require(outputs <= set(tasks.targets(self.task_id, "produced_artifact")), "artifacts_open")
        children = (tasks.by_id[each] for each in tasks.targets(self.task_id, "child"))
        require(all(each.status in TERMINAL for each in children), "children_open")
        require(task.delivery in RECONCILED, "delivery_open")
        yield from _attempt_ends(task, "completed", now_s, summary=self.summary)
        yield moved


class FailTask(TaskCommand, word="fail_task"):
    """End a task with the code of its error, and with its reason in words."""

    error_code: str
    reason: str = ""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        task = tasks.by_id[self.task_id]
        require(bool(self.error_code), "no_error")
        late = self.error_code in TIME_OUTS and may_become(task.status, "timed_out")
        to = "timed_out" if late else "failed"
        moved = _move(task, to, now_s, error_code=self.error_code, reason=self.reason)
        ends = "unknown" if task.status == "lost" else "failed"
        yield from _attempt_ends(task, ends, now_s, self.error_code, self.reason)
        yield moved


class _EdgeCommand(TaskCommand):
    kind: str
    target_id: str
    reason: str = ""


class LinkTasks(_EdgeCommand, word="link_tasks"):
    """Make a relationship."""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        require(self.kind in EDGE_KINDS, "unknown_edge_kind")
        require(bool(self.target_id), "bad_field")
        if self.kind in (*INVERSE, "source_task"):
            require(self.target_id in tasks.by_id, "unknown_task")
        if self.kind in INVERSE:
            self._check_pair(tasks)
        yield f.EdgeSet(at_s=now_s, **self._said("key"))

    def _check_pair(self, tasks: Tasks) -> None:
        forward = self.kind in ("child", "blocks")
        upper, lower = (self.task_id, self.target_id) if forward else (self.target_id, self.task_id)
        kind = self.kind if forward else INVERSE[self.kind]
        require(not _reaches(tasks, kind, lower, upper), "edge_cycle")
        if kind == "child":
            require(not tasks.by_id[upper].cancel_requested, "cancelled_graph")


class UnlinkTasks(_EdgeCommand, word="unlink_tasks"):
    """Remove a relationship; it stays in the record as removed."""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        require(self.target_id in tasks.targets(self.task_id, self.kind), "unknown_edge")
        # The way of a cancellation is not cut while it is under way.
        cancelled = self.kind in ("parent", "child") and tasks.by_id[self.task_id].cancel_requested
        require(not cancelled, "cancelled_graph")
        yield f.EdgeSet(at_s=now_s, status="removed", **self._said("key"))


class ArchiveTask(TaskCommand, word="archive_task"):
    """Take an ended task, or a draft, out of the schedule."""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        yield _move(tasks.by_id[self.task_id], "archived", now_s)


class LeaseInstruments(TaskCommand, word="lease_instruments"):
    """Take the instruments of an open attempt, and a place of its capability.

    Attributes:
        places: Most runs of its capability that are carried out at once.
    """

    run_id: str
    instruments: tuple[str, ...]
    places: int

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        if self.run_id in tasks.leases:
            return
        task = tasks.by_id[self.task_id]
        require(task.current is not None and task.current.run_id == self.run_id, "no_attempt")
        require(not tasks.leased.keys() & set(self.instruments), "leased")
        require(tasks.at_work(task) < self.places, "no_place")
        name = {"task_id": self.task_id, "run_id": self.run_id}
        yield f.InstrumentsLeased(at_s=now_s, instruments=self.instruments, **name)


class ReleaseInstruments(TaskCommand, word="release_instruments"):
    """End the lease of a run whose attempt has ended and that the line does not carry out."""

    run_id: str

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        lease = tasks.leases.get(self.run_id)
        require(lease is not None and lease.task_id == self.task_id, "not_leased")
        run = tasks.by_id[self.task_id].current
        require(run is None or run.run_id != self.run_id, "attempt_open")
        yield f.InstrumentsReleased(at_s=now_s, task_id=self.task_id, run_id=self.run_id)


class ListTasks(TaskCommand, word="list_tasks"):
    """Read all tasks that the actor may see; it makes no fact."""

    def _find(self, tasks: Tasks, actor: TaskActor) -> None:
        """Find nothing: it names no task."""


class GetTask(TaskCommand, word="get_task"):
    """Read one task; it makes no fact."""


def silent(tasks: Tasks, now_s: float, more_s: float = 0.0) -> tuple[Task, ...]:
    """Return the running tasks of which there was no fact for their bound, and for some more.

    One that is held, or waits for a person, is not running; it is when it goes on.
    """
    return tuple(
        task
        for task in tasks.unended_tasks
        if task.status == "running"
        and task.retry.inactivity_timeout_s is not None
        and now_s - task.last_activity_s > task.retry.inactivity_timeout_s + more_s
    )


def expired(tasks: Tasks, now_s: float) -> tuple[f.TaskFact, ...]:
    """Return the facts of silent tasks whose workers did not end them when they were asked to."""
    return tuple(fact for task in silent(tasks, now_s, ANSWER_S) for fact in _silent(task, now_s))


def _silent(task: Task, now_s: float) -> Facts:
    yield from _attempt_ends(task, "failed", now_s, "inactivity")
    why = Text("session.silent", bound_s=task.retry.inactivity_timeout_s)
    yield _move(task, "timed_out", now_s, reason=why, error_code="inactivity")
