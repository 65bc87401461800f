"""Annealing: the sample gets what was asked, and the line is safe when it does not."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attempts import Attempts, body
from commands import ROOT, say
from hands import truth
from labharness.core.clock.loops import finish
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.trips import Trip
from labharness.lab import Lab, LabPlan, read_lab
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from rig import ANNEALING_LAB, Injection, Run, as_submit, cut, plant_fault

EXAMPLE = ROOT / "examples" / "annealing.json"


def task(**inputs: Any) -> tuple[HcpMessage, TaskSubmit]:
    asked = json.loads(EXAMPLE.read_text("utf-8"))
    asked["payload"]["inputs"].update(inputs)
    return as_submit(asked)


@pytest.fixture
def furnace() -> LabPlan:
    return read_lab(ANNEALING_LAB)


@pytest.mark.promise(56)
@pytest.mark.parametrize("wanted_c", [150, pytest.param(300, marks=pytest.mark.thorough)])
def test_the_sample_is_kept_at_the_temperature_for_the_time(
    furnace: LabPlan, run_task: Run, wanted_c: int
) -> None:
    ran = run_task(furnace, task(temperature_c=wanted_c, duration_s=900))
    assert ran.type == "task_completed", ran.body
    outputs = ran.body["outputs"]
    assert outputs["dwell_reached"] is True
    assert outputs["dwell_mean_c"] == pytest.approx(wanted_c, abs=3)
    assert wanted_c - 3 <= outputs["max_temperature_c"] <= wanted_c + 5
    path = ran.result.folder / "artifacts" / "curve.csv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    hot = [row for row in rows if float(row["furnace.temperature"]) > wanted_c - 5]
    assert float(hot[-1]["time [s]"]) - float(hot[0]["time [s]"]) >= 900
    assert all(float(row["gas.flow"]) >= 95 for row in hot)
    assert float(rows[-1]["furnace.temperature"]) <= 60
    assert not truth(ran.lab)["furnace_heating"]


def test_argon_that_stops_over_a_hot_sample_ends_the_heat(furnace: LabPlan, run_task: Run) -> None:
    lies = Injection("dwell", 60.0, cut("argon"))
    ran = run_task(furnace, task(temperature_c=300), inject=(lies,))
    assert ran.type == "task_failed", ran.body
    assert ran.body["error_details"]["phase"] == "dwell"
    assert not truth(ran.lab)["furnace_heating"]
    assert "partial_process_log" in [each["name"] for each in ran.body["artifacts"]]
    assert ran.body["partial_outputs"]["process_log"]["entries_before_failure"] > 50


@pytest.mark.promise(60)
def test_an_open_thermocouple_trips(furnace: LabPlan, run_task: Run) -> None:
    broken = Injection("heating", 300.0, plant_fault("furnace_sensor_broken"))
    ran = run_task(furnace, task(), inject=(broken,))
    assert (ran.type, ran.body["error_code"]) == ("task_failed", "safety_violation"), ran.body
    details = ran.body["error_details"]
    assert (details["last_checkpoint"], details["recoverable"]) == ("ckpt-001", False)
    assert not truth(ran.lab)["furnace_heating"]


@pytest.mark.promise(60)
def test_a_way_on_is_told_only_where_the_same_submission_would_be_let_on(
    furnace: LabPlan, run_task: Run
) -> None:
    """Nothing was heated, and the plant of this lab begins anew: the sample is gone."""

    def stop(lab: Lab) -> None:
        trip = Trip(Cause.STOP_REQUEST, furnace.safe_procedure, "test", None, 0.0, "a test")
        lab.line.trip_response.trip(trip)

    ran = run_task(furnace, task(), inject=(Injection("heating", 0.0, stop),))
    details = ran.body["error_details"]
    assert (ran.type, details["last_checkpoint"]) == ("task_failed", "ckpt-001"), ran.body
    assert details["recoverable"] is False
    assert "resume_from" not in ran.body["suggestion"]


@pytest.mark.promise(61)
def test_a_run_that_was_silent_for_too_long_is_made_safe_and_has_timed_out(
    furnace: LabPlan, tmp_path: Path
) -> None:
    attempts = Attempts(replace(furnace, state_dir=tmp_path / "state"), tmp_path)

    def late(lab: Lab) -> None:
        assert attempts.task is not None
        attempts.task.time_out()

    try:
        ran = attempts.run("run", task(), inject=(Injection("heating", 60.0, late),))
        found = body(ran)
        assert (ran.message.type, found["error_code"]) == ("task_failed", "timeout"), found
        assert "900 s" in found["error_message"]
        assert "max_duration" not in found["suggestion"]
        assert found["execution_summary"]["risk_events"] == []
        changes = [data for kind, data in attempts.events["run"] if kind == "state_changed"]
        assert [each["to_state"] for each in changes] == ["RUNNING", "FAILED"]
        assert not attempts.sim_lab.plant.truth()["furnace_heating"]
    finally:
        finish(attempts.loop)


@pytest.mark.promise(9)
def test_what_the_line_does_not_allow_is_rejected_with_what_it_does(
    furnace: LabPlan, run_task: Run
) -> None:
    ran = run_task(furnace, task(temperature_c=780))
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "safety_violation")
    assert "furnace.setpoint = 780 degC is not within 0 to 750 degC" in ran.body["reason_message"]
    assert "temperature_c" in ran.body["suggestion"]
    ran = run_task(furnace, task(flow_sccm=5))
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "safety_violation")
    assert "takes gas.flow at least 20" in ran.body["reason_message"]


@pytest.mark.thorough
def test_it_is_heated_by_hand_in_flowing_argon_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = say(
        "set", "furnace.setpoint", "100", "degC", "--attend", "--for", "5", "--lab", ANNEALING_LAB
    )
    assert refused.code == 2
    assert "takes gas.flow at least 20" in refused.err + refused.out
    flows = say(
        "set", "gas.setpoint", "100", "sccm", "--attend", "--for", "5", "--lab", ANNEALING_LAB
    )
    assert flows.code == 0, flows.err
    assert "the line is in its safe state, verified" in flows.out


def test_a_lab_whose_names_differ_says_which_channels_it_means(tmp_path: Path) -> None:
    for each in (
        *ANNEALING_LAB.parent.iterdir(),
        ANNEALING_LAB.parents[2] / "lines" / "annealing_furnace.toml",
    ):
        (tmp_path / each.name).write_text(each.read_text("utf-8"), "utf-8")
    lab = tmp_path / "lab.toml"
    text = lab.read_text("utf-8").replace('"annealing_furnace"', '"annealing_furnace.toml"')
    lab.write_text(text.replace("annealing]", 'annealing]\nfurnace = "oven"'), "utf-8")
    said = say("lab", "check", "--lab", lab)
    assert said.code == 1
    assert "annealing: oven.setpoint is not a channel that this line can set" in said.out
    assert "annealing: oven.setpoint_rate is not a channel" in said.out
