"""Decide the commands on jobs into facts, as `deciding` does those on tasks."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from labharness.work.task import facts as f
from labharness.work.task.commands import (
    CreateJob,
    DropRun,
    EndJob,
    JobCommand,
    MissRuns,
    TaskActor,
    TaskCommand,
    TellJob,
    TickJob,
)
from labharness.work.task.jobs import BATCH_MAX, JOBS_MAX, BadJob, schedule_of, standing
from labharness.work.task.record import Job, Tasks
from labharness.work.task.refusing import _Refuse, require

JOB_TITLE_CHARACTERS_MAX: Final = 500

JOB_REFUSALS: Final = frozenset({"unknown_job", "job_exists", "jobs_full", "job_ended", "not_due"})
"""Codes of refusals that only jobs have."""

Facts = Iterator[f.TaskFact]


def _create(tasks: Tasks, c: CreateJob, actor: TaskActor, now_s: float) -> Facts:
    require(c.job_id not in tasks.jobs, "job_exists")
    active = sum(standing(tasks, each) == "active" for each in tasks.jobs.values())
    require(active < JOBS_MAX, "jobs_full")
    require(bool(c.job_id and c.title) and len(c.title) <= JOB_TITLE_CHARACTERS_MAX, "bad_field")
    require(bool(c.every) != bool(c.runs) and len(c.runs) <= BATCH_MAX, "bad_field")
    if c.every:
        try:
            schedule_of(c.every, now_s)
        except BadJob:
            raise _Refuse("bad_field") from None
    given = {name: value for name, value in vars(c).items() if name not in ("key", "task_id")}
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
    yield f.JobMissed(
        at_s=now_s,
        job_id=c.job_id,
        reason=c.reason,
        first_s=c.first_s,
        last_s=c.last_s,
        count=c.count,
    )


def _drop(tasks: Tasks, c: DropRun, actor: TaskActor, now_s: float) -> Facts:
    require(c.run in tasks.jobs[c.job_id].owed, "not_due")
    yield f.JobRunDropped(at_s=now_s, job_id=c.job_id, run=c.run, reason=c.reason)


def _tell(tasks: Tasks, c: TellJob, actor: TaskActor, now_s: float) -> Facts:
    yield f.JobTold(at_s=now_s, job_id=c.job_id, name=c.name)


def _end(tasks: Tasks, c: EndJob, actor: TaskActor, now_s: float) -> Facts:
    _at_work(tasks, c)
    yield f.JobEnded(at_s=now_s, job_id=c.job_id, actor=actor.name, reason=c.reason)


DECIDE_JOBS: Final[dict[type[TaskCommand], Callable[[Tasks, Any, TaskActor, float], Facts]]] = {
    CreateJob: _create,
    TickJob: _tick,
    MissRuns: _miss,
    DropRun: _drop,
    TellJob: _tell,
    EndJob: _end,
}
