"""The queue: the most urgent of what may begin, the oldest of those, nothing before its time."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.work.task.commands import (
    ArchiveTask,
    CompleteTask,
    CreateTask,
    FailTask,
    LinkTasks,
    ReportStatus,
    StartTask,
)
from labharness.work.task.queue import PRIORITIES, Need, _told, next_task, reviewed, waiting
from labharness.work.task.record import Task
from tasks_alone import ANA, OLGA, TasksAlone


def line(task: Task) -> Need:
    return Need(("line",))


@pytest.mark.parametrize(
    ("status", "reason", "action", "why", "told"),
    [
        ("queued", "", "", "", []),
        ("queued", "", "", "hot", ["waiting_resource"]),
        ("queued", "hot", "", "hot", ["waiting_resource"]),
        ("waiting_resource", "hot", "line", "hot", []),
        ("waiting_resource", "hot", "line", "hotter", []),
        ("waiting_resource", "taken", "lease", "hot", ["queued", "waiting_resource"]),
        ("waiting_resource", "hot", "line", "", ["queued"]),
    ],
)
def test_what_a_task_waits_for_is_told_once_and_when_it_changes(
    status: str, reason: str, action: str, why: str, told: list[str]
) -> None:
    task: Any = SimpleNamespace(
        task_id="t", status=status, status_reason=reason, required_action=action
    )
    said = [each.to for each in _told(task, why, "line") if isinstance(each, ReportStatus)]
    assert said == told


def queued(alone: TasksAlone, name: str, priority: str = "normal", after: str = "") -> None:
    assert not alone(CreateTask(task_id=name, objective="grow", priority=priority), ANA)
    if after:
        assert not alone(LinkTasks(task_id=name, kind="blocked_by", target_id=after))
    review(alone)


def review(alone: TasksAlone) -> None:
    for command in list(reviewed(alone.tasks)):
        assert not alone(command)


@pytest.mark.promise(63)
@given(st.lists(st.sampled_from((*PRIORITIES, "whatever")), max_size=8))
def test_tasks_begin_by_priority_and_then_by_age(priorities: list[str]) -> None:
    alone = TasksAlone()
    for number, priority in enumerate(priorities):
        queued(alone, f"{number}", priority)
    ranks = [PRIORITIES.index(p) if p in PRIORITIES else 2 for p in priorities]
    expected = sorted(range(len(ranks)), key=lambda each: (ranks[each], each))
    assert [int(each.task_id) for each in waiting(alone.tasks)] == expected
    first = next_task(alone.tasks, line)
    assert (None if first is None else int(first.task_id)) == (expected[0] if expected else None)


def test_a_task_waits_for_the_one_before_it_to_be_completed() -> None:
    alone = TasksAlone()
    alone.running("first")
    queued(alone, "then", "urgent", after="first")
    assert alone["then"].status == "blocked"
    assert alone["then"].required_action == "first"
    assert next_task(alone.tasks, line) is None
    alone.reconcile("first")
    assert not alone(CompleteTask(task_id="first"))
    review(alone)
    found = next_task(alone.tasks, line)
    assert found is not None
    assert found.task_id == "then"


@pytest.mark.parametrize("archived", [False, True])
def test_a_task_behind_one_that_failed_stays_blocked(archived: bool) -> None:
    alone = TasksAlone()
    alone.running("first")
    queued(alone, "then", after="first")
    assert not alone(FailTask(task_id="first", error_code="timeout"))
    assert not (archived and alone(ArchiveTask(task_id="first"), OLGA))
    review(alone)
    assert alone["then"].status == "blocked"


def test_a_task_that_is_archived_once_it_is_completed_blocks_none() -> None:
    alone = TasksAlone()
    alone.running("first")
    alone.reconcile("first")
    assert not alone(CompleteTask(task_id="first"))
    assert not alone(ArchiveTask(task_id="first"), OLGA)
    queued(alone, "then", after="first")
    assert alone["then"].status == "queued"


def test_a_task_that_has_begun_is_not_in_the_queue() -> None:
    alone = TasksAlone()
    queued(alone, "one")
    assert not alone(StartTask(task_id="one", run_id="r", worker="line"))
    assert waiting(alone.tasks) == ()
