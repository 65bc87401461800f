"""A walk through a house with its line and its desk, and its transcript: what came of each event.

As `task_walk`, for the house: a line has an event and what it said, and a digest of the facts that
the house wrote, the orders and words that its workers got, what people were told, and the messages
that it keeps for callers. To write it anew, and read which lines have changed:

    python tests/house_walk.py
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from house_kept import house_of
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalDamaged
from labharness.journal.chain import Record
from labharness.journal.encryption import KeyMissing
from labharness.journal.reading import read_after
from labharness.lab.house.access import abort_session, deliver, warn_caller
from labharness.lab.house.intake import ReceivedSubmission, Submitted
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import OwnerStatus, RunOrder
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage, decode, encode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.task.commands import (
    ArchiveTask,
    CancelTask,
    PauseTask,
    ResumeTask,
    RetryTask,
    TaskActor,
    UpdateTask,
)
from labharness.work.task.house import HouseJournal
from labharness.work.task.jobs import EndJob
from labharness.work.task.queue import PRIORITIES, Need
from labharness.work.task.record import RetryPolicy, Task
from line_world import AwayOwner, LineWorld, message, script
from task_walk import line

TRANSCRIPT = Path(__file__).parent / "data" / "house_walk.txt"
EVENTS, SEEDS = 500, (7, 8)
BEGIN_S = 1_790_000_000.0
KINDS: dict[str, int] = {
    "submit": 14,
    "together": 4,
    "job": 3,
    "command": 7,
    "retry": 10,
    "confirm": 3,
    "abort": 6,
    "deliver": 4,
    "turn": 45,
    "writes": 7,
    "breaks": 4,
    "mends": 7,
    "opens": 2,
}
CHECKPOINT = ("event", {"event_type": "checkpoint_created", "data": {"checkpoint_id": "c1"}})
ASKS = {"level": "info", "message": "load it", "details": {"required_action": "confirm:load"}}
WRITES = (CHECKPOINT, ("event", {"event_type": "log", "data": ASKS}))


class World(LineWorld):
    """A line whose journals may be unreadable, and which says how a run was left."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.speed = 1.0
        self.unreadable: dict[str, Exception] = {}
        self.heard: list[Any] = []

    def records(self, run_id: str, after: int) -> list[Record]:
        if run_id in self.unreadable:
            raise self.unreadable[run_id]
        return super().records(run_id, after)

    def left(self, run_id: str) -> tuple[str, str]:
        return ("guard_died", "its guard is gone") if run_id.endswith("3") else ("", "")

    def begin(self, order: RunOrder) -> None:
        self.heard.append(asdict(order))
        super().begin(order)

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        self.heard.append((run_id, do, reason, by))
        super().ask(run_id, do, reason, by)


class Desk:
    """Carries out what needs no line, a record a turn, on the same disk."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.todo: dict[str, list[Any]] = {}

    def held(self) -> str:
        return ""

    def status_of(self, run_id: str) -> OwnerStatus:
        return OwnerStatus(pid=1, run_id=run_id if run_id in self.todo else "", speed=1.0)

    def begin(self, order: RunOrder) -> None:
        self.world.heard.append(("desk", asdict(order)))
        if order.run_id not in self.world.disk:
            self.todo[order.run_id] = script("task_completed")

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        self.world.heard.append(("desk", run_id, do, reason, by))
        if run_id not in self.todo:
            raise AwayOwner("it has no such run")
        self.todo[run_id] = script("event")[-1:] if do == "abort" else self.todo[run_id]

    def confirm(self, run_id: str, step: str, by: str) -> str:
        raise AwayOwner("it waits for no step")

    def turn(self) -> None:
        for run_id, left in list(self.todo.items()):
            written = self.world.disk.setdefault(run_id, [])
            if left:
                kind, body = left.pop(0)
                written.append(Record(len(written) + 1, 0.0, kind, body, ""))
            else:
                del self.todo[run_id]


class HouseWalk:
    """The house, and one stream of chance for all that happens to it."""

    def __init__(self, home: Path, seed: int) -> None:
        (home / "tasks").mkdir()
        self.home, self.random = home, Random(seed)
        self.world = World(seed)
        self.desk = Desk(self.world)
        self.now_s, self.minted, self.submitted, self.read = BEGIN_S, 0, 0, 0
        self.told: list[Any] = []
        self.open()

    def open(self) -> None:
        self.journal = HouseJournal(self.home / "house.sqlite")
        self.house = house_of(
            self,
            receive=self.receive,
            needs_no_line=lambda payload: payload.inputs.get("kind") == "stored",
            needs=self.need,
            desk=self.desk,
            retries=RetryPolicy(4, 5.0, ("safety_violation",), 30.0),
        )

    def mint(self) -> str:
        self.minted += 1
        return f"id-{self.minted}"

    def need(self, task: Task) -> Need:
        return Need((), 2) if task.profile.get("without_line") else Need(("line",))

    def receive(
        self, message_id: str, payload: TaskSubmit, session_id: str, way: str
    ) -> Rejected | HcpMessage | None:
        self.told.append((message_id, payload.capability, session_id, way))
        kind = payload.inputs.get("kind")
        if kind == "never":
            return Rejected("safety_violation", "too hot")
        if kind != "at once":
            return None
        self.world.accepted.add(session_id)
        return answers.event(
            message_id=self.mint(),
            timestamp="2026-01-01T00:00:00.000Z",
            session_id=session_id,
            event_type="log",
            sequence=2,
            data={"level": "info", "message": "accepted", "details": {}},
        )

    # ---- the transcript

    def transcript(self, events: int) -> Iterator[tuple[str, list[Any]]]:
        """Return the lines, each with all that its digest is of."""
        for _ in range(events):
            (kind,) = self.random.choices([*KINDS], [*KINDS.values()])
            try:
                said = getattr(self, kind)()
            except (LabError, ValueError) as why:
                said = _refusal(why)
            yield line(f"{kind}: {_short(said)}", [said, *self.news()], self.home)
        self.house.close()
        self.journal.close()

    def news(self) -> Iterator[Any]:
        """Return what is new since the line before."""
        for record in read_after(self.home / "house.sqlite", self.read):
            self.read = record.seq
            yield record.body
        for heard in (self.told, self.world.heard):
            yield from heard
            heard.clear()

    # ---- what happens

    def task(self, *statuses: str) -> Task | None:
        every = [
            each
            for each in self.house.tasks.by_id.values()
            if not statuses or each.status in statuses
        ]
        return self.random.choice(every[-6:]) if every else None

    def asked(self, **more: Any) -> ReceivedSubmission:
        choice = self.random.choice
        self.submitted += self.random.random() < 0.9
        body = json.loads(message(f"k{self.submitted}", choice(PRIORITIES), choice(("ana", "ben"))))
        kinds = ("line", "line", "line", "line", "stored", "stored", "never", "at once")
        body["payload"]["inputs"] = {"kind": choice(kinds)}
        if choice((True, False, False, False)):
            body["payload"]["constraints"]["priority"] = "soon"
        data = json.dumps(body).encode()
        return ReceivedSubmission(data, decode(data), seed=choice((None, 7)), **more)

    def submit(self) -> Any:
        choice = self.random.choice
        first = self.task()
        links = (first.task_id,) if first and self.random.random() < 0.2 else ()
        asked = self.asked()
        via = choice(("", "amqp"))
        found = self.house.submit(asked.data, seed=asked.seed, links=links, via=via, way="local")
        return self.kept(found)

    def kept(self, found: Submitted | Exception) -> Any:
        if isinstance(found, Exception):
            return _refusal(found)
        with MessageStore(self.home) as store:
            answer = store.answer(found.task_id)
            created = store.kept(found.session_id, "created") if found.session_id else ()
            said = [json.loads(encode(each)) for each in (*created, *([answer] if answer else ()))]
            return [repr(found), said, store.submission(found.task_id).decode()]

    def together(self) -> Any:
        asked = [self.asked(via="amqp", noted={"traceparent": "t"}) for _ in range(3)]
        asked += [asked[0]] if self.random.random() < 0.5 else []
        return [self.kept(each) for each in self.house.submit_all(asked)]

    def job(self) -> Any:
        choice = self.random.choice
        if self.house.tasks.jobs and self.random.random() < 0.5:
            job_id = choice(list(self.house.tasks.jobs))
            self.house.give(EndJob(job_id=job_id, reason="enough"), TaskActor("olga", "operator"))
            return job_id
        every, vary = choice(
            (("", {"constraints.priority": ["low", "high"]}), ("60s", {}), ("", {}), ("odd", {}))
        )
        title, key = choice(("", "a batch")), choice(("", "j1", "j2"))
        return self.house.create_job(
            message("template"), "olga", vary, every=every, title=title, seed=5, key=key
        )

    def command(self) -> Any:
        choice, task = self.random.choice, self.task()
        name = "nobody" if task is None else task.task_id
        reason = choice(("", "asked"))
        given = choice(
            (
                PauseTask(task_id=name, reason=reason),
                ResumeTask(task_id=name),
                CancelTask(task_id=name, reason=reason),
                UpdateTask(task_id=name, changes={"priority": "low"}),
                ArchiveTask(task_id=name),
                RetryTask(task_id=name, run_id="r", worker="line", reason="again"),
            )
        )
        who = choice(("olga", "olga", "olga", "ana"))
        self.house.give(given, TaskActor(who, "caller" if who == "ana" else "operator"))
        return f"{type(given).__name__} {name} {self.house.needs_line(name)}"

    def retry(self) -> Any:
        task = self.task("failed", "timed_out", "lost") or self.task()
        name, run = "nobody" if task is None else task.task_id, self.mint()
        self.house.retry(name, run, "again", "olga", resume=self.random.random() < 0.4)
        return f"{name} {run}"

    def confirm(self) -> str:
        task = self.task("waiting_input", "running", "paused") or self.task()
        return self.house.confirm("nobody" if task is None else task.task_id, "load", "ann")

    def abort(self) -> str:
        choice, task = self.random.choice, self.task()
        runs = () if task is None else tuple(each.run_id for each in task.attempts)
        session = choice(("no session", *([] if task is None else [task.session_id]), *runs))
        with MessageStore(self.home) as store:
            caller, token = choice(("ana", "ben")), choice(("", "", "token"))
            return abort_session(self.house, store, caller, session, token, "enough")

    def deliver(self) -> str:
        task = self.task()
        session = "no session" if task is None else task.session_id
        deliver(self.house, session)
        warn_caller(self.world, session, "forbidden")
        return session

    def turn(self) -> str:
        self.now_s += self.random.choice((0.5, 1.0, 1.0, 11.0, 31.0))
        self.house.step()
        self.world.turn()
        self.desk.turn()
        return f"{len(self.house.tasks.unended_tasks)} tasks"

    def writes(self) -> str:
        status = self.world.status()
        if status is not None and status.run_id in self.world.disk and self.world.armed:
            self.world.write(self.random.choice(WRITES))
        return ""

    def breaks(self) -> str:
        world = self.world

        def spoil() -> None:
            status = world.status()
            if status is not None and status.run_id in world.disk:
                why = self.random.choice((KeyMissing("its key"), JournalDamaged("record 7")))
                world.unreadable[status.run_id] = why

        def leave() -> None:
            world.leaving = True

        def fall_silent() -> None:
            world.up = False

        wrongs: tuple[Callable[[], None], ...] = (world.die, spoil, leave, fall_silent)
        wrong = self.random.choice(wrongs)
        wrong()
        return wrong.__name__

    def mends(self) -> str:
        self.world.rise()
        self.world.leaving, self.world.latched = False, ""
        self.world.unreadable.clear()
        self.world.speed = self.random.choice((1.0, 1.0, 60.0))
        return ""

    def opens(self) -> str:
        self.house.close()
        if self.random.random() < 0.5:
            self.journal.close()
        else:
            self.journal._journal._database.close()
        self.open()
        return ""


def _refusal(why: Exception) -> str:
    said = why.args[0]
    return f"{type(why).__name__} {said.code if isinstance(said, Text) else said}"


def _short(said: Any) -> str:
    return said if isinstance(said, str) else f"{len(said)} kept"


def walk(folder: Path, seed: int) -> Iterator[tuple[str, list[Any]]]:
    """Return the lines of a walk, one for each of its events."""
    home = folder / str(seed)
    home.mkdir()
    yield from HouseWalk(home, seed).transcript(EVENTS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        lines = [each for seed in SEEDS for each, _ in walk(Path(at), seed)]
    TRANSCRIPT.write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(f"{len(lines)} lines\n")
