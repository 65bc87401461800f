"""A curve of current against voltage: what it says of a diode, and what keeps the diode whole."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT, say
from labharness.faces.testing.faults import simulated_of
from labharness.lab import LabPlan, read_lab
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.callers import anybody
from labharness.work.capability.iv_curve import junction_of
from labharness_simulators.plant.diode import DiodeBench
from rig import IV, Injection, Run, as_submit, cut, plant_fault

DIODE = DiodeBench(None).diode
EXAMPLE = ROOT / "examples" / "iv-curve.json"
IDEALITY, SERIES_OHM = 1.752, 0.568  # the published SPICE model of a 1N4148, as the plant has it


def task(caller: str = "operator", **inputs: Any) -> tuple[HcpMessage, TaskSubmit]:
    body = json.loads(EXAMPLE.read_text("utf-8"))
    body["payload"]["caller_id"] = caller
    body["payload"]["inputs"].update(inputs)
    return as_submit(body)


@pytest.fixture
def bench() -> LabPlan:
    return read_lab(IV)


@pytest.mark.promise(56)
def test_the_diode_is_found_as_it_is(bench: LabPlan, run_task: Run) -> None:
    ran = run_task(bench, task())
    assert ran.type == "task_completed", ran.body
    outputs = ran.body["outputs"]
    assert outputs["points"] == 71
    assert outputs["ideality"] == pytest.approx(IDEALITY, abs=0.01)
    assert outputs["series_ohm"] == pytest.approx(SERIES_OHM, abs=0.02)
    rows = (ran.result.folder / "artifacts" / "iv_curve.csv").read_text("utf-8").splitlines()
    assert rows[0] == "set voltage [V],voltage [V],current [A],in compliance"
    assert len(rows) == 72
    assert simulated_of(ran.lab).plant.truth() == {"current_a": 0.0, "voltage_v": 0.0}


@pytest.mark.promise(56)
def test_in_compliance_the_curve_has_what_was_measured_and_says_so(
    bench: LabPlan, run_task: Run
) -> None:
    ran = run_task(bench, task(start_v=0.4, stop_v=0.8, points=21, compliance_a=1e-3))
    assert ran.type == "task_completed", ran.body
    table = (ran.result.folder / "artifacts" / "iv_curve.csv").read_text("utf-8")
    rows = [[float(each) for each in row.split(",")] for row in table.splitlines()[1:]]
    held = [row for row in rows if row[3]]
    assert len(held) > 5
    assert rows[-1][0] == 0.8
    for set_v, volts, amps, limited in rows:
        true_a = min(DIODE.current_at(volts), 1e-3)
        assert amps == pytest.approx(true_a, rel=0.02, abs=1e-8)  # of one reply
        assert (abs(amps) >= 0.99e-3) == bool(limited)
        assert volts == pytest.approx(0.58 if limited else set_v, abs=0.01)
    words = f"{len(held)} of 21 points stood at the compliance of 0.001 A"
    summary = ran.body["execution_summary"]
    assert any(words in each for each in summary["warnings"])
    assert words in summary["finding"]


@pytest.mark.parametrize(("ideality", "series_ohm"), [(1.0, 0.0), (1.5, 2.0), (2.0, 10.0)])
def test_the_fit_finds_what_a_curve_was_drawn_with(ideality: float, series_ohm: float) -> None:
    thermal_v = ideality * 1.380649e-23 * 298.15 / 1.602176634e-19
    amps = [1e-5 * 1.3**at for at in range(25)]
    points = [(thermal_v * math.log(a / 1e-12) + a * series_ohm, a) for a in amps]
    found = junction_of(points, 25.0)
    assert found is not None
    assert found[0] == pytest.approx(ideality, rel=1e-6)
    assert found[1] == pytest.approx(series_ohm, abs=0.06 * series_ohm + 1e-6)


def test_whoever_asks_needs_no_file_and_no_person_agrees(bench: LabPlan, run_task: Run) -> None:
    ran = run_task(bench, task("grace"))
    assert ran.type == "task_completed", ran.body
    (told,) = [data for kind, data in ran.events if kind == "task_accepted"]
    assert (told["risk_level"], told["hazard_categories"]) == ("R3", [])


def test_a_name_that_would_be_taken_for_another_may_not_ask() -> None:
    assert anybody("operator", ("iv-curve",)) is not None
    assert anybody("oper\u200bator", ("iv-curve",)) is None
    assert anybody("", ("iv-curve",)) is None


@pytest.mark.promise(9)
@pytest.mark.parametrize("end", [{"start_v": -6}, {"stop_v": 5.5}])
def test_a_voltage_beyond_the_envelope_is_rejected_with_one_that_is_not(
    bench: LabPlan, run_task: Run, end: dict[str, Any]
) -> None:
    ran = run_task(bench, task(**end))
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "safety_violation")
    assert "allowed -5 to 5 V" in ran.body["reason_message"]
    assert "the task is accepted (tried by pre-flight)" in ran.body["suggestion"]


def test_an_open_circuit_is_said_to_be_no_junction(bench: LabPlan, run_task: Run) -> None:
    ran = run_task(bench, task(), prepare=plant_fault("open_circuit"))
    assert ran.type == "task_completed", ran.body
    assert (ran.body["outputs"]["ideality"], ran.body["outputs"]["series_ohm"]) == (None, None)
    assert "too few points conduct" in ran.body["execution_summary"]["finding"]


def test_a_meter_that_is_silent_ends_the_sweep(bench: LabPlan, run_task: Run) -> None:
    ran = run_task(bench, task(points=500), inject=(Injection("sweep", 20.0, cut("gpib")),))
    assert ran.type == "task_failed", ran.body
    assert "partial_process_log" in [each["name"] for each in ran.body["artifacts"]]


def test_more_than_extra_low_voltage_takes_hardware_and_callers(tmp_path: Path) -> None:
    for each in (*IV.parent.iterdir(), IV.parents[2] / "lines" / "iv_bench.toml"):
        text = each.read_text("utf-8").replace('line = "iv_bench"', 'line = "iv_bench.toml"')
        text = text.replace("low = -5, high = 5", "low = -5, high = 100")
        (tmp_path / each.name).write_text(text, "utf-8")
    said = say("lab", "check", "--lab", tmp_path / "lab.toml")
    said.is_one_plain_error(
        'smu may harm: name the hardware that stands before it, in [lab]: hazards = "hazards.toml"',
        'smu may harm: say who may ask for what, in [lab]: callers = "callers.toml"',
    )


@pytest.mark.thorough
def test_it_is_set_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = say("set", "smu.voltage", "0.5", "V", "--attend", "--for", "3", "--lab", IV)
    assert said.code == 0, said.err
    assert "smu.voltage confirmed, reads 0.5" in said.out
    assert "the line is in its safe state, verified" in said.out
    said = say("set", "smu.voltage", "6", "V", "--attend", "--for", "3", "--lab", IV)
    assert "smu.voltage refused" in said.out
