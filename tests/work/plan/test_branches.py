"""Each way that a set may go by what is measured is among those that are flown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.protocols.mcp_cp.conditions import condition_of
from labharness.work.plan import PredictedStep, Prediction
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.branches import FLIGHTS_MAX, unflown, ways_of
from labharness.work.plan.instructions import InstructionKind, InstructionSet
from labharness.work.plan.set_reading import read_set

ANY: dict[str, Any] = {"type": "object"}
ACTIONS = {
    "look": ActionSchema(InstructionKind.QUERY, ANY),
    "move": ActionSchema(InstructionKind.OPERATION, ANY),
}
ENDED = ("COMPLETED", "SKIPPED", "FAILED", "TIMEOUT")
FAILED = ENDED[2:]

RESULTS = st.fixed_dictionaries(
    {
        "n": st.integers(-2, 2),
        "m": st.integers(-2, 2),
        "ok": st.booleans(),
        "word": st.sampled_from(["a", "it's"]),
        "list": st.lists(st.sampled_from(["a", "b"]), max_size=2),
    }
)
ROOT = st.sampled_from(["dependencies", "results"])
ATOMS = st.one_of(
    st.builds(
        "{}.a.result.{} {} {}".format,
        ROOT,
        st.sampled_from(["n", "m"]),
        st.sampled_from(["==", "!=", ">", "<", ">=", "<="]),
        st.sampled_from(["0", "-1", "1.5", "results.a.result.m"]),
    ),
    st.builds("{}.a.result.word {} 'it''s'".format, ROOT, st.sampled_from(["==", "!="])),
    st.builds("contains({}.a.result.list, 'a')".format, ROOT),
    st.builds("isEmpty({}.a.result.list)".format, ROOT),
    st.builds("{}.a.result.ok".format, ROOT),
    st.builds("(isEmpty({}.a.result.list) == true)".format, ROOT),
    st.builds(
        "{}.b.status {} '{}'".format, ROOT, st.sampled_from(["==", "!="]), st.sampled_from(ENDED)
    ),
    st.sampled_from(["true", "false"]),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("NOT ({})".format, inner),
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
    ),
    max_leaves=5,
)


def plan(*conditions: str, **more: Any) -> InstructionSet:
    steps = [
        {"instructionId": "a", "action": "look"},
        {"instructionId": "b", "action": "look"},
        *(
            {
                "instructionId": f"c{at}",
                "action": "move",
                "dependencies": ["a", "b"],
                "condition": each,
            }
            for at, each in enumerate(conditions)
        ),
    ]
    return read_set({"instructions": steps, "executionMode": "PARALLEL", **more}, ACTIONS)


@pytest.mark.promise(9)
@given(
    conditions=st.lists(CONDITIONS, min_size=1, max_size=2),
    result=RESULTS,
    status=st.sampled_from(ENDED),
)
def test_what_is_measured_decides_as_in_one_of_the_ways_that_are_flown(
    conditions: list[str], result: dict[str, Any], status: str
) -> None:
    told = {"a": {"status": "COMPLETED", "result": result}, "b": {"status": status}}
    context = {"dependencies": told, "results": told}
    bare = {"a": {"status": "COMPLETED"}, "b": {"status": status}}
    unmeasured = {"dependencies": bare, "results": bare}
    decided = [condition_of(each).holds(context) for each in conditions]
    asked = [condition_of(each).asked_status() for each in conditions]
    found = []
    for way in ways_of(plan(*conditions)):
        parsed = [step.parsed_condition() for step in way.instructions[2:]]
        found.append([each is None or each.holds(unmeasured) for each in parsed])
        assert [each and each.asked_status() for each in parsed] == asked
    assert decided in found


@pytest.mark.promise(9)
@given(condition=CONDITIONS, result=RESULTS, status=st.sampled_from(FAILED))
def test_whatever_may_begin_after_a_failure_was_not_flown(
    condition: str, result: dict[str, Any], status: str
) -> None:
    told = {"a": {"status": "COMPLETED", "result": result}, "b": {"status": status}}
    parsed = condition_of(condition)
    begins = parsed.holds({"dependencies": told, "results": told})
    if begins and "b" in parsed.asked_status():
        shown = PredictedStep(instruction_id="c0", stage="", started_s=0.0, ended_s=1.0)
        flown = Prediction(duration_s=1.0, steps=(shown,), trajectory={}, units={}, gas_used_cm3={})
        assert unflown(plan(condition), [flown for _ in ways_of(plan(condition))]) == ("c0",)


def test_opposites_are_one_decision_and_a_plan_without_any_is_flown_as_it_is() -> None:
    opposites = ("dependencies.a.result.n >= 1", "results.a.result.n < 1")
    assert len(list(ways_of(plan(*opposites)))) == 2
    join = "dependencies.b.status == 'COMPLETED' OR dependencies.b.status == 'SKIPPED'"
    for each in (plan(), plan(join)):
        assert list(ways_of(each)) == [each]
        assert [step.condition for step in each.instructions[2:]] in ([], [join])
    assert unflown(plan(), ()) == ()
    assert unflown(plan(join, goesOn=True), ()) == ("c0",)


@pytest.mark.promise(9)
def test_numbers_with_more_ways_than_are_flown_take_a_person() -> None:
    number = {"from": "${dependencies.a.result.n}", "min": 0, "max": 1}
    steps = [
        {"instructionId": "a", "action": "look"},
        *(
            {
                "instructionId": f"c{at}",
                "action": "move",
                "dependencies": ["a"],
                "parameters": {"to": number},
            }
            for at in range(5)
        ),
    ]
    found = read_set({"instructions": steps, "executionMode": "PARALLEL"}, ACTIONS)
    flown = Prediction(duration_s=1.0, steps=(), trajectory={}, units={}, gas_used_cm3={})
    assert unflown(found, [flown] * FLIGHTS_MAX) == ("c0", "c1", "c2", "c3", "c4")
    assert unflown(found, [flown for _ in ways_of(found)]) == ()
