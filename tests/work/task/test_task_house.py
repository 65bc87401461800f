"""Tasks outlive the process that keeps them: what was acknowledged is found again."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from journal_rows import replaced
from labharness.journal import JournalDamaged, JournalFailed
from labharness.journal.reading import verify_file
from labharness.work.task.commands import CreateTask, ReportStatus, StartTask
from labharness.work.task.house import HouseJournal, PendingRecord
from rig import HERE
from tasks_alone import ANA, RUNTIME

CREATE = CreateTask(task_id="t", objective="grow", key="k")


def test_a_session_is_of_the_first_task_that_had_it_and_none_is_no_session(tmp_path: Path) -> None:
    with HouseJournal(tmp_path / "house.sqlite") as house:
        house.give(CREATE, ANA, 1.0)
        assert dict(house.tasks.sessions.items()) == {}
        for name in ("u", "v"):
            house.give(replace(CREATE, task_id=name, key=name, session_id="s"), ANA, 1.0)
        assert dict(house.tasks.sessions.items()) == {"s": "u"}


def test_tasks_refusals_and_keys_are_the_same_after_a_restart(tmp_path: Path) -> None:
    with HouseJournal(tmp_path / "house.sqlite") as house:
        house.give(CREATE, ANA, 1.0)
        house.give(ReportStatus(task_id="t", to="accepted"), ANA, 2.0)
        house.give(ReportStatus(task_id="t", to="accepted"), RUNTIME, 3.0)
        house.give(StartTask(task_id="t", run_id="r", worker="line"), RUNTIME, 4.0)
        before = house.tasks
    with HouseJournal(tmp_path / "house.sqlite") as house:
        assert house.tasks == before
        assert before.refusals == 1
        assert house.give(CREATE, ANA, 5.0) == ()
        assert len(house.tasks.by_id["t"].attempts) == 1


def test_a_fact_that_was_not_written_does_not_change_the_state(tmp_path: Path) -> None:
    path = tmp_path / "house.sqlite"
    with HouseJournal(path) as house:
        second = HouseJournal(path)
        begun = second.draft(1.0)
        house.give(CREATE, ANA, 1.0)
        with pytest.raises(JournalFailed):
            second.give(CREATE, ANA, 2.0)
        assert second.tasks.by_id == {}
        with pytest.raises(JournalFailed, match="open it again"):
            second.give(CREATE, ANA, 3.0)
        with pytest.raises(JournalFailed, match="open it again"):
            second.expire(3.0)
        with pytest.raises(JournalFailed, match="open it again"):
            second.draft(3.0)
        with pytest.raises(JournalFailed, match="open it again"):
            second.append_pending(begun, None)
        with pytest.raises(JournalFailed):
            second.close()  # its fact is still not on the disk, and it says so


@pytest.mark.parametrize("fails", ["append", "commit"])
def test_a_fact_that_the_disk_does_not_take_is_raised_and_is_none(
    tmp_path: Path, fails: str
) -> None:
    with HouseJournal(tmp_path / "house.sqlite") as house:
        with (
            patch.object(house._journal, fails, side_effect=JournalFailed("full")),
            pytest.raises(JournalFailed, match="full"),
        ):
            house.give(CREATE, ANA, 1.0)
        assert house.tasks.by_id == {}
        with pytest.raises(JournalFailed, match="open it again"):
            house.give(CREATE, ANA, 1.0)


@pytest.mark.promise(61)
def test_a_record_that_is_kept_ahead_is_caught_up_with_once(tmp_path: Path) -> None:
    path = tmp_path / "house.sqlite"
    dead = HouseJournal(path)
    dead.give(CREATE, ANA, 1.0)
    ahead = []
    for number in range(3):
        draft = dead.draft(2.5)
        draft.give(replace(CREATE, task_id=f"t{number}", key=f"k{number}"), ANA)
        record = dead.pending_record(draft)
        assert record is not None
        dead.append_pending(draft, record)
        ahead.append(PendingRecord.from_bytes(record.to_bytes()))
    known, head = dead.tasks, dead._journal.head
    assert dead.pending_count == 3
    with HouseJournal(path) as house:
        assert list(house.tasks.by_id) == ["t"], "it died before it was written here"
        house.catch_up(reversed(ahead))
        assert (house.tasks, house._journal.head, house.pending_count) == (known, head, 0)
        house.catch_up(ahead)
        assert (house.tasks, house._journal.head) == (known, head)
    with HouseJournal(path) as house:
        assert house.tasks == known


@pytest.mark.promise(61)
def test_a_record_of_another_past_is_not_caught_up_with(tmp_path: Path) -> None:
    with HouseJournal(tmp_path / "one.sqlite") as one, HouseJournal(tmp_path / "two") as two:
        one.give(CREATE, ANA, 1.0)
        two.give(CREATE, ANA, 1.5)
        draft = one.draft(2.0)
        draft.give(replace(CREATE, task_id="u", key="l"), ANA)
        record = one.pending_record(draft)
        assert record is not None
        two.catch_up((record, replace(record, seq=record.seq + 1)))
        assert list(two.tasks.by_id) == ["t"]


def test_a_draft_without_facts_is_no_record(tmp_path: Path) -> None:
    with HouseJournal(tmp_path / "house.sqlite") as house:
        house.give(CREATE, ANA, 1.0)
        draft = house.draft(2.0)
        draft.give(CREATE, ANA)
        assert house.pending_record(draft) is None
        house.append_pending(draft, None)
        assert house.pending_count == 0


@pytest.mark.promise(20)
def test_a_killed_process_loses_no_acknowledged_task(tmp_path: Path) -> None:
    path = tmp_path / "house.sqlite"
    told: list[str] = []
    for lines in (1, 7, 20):
        command = [sys.executable, str(HERE / "task_writer.py"), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            told += [writer.stdout.readline().strip() for _ in range(lines)]
            writer.kill()
            told += writer.stdout.read().split()
        with HouseJournal(path) as house:
            assert set(told) <= house.tasks.by_id.keys()
            assert len(house.tasks.by_id) - len(told) <= 3  # one unacknowledged a kill
            assert len(house.tasks.keys) == len(house.tasks.by_id)
        assert verify_file(path).ok
    assert len(told) == len(set(told)) >= 28


@pytest.mark.promise(59)
def test_a_damaged_house_opens_to_its_beginning_only_where_the_loss_is_agreed_to(
    tmp_path: Path,
) -> None:
    path = tmp_path / "house.sqlite"
    with HouseJournal(path) as house:
        house.give(CREATE, ANA, 1.0)
        before = house.tasks
        house.give(ReportStatus(task_id="t", to="accepted"), RUNTIME, 2.0)
        house.give(StartTask(task_id="t", run_id="r", worker="line"), RUNTIME, 3.0)
    replaced(path, b"accepted", b"rejected")
    damaged = path.read_bytes()
    with pytest.raises(JournalDamaged, match="record 2 is bad or missing"):
        HouseJournal(path)
    assert path.read_bytes() == damaged
    with HouseJournal(path, salvaging=True) as house:
        assert house.tasks == before
        assert house.damage is not None
        assert (house.damage.first_bad_seq, house.damage.rows_lost) == (2, 2)
    assert path.with_name("house.sqlite.damaged-1").read_bytes() == damaged
    with HouseJournal(path, salvaging=True) as house:
        assert house.tasks == before
        assert house.damage is None
