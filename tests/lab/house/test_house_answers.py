"""What the socket of a house answers: each field is checked, and each word does its own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from labharness.core.vocabulary.texts import Text, in_language
from labharness.journal import JournalFailed
from labharness.lab import read_lab
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.house import house_process
from labharness.lab.house.house_process import HouseProcess
from labharness.lab.house.intake import Submitted
from labharness.lab.house.orders import TaskRefused
from labharness.lab.house.spoken import COMMANDS_BY_WORD
from labharness.protocols.hcp.codec import decode
from labharness.safety.alarm.board import Severity
from line_world import message
from rig import SHORT_LINE

JOB = {"message": "{}", "every": "PT1H", "title": "leak check", "by": "olga"}


class Heard:
    """A house that writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        ended = SimpleNamespace(status="completed")
        self.tasks = SimpleNamespace(by_id={"a": ended, "b": ended})

    def create_job(self, *asked: object, **more: object) -> str:
        self.asked.append((asked, more))
        return "job-1"

    def submit(self, *asked: object, **more: object) -> Submitted:
        self.asked.append((asked, more))
        return Submitted(task_id="t", fresh=True)

    def confirm(self, *asked: object) -> str:
        self.asked.append(asked)
        return "load"

    def give(self, *asked: object) -> None:
        self.asked.append(asked)

    def retry(self, *asked: object, **more: object) -> None:
        self.asked.append((asked, more))

    def needs_line(self, task_id: str) -> bool:
        return task_id == "grow"


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HouseProcess:
    made = HouseProcess(tmp_path / "lab.toml", tmp_path / "runs")
    monkeypatch.setattr(made, "_house", Heard(), raising=False)
    monkeypatch.setattr(made, "_wake", lambda: None)
    return made


def asked_of(process: HouseProcess) -> Any:
    house: Any = process._house
    (one,) = house.asked
    return one


def test_the_state_of_a_house_counts_its_tasks(process: HouseProcess) -> None:
    said = process._answered("status", {})
    assert (said["tasks"], said["failure"]) == ({"completed": 2}, "")
    assert said["runs"].endswith("/runs")


def test_a_job_is_made_of_what_was_asked_for(process: HouseProcess) -> None:
    vary = {"inputs.parameters.time": [1, 2]}
    found = process._answered("create_job", {**JOB, "vary": vary, "seed": 3, "key": "k"})
    assert found == {"job_id": "job-1"}
    (message, who, varied), more = asked_of(process)
    assert (message, who, varied) == (b"{}", "olga", vary)
    assert more == {"every": "PT1H", "title": "leak check", "seed": 3, "key": "k"}


@pytest.mark.parametrize(
    ("word", "changed", "named"),
    [
        ("create_job", {"vary": []}, "vary"),
        ("create_job", {"vary": {"x": 1}}, "vary"),
        ("create_job", {"message": 1}, "message"),
        ("create_job", {"every": None}, "every"),
        ("create_job", {"title": 1}, "title"),
        ("create_job", {"by": 1}, "by"),
        ("create_job", {"seed": True}, "seed"),
        ("create_job", {"key": 1}, "key"),
        ("submit", {"message": 1}, "message"),
        ("submit", {"seed": "1"}, "seed"),
        ("submit", {"after": "t"}, "after"),
        ("submit", {"after": [1]}, "after"),
        ("nonsense", {}, "nonsense"),
        ("task", {"task_id": "gone"}, "gone"),
        ("pause", {}, "task_id"),
    ],
)
def test_a_field_of_another_kind_is_refused_by_its_name(
    process: HouseProcess, word: str, changed: dict[str, object], named: str
) -> None:
    with pytest.raises(TaskRefused, match=named):
        process._answered(word, {**JOB, **changed})
    house: Any = process._house
    assert house.asked == []


def test_each_command_on_a_task_is_given_in_the_name_of_its_account(process: HouseProcess) -> None:
    assert "pause" in COMMANDS_BY_WORD
    asked = {"task_id": "t", "reason": "lunch", "account": "olga", "by": "ana"}
    assert process._answered("pause", asked) == {"id": "t"}
    command, actor = asked_of(process)
    assert (command.task_id, command.reason) == ("t", "lunch")
    assert (actor.name, actor.role) == ("olga", "operator")


def test_a_house_whose_journal_stays_away_ends_after_a_bounded_number_of_tries(
    process: HouseProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[str] = []

    async def in_house(work: Any, *given: object) -> None:
        tries.append(work.__name__)
        if work.__name__ == "_turn":
            raise JournalFailed("the disk is full")

    monkeypatch.setattr(house_process, "REOPENS_MAX", 2)

    async def pause(seconds: float) -> None:
        tries.append(f"{seconds:g} s")

    monkeypatch.setattr(process, "_pause", pause)
    monkeypatch.setattr(process, "_in_house", in_house)
    with pytest.raises(JournalFailed):
        asyncio.run(process._turns(SimpleNamespace()))  # type: ignore[arg-type]  # only passed on
    assert tries == ["_turn", "5 s", "_open_again"] * 2 + ["_turn"]
    assert caplog.messages == ["the journal of the house failed: the disk is full"] * 2
    assert process._failure == "the disk is full"


def test_a_submission_keeps_its_own_key_or_gets_the_one_that_is_given(
    process: HouseProcess,
) -> None:
    house: Any = process._house
    own = message("k")
    asked = {"message": own.decode(), "seed": 3, "after": ["t0"]}
    told = {"task_id": "t", "fresh": True, "rejected": False}
    assert process._answered("submit", asked) == told
    assert process._answered("submit", {**asked, "message_id": "other"}) == told
    assert process._answered("submit", {"message": own.decode()}) == told
    ((first,), more), ((second,), _), ((third,), plain) = house.asked
    assert (first, third, more, plain) == (
        own,
        own,
        {"seed": 3, "links": ["t0"]},
        {"seed": None, "links": []},
    )
    assert decode(second) == replace(decode(own), message_id="other")


@pytest.mark.parametrize("task_id", ["grow", "read"])
@pytest.mark.parametrize("begins_anew", [False, True])
@pytest.mark.parametrize("resume", [True, False, "yes"])
def test_a_retry_goes_on_only_where_that_was_asked_and_the_line_still_has_its_sample(
    process: HouseProcess,
    monkeypatch: pytest.MonkeyPatch,
    task_id: str,
    *,
    begins_anew: bool,
    resume: object,
) -> None:
    current = (SimpleNamespace(begins_anew=begins_anew), None)
    monkeypatch.setattr(process, "_files", SimpleNamespace(current=lambda: current))
    asked = {"task_id": task_id, "reason": "again", "account": "olga", "resume": resume}
    if resume is True and begins_anew and task_id == "grow":
        with pytest.raises(TaskRefused) as refused:
            process._answered("retry", asked)
        assert refused.value.args[0] == Text("resume.plant")
        return
    assert process._answered("retry", asked) == {"id": task_id}
    (task, run_id, *said), more = asked_of(process)
    assert (task, said, more) == (task_id, ["again", "olga"], {"resume": resume is True})
    assert UUID(run_id).version == 4


@pytest.mark.parametrize(
    ("asked", "by"),
    [
        ({"account": "olga"}, "olga"),
        ({"account": "olga", "name": "olga"}, "olga"),
        ({"account": "olga", "name": "Ann"}, "Ann (olga)"),
        ({"by": "ana"}, "ana"),
        ({}, "operator"),
    ],
)
def test_who_confirms_a_step_is_named_with_the_account_that_said_so(
    process: HouseProcess, asked: dict[str, str], by: str
) -> None:
    found = process._answered("confirm", {**asked, "task_id": "t", "step": "load"})
    assert found == {"id": "t", "said": "load"}
    assert asked_of(process) == ("t", "load", by)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (SimpleNamespace(status="failed", error_code="timeout", status_reason="late"), "timeout"),
        (SimpleNamespace(status="paused", error_code="", status_reason="lunch"), "lunch"),
    ],
)
def test_a_task_is_told_with_its_code_or_else_what_it_waits_for(
    process: HouseProcess, task: Any, reason: str
) -> None:
    house: Any = process._house
    house.tasks.by_id["t"] = task
    found = process._answered("task", {"task_id": "t"})
    assert found == {"status": task.status, "reason": reason}


def test_each_word_is_carried_out_in_the_thread_of_the_house_and_one_ends_it(
    process: HouseProcess,
) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1, "house") as process._pool:
            assert (await process._answer({"do": "status"}))["ok"]
            assert not process._leaving.is_set()
            assert await process._answer({"do": "leave"}) == {"ok": True}
            assert process._leaving.is_set()
            assert process._news.is_set()
            assert process._answered("status", {})["leaving"]

    asyncio.run(main())


def test_a_face_is_served_with_the_house_and_takes_the_house_down_with_it(
    process: HouseProcess,
) -> None:
    plan = read_lab(SHORT_LINE)
    served: list[Any] = []
    ends = asyncio.Event()

    async def face(access: Any) -> None:
        served.append(access)
        await ends.wait()

    async def main() -> None:
        with ThreadPoolExecutor(1, "house") as process._pool:
            async with process._faced(plan):
                assert served == []
            process._face = face
            async with process._faced(plan):
                await asyncio.sleep(0)
                (access,) = served
                assert (access.lab_id, access.home) == (plan.file.lab.id, plan.state_dir)
                assert (access.tasks(), access.changed) == (process._house.tasks, process._changed)
                assert await process._with_house(lambda house: house) is process._house
                assert (process._requests, process._news.is_set()) == (0, True)
                assert not process._leaving.is_set()
            await asyncio.sleep(0)
            assert process._leaving.is_set(), "a face that ends takes the house with it"
            process._leaving.clear()
            async with process._faced(plan):
                ends.set()
                async with asyncio.timeout(10):
                    await process._leaving.wait()

    asyncio.run(main())


def test_a_house_that_leaves_ends_the_desk_first_and_closes_even_where_its_disk_is_full(
    process: HouseProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    def step() -> None:
        done.append("step")
        raise JournalFailed("full")

    house = SimpleNamespace(step=step, close=lambda: done.append("house"))
    monkeypatch.setattr(process, "_house", house)
    monkeypatch.setattr(process, "_desk", SimpleNamespace(leave=done.append))
    journal = SimpleNamespace(close=lambda: done.append("journal"))
    monkeypatch.setattr(process, "_journal", journal, raising=False)
    process._left()
    assert done == [Text("house.down"), "step", "house", "journal"]
    done.clear()

    def close() -> None:
        done.append("journal")
        raise JournalFailed("full")

    monkeypatch.setattr(process, "_journal", SimpleNamespace(close=close))
    monkeypatch.setattr(process, "_open", done.append)
    plan: Any = "plan"
    process._open_again(plan)
    assert done == ["house", "journal", "plan"]


@pytest.mark.parametrize("wrong", ["", "no key", "refused"])
def test_people_are_told_of_background_work_in_their_language_and_nothing_stops_the_house(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    sent: list[tuple[str, ...]] = []
    opened: list[object] = []

    class Senders:
        def send(self, name: str, title: str, text: str, ended: Any) -> None:
            sent.append((name, title, text))
            ended(wrong)

    def senders(plan: object) -> object:
        opened.append(plan)
        if wrong == "no key":
            raise BadLabFile(Text("pair", what="mail", why="no key"))
        return Senders()

    plan = read_lab(SHORT_LINE)
    to = [SimpleNamespace(name="mail", language="en"), SimpleNamespace(name="pager", language="zh")]
    asked: list[object] = []
    monkeypatch.setattr(house_process, "senders", senders)
    monkeypatch.setattr(house_process, "channels", lambda plan: "channels")

    def recipients(*said: object) -> list[Any]:
        asked.append(said)
        return to

    monkeypatch.setattr(house_process, "recipients", recipients)
    tell = house_process._alerts(plan)
    text = Text("house.waits_for_person", task_id="t", action="confirm:load")
    for _ in range(2):
        tell(text)
    title = Text("job.title", lab=plan.file.lab.title)
    told = [
        (each.name, in_language(title, each.language), in_language(text, each.language))
        for each in to
    ]
    assert asked == [("channels", (Severity.WARNING,), 0)] * 2
    assert sent == ([] if wrong == "no key" else told * 2)
    assert told[0][2] != told[1][2]
    assert opened == [plan], "once"
    errors = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    refused = [f"alert channel {each.name} took no message: refused" for each in to] * 2
    silent = ["no message can be sent: mail: no key"]
    assert errors == {"": [], "refused": refused, "no key": silent}[wrong]


@pytest.mark.parametrize("news", [False, True])
def test_a_turn_comes_when_it_is_due_or_with_the_quiet_behind_news(
    process: HouseProcess, monkeypatch: pytest.MonkeyPatch, *, news: bool
) -> None:
    naps: list[float] = []
    sleep = asyncio.sleep

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 2:
            process._requests = 0
        await sleep(0)

    async def main() -> None:
        monkeypatch.setattr(asyncio, "sleep", nap)
        if news:
            process._requests = 1
            process._news.set()
        await process._pause(30.0 if news else 0.01)
        assert not process._news.is_set()

    asyncio.run(main())
    assert naps == ([house_process.QUIET_S] * 2 if news else [])


@pytest.mark.parametrize("ended", [False, True])
def test_news_of_another_thread_reach_the_loop_while_it_runs(
    tmp_path: Path, *, ended: bool
) -> None:
    made: Any = HouseProcess(tmp_path / "lab.toml", tmp_path / "runs")
    called: list[object] = []

    def call(work: object) -> None:
        if ended:
            raise RuntimeError("the loop is closed")
        called.append(work)

    made._loop = SimpleNamespace(call_soon_threadsafe=call)
    made._wake()
    made._tell_face()
    assert called == ([] if ended else [made._news.set, made._changed.set])
