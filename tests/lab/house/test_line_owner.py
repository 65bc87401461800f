"""Orders at the line owner's socket: one run at a time, each in a folder of its own lab."""

import asyncio
import json
import os
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.errors import LabError
from labharness.lab import read_lab
from labharness.lab.config.lock import LineBusy, LineLock
from labharness.lab.house import owner_client
from labharness.lab.house.line_owner import LineOwnerProcess
from labharness.lab.house.orders import HOUSE_FILE, LEFT_NAME, RunOrder, order_from_json
from labharness.lab.house.owner_client import OwnerClient, line_state
from labharness.lab.wiring.control import ControlSocket
from labharness.safety.guard import LatchUnreadable
from labharness.safety.guard.latch import MARKER_FILE
from rig import SHORT_LINE

ONE, OTHER = (f"{n}0000000-0000-4000-8000-000000000000" for n in (1, 2))


class Owner:
    """A line owner whose runs are only written down."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.runs = home / "state", home / "runs"
        self.home.mkdir()
        (self.home / HOUSE_FILE).write_text(json.dumps({"runs": str(self.runs)}))
        self.process = LineOwnerProcess(home / "lab.toml", None)
        self.process._home = self.home
        monkeypatch.setattr(Thread, "start", lambda thread: None)
        monkeypatch.setattr(self.process, "_carry_out", None)

    def order(self, run_id: str, **changed: Any) -> RunOrder:
        submit = self.home / "tasks" / "task.json"
        given = {"run_id": run_id, "folder": str(self.runs / run_id), "submit": str(submit)}
        return RunOrder(**given | changed)

    def ask(self, do: str, **asked: object) -> dict[str, Any]:
        return asyncio.run(
            ControlSocket(self.home, self.process._answer, 1.0)._answered(
                {"do": do, "account": "house", **asked}
            )
        )

    def begin(self, run_id: str, **changed: Any) -> dict[str, Any]:
        return self.ask("begin", **asdict(self.order(run_id, **changed)))

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


@pytest.mark.promise(61)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run_id", "../elsewhere"),
        ("run_id", ONE.upper().replace("1", "A")),
        ("run_id", ONE + "\n"),
        ("folder", "/tmp/elsewhere"),
        ("folder", "{runs}"),
        ("folder", "{runs}/" + OTHER),
        ("folder", "{runs}/../elsewhere/" + ONE),
        ("folder", "{runs}/link"),
        ("submit", "/etc/passwd"),
        ("submit", "{home}/tasks/../callers.toml"),
        ("submit", ""),
        ("seed", "1"),
        ("approval_wait_s", "1"),
        ("resume_from", "the last"),
        ("resume_from", {"session_id": OTHER}),
        ("more", 1),
    ],
)
def test_a_run_is_ordered_in_the_folder_of_the_labs_own_runs_alone(
    owner: Owner, name: str, value: object
) -> None:
    owner.runs.mkdir()
    (owner.runs / "link").symlink_to(owner.home)
    if isinstance(value, str):
        value = value.replace("{runs}", str(owner.runs)).replace("{home}", str(owner.home))
    asked = {**asdict(owner.order(ONE)), name: value}
    refused = owner.ask("begin", **asked)
    assert (refused["ok"], refused["code"]) == (False, "bad_order")
    assert name in refused["error"]
    assert owner.run_id == ""
    whole = owner.order(ONE, seed=3, resume_from={"session_id": OTHER, "checkpoint_id": "c"})
    assert order_from_json(asdict(whole), owner.home) == whole
    (owner.home / HOUSE_FILE).unlink()
    assert owner.begin(ONE)["code"] == "bad_order", "no house has runs here"


@pytest.mark.parametrize("do", ["abort", "hold", "resume", "confirm", "warn"])
def test_nothing_is_asked_of_a_run_that_is_not_the_one_at_work(owner: Owner, do: str) -> None:
    owner.begin(ONE)
    found = owner.ask(do, run_id=OTHER, reason="token_refused", by="Olga", step="load")
    assert (found["ok"], found["code"]) == (False, "bad_order")
    assert OTHER in found["error"]


WARNED = "token_refused"
WORDS = {
    "abort": {"reason": "enough"},
    "time_out": {},
    "warn": {"reason": WARNED},
    "hold": {"by": "Olga", "reason": "a look"},
    "resume": {"by": "Olga", "reason": "seen"},
    "confirm": {"by": "Olga", "step": "load"},
}


class Heard:
    """A run that writes down what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def __getattr__(self, word: str) -> Any:
        def take(*said: object) -> object:
            self.heard.append((word, *said))
            if word != "ask":
                return None
            answer: Future[dict[str, Any]] = Future()
            answer.set_result({"ok": True, "said": "done"})
            return answer

        return take


@pytest.mark.parametrize("do", WORDS)
def test_each_word_reaches_the_run_and_before_there_is_one_it_is_no_error_of_ours(
    owner: Owner, do: str
) -> None:
    owner.begin(ONE)
    early = owner.ask(do, run_id=ONE, **WORDS[do])
    by_hand = do in ("hold", "resume", "confirm")
    assert early == {"ok": True} if not by_hand else early["code"] == "bad_order"
    run = Heard()
    owner.process._task = run  # type: ignore[assignment]  # stands in
    assert owner.ask(do, run_id=ONE, **WORDS[do])["ok"]
    told = {"do": do, "by": "", "reason": "", **WORDS[do]}
    expected = {
        "abort": ("abort", "enough"),
        "time_out": ("time_out",),
        "warn": ("warn", WARNED),
        "confirm": ("ask", {"do": do, **WORDS[do]}),
    }
    assert run.heard == [expected.get(do, ("ask", told))]
    if do == "warn":
        assert owner.ask(do, run_id=ONE, reason="odd")["code"] == "bad_order"
        assert len(run.heard) == 1


def test_an_owner_that_leaves_may_stay_for_a_run_and_says_what_it_does(owner: Owner) -> None:
    assert owner.ask("stay")["code"] == "bad_order"
    owner.begin(ONE)
    assert owner.ask("leave") == {"ok": True, "run_id": ONE}
    state = owner.ask("status")
    assert (state["run_id"], state["leaving"], state["pid"]) == (ONE, True, os.getpid())
    assert owner.ask("stay") == {"ok": True}
    assert not owner.ask("status")["leaving"]
    assert owner.ask("odd")["code"] == "bad_order"


class Tripped:
    """A latch with a trip, or without."""

    def __init__(self, detail: str | None) -> None:
        self.trip = None if detail is None else SimpleNamespace(detail=detail)


@pytest.mark.parametrize(
    ("status", "latch", "state"),
    [
        (None, Tripped(None), "down"),
        (LabError("odd"), Tripped(None), "down"),
        ({"run_id": ONE}, Tripped("too hot"), "running"),
        ({"run_id": ""}, Tripped("too hot"), "latched"),
        ({"run_id": ""}, LatchUnreadable("half written"), "latched"),
        ({"run_id": ""}, OSError("no disk"), "down"),
        ({"run_id": ""}, Tripped(None), "idle"),
    ],
)
def test_the_state_of_a_line_is_its_owners_and_then_its_latchs(
    monkeypatch: pytest.MonkeyPatch, status: object, latch: object, state: str
) -> None:
    def found(each: object) -> object:
        if isinstance(each, Exception):
            raise each
        return each

    monkeypatch.setattr(owner_client, "state_of", lambda door, home: found(status))
    monkeypatch.setattr(owner_client, "Latch", lambda path, port: found(latch))
    assert line_state(read_lab(SHORT_LINE)) == state


@pytest.mark.promise(65)
def test_a_line_at_work_is_armed_and_not_latched(tmp_path: Path) -> None:
    """A second task of a caller elsewhere was refused while the first one ran."""
    plan = replace(read_lab(SHORT_LINE), state_dir=tmp_path)
    (tmp_path / MARKER_FILE).write_text("safe\n")
    with LineLock(tmp_path):
        assert OwnerClient(plan).latch_reason() == ""
    assert "left armed" in OwnerClient(plan).latch_reason()
    assert "left armed" in OwnerClient(plan).held()


@pytest.mark.parametrize(
    ("why", "held"),
    [
        (LineBusy("process 7 drives it"), "process 7 drives it"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (OSError("no such disk"), "no such disk"),
    ],
)
def test_what_keeps_a_line_from_a_run_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: Exception, held: str
) -> None:
    def lock(state_dir: Path) -> None:
        raise why

    monkeypatch.setattr(owner_client, "LineLock", lock)
    assert OwnerClient(replace(read_lab(SHORT_LINE), state_dir=tmp_path)).held() == held
