"""A line that nobody drives is watched though an instrument is silent, or it is latched."""

import json
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from commands import say
from labharness.core.vocabulary import Cause, Command, Outcome, Trip
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import attend, idle_line
from labharness.lab.operate.attend import Attendance
from labharness.safety.guard import Latch
from rig import SAFE_TABLE, SHORT_LINE, cut, lab_with, plant_fault

RESET = f"labharness reset --name NAME --reason REASON --lab {quote(str(SHORT_LINE))}"
ATTEND = ("set", "argon.setpoint", 90, "sccm", "--attend", "--speed", "fast", "--for", 20)


@pytest.fixture
def without_detector(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Cut the gas detector's wires in every lab that is built from now on."""

    def act() -> None:
        monkeypatch.setattr(idle_line, "Lab", lab_with(cut("detector")))

    return act


@pytest.mark.thorough
def test_one_silent_instrument_blinds_nobody_to_the_others(
    short_plan: LabPlan, without_detector: Callable[[], None]
) -> None:
    without_detector()
    said = say("watch", "--for", "2", "--json", "--lab", SHORT_LINE)
    assert said.code == 0, said
    first, second = (json.loads(line) for line in said.out.splitlines())
    assert second["readings"]["furnace.temperature"][0] is not None
    assert "no reply" in second["unknown"]["h2_detector"]
    assert list(first["unknown"]) == ["h2_detector"]
    plain = say("watch", "--for", "1", "--lab", SHORT_LINE)
    assert plain.code == 0
    (row,) = [each for each in plain.out.splitlines() if "h2_detector" in each]
    assert row.split()[:2] == ["h2_detector", "unknown"]


def test_whoever_looks_at_a_latched_line_is_told_so_and_what_to_do(short_plan: LabPlan) -> None:
    short_plan.make_state_dir()
    trip = Trip(Cause.GAS_LEAK, SAFE_TABLE, "h2_detector.concentration", 9.0, 0.0, "hydrogen: 9")
    Latch(short_plan.state_dir / "latch.json").close(trip)
    told = f"LATCHED: hydrogen: 9; when the cause is gone: {RESET}"
    watched = say("watch", "--for", "1", "--lab", SHORT_LINE)
    assert watched.out.splitlines()[1] == told
    assert say("alarms", "list", "--lab", SHORT_LINE).out == f"no alarms\n{told}\n"
    status = json.loads(say("watch", "--for", "1", "--json", "--lab", SHORT_LINE).out)
    assert status["latched"] == "hydrogen: 9"


def test_a_latch_that_cannot_be_read_blinds_nobody(short_plan: LabPlan) -> None:
    short_plan.make_state_dir()
    (short_plan.state_dir / "latch.json").write_text("", "utf-8")
    status = json.loads(say("watch", "--for", "1", "--json", "--lab", SHORT_LINE).out)
    assert status["readings"]["furnace.temperature"][0] is not None
    assert "removed the file by hand" in status["latched"]


def test_a_line_that_trips_while_it_is_attended_is_left_latched_and_told_so(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opens(lab: Lab) -> None:
        lab.clock.loop.call_later(40, plant_fault("estop_open"), lab)

    monkeypatch.setattr(attend, "Lab", lab_with(opens))
    words = ("set", "argon.setpoint", 90, "sccm", "--attend", "--speed", "fast", "--for", 90)
    said = say(*words, "--lab", SHORT_LINE, "--out", tmp_path / "out")
    assert said.code == 1, said
    (told,) = [each for each in said.out.splitlines() if "LATCHED: " in each]
    assert "box.estop_closed" in told
    assert told.endswith(RESET)


def test_a_line_that_trips_while_it_is_armed_is_told_as_tripped_and_latched(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arms(lab: Lab) -> None:
        perform = lab.line.perform

        async def tripped(command: Command) -> Outcome:
            if lab.line.memory.trip is None:
                now_s = lab.clock.now_s()
                lab.line.trip_response.trip(
                    Trip(Cause.GAS_LEAK, SAFE_TABLE, "h2_detector.concentration", 9.0, now_s, "H2")
                )
            return await perform(command)

        monkeypatch.setattr(lab.line, "perform", tripped)

    monkeypatch.setattr(attend, "Lab", lab_with(arms))
    said = say(*ATTEND, "--lab", SHORT_LINE, "--out", tmp_path / "out")
    assert said.code == 1, said
    first, told, *_ = said.out.splitlines()
    assert first == "it tripped while it was armed: H2; the line is in its safe state, verified"
    assert "labharness set: argon.setpoint was not set\n" in said.err
    assert told == f"LATCHED: H2; when the cause is gone: {RESET}"


def test_a_line_that_is_stopped_while_it_is_armed_ends_with_what_was_not_set(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = Attendance._main

    async def stopped(attendance: Attendance, *args: Any) -> Any:
        attendance.stop("stop request (test)")
        return await began(attendance, *args)

    monkeypatch.setattr(Attendance, "_main", stopped)
    said = say(*ATTEND, "--lab", SHORT_LINE, "--out", tmp_path / "out")
    assert said.code == 1, said
    assert "labharness set: argon.setpoint was not set\n" in said.err
    assert said.out.startswith("stop request (test); the line is in its safe state, verified\n")
    intents = [each for each in read(tmp_path / "out" / "journal.sqlite") if each.kind == "intent"]
    assert "argon.setpoint" not in [each.body["channel"] for each in intents]
