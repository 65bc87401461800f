"""Runs are removed when the class of their data says so, each logged before it goes."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commands import ROOT, say
from labharness.core.files.chained import read_chained
from labharness.journal import SqliteJournal
from labharness.journal.reading import verify_file
from labharness.lab.config.lab_file import RetentionTable
from labharness.lab.operate import retention
from labharness.lab.operate.retention import (
    REMOVED_NAME,
    UNSEEN_MAX,
    KeptRun,
    kept_runs,
    log_clock,
    remove_left_over,
    remove_run,
    why_clock_is_doubted,
)

LAB = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "annealing_furnace"
ENDED = datetime(2026, 3, 1, 12, tzinfo=UTC)
TABLE = RetentionTable(T1=10, T2=100)
WORDS = {"by": "Ada", "reason": "the rule"}


def run(runs: Path, name: str, data_class: str, *, ended: bool = True) -> Path:
    folder = runs / name
    folder.mkdir(parents=True)
    constraints = {"data_classification": data_class}
    with SqliteJournal(folder / "journal.sqlite") as journal:
        journal.append("submitted", {"payload": {"constraints": constraints}}, 0.0)
        if ended:
            journal.append("terminal", {"type": "task_completed"}, 1.0)
    (folder / "report.html").write_text("<html>", "utf-8")
    for each in folder.iterdir():
        os.utime(each, (ENDED.timestamp(), ENDED.timestamp()))
    return folder


def over(runs: Path, days: float) -> list[str]:
    now = ENDED + timedelta(days=days)
    return [each.folder.name for each in kept_runs(runs, TABLE) if each.over(now)]


@pytest.mark.promise(73)
def test_each_class_has_its_own_days(tmp_path: Path) -> None:
    for name, data_class in (("a", "T1"), ("b", "T2"), ("c", "T3"), ("d", "T9")):
        run(tmp_path, name, data_class)
    run(tmp_path, "open", "T1", ended=False)
    assert over(tmp_path, 9.99) == []
    assert over(tmp_path, 10) == ["a"]
    assert over(tmp_path, 100) == ["a", "b"]
    assert over(tmp_path, 36_500) == ["a", "b"], "c and d state no days, and one never ended"


@pytest.mark.promise(73)
@given(days=st.none() | st.integers(1, 36_500), age=st.floats(0, 40_000))
def test_without_days_a_run_stays_and_with_days_not_a_day_less(
    days: int | None, age: float
) -> None:
    kept = retention.KeptRun(
        Path("run"),
        "T2",
        "s-1",
        ENDED,
        None if days is None else ENDED + timedelta(days=days),
    )
    assert kept.over(ENDED + timedelta(days=age)) is (days is not None and age >= days)


@pytest.mark.promise(73)
def test_a_run_is_logged_with_its_head_before_it_goes(tmp_path: Path) -> None:
    folder = run(tmp_path, "a", "T1")
    head = verify_file(folder / "journal.sqlite").head
    (kept,) = kept_runs(tmp_path, TABLE)
    now = ENDED + timedelta(days=10)
    with pytest.raises(ValueError, match="is kept"):
        remove_run(kept, **WORDS, now=now - timedelta(seconds=1))
    assert folder.exists()
    remove_run(kept, **WORDS, now=now)
    assert not folder.exists()
    (line,) = [body for body, _ in read_chained(tmp_path / REMOVED_NAME)]
    assert (line["run"], line["head"], line["records"], line["by"]) == ("a", head.hash, 2, "Ada")


def fails(*asked: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.promise(73)
@pytest.mark.parametrize(
    ("breaks", "whole"),
    [
        (lambda patch: patch.setattr(retention, "append_chained", fails), True),
        (lambda patch: patch.setattr(Path, "rename", fails), True),
        (lambda patch: patch.setattr(shutil, "rmtree", fails), False),
    ],
    ids=["log", "rename", "remove"],
)
def test_a_removal_that_fails_leaves_a_whole_run_or_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[pytest.MonkeyPatch], None],
    whole: bool,
) -> None:
    folder = run(tmp_path, "a", "T1")
    (kept,) = kept_runs(tmp_path, TABLE)
    with monkeypatch.context() as patch:
        breaks(patch)
        with pytest.raises(OSError, match="No space"):
            remove_run(kept, **WORDS, now=ENDED + timedelta(days=10))
    assert folder.exists() is whole
    assert [each.folder for each in kept_runs(tmp_path, TABLE)] == ([folder] if whole else [])
    assert len(list(tmp_path.glob(".removed-*"))) == (0 if whole else 1)
    remove_left_over(tmp_path)
    assert not list(tmp_path.glob(".removed-*"))


@pytest.mark.promise(73)
def test_a_folder_is_emptied_when_its_other_name_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (
        (retention, "append_chained"),
        (Path, "rename"),
        (retention, "sync_folder"),
        (shutil, "rmtree"),
    )
    done: list[str] = []
    folder = run(tmp_path, "a", "T1")
    (kept,) = kept_runs(tmp_path, TABLE)
    with monkeypatch.context() as patch:
        for owner, name in steps:
            patch.setattr(owner, name, noted(getattr(owner, name), name, done))
        remove_run(kept, **WORDS, now=ENDED + timedelta(days=10))
    assert done == [name for _, name in steps]
    assert not folder.exists()


def noted(does: Callable[..., object], name: str, done: list[str]) -> Callable[..., object]:
    def noting(*asked: object) -> object:
        done.append(name)
        return does(*asked)

    return noting


@pytest.mark.promise(73)
def test_a_link_is_no_run(tmp_path: Path) -> None:
    elsewhere = run(tmp_path / "elsewhere", "a", "T1")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(elsewhere)
    assert list(kept_runs(tmp_path / "runs", TABLE)) == []


@pytest.mark.promise(73)
def test_what_only_has_the_name_of_a_rest_blocks_no_removal(tmp_path: Path) -> None:
    elsewhere = run(tmp_path / "elsewhere", "a", "T1")
    runs = tmp_path / "runs"
    run(runs, "a", "T1")
    (runs / ".removed-a").symlink_to(elsewhere)
    (runs / ".removed-gone").symlink_to(tmp_path / "nowhere")
    (runs / ".removed-file").write_text("")
    remove_left_over(runs)
    (kept,) = kept_runs(runs, TABLE)
    remove_run(kept, **WORDS, now=ENDED + timedelta(days=10))
    assert [each.name for each in runs.iterdir()] == [REMOVED_NAME]
    assert (elsewhere / "report.html").exists(), "of a link the link alone"


@pytest.mark.promise(73)
@given(
    days=st.integers(1, 60),
    pauses=st.lists(st.floats(0.0, 1.1), min_size=1, max_size=20),
    jump=st.floats(0.0, 3.0),
)
@example(days=10, pauses=[0.4], jump=1.7)
def test_nothing_is_removed_by_a_clock_that_jumped_further_than_the_bound(
    tmp_path_factory: pytest.TempPathFactory, days: int, pauses: list[float], jump: float
) -> None:
    period = timedelta(days=days)
    most = min(UNSEEN_MAX, period / 2)
    ends = [ENDED]  # by the true clock, which jumps once all of them have ended
    for pause in pauses:
        ends.append(ends[-1] + pause * most)
    true = ends[-1] + timedelta(hours=1)
    now = true + jump * most
    found = [KeptRun(Path(str(n)), "T1", "", at, at + period) for n, at in enumerate(ends)]
    over = [each for each in found if each.over(now)]
    runs = tmp_path_factory.mktemp("runs")
    if not why_clock_is_doubted(over, found, runs, now):
        assert all(true - each.ended_at >= period - most for each in over)
    log_clock(runs, checked=True, by="Ada", now=now)
    assert why_clock_is_doubted(over, found, runs, now) == ""


@pytest.mark.promise(73)
def test_a_removal_each_week_vouches_for_the_clock_of_a_lab_that_rests(tmp_path: Path) -> None:
    def doubted(days: float) -> str:
        now = ENDED + timedelta(days=days)
        return why_clock_is_doubted([kept], [kept], tmp_path, now)

    kept = KeptRun(tmp_path / "a", "T1", "", ENDED, ENDED + timedelta(days=20))
    for day in (7, 14):
        assert not doubted(day)
        log_clock(tmp_path, checked=False, by="timer", now=ENDED + timedelta(days=day))
    assert not doubted(21)
    said = doubted(21.01)
    assert "from 2026-03-15T12:00:00.000Z to 2026-03-22T12:14:24.000Z, more than 7 d" in said
    with (tmp_path / REMOVED_NAME).open("a") as log:
        log.write('{"at": "2026-03-21T12:00:00Z", "after": "made up"}\n')
    assert doubted(21.01) == said, "a line that nobody here wrote is no trace"


@pytest.mark.promise(73)
def test_the_command_removes_nothing_by_a_clock_that_is_days_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    run(runs, "seconds old", "T1")
    now = ENDED + timedelta(days=400)
    monkeypatch.setattr("labharness.faces.cli.records.wall_clock_utc", lambda: now)
    words = ("--runs", runs, "--lab", lab_with_days(tmp_path), "--name", "Ada", "--reason", "rule")
    refused = say("retention", "apply", *words)
    assert refused.code != 0
    assert "the clock says 2027-04-05" in refused.err
    assert [each.name for each in runs.iterdir()] == ["seconds old"]
    done = say("retention", "apply", *words, "--clock-checked")
    assert (done.code, "1 removed, 0 kept" in done.out) == (0, True), done


def lab_with_days(folder: Path) -> Path:
    shutil.copytree(LAB, folder / "lab")
    lab = folder / "lab" / "lab.toml"
    with lab.open("a", encoding="utf-8") as file:
        file.write("\n[retention]\nT1 = 10\n")
    return lab


@pytest.mark.promise(73)
def test_the_command_removes_what_is_over_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = ENDED + timedelta(days=10)
    monkeypatch.setattr("labharness.faces.cli.records.wall_clock_utc", lambda: now)
    runs = tmp_path / "runs"
    run(runs, "old", "T1")
    run(runs, "kept", "T2")
    shutil.copytree(runs / "kept", runs / ".removed-half")  # a power cut came between
    log_clock(runs, checked=False, by="timer", now=ENDED + timedelta(days=5))
    lab = lab_with_days(tmp_path)
    words = ("--runs", runs, "--lab", lab)
    listed = say("retention", "list", *words)
    assert listed.code == 0, listed
    assert "old  T1  ended 2026-03-01  kept until 2026-03-11" in listed.out
    assert "kept  T2  ended 2026-03-01  kept until always" in listed.out
    assert "half" not in listed.out
    done = say("retention", "apply", *words, "--name", "Ada", "--reason", "the rule")
    assert (done.code, "1 removed, 1 kept" in done.out) == (0, True), done
    assert sorted(each.name for each in runs.iterdir()) == ["kept", REMOVED_NAME]
    none = say("retention", "list", "--runs", tmp_path / "none", "--lab", lab)
    assert none.code == 64
