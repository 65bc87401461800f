"""``labharness submit`` and ``labharness tasks``: the tasks that a lab's house keeps.

A command that only reads looks into the journal of the house, which need not be up. A command that
changes a task asks the house.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.clock import Chance, pause, wall_clock_utc
from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_ABORTED, EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    aligned,
    chosen_address,
    chosen_lab,
    complain,
    looking,
    say,
)
from labharness.instruments.link.conversation import NoOwner, house_door
from labharness.lab.config.account import account
from labharness.lab.config.address import TEXT_BYTES_MAX, LabAddress
from labharness.lab.house.start import state_of
from labharness.work.task.events import events_of
from labharness.work.task.kept import HOUSE_JOURNAL, read_history, read_tasks
from labharness.work.task.record import Task, Tasks
from labharness.work.task.snapshot import graph_of, last_error, snapshot, task_of, unfollowed, utc
from labharness.work.task.states import FOR_PERSONS, TERMINAL

if TYPE_CHECKING:
    from labharness.protocols.hcp.codec import HcpMessage

LOOK_S = 0.5  # between two looks at a task that is waited for
ID_CHARACTERS = 8  # of an id in a list; any unique beginning names a task
ENDS = {"completed": EXIT_COMPLETED, "cancelled": EXIT_ABORTED}


def tasks(chosen: argparse.Namespace) -> int:
    """Carry out one command; return its exit code."""
    place = chosen_address(chosen.lab)
    with looking(place.state_dir):
        if chosen.command == "submit":
            return _submit(place, chosen)
        read = {"list": _list, "graph": _graph, "events": _events, "show": _show}
        if chosen.verb in read:
            return read[chosen.verb](place, chosen)
        if chosen.verb == "salvage":
            return _salvage(place, chosen)
        task = _named(kept_tasks(place), chosen.id)
        if chosen.verb == "result":
            return _result(place, task, chosen.json)
        return _give(place, task, chosen)


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


def _list(place: LabAddress, chosen: argparse.Namespace) -> int:
    kept = _shown(place)
    if chosen.json:
        now_s = wall_clock_utc().timestamp()
        say(json.dumps(snapshot(kept, place.lab_id, now_s), ensure_ascii=False))
        return EXIT_COMPLETED
    for line in aligned([_row(place, each) for each in kept.by_id.values()]):
        say(line)
    if not kept.by_id:
        say(Text("house.no_tasks"))
    return EXIT_COMPLETED


def _row(place: LabAddress, task: Task) -> tuple[str, ...]:
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


def _show(place: LabAddress, chosen: argparse.Namespace) -> int:
    kept = _shown(place)
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


def _graph(place: LabAddress, chosen: argparse.Namespace) -> int:
    kept = kept_tasks(place)
    if chosen.json:
        say(json.dumps(graph_of(kept), ensure_ascii=False))
        return EXIT_COMPLETED
    edges = [each for each in kept.edges if each.status == "active"]
    cut = ID_CHARACTERS
    for line in aligned([(e.source_id[:cut], e.kind, e.target_id) for e in edges]):
        say(line)
    return EXIT_COMPLETED


def _events(place: LabAddress, chosen: argparse.Namespace) -> int:
    for fact_id, fact, before, after in read_history(_journal(place)):
        for event in events_of(fact, before, after, fact_id):
            say(json.dumps(event, ensure_ascii=False))
    return EXIT_COMPLETED


def _result(place: LabAddress, task: Task, as_json: bool) -> int:
    from labharness.faces.cli.records import ANSWER, results_in
    from labharness.protocols.hcp.codec import encode

    message = answer_of_task(place, task)
    if message is None:
        none = Text("house.no_answer", task_id=task.task_id, status=task.status)
        raise CommandFailed(several(none, _ended(task)))
    if task.attempts:
        results_in(_folder(place, task), ANSWER)
    if as_json:
        say(encode(message).decode())
    else:
        _print(place, task, message)
    return _exit_of(task)


def _print(place: LabAddress, task: Task, message: "HcpMessage") -> None:
    """Print an answer; a task that was rejected on receipt has no run, and so no folder."""
    from labharness.faces.cli.answer_said import print_answer, print_message, report_run

    if not task.attempts:
        print_message(message, task.task_family)
        return
    folder = _folder(place, task)
    report_run(folder)
    print_answer(message, folder, task.task_family)


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


def _salvage(place: LabAddress, chosen: argparse.Namespace) -> int:
    """Keep what is valid of a damaged journal; the file as it was stays beside it."""
    from labharness.lab.house.house_process import salvage_house

    path = str(_journal(place))
    found = salvage_house(chosen_lab(chosen.lab))
    if found is None:
        say(Text("house.whole", path=path))
        return EXIT_COMPLETED
    lost = "?" if found.rows_lost is None else found.rows_lost
    say(Text("house.salvaged", path=path, good=found.head.seq, rows=lost, why=found.reason))
    return EXIT_COMPLETED


# ---- asking the house


def _submit(place: LabAddress, chosen: argparse.Namespace) -> int:
    after = [_named(kept_tasks(place), each).task_id for each in chosen.after or ()]
    asked = {"seed": chosen.seed, "after": after}
    answer = submit_to_house(place, Path(chosen.task), chosen.key, asked)
    task_id, fresh, rejected = (answer[each] for each in ("task_id", "fresh", "rejected"))
    if chosen.json and not chosen.wait:
        say(json.dumps({"task_id": task_id, "fresh": fresh, "rejected": rejected}))
        return EXIT_REJECTED if rejected else EXIT_COMPLETED
    if not chosen.json:
        say(Text("house.submitted" if fresh else "house.known", task_id=task_id))
    return follow(place, task_id, chosen.json) if chosen.wait or rejected else EXIT_COMPLETED


def submit_to_house(
    place: LabAddress, path: Path, key: str | None, asked: dict[str, Any]
) -> dict[str, Any]:
    """Submit the task of a file; return the house's answer: the task, and whether it is new.

    The message gets a new id, which is its key, so that one file may be submitted twice. The house
    checks it; where it does not take it, what is wrong is said in the words of the file.
    """
    asked |= {"message_id": key or Chance(None).uuid4()}
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
    shown = ""
    while True:
        task = kept_tasks(place).by_id[task_id]
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
    from labharness.protocols.hcp.codec import encode

    message = answer_of_task(place, task)
    if message is not None and as_json:
        say(encode(message).decode())
    elif message is not None:
        _print(place, task, message)
    return _exit_of(task)


def _exit_of(task: Task) -> int:
    rejected = task.status == "failed" and task.started_at_s is None
    return EXIT_REJECTED if rejected else ENDS.get(task.status, EXIT_FAILED)


def _give(place: LabAddress, task: Task, chosen: argparse.Namespace) -> int:
    asked: dict[str, Any] = {"by": account(), "task_id": task.task_id}
    if chosen.verb == "confirm":
        answer = ask_house(place, do="confirm", step=chosen.step, name=chosen.name, **asked)
        say(Text("house.confirmed", step=answer["said"]))
        return EXIT_COMPLETED
    if chosen.verb in ("link", "unlink"):
        target = chosen.target
        near = [each for each in kept_tasks(place).by_id if each.startswith(target)]
        asked |= {"kind": chosen.kind, "target_id": near[0] if len(near) == 1 else target}
    elif chosen.verb == "update":
        from labharness.lab.house.spoken import OF_PEOPLE

        given = {name: getattr(chosen, name) for name in OF_PEOPLE}
        asked |= {name: value for name, value in given.items() if value is not None}
    else:
        asked["reason"] = chosen.reason
        asked["resume"] = chosen.verb == "retry" and chosen.resume
    ask_house(place, do=chosen.verb, **asked)
    say(Text("house.asked", what=chosen.verb, task_id=task.task_id))
    return EXIT_COMPLETED


def ask_house(place: LabAddress, **asked: object) -> dict[str, Any]:
    """Ask the house; return its answer.

    Raises:
        NoOwner: No house is up.
        CommandFailed: It refuses.
    """
    with house_door(place.state_dir) as door:
        answer = door.ask(**asked)
    if not answer["ok"]:
        raise CommandFailed(answer["error"])
    return answer
