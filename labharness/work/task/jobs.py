"""Jobs: their commands, when a schedule is due, which tasks it makes, what people are told of it.

All times are seconds of world time since 1970, UTC. A week and a day begin in UTC as well, so that
no change of a local clock skips a run or doubles it. There is no clock here.
"""

import copy
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from labharness.core.vocabulary.durations import NotADuration, read_duration
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.work.task import facts as f
from labharness.work.task.commands import (
    TITLE_CHARACTERS_MAX,
    Facts,
    TaskActor,
    TaskCommand,
    require,
)
from labharness.work.task.record import ABSENCE, Job, JobFields, MissedRuns, Task, Tasks
from labharness.work.task.states import TERMINAL

JOBS_MAX: Final = 50
"""Most jobs of one lab that are not over; one more is refused."""

BATCH_MAX: Final = 50
"""Most tasks of one batch; the queue of a lab takes them all at once or none."""

EVERY_S_MIN: Final = 60
"""Shortest time (s) between two runs of a schedule."""

EVERY_S_MAX: Final = 366 * 86_400
"""Longest time (s) between two runs of a schedule."""

LATE_S_MAX: Final = 60.0
"""World time (s) by which a run may begin late, as when the house starts again; later is missed."""

_DAY_S: Final = 86_400
_DAYS: Final = ("thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday")
"""The days of the week from 1970-01-01 on, which was a Thursday."""

_AT: Final = re.compile(r"([a-z]+)@([01][0-9]|2[0-3]):([0-5][0-9])")

Vary = Mapping[str, Sequence[Any]]
"""The values of each varied place, by its path in the payload of the task."""


class BadJob(CodedError, ValueError, code="bad_job"):
    """A job cannot be made as it is asked for; the message says why."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Due times: ``anchor_s`` and every ``period_s`` before and after it."""

    period_s: int
    anchor_s: int

    def after(self, at_s: float) -> int:
        """Return the first due time after a time."""
        return self.upto(at_s) + self.period_s

    def upto(self, at_s: float) -> int:
        """Return the last due time that is not after a time."""
        turns = (math.floor(at_s) - self.anchor_s) // self.period_s
        return self.anchor_s + turns * self.period_s

    def count(self, after_s: float, upto_s: float) -> int:
        """Return how many due times lie after one time and not after another."""
        return max(0, (self.upto(upto_s) - self.upto(after_s)) // self.period_s)


def _period_s(every: str) -> int:
    """Return the whole seconds of a period with a unit; 0 where it is none."""
    try:
        return round(read_duration(every, bare_s=0.0))
    except NotADuration:
        return 0


def schedule_of(every: str, created_at_s: float) -> Schedule:
    """Return the schedule that a text means.

    Args:
        every: ``monday@07:00``, ``day@07:00`` or a period (``6h``, ``PT6H``, ``P1DT12H``).
        created_at_s: Time of the job, from which a period counts.

    Raises:
        BadJob: The text means no schedule, or one that is too dense or too rare.
    """
    text = every.lower()
    if at := _AT.fullmatch(text):
        day, hours, minutes = at.groups()
        of_day_s = int(hours) * 3600 + int(minutes) * 60
        if day == "day":
            return Schedule(_DAY_S, of_day_s)
        if day in _DAYS:
            return Schedule(7 * _DAY_S, _DAYS.index(day) * _DAY_S + of_day_s)
    elif period_s := _period_s(every):
        if EVERY_S_MIN <= period_s <= EVERY_S_MAX:
            return Schedule(period_s, math.floor(created_at_s))
        raise BadJob("job.period", every=every, least_s=EVERY_S_MIN, most_d=EVERY_S_MAX // _DAY_S)
    raise BadJob("job.no_schedule", every=every)


class JobCommand(TaskCommand):
    """One command for one job; it is about no task."""

    job_id: str
    task_id: str = ""

    @property
    def concerns(self) -> str:
        """Return the id of its task or job."""
        return self.job_id

    def _find(self, tasks: Tasks, actor: TaskActor) -> None:
        require(self.job_id in tasks.jobs, "unknown_job")

    def _at_work(self, tasks: Tasks) -> Job:
        job = tasks.jobs[self.job_id]
        require(job.ended_at_s is None, "job_ended")
        return job


def _check_due(job: Job, due_s: int, now_s: float) -> None:
    """Refuse a time that is not of the schedule, is yet to come, or was dealt with before."""
    require(bool(job.every), "not_due")
    on_time = schedule_of(job.every, job.created_at_s).upto(due_s) == due_s
    require(on_time and job.due_s < due_s <= now_s, "not_due")


class CreateJob(JobFields, JobCommand, word="create_job"):
    """Make a job: a batch of numbered runs at once, or a schedule."""

    minted: ClassVar[str] = "job_id"

    def _find(self, tasks: Tasks, actor: TaskActor) -> None:
        """Find nothing: the job is yet to be made."""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        require(self.job_id not in tasks.jobs, "job_exists")
        active = sum(standing(tasks, each) == "active" for each in tasks.jobs.values())
        require(active < JOBS_MAX, "jobs_full")
        require(
            bool(self.job_id and self.title) and len(self.title) <= TITLE_CHARACTERS_MAX,
            "bad_field",
        )
        require(bool(self.every) != bool(self.runs) and len(self.runs) <= BATCH_MAX, "bad_field")
        if self.every:
            try:
                schedule_of(self.every, now_s)
            except BadJob:
                require(False, "bad_field")
        given = self._said("key", "task_id")
        yield f.JobCreated(at_s=now_s, created_by=actor.name, **given)


class TickJob(JobCommand, word="tick_job"):
    """A due time of a schedule has come; its run is owed from now on."""

    due_s: int

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        _check_due(self._at_work(tasks), self.due_s, now_s)
        yield f.JobTicked(at_s=now_s, job_id=self.job_id, due_s=self.due_s)


class MissRuns(JobCommand, word="miss_runs"):
    """Runs of a schedule were missed, from the first due time to the last."""

    reason: str
    first_s: int
    last_s: int
    count: int

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        job = self._at_work(tasks)
        _check_due(job, self.first_s, now_s)
        _check_due(job, self.last_s, now_s)
        yield f.JobMissed(at_s=now_s, **self._said("key", "task_id"))


class DropRun(JobCommand, word="drop_run"):
    """Drop a run that is owed, because no task can be made for it."""

    run: str
    reason: str

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        require(self.run in tasks.jobs[self.job_id].owed, "not_due")
        yield f.JobRunDropped(at_s=now_s, job_id=self.job_id, run=self.run, reason=self.reason)


class TellJob(JobCommand, word="tell_job"):
    """Keep that people were told of something (`jobs.untold`)."""

    name: str

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        yield f.JobTold(at_s=now_s, job_id=self.job_id, name=self.name)


class EndJob(JobCommand, word="end_job"):
    """End a job: it makes no more tasks; those that it has made go on."""

    reason: str = ""

    def _decided(self, tasks: Tasks, actor: TaskActor, now_s: float) -> Facts:
        self._at_work(tasks)
        yield f.JobEnded(at_s=now_s, job_id=self.job_id, actor=actor.name, reason=self.reason)


def due(tasks: Tasks, job: Job, now_s: float, *, full: bool) -> Iterator[JobCommand]:
    """Return the tick that is due, and the runs that were missed before it.

    Only the newest due time makes a tick, and only while it is not too late: what was missed is
    told and not made up for. No run begins beside the one before it.

    Args:
        tasks: The state of all tasks.
        job: One of its jobs.
        now_s: The time.
        full: The queue takes no more tasks.
    """
    if not job.every or job.ended_at_s is not None:
        return
    schedule = schedule_of(job.every, job.created_at_s)
    count = schedule.count(job.due_s, now_s)
    if not count:
        return
    first, newest = schedule.after(job.due_s), schedule.upto(now_s)
    late = now_s - newest > LATE_S_MAX
    missed = count if late else count - 1
    if missed:
        last = newest if late else newest - schedule.period_s
        yield _missed(job, ABSENCE, first, last, missed)
    if late:
        return
    if job.owed or any(each.status not in TERMINAL for each in _tasks(tasks, job)):
        yield _missed(job, "still_at_work", newest, newest, 1)
    elif full:
        yield _missed(job, "queue_full", newest, newest, 1)
    else:
        yield TickJob(job_id=job.job_id, due_s=newest)


def _missed(job: Job, reason: str, first_s: int, last_s: int, count: int) -> MissRuns:
    return MissRuns(job_id=job.job_id, reason=reason, first_s=first_s, last_s=last_s, count=count)


def _tasks(tasks: Tasks, job: Job) -> Iterator[Task]:
    return (tasks.by_id[each] for each in job.task_ids)


def run_key(job: Job, run: str) -> str:
    """Return the idempotency key of the task of one run: the job, and its due time or number."""
    return f"{job.job_id}/{run}"


def standing(tasks: Tasks, job: Job) -> str:
    """Return ``ended`` (by a person), ``done`` (a batch without open tasks) or ``active``."""
    if job.ended_at_s is not None:
        return "ended"
    open_ = job.every or job.owed or any(t.status not in TERMINAL for t in _tasks(tasks, job))
    return "active" if open_ else "done"


def untold(tasks: Tasks, job: Job) -> Iterator[tuple[str, str]]:
    """Return what people are still to be told of a job: its name, and the text.

    Of runs that are missed for one reason in a row, the first is told; absence is told always.
    """
    for miss in job.untold:
        yield miss.name, Text("job.missed", title=job.title, count=miss.count, why=_why(miss))
    for task in _tasks(tasks, job):
        name = f"{task.task_id} {len(task.attempts)}"
        if task.status in ("failed", "timed_out") and name not in job.told:
            why = task.error_code
            yield name, Text("job.failed", title=job.title, task_id=task.task_id, why=why)


def _why(miss: MissedRuns) -> Text:
    if miss.reason in (ABSENCE, "still_at_work", "queue_full"):
        return Text(f"job.{miss.reason}")
    return Text("job.dropped", code=miss.reason)


def points(vary: Vary) -> tuple[dict[str, Any], ...]:
    """Return every combination of the varied values, each with its paths.

    Raises:
        BadJob: A path has no value, or the same one twice, or there are too many tasks.
    """
    for path, values in vary.items():
        if not values or any(a == b for a, b in itertools.combinations(values, 2)):
            raise BadJob("job.values", path=path)
    count = math.prod(len(values) for values in vary.values())
    if count > BATCH_MAX:
        raise BadJob("job.too_many", count=count, most=BATCH_MAX)
    varied_to = ([(path, value) for value in values] for path, values in vary.items())
    return tuple(map(dict, itertools.product(*varied_to)))


def varied(payload: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload with other values at some paths; it must have a value at each.

    Raises:
        BadJob: The payload has no value at a path, so that the path is misspelt.
    """
    made: dict[str, Any] = copy.deepcopy(dict(payload))
    for path, value in point.items():
        *before, last = path.split(".")
        here: Any = made
        for name in before:
            here = here.get(name) if isinstance(here, dict) else None
        if not isinstance(here, dict) or last not in here:
            raise BadJob("job.no_place", path=path)
        here[last] = value
    return made
