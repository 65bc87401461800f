"""How a house follows a run and its lab's files: each question is asked in its order, and once."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalDamaged, JournalFailed
from labharness.journal.encryption import KeyMissing
from labharness.lab import read_lab as read_whole_lab
from labharness.lab.config.lease import Lease, Leased
from labharness.lab.house import house, screening
from labharness.lab.house.desk_work import DeskWork
from labharness.lab.house.house import House
from labharness.lab.house.house_process import HOUSE_LOCK, salvage_house
from labharness.lab.house.intake import forget
from labharness.lab.house.orders import DESK, BadOrder
from labharness.lab.house.screening import LOOK_S, LabFiles
from labharness.lab.house.start import _spawned
from labharness.work.task.commands import ReportStatus
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import HOUSE_JOURNAL
from rig import SHORT_LINE

LOST_S, RECORDS_MAX = 10.0, 256  # as promised, not as imported


def test_the_files_of_a_lab_are_read_anew_when_one_of_them_changed_and_else_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    now_s = [0.0]
    lab = tmp_path / "lab.toml"
    lab.write_text("one")

    def read_lab(path: Path) -> str:
        reads.append(1)
        return path.read_text()

    monkeypatch.setattr(screening, "read_lab", read_lab)
    monkeypatch.setattr(screening, "lab_facts_without_line", lambda plan: f"facts of {plan}")
    monkeypatch.setattr(screening, "steady_s", lambda: now_s[0])
    files = LabFiles(lab)
    files.look()
    assert not reads, "nobody has asked"
    for after_s, text, found, count in (
        (0.0, "one", "one", 1),
        (LOOK_S, "one", "one", 1),  # it was looked at, and nothing had changed
        (0.5 * LOOK_S, "three", "one", 1),
        (0.5 * LOOK_S, "three", "three", 2),
    ):
        now_s[0] += after_s
        if lab.read_text() != text:
            lab.write_text(text)
        assert list(files.current()) == [found, f"facts of {found}"]
        assert len(reads) == count, text


def spied(begun: bool) -> Any:
    said: list[Any] = []
    spy: Any = SimpleNamespace(said=said, _say=said.append, _unread_s={"r": 1.0})
    spy.runs = SimpleNamespace(begun=lambda run_id: begun)
    for name in ("_doubt", "_found", "_not_begun", "_over", "_unreadable", "_judge"):
        setattr(spy, name, lambda *given, name=name, **more: said.append((name, more)))
    return spy


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("at", [None, "", "r", "other"])
def test_an_open_run_is_judged_by_its_end_then_by_what_its_worker_does(
    at: str | None, ended: bool, begun: bool
) -> None:
    spy, run = spied(begun), SimpleNamespace(run_id="r")
    status: Any = None if at is None else SimpleNamespace(run_id=at)
    House._judge(spy, SimpleNamespace(task_id="t"), run, status, ended=ended)  # type: ignore[arg-type]  # stands in
    (said,) = spy.said
    if ended:
        assert (said[0].task_id, said[0].error_code) == ("t", "unreconciled")
        return
    here = {None: "_doubt", "r": "_found"}.get(at, "_over" if begun else "_not_begun")
    assert said[0] == here


@pytest.mark.parametrize("worker", [DESK, "line"])
@pytest.mark.parametrize("busy", [True, False])
def test_the_records_of_a_run_are_followed_to_their_end(
    worker: str, busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ["step"] * 2 * RECORDS_MAX + ["terminal"]
    records = [SimpleNamespace(seq=n + 1, kind=kind) for n, kind in enumerate(kinds)]
    run = SimpleNamespace(run_id="r", worker=worker)
    task = SimpleNamespace(task_id="t", current=run)
    spy = spied(True)
    spy.tasks = SimpleNamespace(by_id={"t": task})
    spy._say = lambda found: spy.said.extend(found)
    monkeypatch.setattr(house, "read_up_to", lambda run: 1)
    monkeypatch.setattr(
        house, "next_records", lambda runs, name, after: records[after:][:RECORDS_MAX]
    )
    monkeypatch.setattr(house, "followed", lambda task, run, found: [each.seq for each in found])
    status: Any = SimpleNamespace(run_id="x" if busy else "")
    House._follow(spy, task, run, status)  # type: ignore[arg-type]  # stands in
    waits = worker == DESK and busy  # its answer is on its way
    assert spy.said[:-1] == [each.seq for each in records[1 : len(records) - waits]]
    assert spy.said[-1] == ("_judge", {"ended": not waits})
    assert not spy._unread_s


@pytest.mark.parametrize("status", ["running", "completed"])
def test_the_key_of_a_submission_goes_with_its_removed_run_once_its_task_has_ended(
    tmp_path: Path, status: str
) -> None:
    run = SimpleNamespace(run_id="r")
    task = SimpleNamespace(task_id="t", session_id="s", status=status, attempts=(run,))
    tasks: Any = SimpleNamespace(by_id={"t": task})
    key = tmp_path / "tasks" / "t.key.json"
    key.parent.mkdir()
    key.write_text("{}")
    forget(tmp_path, tasks, "another")
    assert key.exists()
    for _ in range(2):  # it may have gone before
        forget(tmp_path, tasks, "r")
        assert key.exists() is (status == "running")


def test_a_journal_of_a_house_is_salvaged_only_where_no_house_is_up(tmp_path: Path) -> None:
    plan = replace(read_whole_lab(SHORT_LINE), state_dir=tmp_path)
    HouseJournal(tmp_path / HOUSE_JOURNAL).close()
    lease = Lease(tmp_path / HOUSE_LOCK, "a house")
    with pytest.raises(Leased):
        salvage_house(plan)
    lease.release()
    for _ in range(2):  # the lock was given back
        assert salvage_house(plan) is None, "it was whole"


@pytest.mark.parametrize("why", [KeyMissing("its key"), JournalDamaged("record 7")])
@pytest.mark.parametrize("waited_s", [0.0, LOST_S, LOST_S + 0.5])
@pytest.mark.parametrize("at", [None, "", "r", "other"])
@pytest.mark.parametrize("task_status", ["running", "unknown", "completed"])
def test_a_run_whose_journal_cannot_be_read_is_over_once_its_worker_has_left_it_long_enough(
    why: JournalFailed, waited_s: float, at: str | None, task_status: str
) -> None:
    spy: Any = spied(True)
    run: Any = SimpleNamespace(run_id="r")
    spy.now_s = lambda: 100.0 + waited_s
    spy._unread_s = {"r": 100.0}
    said: list[Any] = []
    spy._say = said.append
    task: Any = SimpleNamespace(task_id="t", status=task_status)
    status: Any = None if at is None else SimpleNamespace(run_id=at)
    House._unreadable(spy, task, run, status, why)
    over = at not in (None, "r") and (isinstance(why, KeyMissing) or waited_s > LOST_S)
    called = {"r": ["_found"]}.get(at or "", ["_over"] if over else [])
    assert [each[0] for each in spy.said] == called
    doubted = at not in (None, "r") and not over and task_status == "running"
    told = [ReportStatus(task_id="t", to="unknown", reason=why.code)]
    assert said == ([told] if doubted else [])
    spy._unread_s.clear()
    House._unreadable(spy, task, run, None, why)
    assert spy._unread_s == {"r": 100.0 + waited_s}, "from when it was first seen"


def test_a_run_of_the_desk_is_asked_to_end_and_nothing_else() -> None:
    heard: list[str] = []
    files: Any = None
    desk = DeskWork(files)
    run: Any = SimpleNamespace(abort=heard.append)
    alive: Any = SimpleNamespace(is_alive=lambda: True, join=lambda within_s: heard.append("join"))
    gone: Any = SimpleNamespace(is_alive=lambda: False)
    desk._runs = {"r": (alive, run), "old": (gone, run)}
    for name, do, code in (("other", "abort", "order.other"), ("r", "hold", "hold.nothing")):
        with pytest.raises(BadOrder) as refused:
            desk.ask(name, do, "enough")
        text = Text(code, run_id="other") if code == "order.other" else Text(code)
        assert refused.value.args[0] == text
    with pytest.raises(BadOrder) as no_step:
        desk.confirm("r", "load", "Ann")
    assert no_step.value.args[0] == Text("operator.not_asked")
    desk.ask("r", "abort", "enough")
    assert (heard, desk.held()) == (["enough"], "")
    assert [desk.status_of(name).run_id for name in ("r", "old", "other")] == ["r", "", ""]
    assert desk.status_of("r").speed == 1
    assert list(desk._runs) == ["r"]
    desk.leave("down")
    assert heard == ["enough", "down", "join"]


@pytest.mark.skipif(os.name != "posix", reason="it starts a process as Unix systems do")
def test_a_process_is_started_in_a_session_of_its_own_and_says_what_it_says_in_its_log(
    tmp_path: Path,
) -> None:
    log = tmp_path / "owner.log"
    log.write_text("before\n")
    says = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    for _ in range(2):
        pid = _spawned((sys.executable, "-c", f"{says}; print('wrong', file=sys.stderr)"), log)
        assert os.waitpid(pid, 0)[1] == 0
    lines = log.read_text().splitlines()
    assert (lines[0], sorted(lines[1:3])) == ("before", ["True ''", "wrong"])
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("worker", "desk", "found"), [(DESK, "d", "d"), (DESK, None, "o"), ("line", "d", "o")]
)
def test_a_run_of_a_desk_that_there_is_no_more_is_asked_of_the_line_owner(
    worker: str, desk: str | None, found: str
) -> None:
    house: Any = SimpleNamespace(desk=desk, owner="o")
    run: Any = SimpleNamespace(worker=worker)
    asked: Any = House._worker(house, run)
    assert asked == found
