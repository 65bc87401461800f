"""Orders at the line owner's socket: one run at a time, each in a folder of its own lab."""

import asyncio
import json
import os
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, Self

import pytest

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.lab import read_lab
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lock import LineBusy, LineLock
from labharness.lab.house import line_owner, owner_client
from labharness.lab.house.line_owner import LineOwnerProcess, _earlier
from labharness.lab.house.orders import (
    HOUSE_FILE,
    LEFT_NAME,
    OwnerStatus,
    RunOrder,
    TaskRefused,
    order_from_json,
)
from labharness.lab.house.owner_client import OwnerClient, line_state
from labharness.lab.wiring.control import ControlSocket
from labharness.lab.wiring.operators import RemoteOperator
from labharness.protocols.hcp.messages import ResumeFrom
from labharness.safety.guard import LatchUnreadable
from labharness.safety.guard.latch import MARKER_FILE
from line_world import message
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
    run: Any = Heard()
    owner.process._task = run
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
        self.write_error = ""


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


class Doorway:
    """The socket of a line owner that answers one thing, and what it was asked."""

    def __init__(self, answer: object) -> None:
        self.answer, self.asked = answer, list[dict[str, object]]()

    def __call__(self, home: Path) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        pass

    def ask(self, **asked: object) -> object:
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_house_asks_a_line_owner_and_takes_its_refusal(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Doorway(
        {"ok": True, "pid": 7, "run_id": ONE, "speed": None, "leaving": False, "by": "x"}
    )
    monkeypatch.setattr(owner_client, "owner_door", door)
    client = OwnerClient(read_lab(SHORT_LINE))
    assert client.status() == OwnerStatus(pid=7, run_id=ONE, speed=None, leaving=False)
    order = owner.order(ONE)
    client.begin(order)
    client.ask(ONE, "hold", "a look", "Ann")
    assert door.asked == [
        {"do": "status"},
        {"do": "begin", **asdict(order)},
        {"do": "hold", "run_id": ONE, "reason": "a look", "by": "Ann"},
    ]
    door.answer = {"ok": True, "said": "load"}
    assert client.confirm(ONE, "load", "Ann") == "load"
    assert door.asked[-1] == {"do": "confirm", "run_id": ONE, "step": "load", "by": "Ann"}
    door.answer = {"ok": False, "error": "not now"}
    with pytest.raises(TaskRefused, match="not now"):
        client.begin(order)
    door.answer = LabError("it has gone")
    assert client.status() is None


class Run:
    """A run that ends, or fails, when it is carried out."""

    def __init__(self, why: Exception | None, *, confidential: bool) -> None:
        self.why, self.confidential = why, confidential

    def execute(self) -> None:
        if self.why is not None:
            raise self.why


def owner_is_free(process: LineOwnerProcess) -> bool:
    return process._order is None and process._task is None and process._idle.is_set()


@pytest.mark.parametrize("confidential", [False, True])
@pytest.mark.parametrize(
    ("why", "code", "of_files"),
    [
        (None, "", True),
        (LabError("the glue"), "lab_error", False),
        (ValueError("the glue"), "internal_error", False),
        (BadLabFile(Text("pair", what="lab.toml", why="the glue")), "bad_lab_file", True),
    ],
)
def test_a_run_leaves_its_end_and_no_word_of_a_confidential_input(
    owner: Owner,
    monkeypatch: pytest.MonkeyPatch,
    why: Exception | None,
    code: str,
    of_files: bool,
    confidential: bool,
) -> None:
    monkeypatch.undo()
    process = LineOwnerProcess(owner.home / "lab.toml", None)
    run = Run(why, confidential=confidential)
    monkeypatch.setattr(process, "_task_of", lambda order: run)
    order = owner.order(ONE)
    order = replace(order, folder=str(Path(order.folder) / "not" / "made"))
    process._order = order
    loop: Any = SimpleNamespace(call_soon_threadsafe=lambda work: work())
    process._carry_out(order, loop)
    assert owner_is_free(process)
    left = json.loads((Path(order.folder) / LEFT_NAME).read_text())
    assert (left["run_id"], left["error"]) == (ONE, code)
    told = why is not None and (of_files or not confidential)
    assert ("glue" in left["why"]) is bool(left["why"]) is told


def test_a_stop_ends_what_runs_and_then_the_owner_and_is_not_taken_back(owner: Owner) -> None:
    owner.begin(ONE)
    run: Any = Heard()
    owner.process._task = run
    owner.process._stopped()
    assert run.heard == [("stop", Text("stop.signal", name="SIGTERM"))]
    assert owner.ask("status")["leaving"]
    assert owner.process._idle.is_set()
    assert owner.ask("stay")["code"] == "bad_order"


@pytest.mark.parametrize("session", [OTHER, "../elsewhere"])
def test_a_run_goes_on_from_one_beside_it_and_from_no_other_place(
    tmp_path: Path, session: str
) -> None:
    point = ResumeFrom(session_id=session, checkpoint_id="c")
    found = _earlier(tmp_path / ONE, point)
    assert found == (tmp_path / OTHER if session == OTHER else None)
    assert _earlier(tmp_path / ONE, None) is None


@pytest.mark.parametrize("speed", [None, 5.0])
@pytest.mark.parametrize("person", [False, True])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_run_is_made_of_its_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    speed: float | None,
    *,
    person: bool,
    resumed: bool,
) -> None:
    plan = read_lab(SHORT_LINE)
    kind = SimpleNamespace(kind="terminal" if person else "simulated")
    plan = replace(plan, file=plan.file.model_copy(update={"operator": kind}))
    made: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(line_owner, "read_lab", lambda lab: plan)
    monkeypatch.setattr(line_owner, "TaskRun", lambda *said, **more: made.append((said, more)))
    (tmp_path / "task.json").write_bytes(message("k"))
    point = {"session_id": OTHER, "checkpoint_id": "c"} if resumed else None
    order = RunOrder(
        run_id=ONE,
        folder=str(tmp_path / ONE),
        submit=str(tmp_path / "task.json"),
        seed=3,
        resume_from=point,
        approval_wait_s=7.0,
    )
    process = LineOwnerProcess(SHORT_LINE, speed)
    if person and speed is None:
        with pytest.raises(BadLabFile) as refused:
            process._task_of(order)
        assert str(SHORT_LINE) in str(refused.value)
        return
    process._task_of(order)
    (((lab, sent, payload), more),) = made
    assert lab is plan
    assert (sent.message_id, sent.payload) == ("k", payload)
    asked = None if payload.resume_from is None else payload.resume_from.model_dump()
    assert asked == point
    assert isinstance(more.pop("operator"), RemoteOperator if person else type(None))
    more.pop("accepted")
    assert more == {
        "speed": speed,
        "seed": 3,
        "out": tmp_path / ONE,
        "approval_wait_s": 7.0,
        "session_id": ONE,
        "earlier": tmp_path / OTHER if resumed else None,
        "by_calendar": True,
    }
