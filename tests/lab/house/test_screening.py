"""Only what the line cannot change is refused before a task has it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from commands import ROOT, say
from commands import payload as changed
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.house.screening import needs_of, screened
from labharness.protocols.hcp.messages import ResumeFrom
from labharness.protocols.hcp.terms import Rejected
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.facts import facts_for
from labharness.work.task.record import Task
from left_alone import HAZARDS
from rig import SHIPPED, SHORT_LINE, approved_copy, as_submit, submission


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"caller_id": "stranger"}, "unauthorized"),
        ({"capability": "bake"}, "invalid_input"),
        ({"resume_from": ResumeFrom(session_id="s", checkpoint_id="c")}, "invalid_input"),
        ({"inputs": {"target_material": "MoS2", "temperature": 5000}}, "invalid_input"),
    ],
)
def test_a_task_is_refused_for_what_its_turn_cannot_change(
    changes: dict[str, Any], reason: str | None
) -> None:
    _, payload = submission()
    found = screened(read_lab(SHORT_LINE), payload.model_copy(update=changes))
    assert (None if found is None else found.reason_code) == reason


def _in_force(text: str) -> str:
    return text


def _overdue(text: str) -> str:
    return text.replace("proof_days = 3650", "proof_days = 30")  # not on the day of virtual runs


@pytest.mark.parametrize(("edit", "level"), [(_in_force, "R4"), (_overdue, "R5")])
def test_each_that_weighs_a_task_finds_the_same_risk_for_the_same_reasons(
    tmp_path: Path, edit: Callable[[str], str], level: str
) -> None:
    """By the calendar, whatever the time is in which the task would run."""
    (tmp_path / "hazards.toml").write_text(edit(HAZARDS), "utf-8")
    table = f"{SHORT_LINE.parent}/short_line_hazards.toml"
    plan = approved_copy(tmp_path, edit=lambda text: text.replace(table, "hazards.toml"))
    body = changed({"hydrogen_sccm": 10}, "inputs", "recipe")
    task = tmp_path / "task.json"
    task.write_text(json.dumps(body), "utf-8")
    planned = say("plan", task, "--lab", plan.path)
    explained = json.loads(say("policy", "explain", task, "--lab", plan.path, "--json").out)
    refused = screened(plan, submission(**body["payload"]["inputs"])[1])
    overdue = "past its proof test"
    if level == "R4":
        assert planned.out.splitlines()[1].startswith("risk R4 ("), planned
        assert "process gas: hydrogen is flammable" in planned.out.splitlines()[1]
        assert explained["verdict"] is None
        assert refused is None
    else:
        assert refused is not None
        found = [refused.reason_message, explained["verdict"]["reason_message"], planned.out]
        assert [overdue in each for each in found] == [True] * 3, found


def test_a_task_that_needs_no_line_is_weighed_and_foreseen_without_one() -> None:
    asked = json.loads((ROOT / "examples" / "document-analysis.json").read_text("utf-8"))
    planned = say("plan", ROOT / "examples" / "document-analysis.json")
    assert planned.code == 0, planned
    assert "by its own plan; it needs no line" in planned.out
    assert "risk R1" in planned.out
    assert "argon" not in planned.out
    plan, payload = read_lab(SHIPPED), as_submit(asked)[1]
    of_line = replace(lab_facts_of(plan), on_comm_loss={"furnace.setpoint": "hold"}, shared=True)
    assert facts_for(of_line, payload).has_line is False
    assert facts_for(of_line, submission()[1]) is of_line


@pytest.mark.parametrize(
    ("weighed", "lasts"),
    [
        (Rejected("unauthorized", "who"), True),
        (Rejected("resource_unavailable", "no disk"), False),
        (SimpleNamespace(), False),
    ],
)
def test_what_may_change_until_its_turn_refuses_no_task_before_it(
    monkeypatch: pytest.MonkeyPatch, weighed: object, *, lasts: bool
) -> None:
    monkeypatch.setattr(Admitting, "weigh", lambda admitting, payload: weighed)
    found = screened(read_lab(SHORT_LINE), submission()[1])
    assert found is (weighed if lasts else None)


def test_a_task_of_a_capability_that_is_gone_needs_the_whole_line_alone(
    short_plan: LabPlan,
) -> None:
    need = needs_of(short_plan)(cast("Task", SimpleNamespace(task_family="bake", profile={})))
    assert (need.instruments, need.places) == (tuple(sorted(short_plan.by_name)), 1)
