"""What a turn of the house and of its outbox costs does not grow with the tasks that have ended."""

from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from labharness.faces.service.outbox import FINISHED, VIA, Outbox, Positions
from labharness.lab.house.house import House
from labharness.lab.house.message_store import MessageStore
from labharness.work.task.commands import CreateTask, FailTask, LinkTasks, ReportStatus, StartTask
from labharness.work.task.facts import TaskFact, folded
from labharness.work.task.house import HouseJournal
from labharness.work.task.persistent_map import PersistentMap
from labharness.work.task.record import Tasks
from line_world import LineWorld, message
from tasks_alone import ANA, TasksAlone

FEW, MANY = 20, 2_000


def ended(number: int) -> Tasks:
    """Return the state of a lab with so many ended tasks."""
    lab = TasksAlone()
    profile = {"via": VIA, "message_id": "m"}
    lab(CreateTask(task_id="t", key="k", objective="grow", session_id="s", profile=profile), ANA)
    lab(ReportStatus(task_id="t", to="accepted"))
    lab(StartTask(task_id="t", run_id="s", worker="line"))
    lab(LinkTasks(task_id="t", kind="produced_artifact", target_id="map"))
    lab(FailTask(task_id="t", error_code="too_hot"))
    return folded(numbered(fact, i) for i in range(number) for fact in lab.facts)


def numbered(fact: TaskFact, number: int) -> TaskFact:
    """Return the same fact of another task."""
    names = ("task_id", "run_id", "session_id", "key")
    ids: dict[str, Any] = {
        each: f"{getattr(fact, each)}{number}" for each in names if hasattr(fact, each)
    }
    return replace(fact, **ids)


class Lookups:
    """Counts what is looked up or listed of all that a lab ever had."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        get, listed = PersistentMap.__getitem__, PersistentMap.__iter__

        def counted_get(self_: PersistentMap[Any, Any], key: Any) -> Any:
            self.count += 1
            return get(self_, key)

        def counted_iter(self_: PersistentMap[Any, Any]) -> Any:
            self.count += len(self_)
            return listed(self_)

        patch.setattr(PersistentMap, "__getitem__", counted_get)
        patch.setattr(PersistentMap, "__iter__", counted_iter)


def turns(home: Path, number: int) -> int:
    """Return how much three tasks have looked up after so many others, from receipt to end."""
    (home / "tasks").mkdir(parents=True)
    minted = count()
    with (
        HouseJournal(home / "house.sqlite") as journal,
        closing(Positions(home / "outbox.sqlite")) as positions,
        MessageStore(home) as kept,
        pytest.MonkeyPatch.context() as patch,
    ):
        journal.tasks = ended(number)
        world = LineWorld(1)
        house = House(
            journal,
            world,
            world,
            home=home,
            lab="lab",
            now_s=lambda: 2000.0 + next(minted),
            new_id=lambda: f"id-{next(minted)}",
        )
        positions.move({f"s{i}": FINISHED for i in range(number)})
        outbox = Outbox(kept, world, positions, str, str)
        assert list(outbox.due(house.tasks)) == []
        lookups = Lookups(patch)
        names = [house.submit(message(f"new{i}")).task_id for i in range(3)]
        for _ in range(60):
            house.step()
            world.turn()
            assert list(outbox.due(house.tasks)) == []
        assert {house.tasks.by_id[each].ended_at_s is not None for each in names} == {True}
        house.close()
        return lookups.count


def test_a_turn_looks_at_what_has_not_ended_however_much_has(tmp_path: Path) -> None:
    assert turns(tmp_path / "few", FEW) == turns(tmp_path / "many", MANY)
