"""What goes wrong during the dwell: the right procedure, verified, latched, and told honestly."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labharness.faces.cli import main
from labharness.faces.testing.faults import simulated_of
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.safety.guard import Source
from rig import (
    SHORT_LINE,
    Injection,
    Ran,
    approved_copy,
    cut,
    heat_is_off,
    plant_fault,
    stick_argon,
    submission,
)

Run = Callable[..., Ran]
DWELL = "material_growth"


EVERY_DAY = ("over_temperature",)
FAULTS = [
    ("over_temperature", plant_fault("add_furnace_c_per_s", 20.0), "immediate_shutdown"),
    ("sensor_break", plant_fault("furnace_sensor_broken", True), "immediate_shutdown"),
    ("emergency_stop_loop", plant_fault("estop_open", True), "immediate_shutdown"),
    ("over_pressure", plant_fault("outlet_blocked", True), "relieve_pressure"),
    (
        "gas_leak_detected",
        plant_fault("h2_detector_offset_ppm", 9000.0),
        "close_all_valves_and_alert",
    ),
    ("interlock_lost", plant_fault("lid_open", True), "immediate_shutdown"),
]


@pytest.mark.promise(11, 14)
@pytest.mark.parametrize(
    ("cause", "act", "procedure"),
    [
        pytest.param(*each, id=each[0], marks=[pytest.mark.thorough] * (each[0] not in EVERY_DAY))
        for each in FAULTS
    ],
)
def test_a_fault_in_the_dwell_runs_its_procedure_verified_and_latched(
    short_plan: LabPlan,
    run_task: Run,
    cause: str,
    act: Callable[[Lab], None],
    procedure: str,
) -> None:
    ran = run_task(short_plan, inject=(Injection(DWELL, 60.0, act),))
    assert ran.type == "task_failed"
    assert ran.body["error_code"] == "safety_violation"
    assert ran.body["error_details"] == {
        "phase": DWELL,
        "step": ran.body["execution_summary"]["steps_executed"] + 1,
        "last_checkpoint": "ckpt-001",
        "recoverable": False,
    }
    event = ran.body["execution_summary"]["risk_events"][0]
    assert set(event) == {"code", "channel", "value", "limit", "at", "text"}
    assert event["code"] == cause
    assert event["text"].startswith(f"{cause}: ")
    (trip,) = [each for each in read(ran.result.folder / "journal.sqlite") if each.kind == "trip"]
    assert (event["channel"], event["value"]) == (trip.body["channel"], trip.body["value"])
    assert ran.body["partial_outputs"]["growth_log"][-1]["phase"] == DWELL
    assert "partial_growth_log" in [each["name"] for each in ran.body["artifacts"]]
    (verification,) = ran.lab.line.trip_response.verifications
    assert verification.procedure == procedure
    assert verification.complete, verification.unverified()
    assert verification.within_s < 10
    assert heat_is_off(ran, inert=procedure != "relieve_pressure")
    assert_latched_until_reset(ran, short_plan, run_task)


def assert_latched_until_reset(ran: Ran, plan: LabPlan, run_task: Run) -> None:
    again = run_task(plan)
    assert again.type == "task_rejected"
    assert again.body["reason_code"] == "resource_unavailable"
    assert "latched" in again.body["reason_message"]
    assert again.lab.guard.core.log == []
    lab = str(SHORT_LINE)
    assert main(["reset", "--lab", lab, "--name", "A. Person", "--reason", "cause removed"]) == 0
    assert not (plan.state_dir / "latch.json").exists()
    assert "A. Person" in (plan.state_dir / "resets.jsonl").read_text("utf-8")


@pytest.mark.soak
def test_after_a_reset_the_line_grows_again(run_task: Run) -> None:
    act = plant_fault("estop_open", True)
    assert run_task(inject=(Injection("ramp", 30.0, act),)).type == "task_failed"
    assert main(["reset", "--lab", str(SHORT_LINE), "--name", "A", "--reason", "released"]) == 0
    assert run_task().type == "task_completed"


@pytest.mark.promise(11)
@pytest.mark.thorough
def test_a_dead_heater_bus_leaves_the_furnace_cold_by_its_contactor(
    short_plan: LabPlan, run_task: Run
) -> None:
    ran = run_task(short_plan, inject=(Injection(DWELL, 60.0, cut("heat")),))
    assert ran.body["error_code"] == "execution_error"
    assert ran.body["execution_summary"]["risk_events"][0]["code"] == "communication"
    (verification,) = ran.lab.line.trip_response.verifications
    states = {channel: str(state) for channel, _, _, state in verification.steps}
    assert states["box.furnace_contactor"] == states["box.sulfur_contactor"] == "verified"
    assert states["hydrogen.setpoint"] == states["argon.setpoint"] == "verified"
    for channel in ("furnace.mode", "furnace.output", "furnace.setpoint", "sulfur.setpoint"):
        assert states[channel] == "unknown"
    assert any("unknown" in each for each in ran.body["execution_summary"]["warnings"])
    assert heat_is_off(ran)
    assert_latched_until_reset(ran, short_plan, run_task)


@pytest.mark.soak
def test_one_lost_reply_is_no_trip(run_task: Run) -> None:
    def lose(lab: Lab) -> None:
        for bus in simulated_of(lab).buses.values():
            bus.faults.reply_lost = 1

    ran = run_task(inject=(Injection(DWELL, 60.0, lose),))
    assert ran.type == "task_completed", ran.body


@pytest.mark.thorough
def test_late_replies_are_never_taken_for_fresh_ones(run_task: Run) -> None:
    def delay(lab: Lab) -> None:
        simulated_of(lab).buses["heat"].faults.reply_late_s = 0.75

    ran = run_task(inject=(Injection(DWELL, 60.0, delay),))
    assert ran.body["error_code"] == "execution_error"
    assert ran.lab.line.trip_response.trips[0].cause.value == "communication"
    assert ran.lab.guard.core.ports["heat"].discarded > 0


@pytest.fixture
def hydrogen_plan(tmp_path: Path) -> LabPlan:
    return approved_copy(tmp_path, gases=("argon", "nitrogen", "hydrogen", "hydrogen sulfide"))


@pytest.mark.thorough
def test_hydrogen_takes_an_approval_that_names_it(run_task: Run) -> None:
    ran = run_task(None, submission(recipe={"hydrogen_sccm": 5}))
    assert ran.body["reason_code"] == "approval_expired"
    assert ran.body["assessed_risk_level"] == "R4"


@pytest.mark.promise(12)
@pytest.mark.thorough
def test_a_hydrogen_leak_in_a_hydrogen_growth_closes_hydrogen_first(
    hydrogen_plan: LabPlan, run_task: Run
) -> None:
    leak = plant_fault("h2_detector_offset_ppm", 9000.0)
    ran = run_task(
        hydrogen_plan,
        submission(recipe={"hydrogen_sccm": 5}),
        inject=(Injection(DWELL, 60.0, leak),),
    )
    assert ran.body["error_code"] == "safety_violation"
    (trip,) = ran.lab.line.trip_response.trips
    assert (trip.cause.value, trip.procedure) == (
        "gas_leak_detected",
        "close_all_valves_and_alert",
    )
    (verification,) = ran.lab.line.trip_response.verifications
    assert verification.complete, verification.unverified()
    first = [sent for sent in ran.lab.guard.core.log or [] if sent.source is Source.PROCEDURE]
    valve = ran.lab.guard.core.procedures["close_all_valves_and_alert"][0]
    assert valve.channel == "box.hydrogen_valve"
    assert valve.request.frame in [sent.frame for sent in first]
    assert ran.truth["hydrogen_sccm"] == 0.0
    assert heat_is_off(ran)


@pytest.mark.soak
def test_hydrogen_flowed_in_the_growth_that_was_approved(
    hydrogen_plan: LabPlan, run_task: Run
) -> None:
    ran = run_task(hydrogen_plan, submission(recipe={"hydrogen_sccm": 5}))
    assert ran.type == "task_completed", ran.body
    rows = {row["phase"]: row for row in ran.body["outputs"]["growth_log"]}
    assert "material_growth" in rows
    text = (ran.result.folder / "artifacts" / "growth_log.csv").read_text("utf-8").splitlines()
    column = text[0].split(",").index("hydrogen.flow [sccm]")
    flows = [float(row.split(",")[column] or 0) for row in text[1:]]
    assert max(flows) == pytest.approx(5.0, abs=0.5)


@pytest.mark.promise(12)
@pytest.mark.thorough
def test_a_step_that_does_not_take_is_reported_as_it_is(run_task: Run) -> None:
    ran = run_task(
        inject=(
            Injection(DWELL, 50.0, stick_argon),
            Injection(DWELL, 60.0, plant_fault("estop_open", True)),
        ),
    )
    (verification,) = ran.lab.line.trip_response.verifications
    assert not verification.complete
    (step,) = verification.unverified()
    assert step == "argon.setpoint = 100: mismatch (reads 50)"
    assert f"immediate_shutdown: {step}" in ran.body["execution_summary"]["warnings"]
    tries = [sent for sent in ran.lab.guard.core.log or [] if sent.source is Source.PROCEDURE]
    again = [sent.frame for sent in tries if sent.port == "inert"]
    assert len(again) > 2, "a step that does not take is tried again"


@pytest.mark.thorough
@pytest.mark.promise(10)
def test_a_purge_whose_flow_does_not_come_is_never_proven(run_task: Run) -> None:
    def starve(lab: Lab) -> None:
        simulated_of(lab).plant.parts["argon"].setpoint_sccm = 20.0
        stick_argon(lab)

    ran = run_task(inject=(Injection("purge", 45.0, starve),))
    assert ran.type == "task_failed"
    assert ran.body["error_details"]["phase"] == "purge"
    assert max(ran.lab.line.volumes_purged("air"), 0.0) < 5.0
    sulfur = ran.lab.line.memory.tracks["sulfur.setpoint"]
    assert sulfur.value == 0.0


def test_a_trip_is_on_the_wire_before_it_is_in_the_journal(run_task: Run) -> None:
    ran = run_task(inject=(Injection("purge", 5.0, plant_fault("estop_open", True)),))
    kinds = [record.kind for record in read(ran.result.folder / "journal.sqlite")]
    assert kinds.index("trip") < kinds.index("verified", kinds.index("trip"))
    assert "safe_frame" in kinds[kinds.index("trip") :]
