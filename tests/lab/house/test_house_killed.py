"""A house that is killed at any instant: no task lost, no run twice, every status true."""

from pathlib import Path

import pytest

from house_story import Story
from labharness.journal.reading import verify_file
from labharness.work.task.house import HouseJournal
from labharness.work.task.record import Task

SEEDS, NIGHT = 12, 1_000
GUARDS_MIN = 300
"""Least number of guards killed at work in all the stories; the test is not blind to them."""


def truth(story: Story, task: Task) -> set[str]:
    """Return the statuses that are true of a task, from what the world has written."""
    if not task.attempts:
        return {"cancelled"}
    run_id = task.attempts[-1].run_id
    end = story.world.ends.get(run_id, "never begun")
    cancelled = {"cancelled"} if task.cancel_requested else set()
    return {
        "task_completed": cancelled or {"completed"},
        "task_failed": {"failed"},
        "task_rejected": {"failed"},
        "event": {"cancelled"},
        "aborted": {"cancelled"},
        "died": {"failed"},
        "guard died": {"failed"},
        "never begun": {"cancelled"},
    }[end]


def reason(story: Story, task: Task) -> str:
    """Return the code of the error of a task that failed, from what the world has written."""
    reasons = {"task_failed": "safety_violation", "task_rejected": "risk_too_high"}
    reasons |= {"died": "worker_lost", "guard died": "execution_error"}
    return reasons.get(story.world.ends.get(task.attempts[-1].run_id, ""), "")


def check(story: Story) -> None:
    tasks = story.house.tasks
    assert not tasks.leases
    assert set(story.acknowledged) <= set(tasks.by_id)
    assert max(story.world.heated.values(), default=0) <= 1
    for task in tasks.by_id.values():
        assert task.status in truth(story, task), (task.status, task.attempts)
        assert task.status != "failed" or task.error_code == reason(story, task)
        for run in task.attempts:
            written = story.world.disk.get(run.run_id, [])
            steps = [tuple(r.body.values()) for r in written if r.kind == "step"]
            assert [(each.step_id, each.status) for each in run.steps] == steps
    assert verify_file(story.home / "house.sqlite").ok


def play(home: Path, seed: int) -> int:
    """Play one story to its end, and return how many guards were killed at work in it."""
    story = Story(home, seed)
    for _ in range(60):
        story.turn()
    story.settle()
    check(story)
    story.journal.close()
    again = HouseJournal(home / "house.sqlite")
    assert again.tasks == story.house.tasks
    again.close()
    return story.guards


@pytest.mark.promise(61)
@pytest.mark.promise(63)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_house_that_dies_at_any_instant_loses_no_task_and_begins_no_run_twice(
    tmp_path: Path, seed: int
) -> None:
    play(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_such_stories_end_in_the_truth(tmp_path: Path) -> None:
    guards = sum(play(tmp_path / str(seed), seed) for seed in range(SEEDS, SEEDS + NIGHT))
    assert guards >= GUARDS_MIN
