"""``labharness submit``, ``tasks`` and ``jobs``: what a lab's house keeps, and makes tasks of.

A command that only reads looks into the journal of the house, which need not be up. A command that
changes a task asks the house.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.clock import Chance, pause, wall_clock_utc
from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_ABORTED, EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.owner import answer_of
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    aligned,
    at_home,
    chosen_lab,
    complain,
    say,
    say_either,
    say_json,
)
from labharness.faces.cli.values import json_or_word
from labharness.instruments.link.conversation import NoOwner, house_door
from labharness.lab.config.account import account
from labharness.lab.config.address import TEXT_BYTES_MAX, LabAddress
from labharness.lab.house.start import state_of
from labharness.work.task.events import events_of
from labharness.work.task.jobs import schedule_of, standing
from labharness.work.task.kept import HOUSE_JOURNAL, read_history, read_tasks
from labharness.work.task.record import Job, MissedRuns, Task, Tasks
from labharness.work.task.snapshot import graph_of, last_error, snapshot, task_of, unfollowed, utc
from labharness.work.task.states import FOR_PERSONS, TERMINAL

if TYPE_CHECKING:
    from labharness.protocols.hcp.codec import HcpMessage

LOOK_S = 0.5  # between two looks at a task that is waited for
ID_CHARACTERS = 8  # of an id in a list; any unique beginning names a task
ENDS = {"completed": EXIT_COMPLETED, "cancelled": EXIT_ABORTED}


def kept_tasks(place: LabAddress) -> Tasks:
    """Return what the journal of a lab's house holds, whether it is up or not."""
    return read_tasks(_journal(place))


def _shown(place: LabAddress) -> Tasks:
    """Return the tasks for a reader: what was at work is stale where no house follows it."""
    kept = kept_tasks(place)
    return kept if state_of(house_door, place.state_dir) else unfollowed(kept)


def _journal(place: LabAddress) -> Path:
    path = place.state_dir / HOUSE_JOURNAL
    if not path.exists():
        raise CommandFailed("house.never", path=str(path))
    return path


def _named(kept: Tasks, name: str) -> Task:
    """Return the one task whose id begins so."""
    found = [each for each in kept.by_id.values() if each.task_id.startswith(name)]
    if not found:
        raise BadUse("house.unknown_task", task_id=name)
    if len(found) > 1:
        raise BadUse("house.ambiguous", task_id=name, count=len(found))
    return found[0]


# ---- reading


def tasks_list(chosen: argparse.Namespace) -> None:
    """Print one line for each task, or one snapshot."""
    with at_home(chosen) as place:
        kept = _shown(place)
        body = snapshot(kept, place.lab_id, wall_clock_utc().timestamp())
        rows = [_row(each) for each in kept.by_id.values()]
        say_either(chosen.json, body, aligned(rows) if rows else [Text("house.no_tasks")])


def _row(task: Task) -> tuple[str, ...]:
    at = utc(round(task.created_at_s))
    doing = _doing(task) if task.status not in TERMINAL else _ended(task)
    who = (task.title, task.requested_by)
    return (task.task_id[:ID_CHARACTERS], task.status, task.priority, *who, at, doing)


def _ended(task: Task) -> str:
    """Return the code and the reason of a task that has failed; ``""`` of any other end."""
    error = last_error(task) or {}
    return several(*error.values())


def _doing(task: Task) -> str:
    """Return what a task does, or what it asks of a person."""
    step, reason = task.progress.current_step, task.status_reason
    return reason if task.status in FOR_PERSONS else step or reason


def tasks_show(chosen: argparse.Namespace) -> None:
    """Print one task with its attempts."""
    with at_home(chosen) as place:
        kept = _shown(place)
        body = task_of(kept, _named(kept, chosen.id))
        say_either(chosen.json, body, _lines(body))


def _lines(body: dict[str, Any], before: str = "") -> Iterator[str]:
    """Return an object as indented lines, a value each; empty ones are left out."""
    for name, value in body.items():
        if isinstance(value, dict):
            yield from _lines(value, f"{before}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, each in enumerate(value, 1):
                yield from _lines(each, f"{before}{name} {number}.")
        elif value not in ([], ""):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{before}{name}: {shown}"


def tasks_graph(chosen: argparse.Namespace) -> None:
    """Print the edges between tasks."""
    with at_home(chosen) as place:
        kept = kept_tasks(place)
        edges = [each for each in kept.edges if each.status == "active"]
        rows = [(each.source_id[:ID_CHARACTERS], each.kind, each.target_id) for each in edges]
        say_either(chosen.json, graph_of(kept), aligned(rows))


def tasks_events(chosen: argparse.Namespace) -> None:
    """Print each event of each task, an object a line."""
    with at_home(chosen) as place:
        for fact_id, fact, before, after in read_history(_journal(place)):
            for event in events_of(fact, before, after, fact_id):
                say_json(event)


def tasks_result(chosen: argparse.Namespace) -> int:
    """Print the answer of a task; return the exit code of its end."""
    from labharness.faces.cli.records import ANSWER, results_in

    with at_home(chosen) as place:
        task = _named(kept_tasks(place), chosen.id)
        message = answer_of_task(place, task)
        if message is None:
            none = Text("house.no_answer", task_id=task.task_id, status=task.status)
            raise CommandFailed(several(none, _ended(task)))
        if task.attempts:
            results_in(_folder(place, task), ANSWER)
        return _answered(place, task, message, chosen.json)


def _answered(place: LabAddress, task: Task, message: "HcpMessage | None", as_json: bool) -> int:
    """Print an answer; a task that was rejected on receipt has no run, and so no folder."""
    from labharness.faces.cli.answer_said import print_files, report_run, say_answer

    if message is not None:
        folder = _folder(place, task) if task.attempts and not as_json else None
        if folder is not None:
            report_run(folder)
        say_answer(message, task.task_family, as_json)
        if folder is not None:
            print_files(folder)
    rejected = task.status == "failed" and task.started_at_s is None
    return EXIT_REJECTED if rejected else ENDS.get(task.status, EXIT_FAILED)


def answer_of_task(place: LabAddress, task: Task) -> "HcpMessage | None":
    """Return the terminal message of a task's last attempt; ``None`` before there is one."""
    from labharness.journal.encryption import kept
    from labharness.lab.house.message_store import MessageStore
    from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, decode
    from labharness.work.desk.folder import ANSWER_NAME

    if not task.attempts:
        with MessageStore(place.state_dir) as messages:
            return messages.answer(task.task_id)
    path = _folder(place, task) / ANSWER_NAME
    if not path.exists():
        return None
    return decode(kept(path, MESSAGE_BYTES_MAX))


def _folder(place: LabAddress, task: Task) -> Path:
    from labharness.lab.house.orders import runs_of

    runs = runs_of(place.state_dir)
    return (runs or Path("runs")) / task.attempts[-1].run_id


def tasks_salvage(chosen: argparse.Namespace) -> None:
    """Keep what is valid of a damaged journal; the file as it was stays beside it."""
    from labharness.lab.house.house_process import salvage_house

    with at_home(chosen) as place:
        path = str(_journal(place))
        found = salvage_house(chosen_lab(chosen.lab))
        if found is None:
            say(Text("house.whole", path=path))
            return
        lost = "?" if found.rows_lost is None else found.rows_lost
        say(Text("house.salvaged", path=path, good=found.head.seq, rows=lost, why=found.reason))


# ---- asking the house


def submit(chosen: argparse.Namespace) -> int:
    """Submit a task to the house; with ``--wait`` stay until its end."""
    with at_home(chosen) as place:
        after = [_named(kept_tasks(place), each).task_id for each in chosen.after or ()]
        answer = submit_to_house(place, Path(chosen.task), chosen.seed, chosen.key, after)
        task_id, fresh, rejected = (answer[each] for each in ("task_id", "fresh", "rejected"))
        if chosen.json and not chosen.wait:
            say_json({"task_id": task_id, "fresh": fresh, "rejected": rejected})
            return EXIT_REJECTED if rejected else EXIT_COMPLETED
        if not chosen.json:
            say(Text("house.submitted" if fresh else "house.known", task_id=task_id))
        return follow(place, task_id, chosen.json) if chosen.wait or rejected else EXIT_COMPLETED


def submit_to_house(
    place: LabAddress,
    path: Path,
    seed: int | None,
    key: str | None = None,
    after: Sequence[str] = (),
) -> dict[str, Any]:
    """Submit the task of a file; return the house's answer: the task, and whether it is new.

    The message gets a new id, which is its key, so that one file may be submitted twice. The house
    checks it; where it does not take it, what is wrong is said in the words of the file.
    """
    asked = {"message_id": key or Chance(None).uuid4(), "seed": seed, "after": list(after)}
    return ask_of_file(place, path, do="submit", **asked)


def ask_of_file(place: LabAddress, path: Path, **asked: object) -> dict[str, Any]:
    """Ask the house about the message of a file, and return its answer; raises as `ask_house`.

    Raises:
        NotHcp: The file does not hold a ``task_submit``.
        BadPayload: Its payload cannot be read.
    """
    try:
        with open_named(path) as file:
            return ask_house(place, message=file.read(TEXT_BYTES_MAX).decode(), **asked)
    except (OSError, ValueError, NoOwner, CommandFailed):
        from labharness.faces.cli.submission import read_submit

        read_submit(path)  # raises for all that is wrong in the file
        raise


def follow(place: LabAddress, task_id: str, as_json: bool) -> int:
    """Show a task until its end, then its answer; return the exit code of its end."""
    shown, short = "", task_id[:ID_CHARACTERS]
    while True:
        task = kept_tasks(place).by_id[task_id]
        line = Text("house.done", task_id=short, status=task.status)
        if state := _doing(task):
            line = Text("house.done_why", task_id=short, status=task.status, why=state)
        if line != shown and not as_json:
            complain(line)
            shown = line
        if task.status in TERMINAL:
            return _answered(place, task, answer_of_task(place, task), as_json)
        pause(LOOK_S)


def tasks(chosen: argparse.Namespace) -> None:
    """Send the house a command on one task."""
    with at_home(chosen) as place:
        kept = kept_tasks(place)
        task_id = _named(kept, chosen.id).task_id
        asked: dict[str, Any] = {"by": account(), "task_id": task_id}
        if chosen.verb == "confirm":
            answer = ask_house(place, do="confirm", step=chosen.step, name=chosen.name, **asked)
            say(Text("house.confirmed", step=answer["said"]))
            return
        if chosen.verb in ("link", "unlink"):
            near = [each for each in kept.by_id if each.startswith(chosen.target)]
            target = near[0] if len(near) == 1 else chosen.target
            asked |= {"kind": chosen.kind, "target_id": target}
        elif chosen.verb == "update":
            from labharness.lab.house.spoken import OF_PEOPLE

            given = {name: getattr(chosen, name) for name in OF_PEOPLE}
            asked |= {name: value for name, value in given.items() if value is not None}
        else:
            asked["reason"] = chosen.reason
            asked["resume"] = chosen.verb == "retry" and chosen.resume
        ask_house(place, do=chosen.verb, **asked)
        say(Text("house.asked", what=chosen.verb, task_id=task_id))


def ask_house(place: LabAddress, **asked: object) -> dict[str, Any]:
    """Ask the house; return its answer.

    Raises:
        NoOwner: No house is up.
        CommandFailed: It refuses.
    """
    return answer_of(house_door(place.state_dir), **asked)


# ---- batches and schedules


def jobs_create(chosen: argparse.Namespace) -> None:
    """Have the house make a batch or a schedule of a task."""
    with at_home(chosen) as place:
        path, vary = Path(chosen.task), _vary(chosen.vary or ())
        asked = {name: getattr(chosen, name) or "" for name in ("every", "title", "key")}
        asked |= {"by": account(), "vary": vary, "seed": chosen.seed}
        answer = ask_of_file(place, path, do="create_job", **asked)
        job_id = answer["job_id"]
        job = kept_tasks(place).jobs[job_id]
        told = Text("job.created", job_id=job_id, count=len(job.task_ids))
        if job.every:
            told = Text("job.scheduled", job_id=job_id, next=_next(job))
        say_either(chosen.json, {"job_id": job_id, "task_ids": job.task_ids}, [told])


def _vary(given: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values by their paths, each as JSON has it, or else as a word."""
    found: dict[str, list[Any]] = {}
    for each in given:
        path, equals, values = each.partition("=")
        if not path or not equals or path in found:
            raise BadUse("job.vary", given=each)
        found[path] = [json_or_word(one) for one in values.split(",")]
    return found


def jobs_list(chosen: argparse.Namespace) -> None:
    """Print one line for each job, or an array."""
    with at_home(chosen) as place:
        kept = kept_tasks(place)
        body = [_body(kept, each) for each in kept.jobs.values()]
        rows = [_job_row(kept, each) for each in kept.jobs.values()]
        say_either(chosen.json, body, aligned(rows) if rows else [Text("job.none")])


def _job_row(kept: Tasks, job: Job) -> tuple[str, ...]:
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
        "lastMissed": miss and _missed(miss),
        "vary": [dict(each) for each in job.runs],
        "tasks": [
            {"taskId": each, "title": kept.by_id[each].title, "status": kept.by_id[each].status}
            for each in job.task_ids
        ],
    }
    return {name: value for name, value in body.items() if value not in (None, "")}


def _missed(miss: MissedRuns) -> dict[str, Any]:
    span = {"first": utc(miss.first_s), "last": utc(miss.last_s)} if miss.first_s else {}
    return {"reason": miss.reason, "count": miss.count} | span


def jobs_show(chosen: argparse.Namespace) -> None:
    """Print one job with its tasks."""
    with at_home(chosen) as place:
        kept = kept_tasks(place)
        body = _body(kept, _job(kept, chosen.id))
        say_either(chosen.json, body, _lines(body))


def jobs_end(chosen: argparse.Namespace) -> None:
    """End a job: no task is made of it any more."""
    with at_home(chosen) as place:
        job_id = _job(kept_tasks(place), chosen.id).job_id
        ask_house(place, do="end_job", by=account(), job_id=job_id, reason=chosen.reason)
        say_either(chosen.json, {"job_id": job_id}, [Text("job.ended_now", job_id=job_id)])


def _job(kept: Tasks, name: str) -> Job:
    """Return the one job whose id begins so."""
    found = [each for each in kept.jobs.values() if each.job_id.startswith(name)]
    if len(found) != 1:
        raise BadUse("job.unknown", job_id=name, count=len(found))
    return found[0]
