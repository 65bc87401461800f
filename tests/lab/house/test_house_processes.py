"""House and line owner as real processes: each is killed, and the other goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commands import ROOT, say
from rig import IV
from up_lab import Up, until

TASK = ROOT / "examples" / "iv-curve.json"
GROWTH = ROOT / "examples" / "mos2-monolayer.json"
SHORT = ROOT / "tests" / "short_line.toml"

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


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


def test_a_task_that_is_rejected_on_receipt_says_why_and_names_no_folder_that_is_not_there(
    up: Callable[[Path], Up], tmp_path: Path
) -> None:
    bench = up(IV)
    wrong = tmp_path / "wrong.json"
    wrong.write_text(TASK.read_text("utf-8").replace('"iv-curve"', '"ice-cream"'), "utf-8")
    said = say("submit", wrong, "--lab", IV)
    assert said.code == 2
    assert "rejected (invalid_input): " in said.out
    assert str(tmp_path / "runs") not in said.out
    assert "runs/" not in said.out + said.err
    listed = say("tasks", "list", "--lab", IV).out
    assert "ice-cream" in listed, "the sentence, not the code alone"
    assert bench.status()["house"]["tasks"] == {"failed": 1}


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
    lost = "the program that carried it out ended before it did"
    assert line.task(name)["lastError"] == {"code": "worker_lost", "message": lost}
    until(lambda: "latched" in line.task(then).get("statusReason", ""))
    assert line.is_(then, "waiting_resource")
    reset = say("reset", "--lab", SHORT, "--name", "Olga", "--reason", "looked at it")
    assert reset.code == 0, reset.err
    until(lambda: line.is_(then, "running"))
    assert say("tasks", "cancel", then, "--lab", SHORT, "--reason", "enough").code == 0
    until(lambda: line.is_(then, "cancelled"))
