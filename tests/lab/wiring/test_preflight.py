"""Pre-flight: a plan is flown on the nominal plant first, and what it would break is refused."""

import json
import math
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from commands import planned, say, spawn_without_privilege
from labharness.faces.cli import main
from labharness.faces.report.comm_loss import comm_loss
from labharness.faces.report.words import plain
from labharness.journal.reading import read
from labharness.lab import LabPlan, default_lab_path, read_lab
from labharness.lab.config.comm_loss import hardware, what_stays
from labharness.lab.wiring.preflight import predict
from labharness.work.plan import Stays
from rig import EXAMPLE, HERE, SHORT_LINE, SOON, Run, accepted, approved_copy, submission

TRIP_C = 230

RISK = (
    "risk R3 (at least R3: the capability controls physical resources): "
    "approved beforehand by labharness maintainers"
)


@pytest.fixture
def tight_plan(tmp_path: Path) -> LabPlan:
    """A sulfur heater that trips below what its setpoint may be."""
    return approved_copy(tmp_path, edit=lambda text: text.replace("high = 300", f"high = {TRIP_C}"))


@pytest.mark.thorough
def test_the_prediction_is_what_then_happens(run_task: Run) -> None:
    ran = run_task()
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


@pytest.mark.soak
def test_hydrogen_flows_through_a_flight_though_its_watchdog_is_shorter_than_the_poll() -> None:
    plan = read_lab(default_lab_path())
    instructions = planned(plan, recipe={"hydrogen_sccm": 10, "argon_sccm": 85})
    prediction = predict(plan, instructions, {})
    assert prediction.violation is None
    (dwell,) = [step for step in prediction.steps if step.instruction_id == "dwell"]
    flowed = [
        flow
        for at_s, flow in prediction.trajectory["hydrogen.flow"]
        if dwell.started_s < at_s < dwell.ended_s
    ]
    assert flowed == pytest.approx([10.0] * len(flowed), abs=0.5)
    assert len(flowed) >= 5


@pytest.mark.thorough
def test_a_prediction_says_what_follows_if_everything_dies(short_plan: LabPlan) -> None:
    prediction = predict(short_plan, planned(short_plan), {})
    (dwell,) = [step for step in prediction.steps if step.instruction_id == "dwell"]
    assert any(each.startswith("furnace.setpoint = 725 degC: hold") for each in dwell.if_killed)
    (first, *_) = prediction.steps
    assert not any("setpoint = 725" in each for each in first.if_killed)
    assert said(short_plan, first.stays) == ["argon keeps flowing at 100 sccm"]
    assert said(short_plan, dwell.stays) == [
        "furnace STAYS ON, heating to 725 degC, until a hardware limiter acts",
        "sulfur STAYS ON, heating to 200 degC, until a hardware limiter acts",
        "argon keeps flowing at 50 sccm",
    ]
    (cold,) = [step for step in prediction.steps if step.instruction_id == "furnace_cold"]
    assert said(short_plan, cold.stays) == ["argon keeps flowing at 480 sccm"]


def said(plan: LabPlan, stays: tuple[Stays, ...]) -> list[str]:
    found = comm_loss([asdict(each) for each in stays], hardware(plan))
    return [plain(key, **fields) for key, fields in found]


HOT = {"furnace.setpoint": 925.0, "box.furnace_contactor": 1.0}
HYDROGEN = {"hydrogen.flow": 9.9, "hydrogen.setpoint_active": 10.0, "box.hydrogen_valve": 1.0}


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        (HOT, ["furnace STAYS ON, heating to 925 degC, until a hardware limiter acts"]),
        (HOT | {"box.furnace_contactor": 0.0}, ["no heater stays on, and no gas flows"]),
        (HOT | {"furnace.setpoint": 20.0}, ["box.furnace_contactor STAYS ON"]),
        (HYDROGEN, ["hydrogen stops flowing by itself within 5 s"]),
        (HYDROGEN | {"hydrogen.flow": 0.0}, ["box.hydrogen_valve STAYS ON"]),
        ({"laser.emission": 1.0}, ["laser.emission STAYS ON"]),
    ],
)
def test_what_stays_on_is_said_in_plain_words(
    short_plan: LabPlan, readings: dict[str, float], words: list[str]
) -> None:
    stays = what_stays(short_plan, lambda channel: readings.get(channel, math.nan))
    assert said(short_plan, stays)[: len(words)] == words
    if HOT.items() <= readings.items():
        bare = short_plan.hazards.model_copy(update={"hazard": ()})
        (first,) = said(replace(short_plan, hazards=bare), stays)
        assert first.endswith("and no hardware limiter is recorded")


@pytest.mark.thorough
def test_a_prediction_is_nominal_and_the_same_twice(short_plan: LabPlan) -> None:
    instructions = planned(short_plan)
    once = predict(short_plan, instructions, {}).to_json()
    assert once == predict(short_plan, instructions, {}).to_json()


@pytest.mark.soak
def test_a_hot_furnace_takes_longer_to_be_loaded(short_plan: LabPlan) -> None:
    instructions = planned(short_plan)
    cold = predict(short_plan, instructions, {"furnace.temperature": 25.0})
    hot = predict(short_plan, instructions, {"furnace.temperature": 400.0})
    assert hot.violation is None
    assert hot.duration_s > cold.duration_s + 60


@pytest.mark.thorough
def test_a_flight_begins_with_the_pressure_and_the_valves_that_were_read(
    short_plan: LabPlan,
) -> None:
    instructions = planned(short_plan)
    evacuated = {"gauge.pressure": 20.0, "box.vent": 0.0, "box.nitrogen_bypass_shut": 1.0}
    found = predict(short_plan, instructions, evacuated).trajectory["gauge.pressure"]
    vented = predict(short_plan, instructions, {"gauge.pressure": 758.0, "box.vent": 1.0})
    assert found[0][1] < 100
    assert vented.trajectory["gauge.pressure"][0][1] > 700


@pytest.mark.promise(9)
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
    assert "Without recipe among its inputs the task is accepted" in ran.body["suggestion"]
    assert accepted(run_task(tight_plan, abort=SOON))["risk_level"] == "R3"


@pytest.mark.thorough
def test_1250_degrees_are_refused_with_a_suggestion_that_works(run_task: Run) -> None:
    hot = {"min": 1200, "max": 1250, "unit": "celsius"}
    ran = run_task(None, submission(temperature_range=hot))
    followed = json.loads(ran.body["suggestion"].split("With inputs ")[1].split(" the task")[0])
    assert accepted(run_task(None, submission(**followed), abort=SOON))["risk_level"] == "R3"


def test_the_plan_command_flies_without_submitting(capsys: pytest.CaptureFixture[str]) -> None:
    task = HERE.parent / "examples" / "mos2-monolayer.json"
    assert main(["plan", str(task), "--lab", str(HERE / "short_line.toml"), "--json"]) == 0
    prediction = json.loads(capsys.readouterr().out)
    assert prediction["violation"] is None
    assert main(["plan", str(task), "--lab", str(HERE / "short_line.toml")]) == 0
    shown = capsys.readouterr().out
    takes, risk, *_ = shown.splitlines()
    assert takes.endswith(" and stays within every limit on the nominal plant")
    assert risk == RISK
    assert re.search(r"  growth\n", shown)
    assert "furnace STAYS ON, heating to 725 degC, until a hardware limiter acts\n" in shown
    assert "furnace.temperature" in shown


@pytest.mark.thorough
def test_a_plan_says_at_its_head_that_a_person_has_to_approve_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = json.loads((HERE.parent / "examples" / "mos2-monolayer.json").read_text("utf-8"))
    body["payload"]["inputs"]["temperature_range"] = {"min": 840, "max": 850, "unit": "celsius"}
    task = tmp_path / "hot.json"
    task.write_text(json.dumps(body), "utf-8")
    assert main(["plan", str(task), "--lab", str(HERE / "short_line.toml")]) == 0
    risk = capsys.readouterr().out.splitlines()[1]
    assert risk.startswith("risk R4 (at least R3: ")
    assert "): a person has to approve it (approval short-line-standing: " in risk
    assert risk.endswith("covers up to R3, not R4)")


def test_a_flight_makes_no_state_directory(short_plan: LabPlan) -> None:
    assert not short_plan.state_dir.exists()
    said = say("plan", EXAMPLE, "--lab", SHORT_LINE)
    assert (said.code, said.err) == (0, "")
    assert not short_plan.state_dir.exists()


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its privilege as on Linux")
def test_another_account_may_plan_and_is_told_that_the_latch_is_not_seen(
    short_plan: LabPlan,
) -> None:
    short_plan.state_dir.mkdir(parents=True)
    short_plan.state_dir.chmod(0)
    try:
        said = spawn_without_privilege("plan", EXAMPLE, "--lab", SHORT_LINE)
    finally:
        short_plan.state_dir.chmod(0o700)
    assert said.code == 0
    assert said.out.splitlines()[1] == RISK
    why = f"cannot be seen: {short_plan.state_dir}: Permission denied"
    assert said.err == f"labharness plan: whether the line is latched {why}\n"


def test_a_latch_that_cannot_be_read_is_told_by_plan_in_one_line(short_plan: LabPlan) -> None:
    short_plan.state_dir.mkdir(parents=True)
    (short_plan.state_dir / "latch.json").write_text("garbage", "utf-8")
    said = say("plan", EXAMPLE, "--lab", SHORT_LINE)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "the line stays latched" in said.err
