"""``plan --draw`` prints the graph of a task's instructions, and flies nothing."""

import json
from pathlib import Path

import pytest

from commands import ROOT, say
from labharness.faces.cli import plan

EXAMPLES = ROOT / "examples"
TASK = EXAMPLES / "annealing.json"
LAB = ROOT / "envelopes/labharness_envelopes/labs/annealing_furnace/lab.toml"


def test_a_plan_is_drawn_as_text_and_as_a_flowchart_without_a_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(plan, "forecast")
    said = say("plan", TASK, "--lab", LAB, "--draw", "text")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].split() == ["1", "flow", "set"]
    assert lines[1].split() == ["2", "flush", "hold", "<-", "flow"]
    drawn = say("plan", TASK, "--lab", LAB, "--draw", "mermaid").out.splitlines()
    assert drawn[:2] == ["flowchart TD", '  n1["flow<br/>set"]']
    assert len(drawn) == 1 + len(lines) + (len(lines) - 1)  # a chain
    assert "  n1 --> n2" in drawn


def test_a_task_that_would_be_rejected_is_not_drawn() -> None:
    said = say("plan", TASK, "--lab", EXAMPLES / "small-lab" / "lab.toml", "--draw", "text")
    assert said.code == 2
    assert "would be rejected" in said.out


def test_one_form_is_printed_at_a_time() -> None:
    assert say("plan", TASK, "--draw", "text", "--json").code == 64
    assert say("plan", TASK, "--draw", "svg").code == 64


def test_a_plan_says_what_its_words_ask_for_and_its_inputs_do_not(tmp_path: Path) -> None:
    asked = json.loads(TASK.read_text("utf-8"))
    intent = "Anneal under 50 sccm argon. It is for Dr Smith."
    asked["payload"] |= {"intent": intent, "inputs": {"temperature_c": 120, "duration_s": 120}}
    path = tmp_path / "task.json"
    path.write_text(json.dumps(asked), "utf-8")
    said = say("plan", path, "--lab", LAB)
    assert said.code == 0
    assert "inputs.flow_sccm: 50.0" in said.err
    assert "It is for Dr Smith." in said.err
