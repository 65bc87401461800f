"""Decides a command on tasks into facts; `house.py` writes them.

Nothing is done here. A refusal is a fact too, with the code of its reason, so that it is kept.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.work.task import facts as f
from labharness.work.task.commands import (
    COMMANDS,
    MAY,
    AppendProgress,
    ArchiveTask,
    CancelTask,
    CompleteTask,
    CreateJob,
    CreateTask,
    DropRun,
    EndJob,
    FailTask,
    GetTask,
    JobCommand,
    LeaseInstruments,
    LinkTasks,
    ListTasks,
    MissRuns,
    PauseTask,
    ReleaseInstruments,
    ReportStatus,
    ResumeTask,
    RetryTask,
    StartTask,
    TaskActor,
    TaskCommand,
    TellJob,
    TickJob,
    UnlinkTasks,
    UpdateTask,
)
from labharness.work.task.jobs import BATCH_MAX, JOBS_MAX, BadJob, schedule_of, standing
from labharness.work.task.queue import at_work, leased
from labharness.work.task.record import (
    DELIVERY_STATES,
    EDGE_KINDS,
    INVERSE,
    VISIBILITIES,
    Job,
    Task,
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

_MINTED: Final = {
    CreateTask: "task_id",
    StartTask: "run_id",
    RetryTask: "run_id",
    CreateJob: "job_id",
}
"""Ids that a shell makes anew for each try, so that they do not tell two commands apart."""


Facts = Iterator[f.TaskFact]


class _Refuse(Exception):
    """The refusal of a command; it does not leave the deciding modules."""


def require(truth: bool, refusal: str) -> None:
    """Refuse with a code unless something is true; `decide` makes the code a fact."""
    if not truth:
        raise _Refuse(refusal)


def decide(
    tasks: Tasks, command: TaskCommand, actor: TaskActor, now_s: float
) -> tuple[f.TaskFact, ...]:
    """Return the facts of a command: what it changes, nothing if repeated, or its one refusal.

    Args:
        tasks: The state of all tasks.
        command: Its ids are made by the caller of this function.
        actor: Authenticated elsewhere.
        now_s: Seconds of world time since 1970, UTC.
    """
    name = COMMANDS[type(command)]
    try:
        if _repeated(tasks, command, actor):
            return ()
        _permit(tasks, command, actor)
        changed = tuple(_DECIDE[type(command)](tasks, command, actor, now_s))
    except _Refuse as why:
        who, reason = actor.name, str(why)
        refused = f.CommandRefused(
            at_s=now_s, command=name, task_id=command.concerns, actor=who, reason=reason
        )
        return (refused,)
    return (_taken(command, name, actor, now_s), *changed) if changed else ()


def _taken(command: TaskCommand, name: str, actor: TaskActor, now_s: float) -> f.CommandTaken:
    return f.CommandTaken(
        at_s=now_s,
        command=name,
        task_id=command.concerns,
        actor=actor.name,
        key=command.key,
        digest=_digest(command) if command.key else "",
    )


def _digest(command: TaskCommand) -> str:
    body = plain_fields(command)
    body.pop(_MINTED.get(type(command), ""), None)
    named = [COMMANDS[type(command)], body]
    return digest_of(json.dumps(named, sort_keys=True, default=str).encode())


def _repeated(tasks: Tasks, command: TaskCommand, actor: TaskActor) -> bool:
    used = tasks.keys.get((actor.name, command.key)) if command.key else None
    if used is None:
        return False
    require(used[0] == _digest(command), "key_reused")
    return True


def _permit(tasks: Tasks, command: TaskCommand, actor: TaskActor) -> None:
    require(actor.role in MAY[type(command)], "forbidden")
    if isinstance(command, CreateTask | ListTasks):
        return
    if isinstance(command, JobCommand):
        require(isinstance(command, CreateJob) or command.job_id in tasks.jobs, "unknown_job")
        return
    task = tasks.by_id.get(command.task_id)
    # A caller is not told that a task of another caller exists.
    require(task is not None and _sees(actor, task), "unknown_task")


def _sees(actor: TaskActor, task: Task) -> bool:
    return actor.role != "caller" or task.requested_by == actor.name


def readable(tasks: Tasks, actor: TaskActor) -> tuple[Task, ...]:
    """Return the tasks that an actor may read: a caller its own, the lab's people all."""
    return tuple(each for each in tasks.by_id.values() if _sees(actor, each))


def _said(command: TaskCommand, *but: str) -> dict[str, Any]:
    """Return the fields of a command that its fact has too."""
    return {name: value for name, value in vars(command).items() if name not in but}


def _move(task: Task, to: str, now_s: float, **more: str) -> f.TaskMoved:
    require(may_become(task.status, to), "illegal_status")
    return f.TaskMoved(at_s=now_s, task_id=task.task_id, to=to, **more)


def _create(tasks: Tasks, c: CreateTask, actor: TaskActor, now_s: float) -> Facts:
    require(c.task_id not in tasks.by_id, "task_exists")
    require(bool(c.task_id and c.objective) and c.visibility in VISIBILITIES, "bad_field")
    require(len(c.title) <= TITLE_CHARACTERS_MAX and c.retry.attempts_max >= 1, "bad_field")
    require(not c.job_id or c.job_id in tasks.jobs, "unknown_job")
    require(not c.job_run or c.job_run in tasks.jobs[c.job_id].owed, "not_due")
    if c.parent_task_id:
        _may_have_child(tasks, c.parent_task_id, actor)
    yield f.TaskCreated(at_s=now_s, requested_by=actor.name, **_said(c, "key"))
    if c.parent_task_id:
        parent = c.parent_task_id
        yield f.EdgeSet(at_s=now_s, task_id=parent, kind="child", target_id=c.task_id)


def _may_have_child(tasks: Tasks, parent_id: str, actor: TaskActor) -> None:
    parent = tasks.by_id.get(parent_id)
    if parent is None or not _sees(actor, parent):
        raise _Refuse("unknown_task")
    require(not parent.cancel_requested, "cancelled_graph")
    require(parent.status in ACTIVE, "illegal_status")


def _update(tasks: Tasks, c: UpdateTask, actor: TaskActor, now_s: float) -> Facts:
    require(tasks.by_id[c.task_id].status in ACTIVE, "illegal_status")
    fits = all(isinstance(v, UPDATABLE.get(name, ())) for name, v in c.changes.items())
    require(bool(c.changes) and fits and c.changes.get("objective") != "", "bad_field")
    yield f.TaskUpdated(at_s=now_s, task_id=c.task_id, changes=c.changes)


def _report(tasks: Tasks, c: ReportStatus, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    require(c.to in REPORTABLE and task.status not in TERMINAL, "illegal_status")
    if c.to in ("preparing", "running"):
        require(not task.cancel_requested, "cancelled_graph")  # a found worker is to be cancelled
        require(task.current is not None, "no_attempt")
    moved = _move(task, c.to, now_s, reason=c.reason, required_action=c.required_action)
    if task.current is not None:
        yield from _attempt_follows(task, c.to, now_s)
    yield moved


def _attempt_follows(task: Task, to: str, now_s: float) -> Facts:
    """Return what a status of the task says about its open attempt."""
    if to in ("preparing", "running"):
        yield from _attempt_moves(task, to, now_s)
    elif to == "cancelled":
        yield from _attempt_ends(task, "cancelled", now_s)
    elif to == "timed_out":
        yield from _attempt_ends(task, "failed", now_s, "timed_out")


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


def _start(tasks: Tasks, c: StartTask, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    require(not task.cancel_requested, "cancelled_graph")
    require(task.current is None, "attempt_open")
    require(not task.attempts, "no_reason")  # a second one is a retry, which states its reason
    moved = _move(task, "preparing", now_s)
    yield moved
    yield _attempt(tasks, c, now_s, input_refs=c.input_refs)


def _attempt(
    tasks: Tasks,
    c: StartTask | RetryTask,
    now_s: float,
    reason: str = "",
    input_refs: tuple[str, ...] = (),
) -> f.AttemptStarted:
    of = tasks.by_id.get(tasks.sessions.get(c.run_id, ""))
    known = of is not None and any(run.run_id == c.run_id for run in of.attempts)
    require(bool(c.run_id) and not known, "run_exists")
    require(bool(c.worker), "bad_field")
    name = {"task_id": c.task_id, "run_id": c.run_id, "worker": c.worker}
    return f.AttemptStarted(at_s=now_s, reason=reason, input_refs=input_refs, **name)


def _progress(tasks: Tasks, c: AppendProgress, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    if c.delivery:
        require(c.delivery in DELIVERY_STATES and task.status != "archived", "bad_field")
        yield f.TaskDelivered(at_s=now_s, task_id=c.task_id, state=c.delivery)
    said = _said(c, "key", "delivery")
    if not any(value for name, value in said.items() if name != "task_id"):
        return
    _check_progress(task, c)
    yield f.TaskProgressed(at_s=now_s, **said)


def _check_progress(task: Task, c: AppendProgress) -> None:
    run = task.current
    if run is None:
        raise _Refuse("no_attempt")
    require(set(c.covered) <= set(task.acceptance), "bad_field")
    require(len(c.step) in (0, 3) and all(len(each) == 3 for each in c.plan), "bad_field")
    grows = all(v >= run.output_offsets.get(ref, 0) for ref, v in c.output_offsets.items())
    require(grows, "offset_shrinks")


def _pause(tasks: Tasks, c: PauseTask, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    moved = _move(task, "paused", now_s, reason=c.reason)
    yield from _attempt_moves(task, "running", now_s, "held")
    yield moved


def _resume(tasks: Tasks, c: ResumeTask, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    require(task.status == "paused", "illegal_status")
    yield from _attempt_moves(task, "running", now_s)
    yield _move(task, "running" if task.current else "queued", now_s)


def _cancel(tasks: Tasks, c: CancelTask, actor: TaskActor, now_s: float) -> Facts:
    require(may_become(tasks.by_id[c.task_id].status, "cancelling"), "illegal_status")
    for task_id in (c.task_id, *tasks.descendants(c.task_id)):
        yield from _cancelled(tasks.by_id[task_id], c, actor, now_s)


def _cancelled(task: Task, c: CancelTask, actor: TaskActor, now_s: float) -> Facts:
    """Return how one task of the graph is cancelled: at once where no attempt has to settle."""
    if not may_become(task.status, "cancelling"):
        return
    name = {"task_id": task.task_id, "reason": c.reason}
    yield f.CancelRequested(at_s=now_s, actor=actor.name, **name)
    yield f.TaskMoved(at_s=now_s, to="cancelling", **name)
    if task.current is None:
        yield f.TaskMoved(at_s=now_s, to="cancelled", **name)


def _retry(tasks: Tasks, c: RetryTask, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    require(bool(c.reason), "no_reason")
    require(not task.cancel_requested, "cancelled_graph")
    moved = _move(task, "retrying", now_s, reason=c.reason)
    _check_retry(task, actor, now_s)
    yield from _attempt_ends(task, "unknown", now_s, "worker_lost")
    yield moved
    yield _attempt(tasks, c, now_s, reason=c.reason, input_refs=c.input_refs)


def _check_retry(task: Task, actor: TaskActor, now_s: float) -> None:
    """Hold the policy; an operator need not wait for the back-off."""
    policy = task.retry
    require(len(task.attempts) < policy.attempts_max, "attempts_used")
    require(task.error_code not in policy.not_retried, "not_retryable")
    ended_at_s = task.ended_at_s or task.updated_at_s
    waited = now_s - ended_at_s >= policy.back_off_s
    require(waited or actor.role == "operator", "back_off")


def _complete(tasks: Tasks, c: CompleteTask, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    moved = _move(task, "completed", now_s)
    require(task.current is not None, "no_attempt")
    require(set(task.acceptance) <= task.progress.covered, "acceptance_open")
    outputs = {ref for run in task.attempts[-1:] for ref in run.output_offsets}
    require(outputs <= set(tasks.targets(c.task_id, "produced_artifact")), "artifacts_open")
    children = (tasks.by_id[each] for each in tasks.targets(c.task_id, "child"))
    require(all(each.status in TERMINAL for each in children), "children_open")
    require(task.delivery in RECONCILED, "delivery_open")
    yield from _attempt_ends(task, "completed", now_s, summary=c.summary)
    yield moved


def _fail(tasks: Tasks, c: FailTask, actor: TaskActor, now_s: float) -> Facts:
    task = tasks.by_id[c.task_id]
    require(bool(c.error_code), "no_error")
    late = c.error_code in TIME_OUTS and may_become(task.status, "timed_out")
    to = "timed_out" if late else "failed"
    moved = _move(task, to, now_s, error_code=c.error_code, reason=c.reason)
    ends = "unknown" if task.status == "lost" else "failed"
    yield from _attempt_ends(task, ends, now_s, c.error_code, c.reason)
    yield moved


def _link(tasks: Tasks, c: LinkTasks, actor: TaskActor, now_s: float) -> Facts:
    require(c.kind in EDGE_KINDS, "unknown_edge_kind")
    require(bool(c.target_id), "bad_field")
    if c.kind in (*INVERSE, "source_task"):
        require(c.target_id in tasks.by_id, "unknown_task")
    if c.kind in INVERSE:
        _check_pair(tasks, c)
    name = {"task_id": c.task_id, "kind": c.kind, "target_id": c.target_id}
    yield f.EdgeSet(at_s=now_s, reason=c.reason, **name)


def _check_pair(tasks: Tasks, c: LinkTasks) -> None:
    forward = c.kind in ("child", "blocks")
    upper, lower = (c.task_id, c.target_id) if forward else (c.target_id, c.task_id)
    kind = c.kind if forward else INVERSE[c.kind]
    require(not _reaches(tasks, kind, lower, upper), "edge_cycle")
    if kind == "child":
        require(not tasks.by_id[upper].cancel_requested, "cancelled_graph")


def _reaches(tasks: Tasks, kind: str, start: str, goal: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        onward = [each for each in tasks.targets(todo.pop(), kind) if each not in seen]
        seen.update(onward)
        todo += onward
    return goal in seen


def _unlink(tasks: Tasks, c: UnlinkTasks, actor: TaskActor, now_s: float) -> Facts:
    require(c.target_id in tasks.targets(c.task_id, c.kind), "unknown_edge")
    # The way of a cancellation is not cut while it is under way.
    cancelled = c.kind in ("parent", "child") and tasks.by_id[c.task_id].cancel_requested
    require(not cancelled, "cancelled_graph")
    name = {"task_id": c.task_id, "kind": c.kind, "target_id": c.target_id}
    yield f.EdgeSet(at_s=now_s, status="removed", reason=c.reason, **name)


def _archive(tasks: Tasks, c: ArchiveTask, actor: TaskActor, now_s: float) -> Facts:
    yield _move(tasks.by_id[c.task_id], "archived", now_s)


def _read(tasks: Tasks, c: TaskCommand, actor: TaskActor, now_s: float) -> Facts:
    return iter(())


def _lease(tasks: Tasks, c: LeaseInstruments, actor: TaskActor, now_s: float) -> Facts:
    if c.run_id in tasks.leases:
        return
    task = tasks.by_id[c.task_id]
    require(task.current is not None and task.current.run_id == c.run_id, "no_attempt")
    require(not leased(tasks).keys() & set(c.instruments), "leased")
    require(at_work(tasks, task) < c.places, "no_place")
    name = {"task_id": c.task_id, "run_id": c.run_id}
    yield f.InstrumentsLeased(at_s=now_s, instruments=c.instruments, **name)


def _release(tasks: Tasks, c: ReleaseInstruments, actor: TaskActor, now_s: float) -> Facts:
    lease = tasks.leases.get(c.run_id)
    require(lease is not None and lease.task_id == c.task_id, "not_leased")
    run = tasks.by_id[c.task_id].current
    require(run is None or run.run_id != c.run_id, "attempt_open")
    yield f.InstrumentsReleased(at_s=now_s, task_id=c.task_id, run_id=c.run_id)


def _create_job(tasks: Tasks, c: CreateJob, actor: TaskActor, now_s: float) -> Facts:
    require(c.job_id not in tasks.jobs, "job_exists")
    active = sum(standing(tasks, each) == "active" for each in tasks.jobs.values())
    require(active < JOBS_MAX, "jobs_full")
    require(bool(c.job_id and c.title) and len(c.title) <= TITLE_CHARACTERS_MAX, "bad_field")
    require(bool(c.every) != bool(c.runs) and len(c.runs) <= BATCH_MAX, "bad_field")
    if c.every:
        try:
            schedule_of(c.every, now_s)
        except BadJob:
            raise _Refuse("bad_field") from None
    given = _said(c, "key", "task_id")
    yield f.JobCreated(at_s=now_s, created_by=actor.name, **given)


def _at_work(tasks: Tasks, c: JobCommand) -> Job:
    job = tasks.jobs[c.job_id]
    require(job.ended_at_s is None, "job_ended")
    return job


def _tick(tasks: Tasks, c: TickJob, actor: TaskActor, now_s: float) -> Facts:
    _check_due(_at_work(tasks, c), c.due_s, now_s)
    yield f.JobTicked(at_s=now_s, job_id=c.job_id, due_s=c.due_s)


def _check_due(job: Job, due_s: int, now_s: float) -> None:
    """_Refuse a time that is not of the schedule, is yet to come, or was dealt with before."""
    require(bool(job.every), "not_due")
    on_time = schedule_of(job.every, job.created_at_s).upto(due_s) == due_s
    require(on_time and job.due_s < due_s <= now_s, "not_due")


def _miss(tasks: Tasks, c: MissRuns, actor: TaskActor, now_s: float) -> Facts:
    job = _at_work(tasks, c)
    _check_due(job, c.first_s, now_s)
    _check_due(job, c.last_s, now_s)
    yield f.JobMissed(at_s=now_s, **_said(c, "key", "task_id"))


def _drop(tasks: Tasks, c: DropRun, actor: TaskActor, now_s: float) -> Facts:
    require(c.run in tasks.jobs[c.job_id].owed, "not_due")
    yield f.JobRunDropped(at_s=now_s, job_id=c.job_id, run=c.run, reason=c.reason)


def _tell(tasks: Tasks, c: TellJob, actor: TaskActor, now_s: float) -> Facts:
    yield f.JobTold(at_s=now_s, job_id=c.job_id, name=c.name)


def _end(tasks: Tasks, c: EndJob, actor: TaskActor, now_s: float) -> Facts:
    _at_work(tasks, c)
    yield f.JobEnded(at_s=now_s, job_id=c.job_id, actor=actor.name, reason=c.reason)


_DECIDE: Final[dict[type[TaskCommand], Callable[[Tasks, Any, TaskActor, float], Facts]]] = {
    CreateTask: _create,
    UpdateTask: _update,
    ReportStatus: _report,
    StartTask: _start,
    AppendProgress: _progress,
    PauseTask: _pause,
    ResumeTask: _resume,
    CancelTask: _cancel,
    RetryTask: _retry,
    CompleteTask: _complete,
    FailTask: _fail,
    LinkTasks: _link,
    UnlinkTasks: _unlink,
    ArchiveTask: _archive,
    ListTasks: _read,
    GetTask: _read,
    LeaseInstruments: _lease,
    ReleaseInstruments: _release,
    CreateJob: _create_job,
    TickJob: _tick,
    MissRuns: _miss,
    DropRun: _drop,
    TellJob: _tell,
    EndJob: _end,
}


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
