"""The small labs that ship: each is whole, short, and used by the commands of the first one."""

import json
from pathlib import Path

import pytest

from commands import ROOT, say

LABS = ROOT / "envelopes" / "labharness_envelopes" / "labs"
LINES = LABS.parent / "lines"
LINES_MAX = 90
"""Of a lab's own files: its envelope, and all that stands in its folder."""

SMALL = {"annealing_furnace": "annealing.json", "iv_bench": "iv-curve.json"}


@pytest.fixture(params=sorted(SMALL))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def lab_of(name: str) -> Path:
    return LABS / name / "lab.toml"


def test_its_own_files_are_short(name: str) -> None:
    own = [LINES / f"{name}.toml", *(LABS / name).iterdir()]
    assert sum(len(each.read_text("utf-8").splitlines()) for each in own) <= LINES_MAX


def test_it_has_no_findings(name: str) -> None:
    said = say("lab", "check", "--lab", lab_of(name))
    assert (said.code, said.out.splitlines()[-1]) == (0, "no findings"), said
    said = say("doctor", "--lab", lab_of(name))
    assert (said.code, said.out.splitlines()[-1]) == (0, "no findings"), said


def test_its_example_runs_to_an_answer_and_a_report(name: str, tmp_path: Path) -> None:
    task = ROOT / "examples" / SMALL[name]
    said = say("run", task, "--lab", lab_of(name), "--out", tmp_path / "run")
    assert said.code == 0, said.err
    assert said.out.startswith("completed: ")
    assert said.err.splitlines()[0].startswith("Simulated ")
    answer = json.loads((tmp_path / "run" / "answer.json").read_text("utf-8"))
    assert answer["payload"]["execution_summary"]["warnings"] == []
    report = (tmp_path / "run" / "report.html").read_text("utf-8")
    intent = json.loads(task.read_text("utf-8"))["payload"]["intent"]
    assert intent in report
    for word in ("growth", "Raman", "layer"):
        assert word not in said.out
    assert say("report", tmp_path / "run").code == 0
    assert say("journal", "verify", tmp_path / "run").code == 0


def test_the_plan_of_its_example_is_flown_beforehand(name: str) -> None:
    said = say("plan", ROOT / "examples" / SMALL[name], "--lab", lab_of(name))
    assert said.code == 0, said.err
    assert "stays within every limit on the nominal plant" in said.out
