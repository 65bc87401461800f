"""A run that is silent for too long is ended, and a caller whose line is latched is answered."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from house_kept import Kept
from labharness.lab.house.house import _called_elsewhere
from labharness.work.task.queue import Need
from labharness.work.task.record import RetryPolicy
from line_world import message

ANSWER_S = 300.0  # as promised, not as imported


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


SILENT_S = 60.0
LATE = {"error_code": "timeout", "error_message": "nothing was heard"}


@pytest.fixture
def run(kept: Kept) -> str:
    """A task at work whose lab bounds its silence."""
    kept.journal.close()
    kept.open(retries=RetryPolicy(2, inactivity_timeout_s=SILENT_S))
    name = kept.house.submit(message("k")).task_id
    while kept.status(name) != "running":
        kept.turn()
    return name


@pytest.mark.promise(61)
def test_a_run_that_is_silent_for_too_long_is_ended_by_its_worker(kept: Kept, run: str) -> None:
    kept.now_s += SILENT_S - 1.0
    kept.house.step()
    assert kept.world.timed_out == []
    kept.now_s += 2.0
    kept.house.step()
    assert kept.world.timed_out == [kept.house.tasks.by_id[run].attempts[0].run_id]
    assert kept.status(run) == "running"  # its line is made safe first
    kept.world.write(("terminal", {"type": "task_failed", "payload": LATE}))
    kept.house.step()
    task = kept.house.tasks.by_id[run]
    assert (task.status, task.error_code) == ("timed_out", "timeout")
    assert task.status_reason == "nothing was heard"


def test_a_worker_that_does_not_end_it_keeps_its_line_and_the_task_has_timed_out(
    kept: Kept, run: str
) -> None:
    kept.now_s += SILENT_S + ANSWER_S + 1.0
    kept.house.step()
    task = kept.house.tasks.by_id[run]
    assert (task.status, task.error_code) == ("timed_out", "inactivity")
    assert "60 s" in task.status_reason
    assert kept.house.tasks.leases  # the line is nobody else's while its owner names the run


def test_a_hold_is_not_silence(kept: Kept, run: str) -> None:
    held = {"from_state": "RUNNING", "to_state": "PAUSED", "reason": "look"}
    kept.world.write(("event", {"event_type": "state_changed", "data": held}))
    kept.house.step()
    kept.now_s += 100 * SILENT_S
    kept.house.step()
    assert (kept.status(run), kept.world.timed_out) == ("paused", [])


@pytest.mark.promise(65)
def test_a_caller_elsewhere_is_answered_where_the_line_is_latched_and_a_person_here_waits(
    kept: Kept,
) -> None:
    kept.world.latched = "furnace too hot"
    here = kept.house.submit(message("a")).task_id
    kept.turn()
    there = [kept.house.submit(message(key), via="amqp").task_id for key in "bc"]
    for _ in range(4):
        kept.turn()
    assert kept.status(here) == "waiting_resource"
    assert kept.house.tasks.by_id[here].status_reason == "furnace too hot"
    for each in there:
        task = kept.house.tasks.by_id[each]
        assert (task.status, task.error_code) == ("failed", "resource_unavailable")
        assert task.status_reason == "furnace too hot"
    assert kept.world.orders == []


@pytest.mark.parametrize("via", ["", "amqp"])
@pytest.mark.parametrize("instruments", [(), ("furnace",)])
@pytest.mark.parametrize(
    ("status", "attempts", "begun", "waits"),
    [
        ("queued", 0, False, True),
        ("waiting_approval", 0, False, False),
        ("preparing", 1, False, True),
        ("preparing", 1, True, False),
        ("running", 1, False, False),
        ("queued", 2, False, False),
        ("preparing", 2, False, False),
    ],
)
def test_a_caller_elsewhere_is_answered_only_where_its_task_waits_for_the_line(
    via: str, instruments: tuple[str, ...], status: str, attempts: int, begun: bool, waits: bool
) -> None:
    runs = tuple(SimpleNamespace(run_id=f"r{number}") for number in range(attempts))
    task = SimpleNamespace(
        profile={"via": via} if via else {},
        status=status,
        attempts=runs,
        current=runs[-1] if runs else None,
    )
    tasks: Any = SimpleNamespace(unended_tasks=[task])
    found = _called_elsewhere(tasks, lambda task: Need(instruments), lambda run_id: begun)
    assert found == ([task] if via and instruments and waits else [])
