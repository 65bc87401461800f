"""Pre-flight: a plan is flown on the nominal plant first, and what it would break is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labharness.cli import main
from labharness.journal.reading import read
from labharness.lab import LabPlan
from labharness.lab.preflight import predict
from labharness.lab.tasks import house_facts
from labharness.plan import InstructionSet
from rig import HERE, Ran, approved_copy, submission

Run = Callable[..., Ran]
TRIP_C = 230


def planned(plan: LabPlan) -> InstructionSet:
    facts = house_facts(plan)
    _, payload = submission()
    found = facts.capabilities[payload.capability].plan(payload.inputs, {}, facts.line_facts)
    instructions: InstructionSet = found.instructions  # type: ignore[union-attr]  # it can be planned
    return instructions


@pytest.fixture
def tight_plan(tmp_path: Path) -> LabPlan:
    """A sulfur heater that trips below what its setpoint may be."""
    return approved_copy(tmp_path, edit=lambda text: text.replace("high = 300", f"high = {TRIP_C}"))


def test_the_prediction_is_what_then_happens(short_plan: LabPlan, run_task: Run) -> None:
    ran = run_task(short_plan)
    records = list(read(ran.result.folder / "journal.sqlite"))
    (predicted,) = [record.body for record in records if record.kind == "prediction"]
    assert predicted["violation"] is None
    done_s = records[-1].at_s
    assert predicted["duration_s"] == pytest.approx(done_s, rel=0.15)
    hottest = max(value for _, value in predicted["trajectory"]["furnace.temperature"])
    table = (ran.result.folder / "artifacts" / "growth_log.csv").read_text("utf-8").splitlines()
    column = table[0].split(",").index("furnace.temperature [degC]")
    measured = max(float(row.split(",")[column] or 0) for row in table[1:])
    relative, absolute = predicted["bands"]["degC"]
    assert abs(hottest - measured) <= relative * hottest + absolute + 2
    assert predicted["gas_used_cm3"]["argon"] > 1000


def test_a_prediction_says_what_follows_if_everything_dies(short_plan: LabPlan) -> None:
    prediction = predict(short_plan, planned(short_plan), {})
    (dwell,) = [step for step in prediction.steps if step.instruction_id == "dwell"]
    assert any(each.startswith("furnace.setpoint = 725 degC: hold") for each in dwell.if_killed)
    (first, *_) = prediction.steps
    assert not any("setpoint = 725" in each for each in first.if_killed)


def test_a_prediction_is_nominal_and_the_same_twice(short_plan: LabPlan) -> None:
    instructions = planned(short_plan)
    once = predict(short_plan, instructions, {}).to_json()
    assert once == predict(short_plan, instructions, {}).to_json()


def test_a_hot_furnace_takes_longer_to_be_loaded(short_plan: LabPlan) -> None:
    instructions = planned(short_plan)
    cold = predict(short_plan, instructions, {"furnace.temperature": 25.0})
    hot = predict(short_plan, instructions, {"furnace.temperature": 400.0})
    assert hot.violation is None
    assert hot.duration_s > cold.duration_s + 60


def test_a_flight_begins_with_the_pressure_and_the_valves_that_were_read(
    short_plan: LabPlan,
) -> None:
    instructions = planned(short_plan)
    evacuated = {"gauge.pressure": 20.0, "box.vent": 0.0, "box.nitrogen_bypass_shut": 1.0}
    found = predict(short_plan, instructions, evacuated).trajectory["gauge.pressure"]
    vented = predict(short_plan, instructions, {"gauge.pressure": 758.0, "box.vent": 1.0})
    assert found[0][1] < 100
    assert vented.trajectory["gauge.pressure"][0][1] > 700


def test_a_plan_that_would_trip_is_refused_before_anything_is_written(
    tight_plan: LabPlan, run_task: Run
) -> None:
    ran = run_task(tight_plan, submission(recipe={"sulfur_temperature_c": 240}))
    assert ran.type == "task_rejected", ran.body
    assert ran.body["reason_code"] == "safety_violation"
    message = ran.body["reason_message"]
    assert "Pre-flight, step " in message
    assert "sulfur.temperature is 23" in message
    assert f"at most {TRIP_C}" in message
    sources = {str(sent.source) for sent in ran.lab.guard.core.log or []}
    assert sources == {"read"}
    assert "no recipe the task is accepted" in ran.body["suggestion"]
    assert run_task(tight_plan).type == "task_completed"


def test_1250_degrees_are_refused_with_a_suggestion_that_works(
    short_plan: LabPlan, run_task: Run
) -> None:
    hot = {"min": 1200, "max": 1250, "unit": "celsius"}
    ran = run_task(short_plan, submission(temperature_range=hot))
    followed = json.loads(ran.body["suggestion"].split("With inputs ")[1].split(" the task")[0])
    assert run_task(short_plan, submission(**followed)).type in ("task_completed", "task_failed")


def test_the_plan_command_flies_without_submitting(capsys: pytest.CaptureFixture[str]) -> None:
    task = HERE.parent / "examples" / "mos2-monolayer.json"
    assert main(["plan", str(task), "--lab", str(HERE / "short_line.toml"), "--json"]) == 0
    prediction = json.loads(capsys.readouterr().out)
    assert prediction["violation"] is None
    assert main(["plan", str(task), "--lab", str(HERE / "short_line.toml")]) == 0
    shown = capsys.readouterr().out
    assert "material_growth" in shown
    assert "furnace.temperature" in shown
