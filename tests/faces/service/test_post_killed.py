"""The outbox of a house that dies, over a broker that fails: what each caller hears in the end."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from house_story import Story
from labharness.faces.service.outbox import VIA, Outbox, Positions
from labharness.faces.service.session_messages import Outgoing
from labharness.journal.chain import Record
from labharness.journal.encryption import KeyMissing
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import RunFolders
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage, encode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.confidential import Way
from labharness.work.task.commands import CreateTask, FailTask, ReportStatus, RetryTask, StartTask
from labharness.work.task.record import RetryPolicy
from line_world import LineWorld
from plain_caller import Told, history_faults
from tasks_alone import ANA, OLGA, TasksAlone

SEEDS = (5, 13, 15, 18)  # in the first and the last planted bugs are seen
NIGHT = range(300)
OPENING = ["event", "task_accepted"]
NOW = "2026-01-01T00:00:00.000Z"
FILLED = {
    "task_completed": {},
    "task_failed": {"error_message": "why"},
    "task_rejected": {},
    "event": {"event_type": "session_closed"},
}


class Telling:
    """The folders of the world's runs, whose records have what callers are told of them."""

    def __init__(self, world: LineWorld) -> None:
        self._world = world
        self.folder, self.begun, self.left = world.folder, world.begun, world.left

    def records(self, run_id: str, after: int) -> list[Record]:
        told, sequence = [], 1
        for each in self._world.records(run_id, 0):
            body: dict[str, Any] = {**each.body, "message_id": f"{run_id}/{each.seq}"}
            body["timestamp"] = NOW
            if each.kind == "event":
                sequence += 1
                body["sequence"] = sequence
            elif each.kind == "terminal":
                body["payload"] = {**FILLED[body["type"]], **body["payload"], "artifacts": []}
                if body["type"] == "event":
                    body["payload"]["sequence"] = sequence
            told.append(Record(each.seq, each.at_s, each.kind, body, each.hash))
        return [each for each in told if each.seq > after]


class PostedStory(Story):
    """A story whose callers hear of their tasks through a broker that fails by chance.

    Attributes:
        heard: What came to the queue of each session, in its order.
    """

    via = VIA

    def __init__(self, home: Path, seed: int) -> None:
        super().__init__(home, seed)
        self.heard: defaultdict[str, list[Told]] = defaultdict(list)
        self._places = 0
        self._start_post()

    def receive(
        self, message_id: str, payload: TaskSubmit, session_id: str, way: Way
    ) -> HcpMessage | None:
        """Accept every other task on its receipt."""
        if self.random.random() < 0.5:
            return None
        self.world.accepted.add(session_id)
        return answers.task_accepted(
            message_id=self.mint(),
            timestamp=NOW,
            session_id=session_id,
            in_reply_to=message_id,
            session_token=f"token of {session_id}",
            risk_level="R1",
            data_classification="T1",
            safety_envelope={},
            max_duration="PT5M",
            abort_timeout="PT5M",
        )

    def _start_post(self) -> None:
        """Start a service; now and then the file of its positions is lost with the old one."""
        self._places += self.random.random() < 0.2
        positions = Positions(self.home / f"outbox-{self._places}.sqlite")
        self.outbox = Outbox(
            MessageStore(self.home), Telling(self.world), positions, self.mint, lambda: NOW
        )
        self.positions = positions

    def turn(self) -> None:
        super().turn()
        self.send(0.7)
        if self.random.random() < 0.1:
            self.positions.close()
            self._start_post()

    def send(self, luck: float) -> None:
        for batch in self.outbox.due(self.house.tasks):
            confirmed = 0
            for each in batch.messages:
                arrives, told = self.random.random() < luck, self.random.random() < luck
                if arrives:
                    self._arrive(batch.session_id, each)
                if not (arrives and told):  # the broker has it, and we do not know
                    break
                confirmed += 1
            self.outbox.sent(batch, confirmed)

    def _arrive(self, session_id: str, each: Outgoing) -> None:
        self.heard[session_id].append(Told(json.loads(encode(each.message))))


def play(home: Path, seed: int) -> PostedStory:
    story = PostedStory(home, seed)
    for _ in range(60):
        story.turn()
    story.settle()
    for _ in range(3):
        story.send(1.0)
    story.positions.close()
    story.journal.close()
    return story


def check(story: PostedStory) -> None:
    for task_id in story.acknowledged:
        task = story.house.tasks.by_id[task_id]
        sessions = [each.run_id for each in task.attempts] or [task.session_id]
        for session_id in sessions:
            heard = story.heard[session_id]
            assert history_faults(heard) == [], (task.status, heard)
            if session_id in story.world.accepted:
                once = {each["message_id"]: each["type"] for each in heard}
                assert list(once.values())[:2] == OPENING
                assert not any(each["type"] == "task_rejected" for each in heard)
        if task.status == "completed":
            types = [each["type"] for each in story.heard[sessions[-1]]]
            assert types[-2:] == ["task_completed", "event"]


@pytest.mark.promise(65)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_caller_hears_all_of_its_task_in_order_and_one_end_whatever_dies(
    tmp_path: Path, seed: int
) -> None:
    check(play(tmp_path, seed))


@pytest.mark.promise(65)
def test_each_attempt_of_a_task_is_told_also_one_that_comes_after_its_end(tmp_path: Path) -> None:
    lab = TasksAlone()
    profile = {"via": VIA, "message_id": "m"}
    twice = RetryPolicy(attempts_max=2)
    made = CreateTask(task_id="t", objective="grow", session_id="s", profile=profile, retry=twice)
    lab(made, ANA)
    lab(ReportStatus(task_id="t", to="accepted"))
    lab(StartTask(task_id="t", run_id="s", worker="line"))
    minted = (f"id-{number}" for number in count())
    with MessageStore(tmp_path) as kept, closing(Positions(tmp_path / "outbox")) as positions:
        outbox = Outbox(kept, RunFolders(tmp_path), positions, lambda: next(minted), lambda: NOW)

        def told() -> list[tuple[str, str]]:
            """Return what has an end now, and count it as sent."""
            found = list(outbox.due(lab.tasks))
            for each in found:
                outbox.sent(each, len(each.messages))
            return [
                (each.session_id, m.message.type) for each in found for m in each.messages[-2:-1]
            ]

        assert told() == []
        lab(FailTask(task_id="t", error_code="worker_lost"))
        assert told() == [("s", "task_rejected")]
        assert told() == []
        retry = RetryTask(task_id="t", run_id="s2", worker="line", reason="again")
        assert not lab(retry, OLGA)
        lab(FailTask(task_id="t", error_code="worker_lost"))
        assert told() == [("s2", "task_rejected")]
        assert told() == []


class Unreadable(RunFolders):
    """Runs whose journals take a key that is gone."""

    def records(self, run_id: str, after: int) -> Iterator[Record]:
        raise KeyMissing(f"{run_id}: its key cannot be had")


@pytest.mark.promise(71)
@pytest.mark.parametrize("accepted", [True, False])
def test_a_caller_whose_run_can_no_longer_be_read_hears_its_end_all_the_same(
    tmp_path: Path, accepted: bool
) -> None:
    lab = TasksAlone()
    profile = {"via": VIA, "message_id": "m"}
    lab(CreateTask(task_id="t", objective="grow", session_id="s", profile=profile), ANA)
    lab(ReportStatus(task_id="t", to="accepted"))
    lab(StartTask(task_id="t", run_id="s", worker="line"))
    minted = (f"id-{number}" for number in count())
    with MessageStore(tmp_path) as kept, closing(Positions(tmp_path / "outbox")) as positions:
        outbox = Outbox(kept, Unreadable(tmp_path), positions, lambda: next(minted), lambda: NOW)
        positions.move({"s": 17})  # the record of the newest event that its caller has
        if accepted:
            answer = answers.task_accepted(
                message_id="a",
                timestamp=NOW,
                session_id="s",
                in_reply_to="m",
                session_token="t",
                risk_level="R3",
                data_classification="T3",
                safety_envelope={},
                max_duration="PT5M",
                abort_timeout="PT5M",
            )
            kept.keep("s", "accepted", answer)
        assert list(outbox.due(lab.tasks)) == [], "while it runs, the key may come back"
        lab(FailTask(task_id="t", error_code="key_missing"))
        (batch,) = outbox.due(lab.tasks)
        outbox.sent(batch, len(batch.messages))
        told = [Told(json.loads(encode(each.message))) for each in batch.messages]
        assert told[-2]["type"] == ("task_failed" if accepted else "task_rejected")
        assert told[-1].is_("session_closed")
        numbers = [each.payload["sequence"] for each in told if each["type"] == "event"]
        assert numbers == [*range(18, 18 + len(numbers))], "behind all that were told"
        assert list(outbox.due(lab.tasks)) == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_so_it_is_in_hundreds_of_stories(tmp_path: Path) -> None:
    for seed in NIGHT:
        check(play(tmp_path / str(seed), seed))
