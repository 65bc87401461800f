"""A person keeps the valid beginning of a damaged record of the tasks."""

import pytest

from commands import say
from journal_rows import replaced
from labharness.lab import read_lab
from labharness.lab.config.lease import Lease
from labharness.lab.house.house_process import HOUSE_LOCK
from labharness.work.task.commands import CreateTask
from labharness.work.task.house import HouseJournal
from labharness.work.task.kept import HOUSE_JOURNAL
from rig import IV
from tasks_alone import ANA


@pytest.mark.promise(59)
def test_what_is_valid_of_a_damaged_record_of_the_tasks_is_kept_by_a_command() -> None:
    home = read_lab(IV).state_dir
    home.mkdir(parents=True)
    none = say("tasks", "salvage", "--lab", IV)
    assert (none.code, "no task was ever kept" in none.err) == (1, False), none.err
    path = home / HOUSE_JOURNAL
    with HouseJournal(path) as house:
        for number in range(3):
            house.give(CreateTask(task_id=f"t{number}", objective="grow", key=f"k{number}"), ANA, 1)
    assert "nothing was changed" in say("tasks", "salvage", "--lab", IV).out
    replaced(path, b"k1", b"kk")
    damaged = path.read_bytes()
    lease = Lease(home / HOUSE_LOCK, "house 1")
    assert say("tasks", "salvage", "--lab", IV).code == 1
    assert path.read_bytes() == damaged
    lease.release()
    said = say("tasks", "salvage", "--lab", IV)
    assert said.code == 0, said.err
    assert "the 1 records before the damage are kept, and 2 behind it are lost" in said.out
    assert path.with_name(f"{HOUSE_JOURNAL}.damaged-1").read_bytes() == damaged
    with HouseJournal(path) as house:
        assert list(house.tasks.by_id) == ["t0"]
