"""What the socket of a house answers: each field is checked, and each word does its own."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.journal import JournalFailed
from labharness.lab.house import house_process
from labharness.lab.house.house_process import HouseProcess
from labharness.lab.house.intake import Submitted
from labharness.lab.house.orders import TaskRefused
from labharness.lab.house.spoken import COMMANDS_BY_WORD

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
    process: HouseProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    async def in_house(work: Any, *given: object) -> None:
        tries.append(work.__name__)
        if work.__name__ == "_turn":
            raise JournalFailed("the disk is full")

    monkeypatch.setattr(house_process, "REOPENS_MAX", 2)
    monkeypatch.setattr(house_process, "REOPEN_S", 0.0)
    monkeypatch.setattr(process, "_in_house", in_house)
    with pytest.raises(JournalFailed):
        asyncio.run(process._turns(SimpleNamespace()))  # type: ignore[arg-type]  # only passed on
    assert tries == ["_turn", "_open_again"] * 2 + ["_turn"]
    assert process._failure == "the disk is full"
