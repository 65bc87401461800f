"""A set of instructions: weighed with all its branches, flown, judged together, run and told."""

import asyncio
import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT, say
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.hours import read_hours
from labharness.core.vocabulary.trips import Trip
from labharness.faces.report.reading import read_run
from labharness.faces.testing.faults import simulated_of
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.wiring.approvals import ApprovalFolder
from labharness.lab.wiring.preflight import predict
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import Approved, NotApproved
from labharness.work.admission.callers import Caller
from labharness.work.desk.admitting import Admitting, Weighed
from labharness.work.plan import Prediction
from rig import ANNEALING_LAB, Injection, Ran, Run, as_submit

EXAMPLE = ROOT / "examples" / "sequence.json"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Step = dict[str, Any]


def step(name: str, action: str, *needs: str, stage: str = "a stage", **asked: Any) -> Step:
    about: Step = {
        key: asked.pop(key) for key in ("condition", "recovery", "timeout") if key in asked
    }
    written: Step = {"instructionId": name, "action": action, "parameters": asked}
    return {**written, "dependencies": list(needs), "metadata": {"stage": stage}, **about}


def put(name: str, channel: str, value: Any, *needs: str, **more: Any) -> Step:
    unit = "sccm" if channel.startswith("gas") else "degC"
    return step(name, "set", *needs, channel=channel, value=value, unit=unit, **more)


def look(name: str, *needs: str, **more: Any) -> Step:
    """Read a temperature: any value of it will do."""
    return step(name, "wait", *needs, channel="furnace.temperature", at_least=-273, **more)


def stay(name: str, duration_s: float | str, *needs: str, **more: Any) -> Step:
    return step(name, "hold", *needs, duration_s=duration_s, channels=[], **more)


def task(*steps: Step, mode: str = "PARALLEL", **more: Any) -> tuple[HcpMessage, TaskSubmit]:
    asked = json.loads(EXAMPLE.read_text("utf-8"))
    asked["payload"]["inputs"]["instructions"] = {
        "instructions": list(steps),
        "executionMode": mode,
        **more,
    }
    return as_submit(asked)


@pytest.fixture
def furnace() -> LabPlan:
    return read_lab(ANNEALING_LAB)


def statuses(ran: Ran) -> dict[str, str]:
    found = ran.body.get("outputs") or ran.body["partial_outputs"]
    return dict(found["statuses"])


def sent(ran: Ran) -> list[tuple[str, float]]:
    """The commands of the set that were sent: those after its first step began."""
    records = list(read(ran.result.folder / "journal.sqlite"))
    began = next((each.seq for each in records if each.kind == "step"), len(records))
    return [
        (each.body["channel"], each.body["value"])
        for each in records
        if each.kind == "intent" and each.seq > began and each.body["channel"] != "furnace.mode"
        if each.at_s < _made_safe_s(ran)
    ]


def _made_safe_s(ran: Ran) -> float:
    steps = [each for each in read(ran.result.folder / "journal.sqlite") if each.kind == "step"]
    return max(each.at_s for each in steps)


def admitting(plan: LabPlan, **changes: Any) -> Admitting:
    facts = replace(lab_facts_of(plan), **changes)
    return Admitting(facts=facts, envelope=plan.envelope, utc=lambda: NOON)


def weighed(plan: LabPlan, *steps: Step, **more: Any) -> Weighed:
    found = admitting(plan).weigh(task(*steps, **more)[1])
    assert isinstance(found, Weighed), found
    return found


def rejected(plan: LabPlan, *steps: Step, **more: Any) -> Rejected:
    found = admitting(plan).weigh(task(*steps, **more)[1])
    assert isinstance(found, Rejected), found
    return found


def branches(threshold_c: float) -> tuple[Step, ...]:
    return (
        look("look"),
        put(
            "warm",
            "gas.setpoint",
            80,
            "look",
            condition=f"results.look.result.value > {threshold_c}",
        ),
        put(
            "cool",
            "gas.setpoint",
            40,
            "look",
            condition=f"NOT dependencies.look.result.value > {threshold_c}",
        ),
        put("after", "gas.setpoint", 60, "warm", condition="results.warm.status != 'FAILED'"),
    )


def test_the_example_runs_to_an_answer_a_curve_and_a_report(tmp_path: Path) -> None:
    said = say("run", EXAMPLE, "--lab", ANNEALING_LAB, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    assert "6 of 7 instructions completed, 1 skipped" in said.out
    answer = json.loads((tmp_path / "run" / "answer.json").read_text("utf-8"))["payload"]
    outputs = answer["outputs"]
    assert outputs["statuses"] == dict.fromkeys(outputs["statuses"], "COMPLETED") | {
        "longer": "SKIPPED"
    }
    assert outputs["results"]["longer"]["reason"] == "condition"
    assert "recorded" not in outputs["results"]["heat"]["result"]
    path = tmp_path / "run" / "artifacts" / "curve.csv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert max(float(row["furnace.temperature"]) for row in rows) == pytest.approx(200, abs=5)
    assert "Bake for 10 minutes" in (tmp_path / "run" / "report.html").read_text("utf-8")
    phases = read_run(tmp_path / "run" / "journal.sqlite").phases
    assert [each.name for each in phases] == ["flush", "heating", "bake", "cooling"]
    assert all(one.end_s <= other.start_s for one, other in pairwise(phases))
    explained = say("policy", "explain", EXAMPLE, "--lab", ANNEALING_LAB)
    assert explained.code == 0, explained.err


@pytest.mark.parametrize(
    ("threshold_c", "taken"), [(10.0, {"warm", "after"}), (90.0, {"cool", "after"})]
)
def test_each_branch_is_taken_by_what_was_measured(
    furnace: LabPlan, run_task: Run, threshold_c: float, taken: set[str]
) -> None:
    ran = run_task(furnace, task(*branches(threshold_c)))
    assert ran.type == "task_completed", ran.body
    found = statuses(ran)
    assert {name for name, each in found.items() if each == "COMPLETED"} == {"look"} | taken
    assert {name for name, each in found.items() if each == "SKIPPED"} == ({"warm", "cool"} - taken)


@pytest.mark.promise(9)
def test_what_a_branch_or_a_fall_back_would_pass_is_refused_before_anything_is_sent(
    furnace: LabPlan, run_task: Run
) -> None:
    other = {"action": "set", "parameters": put("x", "gas.setpoint", 900)["parameters"]}
    ends = {"from": "${dependencies.look.result.value}", "min": 20, "max": 800}
    for steps in (
        (*branches(10.0)[:2], put("x", "gas.setpoint", 501, "look", condition="false")),
        (put("x", "gas.setpoint", 50, recovery={"fallback": other}),),
        (look("look"), put("x", "furnace.setpoint", ends, "look")),
        (put("first", "gas.setpoint", 80), put("x", "furnace.setpoint", 751)),
    ):
        ran = run_task(furnace, task(*steps))
        assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "safety_violation")
        assert ran.body["reason_message"].startswith("Step x: ")
        journal = ran.result.folder / "journal.sqlite"
        assert not [each for each in read(journal) if each.kind == "intent"]


@pytest.mark.promise(9)
def test_each_branch_is_flown_with_both_ends_of_a_number(furnace: LabPlan) -> None:
    """Heat without gas: by a branch that the nominal furnace does not take, and at one end."""
    off = put("off", "gas.setpoint", 0, "look", condition="results.look.result.value > 1000")
    rest = stay("rest", 60, "look", "off", condition="NOT results.off.status == 'FAILED'")

    def violation(most_c: float, *before: Step) -> str:
        asked = {"from": "${dependencies.look.result.value}", "min": 20, "max": most_c}
        hot = put("hot", "furnace.setpoint", asked, "look", "rest", stage="hot")
        plan = weighed(furnace, look("look"), *before, hot).planned.instructions
        found = predict(furnace, plan, {}).violation
        return "" if found is None else f"{found.instruction_id}: {found.detail}"

    assert "hot: " in (said := violation(90, off, rest))
    assert "takes gas.flow at least 20" in said
    assert violation(55, off, rest) == ""
    assert violation(90, stay("rest", 60, "look")) == ""


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("most", "steps"),
    [
        ((), branches(10.0)[:3]),
        (("after",), branches(10.0)),
        (("x",), (put("x", "gas.setpoint", 50, recovery={"otherwise": "skip"}),)),
        (("x",), (look("look"), put("x", "gas.setpoint", 50, "look", condition="false"))),
        (
            tuple(f"x{n}" for n in range(5)),
            (
                look("look"),
                *(
                    put(
                        f"x{n}",
                        "gas.setpoint",
                        50,
                        "look",
                        condition=f"results.look.result.value > {n}",
                    )
                    for n in range(5)
                ),
            ),
        ),
    ],
)
def test_a_branch_that_was_not_flown_takes_a_person(
    furnace: LabPlan, most: tuple[str, ...], steps: tuple[Step, ...]
) -> None:
    flown = predict(furnace, weighed(furnace, *steps).planned.instructions, {})
    assert (flown.violation, flown.unflown) == (None, most)
    assert ("unflown" in flown.to_json()) == bool(most)

    async def fly(plan: object, readings: object) -> Prediction:
        return flown

    for hours, flies in (("never", True), ("never", False), ("always", False)):
        gate = admitting(
            furnace,
            attended=read_hours(hours),
            predict=fly if flies else None,
            callers={"operator": Caller("operator", ("sequence",), "R4", "T2")},
            on_comm_loss={},
            safeguards_missing=lambda hazards, day: (),
        )
        found = gate.weigh(task(*steps)[1])
        assert isinstance(found, Weighed), found
        ended = asyncio.run(gate.predict(found, {}))
        refused = hours == "never" and (bool(most) or not flies)
        assert isinstance(ended, Rejected) == refused, ended
        if isinstance(ended, Rejected):
            assert "a person must be there" in ended.reason_message


@pytest.mark.promise(9)
def test_heat_at_its_highest_is_flown_beside_gas_at_its_lowest(furnace: LabPlan) -> None:
    ends = {"from": "${dependencies.look.result.value}", "min": 0, "max": 100}
    gas, rest = put("gas", "gas.setpoint", ends, "look"), stay("rest", 60, "gas")
    hot = put("hot", "furnace.setpoint", ends, "look", "rest")
    found = predict(
        furnace, weighed(furnace, look("look"), gas, rest, hot).planned.instructions, {}
    )
    assert found.violation is not None
    assert "takes gas.flow at least 20" in found.violation.detail


@pytest.mark.promise(9)
def test_a_step_that_is_not_flown_takes_no_less_than_it_states(furnace: LabPlan) -> None:
    about: Step = {"channel": "furnace.temperature", "limit": 100, "unit": "degC"}
    rise = step("rise", "rate_of_rise", **about, settle_s=600, duration_s=1800)
    found = predict(furnace, weighed(furnace, rise).planned.instructions, {})
    assert found.duration_s >= 2400


def test_stage_and_description_of_a_caller_draw_on_no_terminal(furnace: LabPlan) -> None:
    drawn = look("a", stage="\x1b[2Jhot")
    drawn["metadata"]["description"] = "one\rtwo"
    (read_step,) = weighed(furnace, drawn).planned.instructions.instructions
    assert (read_step.stage, read_step.description) == ("\ufffd[2Jhot", "one\ufffdtwo")


def starve(lab: Lab) -> None:
    """End the flow at the controller, as somebody at its keys does."""
    face = simulated_of(lab).faces["gas"]
    face._setpoint_sccm = face._part.setpoint_sccm = 0.0


STARVED = (Injection("flush", 20.0, starve),)


@pytest.mark.promise(9)
def test_of_operations_side_by_side_none_is_sent_where_the_kernel_refuses_one(
    furnace: LabPlan, run_task: Run
) -> None:
    steps = (
        stay("flush", 60, stage="flush"),
        put("more", "gas.setpoint", 90, "flush"),
        put("hot", "furnace.setpoint", 100, "flush"),
    )
    ran = run_task(furnace, task(*steps), inject=STARVED)
    assert (ran.type, ran.body["error_code"]) == ("task_failed", "safety_violation"), ran.body
    assert statuses(ran) == {"flush": "COMPLETED", "more": "SKIPPED", "hot": "FAILED"}
    assert "takes gas.flow at least 20" in ran.body["partial_outputs"]["results"]["hot"]["error"]
    assert sent(ran) == []


def test_an_operation_that_was_refused_takes_its_fall_back(furnace: LabPlan, run_task: Run) -> None:
    cooler = {"channel": "furnace.setpoint", "value": 40, "unit": "degC"}
    kept = {"fallback": {"action": "set", "parameters": cooler}}
    hot = put("hot", "furnace.setpoint", 100, "flush", recovery=kept)
    ran = run_task(furnace, task(stay("flush", 60, stage="flush"), hot), inject=STARVED)
    assert ran.type == "task_completed", ran.body
    assert ran.body["outputs"]["results"]["hot"]["recovered"] == "fallback"
    assert sent(ran) == [("furnace.setpoint", 40)]


@pytest.mark.promise(9)
def test_a_number_beyond_its_bounds_is_refused_before_a_byte(
    furnace: LabPlan, run_task: Run
) -> None:
    asked = {"from": "${dependencies.look.result.value}", "min": 30, "max": 45}
    set_it = put("set", "furnace.setpoint", asked, "look")
    ran = run_task(furnace, task(look("look"), set_it))
    assert (ran.type, ran.body["error_code"]) == ("task_failed", "input_error"), ran.body
    assert "allowed are numbers from 30 to 45" in ran.body["error_message"]
    assert sent(ran) == []
    within = put("set", "furnace.setpoint", {**asked, "min": 5}, "look")
    assert run_task(furnace, task(look("look"), within)).type == "task_completed"


def stop(lab: Lab) -> None:
    trip = Trip(Cause.STOP_REQUEST, lab.plan.safe_procedure, "test", None, 0.0, "a test")
    lab.line.trip_response.trip(trip)


@pytest.mark.promise(14)
def test_a_trip_ends_a_set_without_recovery(furnace: LabPlan, run_task: Run) -> None:
    again = {"retry": {"attempts": 5, "delay": 0}, "otherwise": "skip"}
    steps = (
        stay("slow", 600, stage="slow", recovery=again),
        put("next", "gas.setpoint", 70, "slow", recovery=again),
    )
    ran = run_task(furnace, task(*steps), inject=(Injection("slow", 60.0, stop),))
    assert (ran.type, ran.body["error_code"]) == ("task_failed", "safety_violation"), ran.body
    assert statuses(ran) == {"slow": "FAILED", "next": "SKIPPED"}
    assert ran.body["partial_outputs"]["results"]["next"]["reason"] == "trip"
    assert ("gas.setpoint", 70) not in sent(ran)


def test_a_stop_of_its_caller_ends_a_set_and_leaves_the_line_safe(
    furnace: LabPlan, run_task: Run
) -> None:
    steps = (stay("slow", 600, stage="slow"), put("next", "gas.setpoint", 70, "slow"))
    ran = run_task(furnace, task(*steps), abort=("slow", 60.0))
    assert (ran.type, ran.body["data"]["final_state"]) == ("event", "ABORTED"), ran.body
    assert ("gas.setpoint", 70) not in sent(ran)


@pytest.mark.promise(9)
def test_a_set_goes_on_after_a_hold_in_which_nothing_begins(
    furnace: LabPlan, run_task: Run
) -> None:
    at: dict[str, Any] = {}

    def hold(lab: Lab) -> None:
        async def paused() -> None:
            await lab.line.hold()
            at["held"] = lab.clock.now_s()
            while lab.clock.now_s() < at["held"] + 300:
                await lab.line.next_tick()
            at["on"] = lab.clock.now_s()
            lab.line.start()

        at["task"] = lab.clock.loop.create_task(paused())

    steps = (
        stay("short", 30, stage="short"),
        put("one", "gas.setpoint", 70, "short"),
        put("two", "gas.setpoint", 80, "short"),
    )
    ran = run_task(furnace, task(*steps), inject=(Injection("short", 10.0, hold),))
    assert ran.type == "task_completed", ran.body
    assert set(statuses(ran).values()) == {"COMPLETED"}
    begun = [
        each.at_s
        for each in read(ran.result.folder / "journal.sqlite")
        if each.kind == "step" and each.body["instruction"] != "short"
    ]
    assert min(begun) >= at["on"]


def test_risk_gases_and_hazards_follow_from_what_every_branch_states(furnace: LabPlan) -> None:
    gas = put("gas", "gas.setpoint", 80)
    found = weighed(furnace, look("look"))
    assert (found.planned.process_gases, found.planned.temperature_c_max) == ((), None)
    assert (found.hazards, found.commands) == ((), ())
    found = weighed(furnace, gas)
    assert found.planned.process_gases == ("argon",)
    assert "high_temperature" not in found.hazards
    asked = {"channel": "furnace.setpoint", "value": 700, "unit": "degC"}
    ends = {"from": "${dependencies.look.result.value}", "min": 20, "max": 640}
    for steps, most_c in (
        ((put("hot", "furnace.setpoint", 300, "look", condition="false"),), 300),
        ((put("hot", "furnace.setpoint", ends, "look"),), 640),
        (
            (
                put(
                    "hot",
                    "furnace.setpoint",
                    100,
                    recovery={"fallback": {"action": "set", "parameters": asked}},
                ),
            ),
            700,
        ),
    ):
        found = weighed(furnace, look("look"), *steps)
        assert found.planned.temperature_c_max == most_c
        assert "high_temperature" in found.hazards


@pytest.mark.promise(69)
def test_an_agreement_to_a_set_covers_no_other_branch(furnace: LabPlan, tmp_path: Path) -> None:
    gate = admitting(furnace)

    def request(*steps: Step) -> Any:
        payload = task(*steps)[1]
        found = gate.weigh(payload)
        assert isinstance(found, Weighed)
        asked = gate.request(payload, found, None, NotApproved("nobody"), session_id="s")
        return replace(asked, inputs={})  # by the set alone

    agreed = request(*branches(10.0))
    where = ApprovalFolder(tmp_path, lambda: NOON)
    name = where.ask(agreed)
    where.decide(name, "Ada", "looked at it", agrees=True, account="a")
    assert isinstance(where.verdict(name, agreed), Approved)
    first, warm, cool, after = branches(10.0)
    hotter = put("cool", "gas.setpoint", 41, "look", condition=cool["condition"])
    other = {"fallback": {"action": "set", "parameters": cool["parameters"]}}
    for changed in (
        branches(11.0),
        (first, warm, hotter, after),
        (first, warm, {**cool, "recovery": other}, after),
        (first, warm, cool, {**after, "condition": "results.warm.status == 'COMPLETED'"}),
    ):
        assert not isinstance(where.verdict(name, request(*changed)), Approved)


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ((look("a"), put("b", "gas.setpoint", "${results.a.result.value}", "a")), "min and max"),
        (
            (look("a"), stay("b", "${dependencies.a.result.value}", "a")),
            "min and max",
        ),
        ((look("a"), look("b", condition="results.a.result.value > 1")), "begin with dependencies"),
        (
            (
                look("a"),
                put("b", "gas.setpoint", {"from": "${results.a.result.value}", "min": 1, "max": 2}),
            ),
            "not among its dependencies",
        ),
        (
            (look("a"), look("b", "a", condition="dependencies.a.result.valeu > 1")),
            "the result of 'a' has no 'valeu'; it has value, took_s",
        ),
        (
            (step("a", "wait", channel="furnace.temprature"),),
            "no channel 'furnace.temprature' (did you mean furnace.temperature?)",
        ),
        ((step("a", "wiat", channel="gas.flow"),), "unknown action 'wiat'"),
        ((step("a", "wait"),), "'channel' is a required property"),
        ((step("a", "purge", contaminant="argn", volumes=1),), "no purge of 'argn' is counted"),
        ((stay("a", 1e308), stay("b", 1e308)), "The plan takes"),
    ],
)
def test_what_leads_nowhere_is_refused_before_anything_runs(
    furnace: LabPlan, steps: tuple[Step, ...], says: str
) -> None:
    found = rejected(furnace, *steps)
    assert (found.reason_code, says in found.reason_message) == ("invalid_input", True), found


def test_a_set_is_not_resumed(furnace: LabPlan, run_task: Run) -> None:
    message, payload = task(look("a"))
    point: Mapping[str, str] = {"session_id": "s", "checkpoint_id": "c"}
    again = TaskSubmit.model_validate({**payload.stated(), "resume_from": point})
    ran = run_task(furnace, (replace(message, payload=again), again))
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "invalid_input"), ran.body
    assert "not resumed" in ran.body["reason_message"]
    written = look("a")
    written["metadata"]["checkpoint"] = {"description": "here"}
    assert "declares a checkpoint" in rejected(furnace, written).reason_message
