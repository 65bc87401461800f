"""House and line owner as real processes: each is killed, and the other goes on."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT, say
from labharness.core.clock import pause, steady_s

IV = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "iv_bench" / "lab.toml"
TASK = ROOT / "examples" / "iv-curve.json"
GROWTH = ROOT / "examples" / "mos2-monolayer.json"
SHORT = ROOT / "tests" / "short_line.toml"
WAIT_S_MAX = 90.0

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


class Up:
    """A lab that is up: what is said of it, and how its processes are killed."""

    def __init__(self, lab: Path, runs: Path) -> None:
        self.lab, self.runs = lab, runs
        self.start()

    def start(self) -> None:
        said = say("up", "--lab", self.lab, "--runs", self.runs)
        assert said.code == 0, said.err

    def kill(self, what: str) -> None:
        os.kill(self.status()[what]["pid"], signal.SIGKILL)
        until(lambda: self.status()[what] is None)

    def status(self) -> dict[str, Any]:
        said = say("status", "--lab", self.lab, "--json")
        found: dict[str, Any] = json.loads(said.out)
        return found

    def down(self) -> bool:
        return self.status() == {"line_owner": None, "house": None}

    def submit(self, task: Path, *more: str) -> str:
        said = say("submit", task, "--lab", self.lab, "--json", *more)
        assert said.code == 0, said.err
        return str(json.loads(said.out)["task_id"])

    def task(self, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            say("tasks", "show", task_id, "--lab", self.lab, "--json").out
        )
        return found

    def is_(self, task_id: str, *statuses: str) -> bool:
        return self.task(task_id)["status"] in statuses


def until(true: Callable[[], bool]) -> None:
    end_s = steady_s() + WAIT_S_MAX
    while not true():
        assert steady_s() < end_s
        pause(0.1)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[[Path], Up]]:
    made: list[Up] = []

    def bring(lab: Path) -> Up:
        made.append(Up(lab, tmp_path / "runs"))
        return made[-1]

    yield bring
    for each in made:
        say("down", "--lab", each.lab, "--stop")
        until(each.down)


def test_tasks_are_carried_out_one_after_the_other(up: Callable[[Path], Up]) -> None:
    bench = up(IV)
    first = bench.submit(TASK)
    then = bench.submit(TASK, "--after", first, "--key", "once")
    assert bench.submit(TASK, "--after", first, "--key", "once") == then
    said = say("submit", TASK, "--lab", IV, "--wait", "--json")
    assert (said.code, said.answer["type"]) == (0, "task_completed")
    until(lambda: bench.is_(then, "completed"))
    found = say("tasks", "result", first, "--lab", IV, "--json")
    assert found.answer["type"] == "task_completed"
    assert len({bench.task(each)["attempts"][0]["runId"] for each in (first, then)}) == 2


def test_the_run_goes_on_without_its_house_and_is_found_again(up: Callable[[Path], Up]) -> None:
    line = up(SHORT)
    name = line.submit(GROWTH)
    until(lambda: line.is_(name, "running"))
    owner = line.status()["line_owner"]["pid"]
    line.kill("house")
    assert line.status()["line_owner"]["run_id"]
    line.start()
    until(lambda: line.is_(name, "completed"))
    assert line.status()["line_owner"]["pid"] == owner
    assert len(line.task(name)["attempts"]) == 1


@pytest.mark.promise(61)
def test_a_run_whose_owner_is_killed_has_failed_and_the_next_waits_for_the_reset(
    up: Callable[[Path], Up],
) -> None:
    line = up(SHORT)
    name, then = line.submit(GROWTH), line.submit(GROWTH)
    until(lambda: line.is_(name, "running"))
    line.kill("line_owner")
    line.start()
    until(lambda: line.is_(name, "failed"))
    assert line.task(name)["lastError"] == {"code": "worker_lost"}
    until(lambda: line.is_(then, "waiting_resource"))
    reset = say("reset", "--lab", SHORT, "--name", "Olga", "--reason", "looked at it")
    assert reset.code == 0, reset.err
    until(lambda: line.is_(then, "running"))
    assert say("tasks", "cancel", then, "--lab", SHORT, "--reason", "enough").code == 0
    until(lambda: line.is_(then, "cancelled"))
