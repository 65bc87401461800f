"""How a house follows a run and its lab's files: each question is asked in its order, and once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.lab.house import house, screening
from labharness.lab.house.house import House
from labharness.lab.house.orders import DESK, RECORDS_MAX
from labharness.lab.house.screening import LOOK_S, LabFiles


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
