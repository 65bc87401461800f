"""Orders at the line owner's socket: one run at a time, each in a folder of its own lab."""

import asyncio
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from labharness.lab.house.line_owner import LineOwnerProcess
from labharness.lab.house.orders import LEFT_NAME, RunOrder

ONE, OTHER = (f"{n}0000000-0000-4000-8000-000000000000" for n in (1, 2))


class Owner:
    """A line owner whose runs are only written down."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs, self.begun = home / "runs", list[str]()
        self.process = LineOwnerProcess(home / "lab.toml", None)
        monkeypatch.setattr(Thread, "start", lambda thread: None)
        monkeypatch.setattr(self.process, "_carry_out", None)

    def order(self, run_id: str, **changed: Any) -> RunOrder:
        given = {"run_id": run_id, "folder": str(self.runs / run_id), "submit": "task.json"}
        return RunOrder(**given | changed)

    def ask(self, do: str, **asked: object) -> dict[str, Any]:
        return asyncio.run(self.process._answer({"do": do, "account": "house", **asked}))

    def begin(self, run_id: str, **changed: Any) -> dict[str, Any]:
        return self.ask("begin", **self.order(run_id, **changed).to_json())

    @property
    def run_id(self) -> str:
        found: str = self.ask("status")["run_id"]
        return found


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Owner:
    return Owner(tmp_path, monkeypatch)


@pytest.mark.promise(61)
def test_no_second_run_begins_beside_the_first(owner: Owner) -> None:
    assert owner.begin(ONE) == {"ok": True, "begun": True}
    refused = owner.begin(OTHER)
    assert (refused["ok"], refused["code"]) == (False, "bad_order")
    assert ONE in refused["error"]
    assert owner.run_id == ONE
    assert owner.begin(ONE)["begun"], "the same order twice makes one run"


@pytest.mark.promise(61)
def test_a_run_that_has_begun_before_or_an_owner_that_leaves_begins_none(owner: Owner) -> None:
    (owner.runs / ONE).mkdir(parents=True)
    (owner.runs / ONE / LEFT_NAME).write_text("{}")
    assert owner.begin(ONE)["begun"]
    assert owner.run_id == ""
    owner.ask("leave")
    assert owner.begin(OTHER)["code"] == "bad_order"
    assert owner.run_id == ""


@pytest.mark.parametrize("do", ["abort", "hold", "resume", "confirm", "warn"])
def test_nothing_is_asked_of_a_run_that_is_not_the_one_at_work(owner: Owner, do: str) -> None:
    owner.begin(ONE)
    found = owner.ask(do, run_id=OTHER, reason="token_refused", by="Olga", step="load")
    assert (found["ok"], found["code"]) == (False, "bad_order")
    assert OTHER in found["error"]
