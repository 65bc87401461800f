"""A lab that is up asks a person for its manual steps, and a person holds its runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commands import say
from labharness.journal.reading import read
from rig import EXAMPLE, approved_copy
from up_lab import Up
from up_lab import until as up_until

SPEED = 10  # a manual step takes a person's time, which virtual time does not give

WAIT_S_MAX = 240.0  # at this speed, also beside other tests

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


def until(true: Callable[[], bool]) -> None:
    up_until(true, WAIT_S_MAX)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Up]:
    """Bring the short line up, with a person for its manual steps."""

    def edit(text: str) -> str:
        return text.replace('kind = "simulated"\ndelay_s = 5\n', 'kind = "terminal"\n')

    plan = approved_copy(tmp_path, edit=edit)
    assert plan.file.operator.kind == "terminal"
    said = say("up", "--lab", plan.path, "--runs", tmp_path / "runs", "--speed", SPEED)
    assert said.code == 0, said.err
    bench = Up(plan.path, tmp_path / "runs")
    yield bench
    say("down", "--lab", plan.path, "--stop")
    until(bench.down)


@pytest.mark.promise(75)
def test_a_manual_step_waits_for_a_person_who_confirms_it_from_any_terminal(line: Up) -> None:
    name = line.submit(EXAMPLE)
    until(lambda: line.is_(name, "waiting_input"))
    for words in ("load: Load", "mg MoO3", "sample_id"):
        assert words in line.task(name)["statusReason"]
    assert "mg MoO3" in say("tasks", "list", "--lab", line.lab).out
    other = say("tasks", "confirm", name, "unload", "--lab", line.lab)
    assert (other.code, "unload is not the step that waits for a person: load" in other.err) == (
        1,
        True,
    )
    hold(line, name)
    held = say("tasks", "confirm", name, "load", "--lab", line.lab)
    assert (held.code, "the run is held" in held.err) == (1, True)
    assert say("tasks", "resume", name, "--lab", line.lab).code == 0
    until(lambda: line.is_(name, "waiting_input"))
    said = say("tasks", "confirm", name, "load", "--name", "Ann", "--lab", line.lab)
    assert (said.code, said.out) == (0, "confirmed: load\n"), said.err
    until(lambda: line.is_(name, "running"))
    again = say("tasks", "confirm", name, "load", "--lab", line.lab)
    assert (again.code, "load is not the step that waits" in again.err) == (1, True)
    run = line.runs / line.task(name)["attempts"][0]["runId"]
    assert confirmed_by(run)[0].startswith("Ann (")
    hold(line, name)
    said = say("tasks", "resume", name, "--lab", line.lab)
    assert said.code == 0, said.err
    until(lambda: line.is_(name, "running"))
    assert say("tasks", "cancel", name, "--lab", line.lab, "--reason", "enough").code == 0
    until(lambda: line.is_(name, "cancelled"))


def hold(line: Up, name: str) -> None:
    said = say("tasks", "pause", name, "--reason", "tea", "--lab", line.lab)
    assert said.code == 0, said.err
    until(lambda: line.is_(name, "paused"))


def confirmed_by(run: Path) -> list[str]:
    details = [
        each.body["data"]["details"]
        for each in read(run / "journal.sqlite")
        if each.kind == "event" and each.body["event_type"] == "log"
    ]
    return [each["confirmed_by"] for each in details if "confirmed_by" in each]
