"""The facts of tasks: codes with typed parameters, kept as JSON, each with what it changes.

The state of all tasks is a fold over them. It takes no decision and forgets nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Final, dataclass_transform

from labharness.core.errors import LabError
from labharness.work.task.record import (
    ABSENCE,
    INVERSE,
    Attempt,
    Edge,
    InstrumentLease,
    Job,
    JobFields,
    MissedRuns,
    PersonRequest,
    PlanItem,
    ProgressFields,
    RetryPolicy,
    Task,
    TaskFields,
    TaskProgress,
    Tasks,
    TaskStep,
    plain_fields,
)
from labharness.work.task.states import FOR_PERSONS, TERMINAL

_WORKING: Final = frozenset({"preparing", "running", "retrying"})
_NOT_OF_TASK: Final = ("at_s", "job_id", "job_run")


class UnknownFact(LabError, ValueError, code="unknown_task_fact"):
    """A record of a task that this version cannot read."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class TaskFact:
    """Something that happened at a second of world time, UTC since 1970; one kind has one code.

    Each kind is a frozen dataclass as this one is.
    """

    at_s: float
    code: ClassVar[str] = ""

    def __init_subclass__(cls, code: str = "") -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        cls.code = code
        if code:
            FACTS[code] = cls

    def _apply(self, tasks: Tasks) -> Tasks:
        """Return the state after it."""
        raise NotImplementedError  # each fact with a code states its own


FACTS: Final[dict[str, type[TaskFact]]] = {}
"""All kinds, by their codes."""


def folded(all_facts: Iterable[TaskFact], tasks: Tasks | None = None) -> Tasks:
    """Return the state that facts lead to, one after the other."""
    tasks = tasks or Tasks()
    for fact in all_facts:
        tasks = fact._apply(tasks)
    return tasks


def fact_to_json(fact: TaskFact) -> dict[str, Any]:
    """Return a fact as a JSON object with its code."""
    return {"code": fact.code, **plain_fields(fact)}


def fact_from_json(body: Mapping[str, Any]) -> TaskFact:
    """Return the fact that a JSON object holds.

    Raises:
        UnknownFact: Its code or one of its parameters is not known here, or one is missing.
    """
    kind = FACTS.get(str(body.get("code")))
    if kind is None:
        raise UnknownFact(f"{body.get('code')!r} is not a fact of a task")
    given = {name: _tuples(value) for name, value in body.items() if name != "code"}
    if strangers := given.keys() - {each.name for each in fields(kind)}:
        raise UnknownFact(f"{body['code']} has no parameter {min(strangers)!r}")
    try:
        if isinstance(given.get("retry"), Mapping):
            policy = {name: _tuples(value) for name, value in given["retry"].items()}
            given["retry"] = RetryPolicy(**policy)
        return kind(**given)
    except TypeError as why:
        raise UnknownFact(f"{body['code']}: {why}") from None


def _tuples(value: Any) -> Any:  # noqa: ANN401 - JSON
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _put(tasks: Tasks, task: Task) -> Tasks:
    by_id = tasks.by_id.with_entry(task.task_id, task)
    unended = tasks.unended
    goes_on = task.status not in TERMINAL or task.current is not None
    if goes_on and task.task_id not in unended:
        unended = (*unended, task.task_id)
    elif not goes_on:
        unended = tuple(each for each in unended if each != task.task_id)
    return replace(tasks, by_id=by_id, unended=unended)


def _opened(tasks: Tasks, session_id: str, task_id: str) -> Tasks:
    return replace(tasks, sessions=tasks.sessions.with_entry(session_id, task_id))


def _with_job(tasks: Tasks, job: Job) -> Tasks:
    return replace(tasks, jobs={**tasks.jobs, job.job_id: job})


class _OfTask(TaskFact):
    task_id: str

    def _with(self, tasks: Tasks, **changes: Any) -> Tasks:  # noqa: ANN401 - fields of a task
        task = replace(tasks.by_id[self.task_id], updated_at_s=self.at_s, **changes)
        return _put(tasks, task)


class OfAttempt(_OfTask):
    """Something that happened to one attempt of a task."""

    run_id: str

    def _attempt(self, tasks: Tasks, **changes: Any) -> Tasks:  # noqa: ANN401 - of an attempt
        attempts = tasks.by_id[self.task_id].attempts
        changed = (replace(a, **changes) if a.run_id == self.run_id else a for a in attempts)
        return self._with(tasks, attempts=tuple(changed))


class _OfJob(TaskFact):
    job_id: str

    def _job(self, tasks: Tasks, **changes: Any) -> Tasks:  # noqa: ANN401 - fields of a job
        return _with_job(tasks, replace(tasks.jobs[self.job_id], **changes))


class CommandTaken(TaskFact, code="task.command_taken"):
    """A command was accepted; its digest tells a repetition from another command.

    Attributes:
        task_id: The task that it concerned, or the job.
    """

    command: str
    task_id: str
    actor: str
    key: str = ""
    digest: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        if not self.key:
            return tasks
        used = (self.digest, self.task_id)
        return replace(tasks, keys=tasks.keys.with_entry((self.actor, self.key), used))


class CommandRefused(TaskFact, code="task.command_refused"):
    """A command was refused, with the code of the reason."""

    command: str
    task_id: str
    actor: str
    reason: str

    def _apply(self, tasks: Tasks) -> Tasks:
        return replace(tasks, refusals=tasks.refusals + 1)


class TaskCreated(TaskFields, TaskFact, code="task.created"):
    """A task has an identity and an objective."""

    requested_by: str
    job_id: str = ""
    job_run: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        given = {name: value for name, value in vars(self).items() if name not in _NOT_OF_TASK}
        parent = tasks.by_id.get(self.parent_task_id)
        root = parent.root_task_id if parent else self.task_id
        given |= dict.fromkeys(("created_at_s", "updated_at_s", "last_activity_s"), self.at_s)
        tasks = _put(tasks, Task(**given, root_task_id=root))
        if self.session_id and self.session_id not in tasks.sessions:
            tasks = _opened(tasks, self.session_id, self.task_id)
        if not self.job_id:
            return tasks
        job = tasks.jobs[self.job_id]
        owed = tuple(each for each in job.owed if each != self.job_run)
        return _with_job(tasks, replace(job, task_ids=(*job.task_ids, self.task_id), owed=owed))


class TaskUpdated(_OfTask, code="task.updated"):
    """Some fields of a task were changed."""

    changes: Mapping[str, Any]

    def _apply(self, tasks: Tasks) -> Tasks:
        return self._with(tasks, **self.changes)


class TaskMoved(_OfTask, code="task.moved"):
    """A task changed its status.

    Attributes:
        required_action: Id of the action that ends a wait or a block.
    """

    to: str
    reason: str = ""
    error_code: str = ""
    required_action: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        task = tasks.by_id[self.task_id]
        working = self.to in _WORKING
        return self._with(
            tasks,
            status=self.to,
            native_status="held" if self.to == "paused" else "",
            status_reason=self.reason,
            required_action=self.required_action,
            request=self._request(task),
            error_code=self.error_code or task.error_code,
            last_activity_s=self.at_s if working else task.last_activity_s,
            started_at_s=task.started_at_s or (self.at_s if working else None),
            ended_at_s=self._end(task),
        )

    def _request(self, task: Task) -> PersonRequest | None:
        """Return what is asked of a person then: a hold, or a silent worker, ends no request."""
        if self.to in FOR_PERSONS:
            return PersonRequest(self.to, self.reason, self.required_action)
        over = self.to in ("queued", "retrying", "cancelling") or self.to in TERMINAL
        answered = self.to == "running" and task.status in FOR_PERSONS
        return None if over or answered else task.request

    def _end(self, task: Task) -> float | None:
        if self.to == "archived":
            return task.ended_at_s or self.at_s
        return self.at_s if self.to in TERMINAL else None


class CancelRequested(_OfTask, code="task.cancel_requested"):
    """The wish to cancel a task, which sticks."""

    actor: str
    reason: str

    def _apply(self, tasks: Tasks) -> Tasks:
        return self._with(tasks, cancel_requested=True)


class AttemptStarted(OfAttempt, code="task.attempt_started"):
    """A new attempt of a task."""

    worker: str
    reason: str = ""
    input_refs: tuple[str, ...] = ()

    def _apply(self, tasks: Tasks) -> Tasks:
        before = tasks.by_id[self.task_id].attempts
        new = Attempt(
            run_id=self.run_id,
            ordinal=len(before) + 1,
            status="preparing",
            worker=self.worker,
            started_at_s=self.at_s,
            reason=self.reason,
            input_refs=self.input_refs,
        )
        tasks = _opened(tasks, self.run_id, self.task_id)
        untold = (
            {"delivery": "unknown"} if before else {}
        )  # that of an earlier attempt says nothing
        changes = {"attempts": (*before, new), "last_activity_s": self.at_s, **untold}
        return self._with(tasks, **changes)


class AttemptMoved(OfAttempt, code="task.attempt_moved"):
    """The open attempt of a task changed its status."""

    to: str
    native_status: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        return self._attempt(tasks, status=self.to, native_status=self.native_status)


class AttemptEnded(OfAttempt, code="task.attempt_ended"):
    """An attempt came to its end."""

    status: str
    error_code: str = ""
    summary: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        native = "lost" if self.status == "unknown" else ""
        ends = {"status": self.status, "native_status": native, "error_code": self.error_code}
        return self._attempt(tasks, **ends, summary=self.summary, ended_at_s=self.at_s)


class TaskProgressed(ProgressFields, _OfTask, code="task.progressed"):
    """Progress of the open attempt."""

    def _apply(self, tasks: Tasks) -> Tasks:
        task = tasks.by_id[self.task_id]
        was = task.progress
        progress = TaskProgress(
            phase=self.phase or was.phase,
            current_step=self.current_step or was.current_step,
            counters={**was.counters, **self.counters},
            covered=was.covered | frozenset(self.covered),
            plan=tuple(PlanItem(i, text, done == "done") for i, text, done in self.plan)
            or was.plan,
        )
        attempts = (*task.attempts[:-1], *(self._grown(each) for each in task.attempts[-1:]))
        return self._with(tasks, progress=progress, attempts=attempts, last_activity_s=self.at_s)

    def _grown(self, attempt: Attempt) -> Attempt:
        steps = attempt.steps
        if self.step:
            step_id, kind, status = self.step
            steps = (*steps, TaskStep(step_id, kind, status, self.at_s))
        return replace(
            attempt,
            output_offsets={**attempt.output_offsets, **self.output_offsets},
            checkpoint_refs=(*attempt.checkpoint_refs, *self.checkpoint_refs),
            steps=steps,
        )


class TaskDelivered(_OfTask, code="task.delivered"):
    """The delivery of a task's outputs has a new state."""

    state: str

    def _apply(self, tasks: Tasks) -> Tasks:
        return self._with(tasks, delivery=self.state)


class EdgeSet(_OfTask, code="task.edge_set"):
    """A relationship was made (`active`) or removed; a pair is set at both ends."""

    kind: str
    target_id: str
    status: str = "active"
    reason: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        tasks = self._linked(tasks, self.task_id, self.kind, self.target_id)
        if self.kind in INVERSE and self.target_id in tasks.by_id:
            tasks = self._linked(tasks, self.target_id, INVERSE[self.kind], self.task_id)
        return tasks

    def _linked(self, tasks: Tasks, source: str, kind: str, target: str) -> Tasks:
        edges = {(e.kind, e.target_id): e for e in tasks.edges_of.get(source, ())}
        before = edges.get((kind, target))
        edges[kind, target] = Edge(
            source,
            kind,
            target,
            created_at_s=self.at_s if before is None else before.created_at_s,
            updated_at_s=self.at_s,
            status=self.status,
            reason=self.reason,
        )
        return replace(tasks, edges_of=tasks.edges_of.with_entry(source, tuple(edges.values())))


class InstrumentsLeased(OfAttempt, code="task.leased"):
    """A run has its instruments, and a place within the limit of its capability."""

    instruments: tuple[str, ...] = ()

    def _apply(self, tasks: Tasks) -> Tasks:
        lease = InstrumentLease(self.run_id, self.task_id, self.instruments, self.at_s)
        return replace(tasks, leases={**tasks.leases, self.run_id: lease})


class InstrumentsReleased(OfAttempt, code="task.released"):
    """Instruments and place of a run are free again."""

    def _apply(self, tasks: Tasks) -> Tasks:
        left = {run_id: each for run_id, each in tasks.leases.items() if run_id != self.run_id}
        return replace(tasks, leases=left)


class JobCreated(JobFields, TaskFact, code="job.created"):
    """A job that may own tasks, with all that a house needs to make them."""

    created_by: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        given = {name: value for name, value in vars(self).items() if name != "at_s"}
        owed = tuple(str(number) for number in range(1, len(self.runs) + 1))
        job = Job(**given, created_at_s=self.at_s, due_s=self.at_s, owed=owed)
        return _with_job(tasks, job)


class JobTicked(_OfJob, code="job.ticked"):
    """The schedule of a job came round: a run is owed. It makes no task by itself."""

    due_s: int = 0

    def _apply(self, tasks: Tasks) -> Tasks:
        job = tasks.jobs[self.job_id]
        owed = (*job.owed, str(self.due_s))
        return self._job(tasks, ticks=job.ticks + 1, due_s=self.due_s, owed=owed, in_row="")


class JobMissed(_OfJob, code="job.missed"):
    """Runs were due and did not begin; they are not made up for."""

    reason: str
    first_s: int
    last_s: int
    count: int

    def _apply(self, tasks: Tasks) -> Tasks:
        job = tasks.jobs[self.job_id]
        span = (self.first_s, self.last_s, self.count)
        miss = MissedRuns(f"{self.reason} {self.first_s}", self.reason, *span)
        again = self.reason == job.in_row and self.reason != ABSENCE
        return self._job(
            tasks,
            due_s=self.last_s,
            missed=job.missed + self.count,
            last_miss=miss,
            in_row=self.reason,
            untold=job.untold if again else (*job.untold, miss),
        )


class JobRunDropped(_OfJob, code="job.run_dropped"):
    """No task can be made for a run that was owed."""

    run: str
    reason: str

    def _apply(self, tasks: Tasks) -> Tasks:
        job = tasks.jobs[self.job_id]
        due_s = int(self.run) if job.every else 0
        miss = MissedRuns(f"{self.reason} {self.run}", self.reason, due_s, due_s, 1)
        owed = tuple(each for each in job.owed if each != self.run)
        missed = job.missed + 1
        return self._job(
            tasks, owed=owed, missed=missed, last_miss=miss, untold=(*job.untold, miss)
        )


class JobTold(_OfJob, code="job.told"):
    """People were told of a failed task or of missed runs of a job."""

    name: str

    def _apply(self, tasks: Tasks) -> Tasks:
        job = tasks.jobs[self.job_id]
        left = tuple(each for each in job.untold if each.name != self.name)
        told = job.told if len(left) < len(job.untold) else job.told | {self.name}
        return self._job(tasks, untold=left, told=told)


class JobEnded(_OfJob, code="job.ended"):
    """A person ended a job; it makes no more tasks."""

    actor: str
    reason: str = ""

    def _apply(self, tasks: Tasks) -> Tasks:
        return self._job(tasks, ended_at_s=self.at_s, owed=())
