"""A set is read as MCP-CP writes it; what cannot be carried out is refused before anything runs."""

import math
from typing import Any

import pytest

from instruction_sets import CHAPTER_9_2, content, step
from labharness.protocols.mcp_cp.parts import TIMEOUT_S_MAX
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.instructions import (
    ExecutionMode,
    Instruction,
    InstructionKind,
    InstructionSet,
    ResumePoint,
)
from labharness.work.plan.recovery import BadInstruction, Otherwise
from labharness.work.plan.set_reading import (
    CHARACTERS_MAX,
    EDGES_MAX,
    LOOPS_MAX,
    TIMEOUT_S,
    read_set,
)

OBJECT = {"type": "object"}
SET = {
    "type": "object",
    "required": ["channel", "value"],
    "additionalProperties": False,
    "properties": {
        "channel": {"type": "string"},
        "value": {"type": "number", "minimum": 0, "maximum": 900},
    },
}
FIT = {
    "type": "object",
    "properties": {"points": {"type": "array"}, "method": {"enum": ["a", "b"]}},
}
ACTIONS = {
    "QUERY_DATA": ActionSchema(InstructionKind.QUERY, OBJECT),
    "PROCESS_DATA": ActionSchema(InstructionKind.ANALYSIS, OBJECT),
    "ANALYZE_TREND": ActionSchema(InstructionKind.ANALYSIS, FIT),
    "GENERATE_REPORT": ActionSchema(InstructionKind.GENERATION, OBJECT),
    "CHOOSE": ActionSchema(InstructionKind.DECISION, OBJECT),
    "SET": ActionSchema(InstructionKind.OPERATION, SET),
    "READ": ActionSchema(InstructionKind.QUERY, SET),
}


def test_the_set_of_chapter_9_is_read_and_written_as_it_was() -> None:
    found = read_set(CHAPTER_9_2, ACTIONS)
    assert (found.mode, found.timeout_s, found.limit_s()) == (ExecutionMode.SEQUENTIAL, 120, 120)
    assert [each.kind.value for each in found.instructions] == [
        *("QUERY", "ANALYSIS", "ANALYSIS", "GENERATION")
    ]
    written = found.to_json()
    assert read_set(written, ACTIONS).digest() == found.digest()
    for mine, theirs in zip(written["instructions"], CHAPTER_9_2["instructions"], strict=True):
        assert {name: mine[name] for name in theirs} == theirs


def test_each_part_of_a_set_counts_in_its_digest() -> None:
    kept = {"retry": {"attempts": 2}, "fallback": {"action": "QUERY_DATA"}, "otherwise": "skip"}
    plain = step("b", "a")
    sets = [
        content(step("a"), plain),
        content(step("a"), plain, timeout=60),
        content(step("a"), plain, mode="PARALLEL"),
        content(step("a"), plain, mode="PARALLEL", goesOn=True),
        content(step("a"), {**plain, "condition": "dependencies.a.result.n > 1"}),
        content(step("a"), {**plain, "recovery": kept}),
        content(step("a"), {**plain, "recovery": {**kept, "otherwise": "abort"}}),
        content(step("a"), {**plain, "timeout": 5}),
    ]
    assert len({read_set(each, ACTIONS).digest() for each in sets}) == len(sets)


def test_recovery_and_times_are_read_and_have_defaults() -> None:
    kept = {
        "retry": {"attempts": 3, "delay": 0.5, "factor": 4},
        "fallback": {"action": "QUERY_DATA", "parameters": {"x": 1}},
        "otherwise": "partial",
    }
    found = read_set(content(step("a", recovery=kept), step("b", timeout=7)), ACTIONS)
    first, second = found.instructions
    assert first.recovery is not None
    assert first.recovery.to_json() == kept
    assert (first.recovery.otherwise, first.timeout_s) == (Otherwise.PARTIAL, TIMEOUT_S)
    assert [first.recovery.retry.pause_s(n) for n in (1, 2, 9)] == [0.5, 2.0, 3600.0]
    assert (second.recovery, second.timeout_s) == (None, 7)
    assert read_set(content(step("a"), timeout=60), ACTIONS).instructions[0].timeout_s == 60


def loop(name: str, over: dict[str, Any], *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"instructionId": name, "over": over, "instructions": list(steps), **more}


def send(channel: object, value: object, *needs: str) -> dict[str, Any]:
    return step("b", *needs, action="SET", parameters={"channel": channel, "value": value})


SENT = {"action": "SET", "parameters": {"channel": "x", "value": 1}}
CONDITION = "dependencies.a.result.n =="
REF = "${results.a.result.y}"
OUT: dict[str, Any] = {"from": "${dependencies.a.result.n}", "min": 100, "max": 200}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (content(step("a"), step("a")), "'a' is there twice"),
        (content(step("a", "z")), "depends on 'z', which is not in the set"),
        (
            content(step("a", "c"), step("b", "a"), step("c", "b"), mode="PARALLEL"),
            "wait for each other: a -> c -> b -> a",
        ),
        (content(step("a", "a"), mode="PARALLEL"), "wait for each other: a -> a"),
        (content(step("a", action="QUERY_DATE")), r"'QUERY_DATE' \(did you mean QUERY_DATA\?\)"),
        (content(step("a", "b"), step("b")), "SEQUENTIAL: instruction 'a' stands before"),
        (content(step("a"), mode="CONDITIONAL"), "'a' has neither a condition nor a dependency"),
        (content(step("a"), mode="ALL"), "Invalid enum value 'ALL'"),
        (content(step("a"), timeout=0), "timeout_s is 0"),
        (content(step("a", timeout=0)), "timeout_s is 0"),
        (content(step("a"), timeout=True), "Expected `float"),
        (content(step("a"), goesOn=True), "goesOn is for PARALLEL"),
        (content(step("a", timeout=TIMEOUT_S_MAX + 1)), "Expected `float` <= 604800"),
        (content(step("a"), timeout=1e308), "Expected `float` <= 604800"),
        (content(step("a", metadata={"holdable": "no"})), "Expected `bool`"),
        (content(step("a", parameters={"x": {REF: 1}})), "a reference has the form"),
        (content(loop("l", {"t": [1]}, step("a", parameters={"${t}": 1}))), "a reference has the"),
        (
            content(step("a"), step("b", parameters={"x": "${results.a.result.größe}"})),
            "not among its",
        ),
        (
            content(
                step("a"),
                loop("l", {"t": [1]}, step("b", "a", condition=f"{CONDITION} 'at ${{t}}'")),
            ),
            "instruction 'b_1': .{t} stands in quotes",
        ),
        (content(step("a", priority=1)), "unknown field `priority`"),
        (content(step("1a")), "instruction id '1a'"),
        (content(step("a", condition="b ==")), "ends too early"),
        (content(step("a", condition="b == 1")), "has the path 'b'"),
        (content(step("a"), step("b", condition="dependencies.a.status == 'x'")), "has the path"),
        (content(step("a"), step("b", parameters={"x": "${results.a.result.y}"})), "not among its"),
        (content(step("a", parameters={"x": "see ${env.HOME}"})), "a reference has the form"),
        (content(step("a", parameters={"x": "${dependencies.b.results.y}"})), "reference has the"),
        (content(step("a", action="SET", parameters={"channel": "x"})), "'value' is a required"),
        (content(step("a", action="SET", parameters={"channel": "x", "value": "9"})), "value: '9'"),
        (content(step("a", action="SET", parameters={"channel": "x", "value": 901})), "value: 901"),
        (
            content(step("a"), send("x", OUT["from"], "a")),
            "number with min and max",
        ),
        (
            content(step("a"), send("x", {**OUT, "max": 901}, "a")),
            "901 is greater than the maximum",
        ),
        (
            content(step("a"), send("x", {**OUT, "min": 300}, "a")),
            "number with min and max",
        ),
        (
            content(step("a"), send(OUT["from"], 1, "a")),
            "number with min and max",
        ),
        (
            content(
                step("a"),
                step("b", "a", action="ANALYZE_TREND", parameters={"points": "n" + REF}),
            ),
            "is not of type 'array'",
        ),
        (
            content(step("a"), step("b", "a", action="READ", parameters={"channel": REF})),
            "'value' is a required",
        ),
        (content(step("a", recovery={"retry": {"attempts": 11}})), "Expected `int` <= 10"),
        (content(step("a", recovery={"retry": {"attempts": 0}})), "Expected `int` >= 1"),
        (content(step("a", recovery={"retry": {"delay": math.inf}})), "Expected `float` <= 3600"),
        (content(step("a", recovery={"retry": {"factor": 0.5}})), "Expected `float` >= 1"),
        (content(step("a", recovery={"otherwise": "hope"})), "Invalid enum value 'hope'"),
        (
            content(step("a", recovery={"fallback": send("x", 1)})),
            "unknown field `instructionId`",
        ),
        (content(step("a", recovery={"fallback": SENT})), "its fall-back 'SET' is of another kind"),
        (content(step("a", recovery={"fallback": {"action": "NONE"}})), "unknown action 'NONE'"),
        (content(step("a", metadata={}), step("l", over={"t": [1]})), "loop 'l': it has over"),
        (content(loop("l", {}, step("a"))), "loop 'l': it has over"),
        (content(loop("l", {"t": [1]}, step("a"), timeout=5)), "loop 'l': it has over"),
        (content(loop("l", {"t": []}, step("a"))), "length >= 1"),
        (content(loop("l", {"t": {"from": 0, "to": 1, "points": 0}}, step("a"))), "`int` >= 1"),
        (content({**step("a"), "instructions": [step("b")]}), "loop 'a': it has over"),
        (content(loop("l", {"t": [1]}, step("a")), step("b", "a")), "depends on 'a', which is not"),
        (content(*(step(f"i{n}") for n in range(10_001))), "10001 instructions"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_out_is_refused_before_anything_runs(
    wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(BadInstruction, match=why):
        read_set(wrong, ACTIONS)


def test_a_reference_may_stand_where_its_type_is_known_later_and_within_bounds_in_a_command() -> (
    None
):
    asked = {"channel": "oven", "value": OUT}
    found = read_set(content(step("a"), step("b", "a", action="SET", parameters=asked)), ACTIONS)
    assert found.instructions[1].parameters == asked
    later = {"points": "${results.a.result.y}", "method": "${results.a.result.z}"}
    read_set(content(step("a"), step("b", "a", action="ANALYZE_TREND", parameters=later)), ACTIONS)


def test_a_sweep_is_unrolled_with_its_values_and_what_follows_depends_on_all_of_it() -> None:
    at = {"channel": "oven", "value": "${t}"}
    heat = step("heat", action="SET", parameters=at)
    look = step(
        "look",
        "heat",
        parameters={"text": "at ${t} of ${gas}", "data": "${dependencies.heat.result.n}"},
        condition="dependencies.heat.result.n > ${t} AND dependencies.heat.result.gas == ${gas}",
    )
    over = {"gas": ["ar", "it's"], "t": {"from": 100, "to": 300, "points": 3}}
    sweep = loop("sweep", over, heat, look, dependencies=["ready"])
    found = read_set(content(step("ready"), sweep, step("last", "sweep")), ACTIONS).instructions
    names = [each.instruction_id for each in found]
    assert names[:5] == ["ready", "heat_1", "look_1", "heat_2", "look_2"]
    assert len(names) == 1 + 2 * 6 + 1
    assert [each.parameters["value"] for each in found[1:-1:2]] == [100, 200, 300] * 2
    last = found[12]
    assert last.instruction_id == "look_6"
    assert last.dependencies == ("ready", "heat_6")
    assert last.parameters == {
        "text": "at 300.0 of it's",
        "data": "${dependencies.heat_6.result.n}",
    }
    assert last.condition == (
        "dependencies.heat_6.result.n > 300.0 AND dependencies.heat_6.result.gas == 'it''s'"
    )
    assert set(found[-1].dependencies) == set(names[1:-1])


@pytest.mark.promise(9)
def test_a_set_that_we_wrote_is_read_again_as_it_was() -> None:
    point = ResumePoint(description="cold", holds={"t": (None, 50.0)}, again=("a",))
    first = Instruction(
        instruction_id="a",
        action="SET",
        parameters={"channel": "x", "value": 1},
        timeout_s=7.5,
        stage="heat",
        description="Heat.",
        expected_s=3.0,
        holdable=False,
        checkpoint=point,
    )
    second = Instruction(
        instruction_id="b", action="QUERY_DATA", kind=InstructionKind.QUERY, timeout_s=0.1
    )
    for timeout_s in (None, 60.0):
        for mode in (ExecutionMode.SEQUENTIAL, ExecutionMode.PARALLEL):
            whole = InstructionSet((first, second), mode, timeout_s)
            assert read_set(whole.to_json(), ACTIONS) == whole


def test_the_last_point_of_a_sweep_is_its_end_itself() -> None:
    sweep = {"t": {"from": 0.1, "to": 0.7, "points": 4}, "u": {"from": 5, "to": 9, "points": 1}}
    body = step("a", parameters={"t": "${t}", "u": "${u}"})
    found = read_set(content(loop("l", sweep, body)), ACTIONS).instructions
    for end in (0.7, 0.3, 9e99, -1 / 3):
        sweep["t"] = {"from": 0.1, "to": end, "points": 7}
        found = read_set(content(loop("l", sweep, body)), ACTIONS).instructions
        assert found[0].parameters == {"t": 0.1, "u": 5}
        assert found[-1].parameters["t"] == end


def test_loops_are_bounded_in_dependencies_and_characters_before_they_are_unrolled() -> None:
    many: dict[str, Any] = {"x": {"from": 0, "to": 1, "points": 400}}
    joined = (loop("l", many, step("a")), loop("m", many, step("b", "l")))
    with pytest.raises(BadInstruction, match=f"160000 dependencies .* at most {EDGES_MAX}"):
        read_set(content(*joined), ACTIONS)
    with pytest.raises(BadInstruction, match="160000 dependencies"):
        read_set(content(loop("m", many, step("b"), dependencies=["l"] * 400)), ACTIONS)
    inner = loop("o", {"y": [1]}, loop("l", many, step("a")))
    with pytest.raises(BadInstruction, match="160000 dependencies"):  # by the name it has then
        read_set(content(inner, loop("m", many, step("b", "l_1"))), ACTIONS)
    long = step("a", parameters={"text": "x" * 10_000})
    grows = step("a", parameters={"text": "${y}" * 10})
    for body in (long, grows):
        with pytest.raises(BadInstruction, match=f"characters .* at most {CHARACTERS_MAX}"):
            read_set(content(loop("l", {**many, "y": ["x" * 1000]}, body)), ACTIONS)
    read_set(content(loop("l", {"y": ["x" * 1000]}, long, step("b", parameters={}))), ACTIONS)


def test_a_value_of_a_loop_stands_in_a_text_as_json_has_it() -> None:
    body = step("a", parameters={"text": "${on}, ${t}, ${name}"})
    found = read_set(content(loop("l", {"on": [True], "t": [2.5], "name": ["x"]}, body)), ACTIONS)
    assert found.instructions[0].parameters == {"text": "true, 2.5, x"}


@pytest.mark.promise(9)
def test_the_id_of_a_loop_stands_once_so_that_no_dependency_on_it_is_lost() -> None:
    first, second = loop("l", {"t": [1, 2]}, step("a")), loop("l", {"t": [1]}, step("b"))
    inner = loop("m", {"t": [1]}, step("a"))
    for steps in (
        (first, second, step("c", "l")),
        (step("l"), first, step("c", "l")),
        (first, step("l"), step("c", "l")),
        (loop("o", {"x": [1]}, inner), step("m_1"), step("c", "m_1")),
        (loop("o", {"x": [1]}, inner), {**first, "instructionId": "m_1"}),
    ):
        with pytest.raises(BadInstruction, match="is there twice"):
            read_set(content(*steps, mode="PARALLEL"), ACTIONS)


def test_loops_within_loops_are_bounded_before_any_instruction_is_made() -> None:
    inner = loop("inner", {"x": [1, 2]}, step("a", parameters={"v": "${x}${y}"}), step("b", "a"))
    outer = loop("outer", {"y": [3, 4]}, inner, step("c", "inner"))
    found = read_set(content(outer), ACTIONS).instructions
    assert [each.instruction_id for each in found] == [
        *("a_1_1", "b_1_1", "a_1_2", "b_1_2", "c_1", "a_2_1", "b_2_1", "a_2_2", "b_2_2", "c_2")
    ]
    assert found[7].parameters == {"v": "24"}
    assert found[9].dependencies == ("a_2_1", "b_2_1", "a_2_2", "b_2_2")
    much = loop("l", {"x": {"from": 0, "to": 1, "points": 10**9}, "y": [1] * 9}, step("a"))
    with pytest.raises(BadInstruction, match="9000000000 instructions"):
        read_set(content(much), ACTIONS)
    empty = loop("l", {"x": {"from": 0, "to": 1, "points": 10**9}}, loop("m", {"y": [1]}))
    with pytest.raises(BadInstruction, match="1000000000 instructions"):
        read_set(content(empty), ACTIONS)
    deep = step("a")
    for number in range(LOOPS_MAX + 1):
        deep = loop(f"l{number}", {f"x{number}": [1]}, deep)
    with pytest.raises(BadInstruction, match="more than 4 loops"):
        read_set(content(deep), ACTIONS)


def test_a_loop_renames_its_own_references_and_no_other_words() -> None:
    told = {"text": "see results.a and ${t}", "data": "${results.a.result.results.a}"}
    check = step(
        "b",
        "a",
        parameters=told,
        condition="results.a.result.results.a == 'results.a' OR isEmpty(results.a.result)",
    )
    found = read_set(content(loop("l", {"t": ["x"]}, step("a"), check)), ACTIONS).instructions[1]
    assert found.parameters == {
        "text": "see results.a and x",
        "data": "${results.a_1.result.results.a}",
    }
    assert found.condition == (
        "results.a_1.result.results.a == 'results.a' OR isEmpty(results.a_1.result)"
    )


def test_what_is_nested_without_end_is_refused_like_any_other_form() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"x": deep}
    with pytest.raises(BadInstruction, match="cannot be read"):
        read_set(content(step("a", parameters=deep)), ACTIONS)
