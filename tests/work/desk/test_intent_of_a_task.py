"""What a desk does with the words of a task: refuse a conflict, record and say the rest."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary.texts import coded
from labharness.journal.reading import read
from labharness.lab import read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.house.screening import screened
from labharness.lab.wiring.preflight import instructions_of
from labharness.lab.wiring.tasks import TaskRun
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import NotApproved
from labharness.work.desk.admitting import Admitting, Weighed
from labharness.work.desk.explained import explained
from rig import SHORT_LINE, as_submit, submission

FURNACE = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "annealing_furnace" / "lab.toml"


def annealed(tmp_path: Path, intent: str) -> tuple[Any, list[Any]]:
    """Take an annealing at 120 degC to its answer; return it, and the journal of its run."""
    asked = json.loads((ROOT / "examples" / "annealing.json").read_text("utf-8"))
    asked["payload"] |= {"intent": intent, "inputs": {"temperature_c": 120, "duration_s": 120}}
    plan = replace(read_lab(FURNACE), state_dir=tmp_path / "state")
    run = TaskRun(plan, *as_submit(asked), speed=None, seed=1, out=tmp_path / "run")
    return run.execute().message, list(read(tmp_path / "run" / "journal.sqlite"))


@pytest.mark.promise(52)
def test_a_conflict_is_rejected_before_anything_is_planned(tmp_path: Path) -> None:
    message, records = annealed(tmp_path, "Do not exceed 100 C")
    assert message.type == "task_rejected"
    assert message.payload.reason_code == "invalid_input"
    for said in (message.payload.reason_message, message.payload.suggestion):
        for part in ("Do not exceed 100 °C", "inputs.temperature_c", "120 °C"):
            assert part in said
    kinds = [each.kind for each in records]
    assert not {"planned", "prediction", "approved", "opening", "armed", "outcome"} & set(kinds)
    (terminal,) = [each.body for each in records if each.kind == "terminal"]
    assert "intent.conflict" in repr(coded(terminal)), "the conflict is a fact, with both sides"


def test_what_was_not_read_and_what_was_left_open_is_recorded_and_warned_of(
    tmp_path: Path,
) -> None:
    intent = "Anneal under 50 sccm argon. It is for Dr Smith."
    message, records = annealed(tmp_path, intent)
    assert message.type == "task_completed"
    events = [each.body for each in records if each.kind == "event"]
    told = [each["data"] for each in events if each["event_type"] == "warning"]
    warned = {each["code"]: str(each["message"]) for each in told}
    assert "It is for Dr Smith." in warned["intent_not_read"]
    assert "inputs.flow_sccm: 50.0" in warned["intent_not_stated"]
    (read_in,) = [each.body for each in records if each.kind == "intent_read"]
    assert read_in["proposed_inputs"] == {"inputs.flow_sccm": 50.0}
    (submitted,) = [each.body for each in records if each.kind == "submitted"]
    assert submitted["payload"]["inputs"] == {"temperature_c": 120, "duration_s": 120}
    (planned,) = [each.body for each in records if each.kind == "planned"]
    assert planned["recipe"]["flow_sccm"] == 100.0, "the words are obeyed by nobody"


@pytest.mark.parametrize("intent", ["WS2 bilayer", "温度不超过700℃"])
def test_a_conflict_is_found_at_each_door(intent: str) -> None:
    plan, payload = read_lab(SHORT_LINE), submission()[1].model_copy(update={"intent": intent})
    facts = lab_facts_of(plan)
    doors = (
        screened(plan, payload),
        instructions_of(plan, payload),
        explained(payload, facts, plan.envelope, lambda: VIRTUAL_EPOCH).verdict,
    )
    for found in doors:
        assert isinstance(found, Rejected)
        assert found.reason_code == "invalid_input"
        assert "the intent says" in found.reason_message


def test_a_proposal_stands_beside_the_plan_for_who_approves() -> None:
    plan = read_lab(SHORT_LINE)
    admitting = Admitting(
        facts=lab_facts_of(plan), envelope=plan.envelope, utc=lambda: VIRTUAL_EPOCH
    )
    payload = submission()[1].model_copy(update={"intent": "Grow MoS2 for 5 minutes"})
    weighed = admitting.weigh(payload)
    assert isinstance(weighed, Weighed)
    asked = admitting.request(payload, weighed, None, NotApproved("nobody"), session_id="s")
    assert asked.proposed_inputs == {"inputs.recipe.dwell_s": 300.0}
    assert asked.inputs == submission()[1].inputs
    assert weighed.planned.recipe["dwell_s"] != 300.0


def test_a_material_that_the_line_lacks_something_for_is_told_where_the_words_agree() -> None:
    asked = submission(target_material="WSe2")[1].model_copy(update={"intent": "Grow WSe2"})
    found = screened(read_lab(SHORT_LINE), asked)
    assert isinstance(found, Rejected)
    assert "a detector for hydrogen seleni" in found.reason_message
