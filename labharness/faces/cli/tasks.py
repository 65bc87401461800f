"""``labharness submit`` and ``labharness tasks``: the tasks that a lab's house keeps.

A command that only reads looks into the journal of the house, which need not be up. A command that
changes a task asks the house.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, pause, wall_clock_utc
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_ABORTED, EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.answer_said import print_answer, print_message, report_run
from labharness.faces.cli.records import ANSWER, results_in
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    aligned,
    chosen_lab,
    complain,
    looking,
    say,
)
from labharness.faces.cli.submission import read_submit
from labharness.journal.encryption import kept
from labharness.lab import LabPlan
from labharness.lab.config.account import account
from labharness.lab.house.house_process import (
    HOUSE_JOURNAL,
    house_door,
    salvage_house,
)
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import runs_of
from labharness.lab.house.spoken import OF_PEOPLE
from labharness.lab.house.start import state_of
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage, decode, encode
from labharness.work.desk.folder import ANSWER_NAME
from labharness.work.task.events import events_of
from labharness.work.task.house import read_history, read_tasks
from labharness.work.task.record import Task, Tasks
from labharness.work.task.snapshot import graph_of, last_error, snapshot, task_of, unfollowed, utc
from labharness.work.task.states import FOR_PERSONS, TERMINAL

LOOK_S = 0.5  # between two looks at a task that is waited for
ID_CHARACTERS = 8  # of an id in a list; any unique beginning names a task
ENDS = {"completed": EXIT_COMPLETED, "cancelled": EXIT_ABORTED}


def tasks(chosen: argparse.Namespace) -> int:
    """Carry out one command; return its exit code."""
    plan = chosen_lab(chosen.lab)
    with looking(plan.state_dir):
        if chosen.command == "submit":
            return _submit(plan, chosen)
        read = {"list": _list, "graph": _graph, "events": _events, "show": _show}
        if chosen.verb in read:
            return read[chosen.verb](plan, chosen)
        if chosen.verb == "salvage":
            return _salvage(plan)
        task = _named(kept_tasks(plan), chosen.id)
        if chosen.verb == "result":
            return _result(plan, task, chosen.json)
        return _give(plan, task, chosen)


def kept_tasks(plan: LabPlan) -> Tasks:
    """Return what the journal of a lab's house holds, whether it is up or not."""
    return read_tasks(_journal(plan))


def _shown(plan: LabPlan) -> Tasks:
    """Return the tasks for a reader: what was at work is stale where no house follows it."""
    kept = kept_tasks(plan)
    return kept if state_of(house_door, plan.state_dir) else unfollowed(kept)


def _journal(plan: LabPlan) -> Path:
    path = plan.state_dir / HOUSE_JOURNAL
    if not path.exists():
        raise CommandFailed(Text("house.never", path=str(path)))
    return path


def _named(kept: Tasks, name: str) -> Task:
    """Return the one task whose id begins so."""
    found = [each for each in kept.by_id.values() if each.task_id.startswith(name)]
    if not found:
        raise BadUse(Text("house.unknown_task", task_id=name))
    if len(found) > 1:
        raise BadUse(Text("house.ambiguous", task_id=name, count=len(found)))
    return found[0]


# ---- reading


def _list(plan: LabPlan, chosen: argparse.Namespace) -> int:
    kept = _shown(plan)
    if chosen.json:
        now_s = wall_clock_utc().timestamp()
        say(json.dumps(snapshot(kept, plan.file.lab.id, now_s), ensure_ascii=False))
        return EXIT_COMPLETED
    for line in aligned([_row(plan, each) for each in kept.by_id.values()]):
        say(line)
    if not kept.by_id:
        say(Text("house.no_tasks"))
    return EXIT_COMPLETED


def _row(plan: LabPlan, task: Task) -> tuple[str, ...]:
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


def _show(plan: LabPlan, chosen: argparse.Namespace) -> int:
    kept = _shown(plan)
    task = _named(kept, chosen.id)
    body = task_of(kept, task)
    if chosen.json:
        say(json.dumps(body, ensure_ascii=False))
        return EXIT_COMPLETED
    for line in task_lines(body):
        say(line)
    return EXIT_COMPLETED


def task_lines(body: dict[str, Any], before: str = "") -> Iterator[str]:
    """Return an object as indented lines, a value each; empty ones are left out."""
    for name, value in body.items():
        if isinstance(value, dict):
            yield from task_lines(value, f"{before}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, each in enumerate(value, 1):
                yield from task_lines(each, f"{before}{name} {number}.")
        elif value not in ([], ""):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{before}{name}: {shown}"


def _graph(plan: LabPlan, chosen: argparse.Namespace) -> int:
    kept = kept_tasks(plan)
    if chosen.json:
        say(json.dumps(graph_of(kept), ensure_ascii=False))
        return EXIT_COMPLETED
    edges = [each for each in kept.edges if each.status == "active"]
    cut = ID_CHARACTERS
    for line in aligned([(e.source_id[:cut], e.kind, e.target_id) for e in edges]):
        say(line)
    return EXIT_COMPLETED


def _events(plan: LabPlan, chosen: argparse.Namespace) -> int:
    for fact_id, fact, before, after in read_history(_journal(plan)):
        for event in events_of(fact, before, after, fact_id):
            say(json.dumps(event, ensure_ascii=False))
    return EXIT_COMPLETED


def _result(plan: LabPlan, task: Task, as_json: bool) -> int:
    message = answer_of_task(plan, task)
    if message is None:
        none = Text("house.no_answer", task_id=task.task_id, status=task.status)
        raise CommandFailed(several(none, _ended(task)))
    if task.attempts:
        results_in(_folder(plan, task), ANSWER)
    if as_json:
        say(encode(message).decode())
    else:
        _print(plan, task, message)
    return _exit_of(task)


def _print(plan: LabPlan, task: Task, message: HcpMessage) -> None:
    """Print an answer; a task that was rejected on receipt has no run, and so no folder."""
    if not task.attempts:
        print_message(message, task.task_family)
        return
    folder = _folder(plan, task)
    report_run(folder)
    print_answer(message, folder, task.task_family)


def answer_of_task(plan: LabPlan, task: Task) -> HcpMessage | None:
    """Return the terminal message of a task's last attempt; ``None`` before there is one."""
    if not task.attempts:
        with MessageStore(plan.state_dir) as messages:
            return messages.answer(task.task_id)
    path = _folder(plan, task) / ANSWER_NAME
    if not path.exists():
        return None
    return decode(kept(path, MESSAGE_BYTES_MAX))


def _folder(plan: LabPlan, task: Task) -> Path:
    runs = runs_of(plan.state_dir)
    return (runs or Path("runs")) / task.attempts[-1].run_id


def _salvage(plan: LabPlan) -> int:
    """Keep what is valid of a damaged journal; the file as it was stays beside it."""
    path = str(_journal(plan))
    found = salvage_house(plan)
    if found is None:
        say(Text("house.whole", path=path))
        return EXIT_COMPLETED
    lost = "?" if found.rows_lost is None else found.rows_lost
    say(Text("house.salvaged", path=path, good=found.head.seq, rows=lost, why=found.reason))
    return EXIT_COMPLETED


# ---- asking the house


def _submit(plan: LabPlan, chosen: argparse.Namespace) -> int:
    after = [_named(kept_tasks(plan), each).task_id for each in chosen.after or ()]
    asked = {"seed": chosen.seed, "after": after}
    answer = submit_to_house(plan, Path(chosen.task), chosen.key, asked)
    task_id, fresh, rejected = (answer[each] for each in ("task_id", "fresh", "rejected"))
    if chosen.json and not chosen.wait:
        say(json.dumps({"task_id": task_id, "fresh": fresh, "rejected": rejected}))
        return EXIT_REJECTED if rejected else EXIT_COMPLETED
    if not chosen.json:
        say(Text("house.submitted" if fresh else "house.known", task_id=task_id))
    return follow(plan, task_id, chosen.json) if chosen.wait or rejected else EXIT_COMPLETED


def submit_to_house(
    plan: LabPlan, path: Path, key: str | None, asked: dict[str, Any]
) -> dict[str, Any]:
    """Submit the task of a file; return the house's answer: the task, and whether it is new.

    The message gets a new id, which is its key, so that one file may be submitted twice.
    """
    message, _ = read_submit(path)
    message = replace(message, message_id=key or Chance(None).uuid4())
    return ask_house(plan, do="submit", message=encode(message).decode(), **asked)


def follow(plan: LabPlan, task_id: str, as_json: bool) -> int:
    """Show a task until its end, then its answer; return the exit code of its end."""
    shown = ""
    while True:
        task = kept_tasks(plan).by_id[task_id]
        state = _doing(task)
        line = Text(
            "house.done_why", task_id=task_id[:ID_CHARACTERS], status=task.status, why=state
        )
        if not state:
            line = Text("house.done", task_id=task_id[:ID_CHARACTERS], status=task.status)
        if line != shown and not as_json:
            complain(line)
            shown = line
        if task.status in TERMINAL:
            break
        pause(LOOK_S)
    message = answer_of_task(plan, task)
    if message is not None and as_json:
        say(encode(message).decode())
    elif message is not None:
        _print(plan, task, message)
    return _exit_of(task)


def _exit_of(task: Task) -> int:
    rejected = task.status == "failed" and task.started_at_s is None
    return EXIT_REJECTED if rejected else ENDS.get(task.status, EXIT_FAILED)


def _give(plan: LabPlan, task: Task, chosen: argparse.Namespace) -> int:
    asked: dict[str, Any] = {"by": account(), "task_id": task.task_id}
    if chosen.verb == "confirm":
        answer = ask_house(plan, do="confirm", step=chosen.step, name=chosen.name, **asked)
        say(Text("house.confirmed", step=answer["said"]))
        return EXIT_COMPLETED
    if chosen.verb in ("link", "unlink"):
        target = chosen.target
        near = [each for each in kept_tasks(plan).by_id if each.startswith(target)]
        asked |= {"kind": chosen.kind, "target_id": near[0] if len(near) == 1 else target}
    elif chosen.verb == "update":
        given = {name: getattr(chosen, name) for name in OF_PEOPLE}
        asked |= {name: value for name, value in given.items() if value is not None}
    else:
        asked["reason"] = chosen.reason
        asked["resume"] = chosen.verb == "retry" and chosen.resume
    ask_house(plan, do=chosen.verb, **asked)
    say(Text("house.asked", what=chosen.verb, task_id=task.task_id))
    return EXIT_COMPLETED


def ask_house(plan: LabPlan, **asked: object) -> dict[str, Any]:
    """Ask the house; return its answer.

    Raises:
        NoOwner: No house is up.
        CommandFailed: It refuses.
    """
    with house_door(plan.state_dir) as door:
        answer = door.ask(**asked)
    if not answer["ok"]:
        raise CommandFailed(answer["error"])
    return answer
