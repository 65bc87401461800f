"""The small labs that ship: each is whole, short, and used by the commands of the first one."""

import json
import re
from pathlib import Path

import pytest

from commands import ROOT, say

LABS = ROOT / "envelopes" / "labharness_envelopes" / "labs"
LINES = LABS.parent / "lines"
LINES_MAX = 108
"""Of a lab's own files: its envelope, its faults file, and all that stands in its folder.

A second capability takes a second standing approval.
"""

SMALL = {"annealing_furnace": "annealing.json", "iv_bench": "iv-curve.json"}


@pytest.fixture(params=sorted(SMALL))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def lab_of(name: str) -> Path:
    return LABS / name / "lab.toml"


def test_its_own_files_are_short(name: str) -> None:
    own = [*LINES.glob(f"{name}.*"), *(LABS / name).iterdir()]
    assert sum(len(each.read_text("utf-8").splitlines()) for each in own) <= LINES_MAX


def test_it_has_no_findings(name: str) -> None:
    said = say("lab", "check", "--lab", lab_of(name))
    assert (said.code, said.out.splitlines()[-1]) == (0, "no findings"), said
    said = say("doctor", "--lab", lab_of(name))
    assert (said.code, said.out.splitlines()[-1]) == (0, "no findings"), said


@pytest.mark.promise(56)
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


def test_all_rows_that_are_missing_are_named_at_once_and_what_is_named_can_be_pasted(
    tmp_path: Path,
) -> None:
    for each in (*(LABS / "iv_bench").iterdir(), LINES / "iv_bench.toml"):
        text = each.read_text("utf-8").replace('line = "iv_bench"', 'line = "iv_bench.toml"')
        (tmp_path / each.name).write_text(text, "utf-8")
    envelope = tmp_path / "iv_bench.toml"
    whole = envelope.read_text("utf-8")
    begin, end = whole.index("limit = ["), whole.index("watch = [")
    envelope.write_text(whole[:begin] + "limit = []\n" + whole[end:], "utf-8")
    said = say("lab", "check", "--lab", tmp_path / "lab.toml")
    named = [f"smu.{each}" for each in ("voltage", "compliance", "output")]
    said.is_one_plain_error(*(f"{each} can be set and has no limit" for each in named))
    rows = re.findall(r"limit = \[ \]: (\{ .*? \})", said.err)
    assert len(rows) == len(named)
    envelope.write_text(whole[:begin] + f"limit = [{', '.join(rows)}]\n" + whole[end:], "utf-8")
    said = say("lab", "check", "--lab", tmp_path / "lab.toml")
    said.is_one_plain_error("smu may harm: name the hardware", "smu may harm: say who may ask")
