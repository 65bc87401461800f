"""The exhaust is lost over a hot tube: people are called, and a little argon keeps the air out."""

import asyncio
import json
from pathlib import Path

import pytest

import alarmed
from alarmed import watching
from commands import say
from exhaust import heat
from hands import truth
from labharness.core.vocabulary import Cause
from labharness.faces.testing.faults import simulated_of
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import idle_line
from labharness.lab.operate.idle_line import make_safe
from labharness.safety.alarm.board import AlarmEvent, Severity
from labharness.safety.alarm.outlets import AlarmFile
from rig import SHORT_LINE, Injection, Run, lab_with, part, plant_fault

ALARM = "interlock_lost/box.exhaust_flow"
LOST = "keeps its exhaust (leave the room; open nothing, it cools in its argon)"
INERT_SCCM = 100.0  # and the bypass would let 500 more through
SETTLED_S = 10.0
SWEPT_S = 120.0  # six volumes of this tube, by the safe table
O2_MAX = 0.01  # a share: what a purge leaves
ARGON_VALVE, BYPASS_SHUT, HYDROGEN_VALVE, VENT, FURNACE, SULFUR = 0, 1, 2, 4, 6, 7

lose_exhaust = plant_fault("exhaust_lost", True)


def is_held_in_argon(lab: Lab) -> None:
    """By the plant's own account: no heat, no hydrogen, and no more inert than is stated."""
    coils = part(simulated_of(lab).plant, "relays").coils
    on = {number for number, each in enumerate(coils) if each}
    assert on == {ARGON_VALVE, BYPASS_SHUT, VENT}
    assert part(simulated_of(lab).plant, "argon").setpoint_sccm == INERT_SCCM
    assert part(simulated_of(lab).plant, "nitrogen").setpoint_sccm == 0.0
    found = truth(lab)
    assert found["hydrogen_sccm"] == 0.0
    assert not found["furnace_heating"]
    assert not found["sulfur_heating"]


def sweeps_little(lab: Lab) -> None:
    is_held_in_argon(lab)
    assert truth(lab)["inert_sccm"] == pytest.approx(INERT_SCCM, abs=5.0)


HOT = {"a furnace": {"furnace_c": 400.0}, "sulfur": {"sulfur_c": 130.0}}


@pytest.mark.promise(43)
@pytest.mark.parametrize("hot", HOT.values(), ids=HOT)
async def test_a_hot_tube_that_nothing_heats_trips_calls_and_is_held_in_argon(
    short_plan: LabPlan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hot: dict[str, float],
) -> None:
    monkeypatch.setattr(alarmed, "Lab", lab_with(lambda lab: heat(lab, **hot)))
    async with watching(short_plan, tmp_path / "run") as watched:
        lab = watched.lab
        await asyncio.sleep(SETTLED_S)
        assert lab.line.memory.trip is None
        assert truth(lab)["inert_sccm"] > 5 * INERT_SCCM, "swept through the bypass as well"
        lose_exhaust(lab)
        await asyncio.sleep(SETTLED_S)
        sweeps_little(lab)
    (trip,) = watched.lab.line.trip_response.trips
    assert (trip.cause, trip.procedure) == (Cause.INTERLOCK_LOST, "hold_inert")
    assert LOST in trip.detail
    assert watched.lab.line.trip_response.verifications[-1].complete
    assert ALARM in watched.calls()
    alarm = watched.alarms.board.alarms[ALARM]
    assert alarm.severity is Severity.TRIP
    assert LOST in alarm.detail


@pytest.mark.promise(43)
async def test_the_argon_keeps_the_air_out_for_the_whole_cooling_and_the_tube_sweeps_less(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot = {"furnace_c": 700.0, "sulfur_c": 200.0}
    monkeypatch.setattr(alarmed, "Lab", lab_with(lambda lab: heat(lab, **hot)))
    async with watching(short_plan, tmp_path / "run") as watched:
        lab = watched.lab
        await asyncio.sleep(SWEPT_S)
        lose_exhaust(lab)
        await asyncio.sleep(SETTLED_S)
        until_cold = asyncio.create_task(lab.line.watch_until_cold())
        while not until_cold.done():
            await asyncio.sleep(60.0)
            sweeps_little(lab)
            found = truth(lab)
            assert found["o2_fraction"] < O2_MAX
            assert found["sucked_back_pa"] == 0.0
        assert await until_cold


@pytest.mark.thorough
def test_a_growth_that_loses_its_exhaust_sweeps_no_vapour_through_the_bypass(run_task: Run) -> None:
    ran = run_task(inject=(Injection("material_growth", 60.0, lose_exhaust),))
    (trip,) = ran.lab.line.trip_response.trips
    assert trip.procedure == "hold_inert"
    (verification,) = ran.lab.line.trip_response.verifications
    assert verification.complete, verification.unverified()
    is_held_in_argon(ran.lab)
    trips = [each for each in read(ran.result.folder / "journal.sqlite") if each.kind == "trip"]
    assert LOST in trips[0].body["detail"]


async def test_a_cold_tube_is_made_safe_as_ever(short_plan: LabPlan, tmp_path: Path) -> None:
    async with watching(short_plan, tmp_path / "run") as watched:
        lose_exhaust(watched.lab)
        await asyncio.sleep(SETTLED_S)
        assert watched.lab.line.memory.trip is None, "nothing is hot, nothing is on"


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> list[Lab]:
    """Each room as a run has left it, its exhaust gone before the tube was cold."""
    found: list[Lab] = []

    def left(lab: Lab) -> None:
        found.append(lab)
        heat(lab, furnace_c=400.0, sulfur_c=130.0)
        part(simulated_of(lab).plant, "relays").coils[:] = [
            number in (ARGON_VALVE, VENT) for number in range(8)
        ]
        part(simulated_of(lab).plant, "argon").setpoint_sccm = INERT_SCCM
        lose_exhaust(lab)

    monkeypatch.setattr(idle_line, "Lab", lab_with(left))
    return found


@pytest.mark.promise(43)
def test_whoever_watches_an_idle_hot_line_is_told_what_to_do_and_people_are_called(
    short_plan: LabPlan, labs: list[Lab]
) -> None:
    said = say("watch", "--for", "2", "--lab", SHORT_LINE)
    assert said.code == 0, said
    told = [each for each in said.out.splitlines() if each.startswith("ALARM: ")]
    assert any("a hot furnace " + LOST in each for each in told)
    assert any("hot sulfur " + LOST in each for each in told)
    status = say("watch", "--for", "1", "--json", "--lab", SHORT_LINE).out.splitlines()[-1]
    assert [LOST in each for each in json.loads(status)["lost"]] == [True, True]

    facts = AlarmFile(short_plan.state_dir / "alarms.jsonl").look_at_all()
    raised = [each for each in facts if each.event is AlarmEvent.ACTIVATE]
    told_of = [each for each in raised if each.alarm == f"{ALARM}/warning"]
    assert {each.severity for each in told_of} == {Severity.FAULT}, "each watch calls"
    assert all(LOST in each.why for each in told_of)
    for lab in labs:  # who only looks sends nothing, and what flows flows on
        assert all(each.source.value == "read" for each in lab.guard.core.log or [])
        assert truth(lab)["inert_sccm"] > INERT_SCCM / 2


@pytest.mark.promise(43)
def test_who_makes_such_a_line_safe_by_hand_shuts_the_bypass_and_holds_the_argon(
    short_plan: LabPlan, labs: list[Lab]
) -> None:
    done = make_safe(short_plan, "Ada", "no draught")
    assert (done["procedure"], done["unverified"]) == ("hold_inert", [])
    is_held_in_argon(labs[-1])


@pytest.mark.thorough
def test_nothing_is_said_of_an_idle_line_whose_exhaust_runs_or_that_is_cold(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for left in (lambda lab: heat(lab, furnace_c=400.0), lose_exhaust):
        monkeypatch.setattr(idle_line, "Lab", lab_with(left))
        said = say("watch", "--for", "1", "--lab", SHORT_LINE)
        assert "ALARM" not in said.out
