"""A lab that is up, as real processes, and loses its key while a confidential run is at work."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from canary import CANARY, found_in
from commands import say
from confidential import confidential_lab, confidential_task
from labharness.journal import JournalFailed
from labharness.journal.reading import read, verify_file
from rig import task_submit
from serving import PACED
from up_lab import Up, until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(120)]

SWEEP = {"start_v": 0.0, "stop_v": 0.7, "points": 31}


class Paced(Up):
    """A lab whose lab time takes a while, so that its key can be lost in the middle of a run."""

    def start(self) -> None:
        words = ("up", "--lab", self.lab, "--runs", self.runs, "--speed", PACED)
        assert say(*words).code == 0


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    made = Paced(confidential_lab(tmp_path / "lab"), tmp_path / "runs")
    yield made
    say("down", "--lab", made.lab, "--stop")
    until(made.down)


def submitted(up: Up, name: str) -> str:
    task = up.lab.parent.parent / f"{name}.json"
    payload = confidential_task(SWEEP, capability="iv-curve", intent=f"Sweep {CANARY}")
    task.write_text(json.dumps(task_submit(payload, name)), "utf-8")
    return up.submit(task)


def kinds(journal: Path) -> list[str]:
    try:
        return [each.kind for each in read(journal)]
    except JournalFailed:
        return []


@pytest.mark.promise(71)
def test_a_run_on_the_line_comes_to_its_end_though_the_key_is_lost_and_the_next_is_not_begun(
    up: Up, tmp_path: Path
) -> None:
    first, second = submitted(up, "first"), submitted(up, "second")
    until(lambda: up.is_(first, "running"))
    run = up.task(first)["attempts"][0]["runId"]
    journal = up.runs / run / "journal.sqlite"
    until(lambda: "armed" in kinds(journal))
    key = up.lab.parent / "data.key"
    key.rename(key.with_name("moved"))
    until(lambda: up.is_(first, "failed") and up.is_(second, "failed"))
    for each in (first, second):
        assert up.task(each)["attempts"][0]["lastError"] == {"code": "key_missing"}, up.task(each)
    assert verify_file(journal).ok
    left = json.loads((up.runs / run / "left.json").read_text("utf-8"))
    assert left["error"] == "", "to the line owner it was a run like any other"
    key.with_name("moved").rename(key)
    (terminal,) = [each.body for each in read(journal) if each.kind == "terminal"]
    assert terminal["type"] == "task_completed"
    runs = [each["attempts"][0]["runId"] for each in map(up.task, (first, second))]
    assert not (up.runs / runs[1] / "journal.sqlite").exists(), "nothing was armed for it"
    assert found_in(*(tmp_path / each for each in ("lab", "state", "runs"))) == []
