"""The state of all tasks as a fold over their facts; it takes no decision and forgets nothing."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from labharness.work.task import facts as f
from labharness.work.task.record import (
    ABSENCE,
    INVERSE,
    Attempt,
    Edge,
    InstrumentLease,
    Job,
    MissedRuns,
    PersonRequest,
    PlanItem,
    Task,
    TaskProgress,
    Tasks,
    TaskStep,
)
from labharness.work.task.states import FOR_PERSONS, TERMINAL

_WORKING: Final = frozenset({"preparing", "running", "retrying"})
NOT_OF_TASK: Final = ("at_s", "job_id", "job_run")


def folded(all_facts: Iterable[f.TaskFact], tasks: Tasks | None = None) -> Tasks:
    """Return the state that facts lead to, one after the other."""
    tasks = tasks or Tasks()
    for fact in all_facts:
        tasks = apply(tasks, fact)
    return tasks


def apply(tasks: Tasks, fact: f.TaskFact) -> Tasks:
    """Return the state after one more fact."""
    return _APPLY[type(fact)](tasks, fact)


def _with(tasks: Tasks, fact: Any, **changes: Any) -> Tasks:  # noqa: ANN401 - fields of a task
    task = replace(tasks.by_id[fact.task_id], updated_at_s=fact.at_s, **changes)
    return _put(tasks, task)


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


def _taken(tasks: Tasks, fact: f.CommandTaken) -> Tasks:
    if not fact.key:
        return tasks
    used = (fact.digest, fact.task_id)
    return replace(tasks, keys=tasks.keys.with_entry((fact.actor, fact.key), used))


def _refused(tasks: Tasks, fact: f.CommandRefused) -> Tasks:
    return replace(tasks, refusals=tasks.refusals + 1)


def _created(tasks: Tasks, fact: f.TaskCreated) -> Tasks:
    given = {name: value for name, value in vars(fact).items() if name not in NOT_OF_TASK}
    parent = tasks.by_id.get(fact.parent_task_id)
    root = parent.root_task_id if parent else fact.task_id
    given |= dict.fromkeys(("created_at_s", "updated_at_s", "last_activity_s"), fact.at_s)
    task = Task(**given, root_task_id=root)
    tasks = _put(tasks, task)
    if task.session_id and task.session_id not in tasks.sessions:
        tasks = _opened(tasks, task.session_id, task.task_id)
    return _owned(tasks, fact) if fact.job_id else tasks


def _owned(tasks: Tasks, fact: f.TaskCreated) -> Tasks:
    job = tasks.jobs[fact.job_id]
    owed = tuple(each for each in job.owed if each != fact.job_run)
    return _job(tasks, job, task_ids=(*job.task_ids, fact.task_id), owed=owed)


def _updated(tasks: Tasks, fact: f.TaskUpdated) -> Tasks:
    return _with(tasks, fact, **fact.changes)


def _moved(tasks: Tasks, fact: f.TaskMoved) -> Tasks:
    task = tasks.by_id[fact.task_id]
    working = fact.to in _WORKING
    return _with(
        tasks,
        fact,
        status=fact.to,
        native_status="held" if fact.to == "paused" else "",
        status_reason=fact.reason,
        required_action=fact.required_action,
        request=_request(task, fact),
        error_code=fact.error_code or task.error_code,
        last_activity_s=fact.at_s if working else task.last_activity_s,
        started_at_s=task.started_at_s or (fact.at_s if working else None),
        ended_at_s=_end(task, fact),
    )


def _request(task: Task, fact: f.TaskMoved) -> PersonRequest | None:
    """Return what is asked of a person then: a hold, or a silent worker, ends no request."""
    if fact.to in FOR_PERSONS:
        return PersonRequest(fact.to, fact.reason, fact.required_action)
    over = fact.to in ("queued", "retrying", "cancelling") or fact.to in TERMINAL
    answered = fact.to == "running" and task.status in FOR_PERSONS
    return None if over or answered else task.request


def _end(task: Task, fact: f.TaskMoved) -> float | None:
    if fact.to == "archived":
        return task.ended_at_s or fact.at_s
    return fact.at_s if fact.to in TERMINAL else None


def _cancel(tasks: Tasks, fact: f.CancelRequested) -> Tasks:
    return _with(tasks, fact, cancel_requested=True)


def _attempt_started(tasks: Tasks, fact: f.AttemptStarted) -> Tasks:
    before = tasks.by_id[fact.task_id].attempts
    new = Attempt(
        run_id=fact.run_id,
        ordinal=len(before) + 1,
        status="preparing",
        worker=fact.worker,
        started_at_s=fact.at_s,
        reason=fact.reason,
        input_refs=fact.input_refs,
    )
    tasks = _opened(tasks, fact.run_id, fact.task_id)
    untold = {"delivery": "unknown"} if before else {}  # that of an earlier attempt says nothing
    changes = {"attempts": (*before, new), "last_activity_s": fact.at_s, **untold}
    return _with(tasks, fact, **changes)


def _attempt(tasks: Tasks, fact: Any, **changes: Any) -> Tasks:  # noqa: ANN401 - of an attempt
    attempts = tasks.by_id[fact.task_id].attempts
    changed = (replace(a, **changes) if a.run_id == fact.run_id else a for a in attempts)
    return _with(tasks, fact, attempts=tuple(changed))


def _attempt_moved(tasks: Tasks, fact: f.AttemptMoved) -> Tasks:
    return _attempt(tasks, fact, status=fact.to, native_status=fact.native_status)


def _attempt_ended(tasks: Tasks, fact: f.AttemptEnded) -> Tasks:
    native = "lost" if fact.status == "unknown" else ""
    ends = {"status": fact.status, "native_status": native, "error_code": fact.error_code}
    return _attempt(tasks, fact, **ends, summary=fact.summary, ended_at_s=fact.at_s)


def _progressed(tasks: Tasks, fact: f.TaskProgressed) -> Tasks:
    task = tasks.by_id[fact.task_id]
    was = task.progress
    progress = TaskProgress(
        phase=fact.phase or was.phase,
        current_step=fact.current_step or was.current_step,
        counters={**was.counters, **fact.counters},
        covered=was.covered | frozenset(fact.covered),
        plan=tuple(PlanItem(i, text, done == "done") for i, text, done in fact.plan) or was.plan,
    )
    attempts = (*task.attempts[:-1], _grown(task.attempts[-1], fact)) if task.attempts else ()
    return _with(tasks, fact, progress=progress, attempts=attempts, last_activity_s=fact.at_s)


def _grown(attempt: Attempt, fact: f.TaskProgressed) -> Attempt:
    steps = attempt.steps
    if fact.step:
        step_id, kind, status = fact.step
        steps = (*steps, TaskStep(step_id, kind, status, fact.at_s))
    return replace(
        attempt,
        output_offsets={**attempt.output_offsets, **fact.output_offsets},
        checkpoint_refs=(*attempt.checkpoint_refs, *fact.checkpoint_refs),
        steps=steps,
    )


def _delivered(tasks: Tasks, fact: f.TaskDelivered) -> Tasks:
    return _with(tasks, fact, delivery=fact.state)


def _edge_set(tasks: Tasks, fact: f.EdgeSet) -> Tasks:
    tasks = _linked(tasks, fact, fact.task_id, fact.kind, fact.target_id)
    if fact.kind in INVERSE and fact.target_id in tasks.by_id:
        tasks = _linked(tasks, fact, fact.target_id, INVERSE[fact.kind], fact.task_id)
    return tasks


def _linked(tasks: Tasks, fact: f.EdgeSet, source: str, kind: str, target: str) -> Tasks:
    edges = _edged(tasks.edges_of.get(source, ()), fact, (source, kind, target))
    return replace(tasks, edges_of=tasks.edges_of.with_entry(source, edges))


def _edged(
    edges: tuple[Edge, ...], fact: f.EdgeSet, name: tuple[str, str, str]
) -> tuple[Edge, ...]:
    change: Mapping[str, Any] = {"status": fact.status, "reason": fact.reason}
    for i, edge in enumerate(edges):
        if (edge.source_id, edge.kind, edge.target_id) == name:
            return (*edges[:i], replace(edge, updated_at_s=fact.at_s, **change), *edges[i + 1 :])
    return (*edges, Edge(*name, created_at_s=fact.at_s, updated_at_s=fact.at_s, **change))


def _leased(tasks: Tasks, fact: f.InstrumentsLeased) -> Tasks:
    lease = InstrumentLease(fact.run_id, fact.task_id, fact.instruments, fact.at_s)
    return replace(tasks, leases={**tasks.leases, fact.run_id: lease})


def _released(tasks: Tasks, fact: f.InstrumentsReleased) -> Tasks:
    left = {run_id: each for run_id, each in tasks.leases.items() if run_id != fact.run_id}
    return replace(tasks, leases=left)


def _job(tasks: Tasks, job: Job, **changes: Any) -> Tasks:  # noqa: ANN401 - fields of a job
    return replace(tasks, jobs={**tasks.jobs, job.job_id: replace(job, **changes)})


def _job_created(tasks: Tasks, fact: f.JobCreated) -> Tasks:
    given = {name: value for name, value in vars(fact).items() if name != "at_s"}
    owed = tuple(str(number) for number in range(1, len(fact.runs) + 1))
    job = Job(**given, created_at_s=fact.at_s, due_s=fact.at_s, owed=owed)
    return _job(tasks, job)


def _job_ticked(tasks: Tasks, fact: f.JobTicked) -> Tasks:
    job = tasks.jobs[fact.job_id]
    owed = (*job.owed, str(fact.due_s))
    return _job(tasks, job, ticks=job.ticks + 1, due_s=fact.due_s, owed=owed, in_row="")


def _job_missed(tasks: Tasks, fact: f.JobMissed) -> Tasks:
    job = tasks.jobs[fact.job_id]
    span = (fact.first_s, fact.last_s, fact.count)
    miss = MissedRuns(f"{fact.reason} {fact.first_s}", fact.reason, *span)
    again = fact.reason == job.in_row and fact.reason != ABSENCE
    return _job(
        tasks,
        job,
        due_s=fact.last_s,
        missed=job.missed + fact.count,
        last_miss=miss,
        in_row=fact.reason,
        untold=job.untold if again else (*job.untold, miss),
    )


def _job_run_dropped(tasks: Tasks, fact: f.JobRunDropped) -> Tasks:
    job = tasks.jobs[fact.job_id]
    due_s = int(fact.run) if job.every else 0
    miss = MissedRuns(f"{fact.reason} {fact.run}", fact.reason, due_s, due_s, 1)
    owed = tuple(each for each in job.owed if each != fact.run)
    missed = job.missed + 1
    return _job(tasks, job, owed=owed, missed=missed, last_miss=miss, untold=(*job.untold, miss))


def _job_told(tasks: Tasks, fact: f.JobTold) -> Tasks:
    job = tasks.jobs[fact.job_id]
    left = tuple(each for each in job.untold if each.name != fact.name)
    told = job.told if len(left) < len(job.untold) else job.told | {fact.name}
    return _job(tasks, job, untold=left, told=told)


def _job_ended(tasks: Tasks, fact: f.JobEnded) -> Tasks:
    return _job(tasks, tasks.jobs[fact.job_id], ended_at_s=fact.at_s, owed=())


_APPLY: Final[dict[type[f.TaskFact], Callable[[Tasks, Any], Tasks]]] = {
    f.CommandTaken: _taken,
    f.CommandRefused: _refused,
    f.TaskCreated: _created,
    f.TaskUpdated: _updated,
    f.TaskMoved: _moved,
    f.CancelRequested: _cancel,
    f.AttemptStarted: _attempt_started,
    f.AttemptMoved: _attempt_moved,
    f.AttemptEnded: _attempt_ended,
    f.TaskProgressed: _progressed,
    f.TaskDelivered: _delivered,
    f.EdgeSet: _edge_set,
    f.InstrumentsLeased: _leased,
    f.InstrumentsReleased: _released,
    f.JobCreated: _job_created,
    f.JobTicked: _job_ticked,
    f.JobMissed: _job_missed,
    f.JobRunDropped: _job_run_dropped,
    f.JobTold: _job_told,
    f.JobEnded: _job_ended,
}
