"""Hydrogen over hot sulfur makes hydrogen sulfide: bounded on the line, weighed beforehand."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import alarmed
from alarmed import watching
from exhaust import heat
from hands import truth
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, LabPlan
from left_alone import HAZARDS, is_refused, on_their_own, unattended
from rig import SOON, Ran, Run, accepted, lab_with, part, submission

MOST_SCCM = 20.0  # of hydrogen over molten sulfur; recipes take no more
SETTLED_S = 5.0
IN_HYDROGEN = {"hydrogen_sccm": 5}
LATE = (
    'H2S detector in the room, alarm at 10 ppm"\nproof_tested = 2025-12-15',
    'H2S detector in the room, alarm at 10 ppm"\nproof_tested = 2015-12-15',
)
OVERDUE = "hydrogen sulfide: proof test of scrubbed exhaust of 60 m3/h or more with flow switch"


async def put(lab: Lab, channel: str, value: float) -> Outcome:
    unit = lab.line.envelope.limits[channel].unit
    return await lab.line.perform(Command(channel, value, unit))


async def purged(lab: Lab) -> None:
    """Let a tube count as purged and leak-checked, and hydrogen in behind its valve."""
    await asyncio.sleep(SETTLED_S)
    lab.line.memory.proofs.leak.tight = True
    for contaminant in lab.line.memory.proofs.purged.passed_cm3:
        lab.line.memory.proofs.purged.passed_cm3[contaminant] = 1e9
    assert (await put(lab, "box.hydrogen_valve", 1)).ending is Ending.CONFIRMED


@pytest.mark.promise(45)
async def test_no_more_hydrogen_flows_over_hot_sulfur_than_the_exhaust_dilutes(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarmed, "Lab", lab_with(lambda lab: heat(lab, sulfur_c=200.0)))
    async with watching(short_plan, tmp_path / "run") as watched:
        lab = watched.lab
        await purged(lab)
        assert (await put(lab, "hydrogen.setpoint", MOST_SCCM)).ending is Ending.CONFIRMED
        refused = await put(lab, "hydrogen.setpoint", MOST_SCCM + 1)
        assert refused.ending is Ending.REFUSED
        assert "sulfur.temperature at least 115" in refused.detail
        await asyncio.sleep(SETTLED_S)
        assert truth(lab)["hydrogen_sccm"] == pytest.approx(MOST_SCCM, abs=1.0)
        part(simulated_of(lab).plant, "hydrogen").setpoint_sccm = 45.0  # at its own keys
        await asyncio.sleep(SETTLED_S)
        assert truth(lab)["hydrogen_sccm"] == 0.0
    (trip,) = watched.lab.line.trip_response.trips
    assert trip.procedure == "close_all_valves_and_alert"
    assert "than its exhaust dilutes" in trip.detail


@pytest.mark.promise(45)
async def test_sulfur_is_not_heated_under_more_hydrogen_than_that(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    async with watching(short_plan, tmp_path / "run") as watched:
        lab = watched.lab
        await purged(lab)
        assert (await put(lab, "hydrogen.setpoint", 45.0)).ending is Ending.CONFIRMED
        assert (await put(lab, "sulfur.setpoint_rate", 30.0)).ending is Ending.CONFIRMED
        refused = await put(lab, "sulfur.setpoint", 150.0)
        assert refused.ending is Ending.REFUSED
        assert "hydrogen.setpoint_active at most 20" in refused.detail


def weighed(ran: Ran) -> str:
    return f"{ran.body.get('reason_message')} {ran.body.get('suggestion')}"


@pytest.mark.promise(45)
def test_a_growth_in_hydrogen_is_asked_for_the_hardware_against_hydrogen_sulfide(
    tmp_path: Path, run_task: Run, wires: list[Lab]
) -> None:
    text = HAZARDS
    assert LATE[0] in text
    plan = on_their_own(unattended(tmp_path, text.replace(*LATE)), "safe(5)")
    is_refused(run_task(plan, submission(recipe=IN_HYDROGEN)), wires, OVERDUE)


@pytest.mark.thorough
def test_an_attended_growth_in_hydrogen_with_that_hardware_overdue_is_riskier(
    tmp_path: Path, run_task: Run
) -> None:
    text = HAZARDS.replace(*LATE)
    plan = unattended(tmp_path, text, attended="always")
    ran = run_task(plan, submission(recipe=IN_HYDROGEN))
    assert ran.body["reason_code"] == "risk_too_high"
    assert "R5" in weighed(ran)


@pytest.mark.thorough
def test_a_growth_without_hydrogen_is_not_asked_for_it(tmp_path: Path, run_task: Run) -> None:
    text = HAZARDS.replace(*LATE)
    accepted(run_task(on_their_own(unattended(tmp_path, text), "safe(5)"), abort=SOON))


def test_whoever_is_to_agree_reads_that_hydrogen_sulfide_is_made(
    short_plan: LabPlan, run_task: Run
) -> None:
    said: dict[str, Any] = run_task(short_plan, submission(recipe=IN_HYDROGEN)).body
    assert said["reason_code"] == "approval_expired"
    waiting = next((short_plan.state_dir / "approvals").glob("*.json")).read_text("utf-8")
    assert "hydrogen sulfide is flammable and toxic" in waiting
