"""A task of a caller whose rights end: refused before a byte leaves, whatever it waited for."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any, cast

import pytest

from commands import ROOT, say
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary import Command, Ending
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.house.screening import LineOnFile
from labharness.line import Line
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.desk import Admitting
from labharness.work.desk.explained import explained
from labharness.work.desk.operations import LineOperations, OutOfScope
from labharness.work.plan.prediction import Prediction
from rig import Ran, as_submit

Run = Callable[..., Ran]
SHIPPED = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "annealing_furnace"
EXAMPLE = ROOT / "examples" / "annealing.json"
OWN = 'hours = "{hours}"\ninstruments = {instruments}\n'
EVERY = '["furnace", "gas"]'


def lab(
    folder: Path, hours: str = "always", instruments: str = EVERY, attended: str = "always"
) -> LabPlan:
    """Return the annealing furnace with one caller whose rights are these."""
    copytree(SHIPPED, folder / "lab")
    rights = '[callers.operator]\ncapabilities = ["annealing"]\nrisk_max = "R3"\n'
    own = OWN.format(hours=hours, instruments=instruments)
    (folder / "lab" / "callers.toml").write_text(f'{rights}data_class_max = "T2"\n{own}')
    path = folder / "lab" / "lab.toml"
    text = path.read_text("utf-8")
    path.write_text(text.replace('attended = "always"', f'attended = "{attended}"'), "utf-8")
    return read_lab(path)


def task() -> tuple[HcpMessage, TaskSubmit]:
    return as_submit(json.loads(EXAMPLE.read_text("utf-8")))


@pytest.mark.promise(68)
@pytest.mark.parametrize(
    ("rights", "says"),
    [
        ({"hours": "Thu 08:00-08:30 UTC"}, "may have work done at Thu 08:00-08:30 UTC"),
        ({"hours": "never"}, "may have work done at never"),
        ({"instruments": '["gas"]'}, "may not use furnace"),
    ],
)
def test_a_task_beyond_its_callers_rights_sets_nothing(
    tmp_path: Path, run_task: Run, rights: dict[str, str], says: str
) -> None:
    ran = run_task(lab(tmp_path, **rights), task())
    assert ran.type == "task_rejected", ran.body
    assert ran.body["reason_code"] == "forbidden"
    assert says in ran.body["reason_message"]


def admitting(plan: LabPlan, now: datetime) -> Admitting:
    return Admitting(facts=lab_facts_of(plan), line=LineOnFile(plan.envelope), utc=lambda: now)


@pytest.mark.promise(68)
def test_hours_that_passed_while_a_person_was_asked_count(tmp_path: Path) -> None:
    plan, (_, payload) = lab(tmp_path, attended="Thu 08:00-18:00 UTC"), task()
    weighed = admitting(plan, VIRTUAL_EPOCH).weigh(payload)
    assert not isinstance(weighed, Rejected), weighed
    assert admitting(plan, VIRTUAL_EPOCH).again(weighed, None) is None
    late = admitting(plan, VIRTUAL_EPOCH + timedelta(hours=9)).again(weighed, None)
    assert late is not None, "nobody is there for the end of the run, and it was agreed to with one"


@pytest.mark.promise(68)
@pytest.mark.parametrize(("hours", "refused"), [(9.9, False), (10.1, True)])
def test_the_duration_that_the_pre_flight_shows_lies_within_the_hours(
    tmp_path: Path, hours: float, refused: bool
) -> None:
    async def flown(*asked: object) -> Prediction:
        return Prediction(
            duration_s=hours * 3600.0, steps=(), trajectory={}, units={}, gas_used_cm3={}
        )

    plan, (_, payload) = lab(tmp_path, hours="Thu 08:00-18:00 UTC"), task()
    facts, line = replace(lab_facts_of(plan), predict=flown), LineOnFile(plan.envelope)
    weighs = Admitting(facts=facts, line=line, utc=lambda: VIRTUAL_EPOCH)
    weighed = weighs.weigh(payload)
    assert not isinstance(weighed, Rejected), weighed
    assert weighed.planned.duration_s < 9 * 3600.0
    found = asyncio.run(weighs.predict(weighed, {}))
    assert isinstance(found, Rejected) is refused, found
    assert not isinstance(found, Rejected) or "Thu 08:00-18:00 UTC" in found.reason_message


def test_an_unattended_run_is_told_when_it_would_be_attended(tmp_path: Path) -> None:
    plan, (_, payload) = lab(tmp_path, attended="Mon-Fri 09:00-18:00 UTC"), task()
    sunday = datetime(2026, 1, 4, 12, 0, tzinfo=UTC)
    refused = admitting(plan, sunday).weigh(payload)
    assert isinstance(refused, Rejected)
    assert "attended hours (from 2026-01-05T09:00:00.000Z on)" in str(refused.suggestion)


@pytest.mark.promise(68)
def test_an_operation_that_the_token_does_not_cover_never_reaches_the_line() -> None:
    class NoLine:
        holding = SimpleNamespace(total_s=float)
        clock = SimpleNamespace(now_s=float)
        latest = volumes_purged = check = staticmethod(lambda *asked: None)

    never: Any = None

    def beyond(instrument: str) -> str:
        return f"no {instrument}"

    line = cast("Line", NoLine())
    operations = LineOperations(
        line, never, lambda: True, beyond, never, never, never, lambda command: "", never
    )
    outcome = asyncio.run(operations.perform(Command("laser.emission", 1.0, "")))
    assert (outcome.ending, outcome.detail) == (Ending.REFUSED, "no laser")
    with pytest.raises(OutOfScope, match="no stage"):
        asyncio.run(operations.read("stage.x"))
    with pytest.raises(OutOfScope, match="no camera"):
        asyncio.run(operations.query("camera", "spectrum"))


def gates(plan: LabPlan, caller: str = "operator") -> dict[str, bool]:
    _, payload = task()
    payload = payload.model_copy(update={"caller_id": caller})
    line = LineOnFile(plan.envelope)
    found = explained(payload, lab_facts_of(plan), line, lambda: VIRTUAL_EPOCH)
    assert (found.verdict is None) is all(gate.passed for gate in found.gates)
    return {gate.name: gate.passed for gate in found.gates}


@pytest.mark.parametrize(
    ("rights", "stopped"),
    [
        ({}, []),
        ({"hours": "never"}, ["hours"]),
        ({"instruments": '["gas"]'}, ["instruments"]),
        ({"hours": "never", "instruments": "[]"}, ["hours", "instruments"]),
    ],
)
def test_each_gate_is_explained_by_itself(
    tmp_path: Path, rights: dict[str, str], stopped: list[str]
) -> None:
    found = gates(lab(tmp_path, **rights))
    assert [name for name, passed in found.items() if not passed] == stopped
    assert list(found)[:4] == ["caller", "capability", "data", "risk"]


def test_a_stranger_is_told_nothing_but_that(tmp_path: Path) -> None:
    assert gates(lab(tmp_path), "somebody") == {"caller": False}


def test_rights_without_effect_are_named(tmp_path: Path) -> None:
    plan = lab(tmp_path, instruments='["furnaces"]', hours="never")
    said = say("policy", "check", "--lab", plan.path)
    assert said.code == 1
    assert "[callers.operator].instruments: there is no 'furnaces' here" in said.out
    assert "did you mean furnace" in said.out
    assert "[callers.operator].hours: never" in said.out


def test_a_decision_is_explained_rule_by_rule(tmp_path: Path) -> None:
    plan = lab(tmp_path)
    said = say("policy", "explain", EXAMPLE, "--lab", plan.path)
    assert said.code == 0, said
    assert "physical resources: at least R3" in said.out
    assert "unattended: does not apply" in said.out
    refused = say("policy", "explain", EXAMPLE, "--lab", plan.path, "--caller", "x", "--json")
    body: dict[str, Any] = json.loads(refused.out)
    assert (refused.code, body["verdict"]["reason_code"]) == (2, "unauthorized")
