"""``labharness jobs``: batches and schedules that a lab's house makes tasks of."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED
from labharness.faces.cli.show import BadUse, aligned, chosen_address, looking, say
from labharness.faces.cli.tasks import (
    ID_CHARACTERS,
    ask_house,
    ask_of_file,
    kept_tasks,
    task_lines,
)
from labharness.lab.config.account import account
from labharness.lab.config.address import LabAddress
from labharness.work.task.jobs import schedule_of, standing
from labharness.work.task.record import Job, Tasks
from labharness.work.task.snapshot import utc


def jobs(chosen: argparse.Namespace) -> int:
    """Carry out one of the commands; return its exit code."""
    place = chosen_address(chosen.lab)
    with looking(place.state_dir):
        if chosen.verb == "create":
            return _create(place, chosen)
        kept = kept_tasks(place)
        if chosen.verb == "list":
            return _list(kept, chosen.json)
        job = _named(kept, chosen.id)
        return _show(kept, job, chosen.json) if chosen.verb == "show" else _end(place, job, chosen)


def _create(place: LabAddress, chosen: argparse.Namespace) -> int:
    answer = ask_of_file(
        place,
        Path(chosen.task),
        do="create_job",
        by=account(),
        vary=_vary(chosen.vary or ()),
        every=chosen.every or "",
        title=chosen.title or "",
        seed=chosen.seed,
        key=chosen.key or "",
    )
    job_id = answer["job_id"]
    job = kept_tasks(place).jobs[job_id]
    if chosen.json:
        say(json.dumps({"job_id": job_id, "task_ids": job.task_ids}))
    else:
        scheduled = Text("job.scheduled", job_id=job_id, next=_next(job))
        batch = Text("job.created", job_id=job_id, count=len(job.task_ids))
        say(scheduled if job.every else batch)
    return EXIT_COMPLETED


def _vary(given: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values by their paths, each as JSON has it, or else as a word."""
    found: dict[str, list[Any]] = {}
    for each in given:
        path, equals, values = each.partition("=")
        if not path or not equals or path in found:
            raise BadUse(Text("job.vary", given=each))
        found[path] = [_value(one) for one in values.split(",")]
    return found


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _named(kept: Tasks, name: str) -> Job:
    """Return the one job whose id begins so."""
    found = [each for each in kept.jobs.values() if each.job_id.startswith(name)]
    if len(found) != 1:
        raise BadUse(Text("job.unknown", job_id=name, count=len(found)))
    return found[0]


def _list(kept: Tasks, as_json: bool) -> int:
    if as_json:
        say(json.dumps([_body(kept, each) for each in kept.jobs.values()], ensure_ascii=False))
        return EXIT_COMPLETED
    for line in aligned([_row(kept, each) for each in kept.jobs.values()]):
        say(line)
    if not kept.jobs:
        say(Text("job.none"))
    return EXIT_COMPLETED


def _row(kept: Tasks, job: Job) -> tuple[str, ...]:
    ended = [kept.by_id[each].status for each in job.task_ids]
    done, failed = ended.count("completed"), ended.count("failed") + ended.count("timed_out")
    counts = Text("job.counts", count=len(ended), done=done, failed=failed, missed=job.missed)
    head = (job.job_id[:ID_CHARACTERS], standing(kept, job), job.every or "-", job.title)
    return (*head, counts, _next(job))


def _next(job: Job) -> str:
    """Return the next due time of a schedule, or ``""``."""
    if not job.every or job.ended_at_s is not None:
        return ""
    return utc(schedule_of(job.every, job.created_at_s).after(job.due_s))


def _body(kept: Tasks, job: Job) -> dict[str, Any]:
    """Return a job as an object; what it does not have is left out."""
    miss, every = job.last_miss, job.every
    body = {
        "jobId": job.job_id,
        "title": job.title,
        "status": standing(kept, job),
        "createdBy": job.created_by,
        "createdAt": utc(job.created_at_s),
        "endedAt": None if job.ended_at_s is None else utc(job.ended_at_s),
        "every": every,
        "nextDue": _next(job),
        "ticks": job.ticks if every else None,
        "owed": [utc(int(each)) if every else each for each in job.owed],
        "missedRuns": job.missed,
        "lastMissed": miss and {"reason": miss.reason, "count": miss.count} | _span(job),
        "vary": [dict(each) for each in job.runs],
        "tasks": [
            {"taskId": each, "title": kept.by_id[each].title, "status": kept.by_id[each].status}
            for each in job.task_ids
        ],
    }
    return {name: value for name, value in body.items() if value not in (None, "")}


def _span(job: Job) -> dict[str, str]:
    miss = job.last_miss
    if miss is None or not miss.first_s:
        return {}
    return {"first": utc(miss.first_s), "last": utc(miss.last_s)}


def _show(kept: Tasks, job: Job, as_json: bool) -> int:
    body = _body(kept, job)
    if as_json:
        say(json.dumps(body, ensure_ascii=False))
        return EXIT_COMPLETED
    for line in task_lines(body):
        say(line)
    return EXIT_COMPLETED


def _end(place: LabAddress, job: Job, chosen: argparse.Namespace) -> int:
    ask_house(place, do="end_job", by=account(), job_id=job.job_id, reason=chosen.reason)
    if chosen.json:
        say(json.dumps({"job_id": job.job_id}))
    else:
        say(Text("job.ended_now", job_id=job.job_id))
    return EXIT_COMPLETED
