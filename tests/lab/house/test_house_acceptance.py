"""Real processes: two callers, five tasks, a trip in between, and a house that is killed twice."""

import json
from pathlib import Path
from random import Random

import pytest

from commands import ROOT, say
from labharness.core.clock import pause
from labharness.journal.reading import read, verify_file
from labharness.lab import read_lab
from labharness.work.task import facts as f
from labharness.work.task.kept import HOUSE_JOURNAL, read_history
from labharness.work.task.queue import PRIORITIES
from rig import IV
from task_history import faults_of
from up_lab import Up, until

TASKS = (("ana", "low"), ("ben", "normal"), ("ana", "urgent"), ("ben", "high"), ("ana", "normal"))
SPEED, POINTS = 1, 11  # some 6 s a run, so that a signal meets one at work
PAUSE_S_MAX = 3.0

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


def message(folder: Path, caller: str, priority: str) -> Path:
    body = json.loads((ROOT / "examples" / "iv-curve.json").read_text("utf-8"))
    body["payload"]["inputs"]["points"] = POINTS
    body["payload"] |= {"caller_id": caller, "constraints": {"priority": priority}}
    path = folder / f"{caller}-{priority}.json"
    path.write_text(json.dumps(body), "utf-8")
    return path


def at_work(bench: Up) -> str:
    """Return the task that is running, as the journal of the house says; ``""`` if none is."""
    tasks = json.loads(say("tasks", "list", "--lab", IV, "--json").out)["tasks"]
    return next((each["taskId"] for each in tasks if each["status"] == "running"), "")


def kill_house(bench: Up, random: Random) -> None:
    until(lambda: bool(at_work(bench)))
    pause(random.uniform(0.0, PAUSE_S_MAX))
    owner = bench.status()["line_owner"]["pid"]
    bench.kill("house")
    pause(random.uniform(0.0, PAUSE_S_MAX))  # the line goes on, and may even come to its end
    bench.start()
    assert bench.status()["line_owner"]["pid"] == owner


@pytest.mark.promise(61)
def test_five_tasks_of_two_callers_survive_a_trip_and_two_kills_in_order(tmp_path: Path) -> None:
    random = Random(18)
    said = say("up", "--lab", IV, "--runs", tmp_path / "runs", "--speed", SPEED)
    assert said.code == 0, said.err
    bench = Up(IV, tmp_path / "runs")
    try:
        names = [bench.submit(message(tmp_path, *each)) for each in TASKS]
        kill_house(bench, random)
        tripped = trip(bench)
        until(lambda: "latched" in "".join(_reasons(names, bench)))
        said = say("reset", "--lab", IV, "--name", "Olga", "--reason", "looked at it")
        assert said.code == 0, said.err
        kill_house(bench, random)
        until(lambda: all(bench.is_(each, "completed", "failed") for each in names))
    finally:
        say("down", "--lab", IV, "--stop")
        until(bench.down)
    facts = [each for _, each, _, _ in read_history(read_lab(IV).state_dir / HOUSE_JOURNAL)]
    assert faults_of(facts, names, _steps(tmp_path / "runs")) == []
    ends = {x.task_id: x.to for x in facts if isinstance(x, f.TaskMoved)}
    assert ends == {each: "failed" if each == tripped else "completed" for each in names}
    begun = [x.task_id for x in facts if isinstance(x, f.AttemptStarted)]
    ranks = [PRIORITIES.index(TASKS[names.index(each)][1]) for each in begun[1:]]
    assert ranks == sorted(ranks)  # the first one began before the others were there


def trip(bench: Up) -> str:
    """Make the line safe by hand while a task runs, which trips and latches it; return the task."""
    for _ in range(len(TASKS)):
        until(lambda: bool(at_work(bench)))
        name = at_work(bench)
        said = say("safe", "--lab", IV, "--name", "Olga", "--reason", "smoke")
        assert said.code == 0, said.err
        until(lambda: bench.is_(name, "completed", "failed"))  # noqa: B023 - called at once
        if bench.is_(name, "failed"):
            return name
    raise AssertionError("no run was at work")


def _reasons(names: list[str], bench: Up) -> list[str]:
    return [bench.task(each).get("statusReason", "") for each in names]


def _steps(runs: Path) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for folder in runs.iterdir():
        path = folder / "journal.sqlite"
        assert verify_file(path).ok
        steps = [x.body for x in read(path) if x.kind == "step"]
        found[folder.name] = [(each["instruction"], each["status"]) for each in steps]
    return found
