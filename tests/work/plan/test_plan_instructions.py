"""An instruction set is checked when it is made, ordered, and written as MCP-CP writes it."""

import json
import math
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.work.plan import Instruction, InstructionKind, InstructionSet
from labharness.work.plan.instructions import resolve
from labharness.work.plan.recovery import BadInstruction


def step(name: str, *needs: str, **more: object) -> Instruction:
    return Instruction(
        instruction_id=name,
        action="set",
        timeout_s=1.0,
        dependencies=needs,
        parameters=more,
    )


def names(found: InstructionSet) -> list[str]:
    return [each.instruction_id for each in found.instructions]


def test_dependencies_come_first_and_the_rest_keeps_its_order() -> None:
    found = InstructionSet((step("c", "a"), step("x"), step("a"), step("y"), step("b", "c")))
    assert names(found) == ["x", "a", "c", "y", "b"]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 25), st.randoms(use_true_random=False))
def test_every_instruction_stands_behind_all_it_depends_on(
    count: int, chance: random.Random
) -> None:
    steps = [
        step(f"i{n}", *(f"i{m}" for m in range(n) if chance.random() < 0.2)) for n in range(count)
    ]
    chance.shuffle(steps)
    order = names(InstructionSet(tuple(steps)))
    assert sorted(order) == sorted(each.instruction_id for each in steps)
    for each in steps:
        for needed in each.dependencies:
            assert order.index(needed) < order.index(each.instruction_id)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (
            lambda: InstructionSet(
                (step("a"), step("b", "c"), step("c", "a", "d"), step("d", "b"))
            ),
            "wait for each other: b -> c -> d -> b",
        ),
        (lambda: InstructionSet((step("a", "b"), step("b", "c"), step("c", "b"))), "b -> c -> b"),
        (lambda: InstructionSet((step("a"), step("a"))), "'a' is there twice"),
        (lambda: InstructionSet((step("a", "b"),)), "depends on 'b', which is not in the set"),
        (
            lambda: step("a", "c", nested=[{"deep": "${dependencies.b.result.x}"}]),
            "refers to 'b', which is not among its dependencies",
        ),
        (lambda: step("a", value=math.nan), "are not JSON"),
        (lambda: step("a", value={1, 2}), "are not JSON"),
        *(
            (partial(Instruction, instruction_id="a", action="set", timeout_s=each), "timeout_s")
            for each in (0.0, -1.0, math.inf, math.nan)
        ),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_its_reason(
    made: Callable[[], object], why: str
) -> None:
    with pytest.raises(BadInstruction, match=why):
        made()


def test_a_reference_that_is_the_whole_string_keeps_its_type() -> None:
    results = {"a": {"x": {"list": [1, {"y": 2.5}]}}}
    whole = "${dependencies.a.result.x.list}"
    asked = {
        "v": [whole, "${dependencies.a.result.x.list.1.y}"],
        "t": "y = ${dependencies.a.result.x.list.0}",
    }
    assert resolve(asked, results) == {"v": [[1, {"y": 2.5}], 2.5], "t": "y = 1"}


@pytest.mark.parametrize("path", ["nothing", "x.list.7", "x.list.y", "x.y.z"])
def test_a_reference_that_leads_nowhere_is_an_error(path: str) -> None:
    with pytest.raises(LookupError, match="leads to nothing"):
        resolve("${dependencies.a.result." + path + "}", {"a": {"x": {"list": [1]}}})


def test_an_index_of_thousands_of_digits_leads_to_nothing() -> None:
    with pytest.raises(LookupError, match="leads to nothing"):
        resolve("${dependencies.a.result.x." + "9" * 4_400 + "}", {"a": {"x": [1]}})


def test_a_result_stands_in_a_text_as_json_has_it() -> None:
    results = {"a": {"x": [True, {"é": "é"}], "größe": "groß"}}
    text = "${dependencies.a.result.x} ${results.a.result.größe}"
    assert resolve(text, results) == '[true, {"é": "é"}] groß'


def test_the_json_has_the_names_of_mcp_cp() -> None:
    one = Instruction(
        instruction_id="inst_1",
        action="hold",
        kind=InstructionKind.QUERY,
        parameters={"duration_s": 5},
        timeout_s=9.0,
        stage="purge",
        description="Hold.",
    )
    assert InstructionSet((one,)).to_json() == {
        "instructions": [
            {
                "instructionId": "inst_1",
                "action": "hold",
                "parameters": {"duration_s": 5},
                "dependencies": [],
                "timeout": 9.0,
                "metadata": {
                    "kind": "QUERY",
                    "stage": "purge",
                    "description": "Hold.",
                    "expectedDuration": 0.0,
                    "holdable": True,
                },
            }
        ],
        "executionMode": "SEQUENTIAL",
        "timeout": 9.0,
    }


def test_the_digest_names_the_content_and_nothing_else() -> None:
    first = InstructionSet((step("a", x=1, y=2), step("b")))
    same = InstructionSet((step("a", y=2, x=1), step("b")))
    other = InstructionSet((step("a", x=1, y=3), step("b")))
    assert first.digest() == same.digest() != other.digest()
    assert first.digest().startswith("sha256:")
    json.dumps(first.to_json())
