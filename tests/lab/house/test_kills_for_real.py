"""House, line owner and guard killed by real signals over served simulators, at drawn instants."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from commands import say
from labharness.core.clock import pause, steady_s
from labharness.journal.reading import read, verify_file
from rig import EXAMPLE
from served import Served

KILLS = 100
SAFE_S_MAX = 3.0  # four times the 663 ms after which a stopped harness's last safe frame was seen
WAIT_S_MAX = 60.0
HOT = ("furnace_mains", "sulfur_mains", "hydrogen_valve")


class RealLab:
    """A lab of served simulators that is up, and the processes that may be killed."""

    def __init__(self, served: Served, runs: Path) -> None:
        self.served, self.runs = served, runs
        self.lab = str(served.lab_file)
        self.up()

    def says(self, *words: object) -> str:
        said = say(*words, "--lab", self.lab)
        assert said.code in (0, 1), said.err
        return said.out

    def up(self) -> None:
        said = say("up", "--lab", self.lab, "--runs", self.runs)
        assert said.code == 0, said.err

    def pid(self, what: str) -> int:
        if what != "guard":
            return int(json.loads(self.says("status", "--json"))[what]["pid"])
        for found in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = found.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"guard" in words and self.lab.encode() in words:
                return int(found.parent.name)
        raise AssertionError("no guard runs")

    def begin(self) -> str:
        """Submit a growth, agree to it, and return its task once its line is armed."""
        said = say("submit", EXAMPLE, "--lab", self.lab, "--json")
        assert said.code == 0, said.err
        task_id = str(json.loads(said.out)["task_id"])
        until(lambda: "R3" in self.says("approvals", "list"))
        request = self.says("approvals", "list").split()[0]
        self.says("approvals", "approve", request, "--name", "Olga", "--reason", "looked at it")
        until(lambda: self.status(task_id) == "running")
        return task_id

    def status(self, task_id: str) -> str:
        return str(json.loads(self.says("tasks", "show", task_id, "--json"))["status"])

    def end(self, task_id: str) -> None:
        """Bring the task to its end and the line back to work."""
        if self.status(task_id) == "running":
            self.says("tasks", "cancel", task_id, "--reason", "enough")
        until(lambda: self.status(task_id) in ("cancelled", "failed"))
        until(lambda: not json.loads(self.says("status", "--json"))["line_owner"]["run_id"])
        say("reset", "--lab", self.lab, "--name", "Olga", "--reason", "looked at it")


def until(true: Callable[[], bool], most_s: float = WAIT_S_MAX) -> None:
    end_s = steady_s() + most_s
    while not true():
        assert steady_s() < end_s
        pause(0.1)


def one_kill(lab: RealLab, random: Random) -> None:
    victims = random.choice((["house"], ["line_owner"], ["house", "line_owner"], ["guard"]))
    task_id = lab.begin()
    pids = {each: lab.pid(each) for each in ("house", "line_owner", "guard")}
    pause(random.uniform(0.0, 6.0))
    for each in victims:
        os.kill(pids[each], signal.SIGKILL)
    if victims != ["house"]:
        until(lambda: not any(lab.served.truth()[name] for name in HOT), SAFE_S_MAX)
    lab.up()
    if victims == ["house"]:
        assert lab.pid("line_owner") == pids["line_owner"]
        assert lab.status(task_id) == "running"
    else:
        until(lambda: lab.status(task_id) == "failed")
    lab.end(task_id)


def audit(lab: RealLab) -> None:
    """See that each attempt is one run, and that no run holds a command of another."""
    tasks = json.loads(lab.says("tasks", "list", "--json"))["tasks"]
    runs = [each["runId"] for task in tasks for each in task["attempts"]]
    assert sorted(runs) == sorted(each.name for each in lab.runs.iterdir())
    for run_id in runs:
        path = lab.runs / run_id / "journal.sqlite"
        assert verify_file(path).ok
        kinds = [each.kind for each in read(path)]
        assert kinds.count("submitted") == kinds.count("task_accepted") == 1
        steps = [r.body["instruction"] for r in read(path) if r.kind == "step"]
        begun = [each for each in steps if steps.count(each) > 2]  # RUNNING, then its end
        assert not begun


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_kills_lose_no_fact_and_leave_no_heat(tmp_path: Path) -> None:
    random = Random(1)
    with Served(tmp_path / "sim") as served:
        lab = RealLab(served, tmp_path / "runs")
        try:
            for _ in range(KILLS):
                one_kill(lab, random)
            audit(lab)
        finally:
            say("down", "--lab", lab.lab, "--stop")
