"""The course of a dialogue: whatever a model answers, it ends, and a call is carried out once."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.core.clock import utc_text
from labharness.protocols.mcp_cp.codec import encode
from labharness.protocols.mcp_cp.messages import (
    InstructionMessage,
    McpMessage,
    Sender,
    SystemMessage,
    ToolCallRequest,
    ToolCallResponse,
    UserInput,
)
from labharness.protocols.mcp_cp.tools import ToolCall, ToolResult, accepted
from labharness.work.dialogue.calls import Calls
from labharness.work.dialogue.course import (
    AskModel,
    Bounds,
    Ended,
    RunCalls,
    RunSet,
    TakeSet,
    claims_in,
    next_step,
    response_of,
    results_of,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
BOUNDS = Bounds(answers=5, calls=8, tokens=100, size_bytes=5_000, wall_s=60.0)


def message(number: int, kind: str, content: Any, at_s: float = 0.0) -> McpMessage:
    at = utc_text(T0 + timedelta(seconds=at_s))
    sender = Sender("x", "USER" if kind == "USER_INPUT" else "SYSTEM")
    return McpMessage(f"m{number}", "c", at, kind, sender, content)


RAW = st.tuples(
    st.text(max_size=5), st.sampled_from(["{}", "", "{bad", "[1]", '{"a": NaN}', '{"a": 1}'])
)
ANSWERS = st.tuples(
    st.lists(RAW, max_size=4), st.sampled_from([*["tool_call"] * 4, "stop", "length", "other"])
)


@pytest.mark.promise(78)
@given(st.lists(ANSWERS, max_size=9))
def test_every_dialogue_ends_within_its_bounds_and_each_call_is_carried_out_once(
    answers: Sequence[Any],
) -> None:
    said = [message(0, "USER_INPUT", UserInput("grow"))]
    asked, ran = iter(answers), []
    for _ in range(100):
        step = next_step(said, BOUNDS, T0)
        if isinstance(step, Ended):
            break
        if isinstance(step, RunCalls):
            first = next(each for each in step.asked.calls if each.call_id not in step.found)
            ran.append(first.call_id)
            result = ToolResult(call_id=first.call_id, status="SUCCESS", execution_time=1.0)
            said.append(message(len(said), "TOOL_CALL_RESPONSE", ToolCallResponse((result,))))
            continue
        calls, finish = next(asked, ([], "stop"))
        answer = response_of("t", calls, finish, None, len(said))
        said.append(message(len(said), "MODEL_RESPONSE", answer))
        encode(said[-1])
    assert isinstance(step, Ended)
    assert len(ran) == len(set(ran)) <= BOUNDS.calls + 4
    assert sum(each.type == "MODEL_RESPONSE" for each in said) <= BOUNDS.answers
    if not step.bound:
        assert said[-1].content.finish_reason != "TOOL_CALLS"


def test_calls_follow_their_list_and_the_model_waits_for_the_last_of_them() -> None:
    answer = response_of("t", [("a", ""), ("b", ""), ("c", "")], "tool_call", None, 1)
    said = [message(0, "USER_INPUT", UserInput("grow")), message(1, "MODEL_RESPONSE", answer)]
    for number, call in enumerate(answer.tool_calls):
        step = next_step(said, BOUNDS, T0)
        assert isinstance(step, RunCalls)
        assert [*step.found] == [each.call_id for each in answer.tool_calls[:number]]
        result = ToolResult(call_id=call.call_id, status="SUCCESS", execution_time=1.0)
        said.append(message(number + 2, "TOOL_CALL_RESPONSE", ToolCallResponse((result,))))
    assert next_step(said, BOUNDS, T0) == AskModel()


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    ("bounds", "what"),
    [
        (replace(BOUNDS, answers=1), "answers"),
        (replace(BOUNDS, calls=1), "calls"),
        (replace(BOUNDS, tokens=1), "tokens"),
        (replace(BOUNDS, size_bytes=10), "bytes"),
        (replace(BOUNDS, wall_s=1.0), "seconds"),
    ],
)
def test_each_bound_ends_a_dialogue_and_is_named(bounds: Bounds, what: str) -> None:
    from labharness.protocols.mcp_cp.messages import Usage

    answer = response_of("t", [("list_runs", "{}")], "tool_call", Usage(1, 1, 2), 1)
    said = [message(0, "USER_INPUT", UserInput("grow")), message(1, "MODEL_RESPONSE", answer)]
    assert isinstance(next_step(said, BOUNDS, T0), RunCalls)
    step = next_step(said, bounds, T0 + timedelta(seconds=2))
    assert isinstance(step, Ended)
    assert what in step.bound
    later = [*said, message(2, "USER_INPUT", UserInput("go on"), 2.0)]
    assert next_step(later, bounds, T0 + timedelta(seconds=2)) == (
        AskModel() if what != "bytes" else Ended(step.bound and next_bound(later, bounds))
    )


def next_bound(said: list[McpMessage], bounds: Bounds) -> str:
    step = next_step(said, bounds, T0 + timedelta(seconds=2))
    assert isinstance(step, Ended)
    return step.bound


def test_nothing_was_asked_where_nobody_said_anything() -> None:
    assert next_step([], BOUNDS, T0) == Ended()
    assert list(results_of([])) == []


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("One layer at 750.0 degC, confidence 0.97", ()),
        ("One layer at 750 degC, confidence 0.971", ()),
        ("confidence 0.99", ("0.99",)),
        ("done: 3 layers of MoS2", ()),
        ("You asked for 20 minutes, it took 1234.5 s", ("1234.5",)),
        ("-12.5 and 1e6", ("-12.5", "1e6")),
        ("the film has 97 %", ("97",)),
    ],
)
def test_numbers_that_no_tool_returned_are_marked(text: str, marked: tuple[str, ...]) -> None:
    held = {"a": [{"t": 750.04, "deep": "0.97 of 1"}], "confidence": 0.9707408, "ok": True}
    result = ToolResult(call_id="c", status="SUCCESS", result=held, execution_time=1.0)
    said = [
        message(0, "USER_INPUT", UserInput("20 minutes")),
        message(1, "TOOL_CALL_RESPONSE", ToolCallResponse((result,))),
    ]
    assert claims_in(text, said) == marked
    assert json.loads(encode(said[1]))["content"]["results"][0]["callId"] == "c"


def test_a_question_to_the_user_ends_the_turn_and_the_next_words_answer_it() -> None:
    answer = response_of("t", [("ask_person", '{"question": "how thick?"}')], "tool_call", None, 1)
    said = [message(0, "USER_INPUT", UserInput("grow")), message(1, "MODEL_RESPONSE", answer)]
    (call,) = answer.tool_calls
    result = ToolResult(call_id=call.call_id, status="SUCCESS", execution_time=1.0)
    said.append(message(2, "TOOL_CALL_RESPONSE", ToolCallResponse((result,))))
    assert next_step(said, BOUNDS, T0) == Ended()
    said.append(message(3, "USER_INPUT", UserInput("one layer")))
    assert next_step(said, BOUNDS, T0) == AskModel()


CONTENT = InstructionMessage(({"instructionId": "i", "action": "COUNT"},), "SEQUENTIAL")
SET = json.dumps({"instructions": CONTENT.instructions, "executionMode": "SEQUENTIAL"})


def test_an_input_of_steps_takes_a_set_carries_it_out_once_and_asks_for_an_answer() -> None:
    answer, steps = response_of(SET, (), "stop", None, 1), UserInput("First count, then tell.")
    told = SystemMessage("INFO", "refused, or ended")
    course: list[tuple[str, Any, Any]] = [
        ("USER_INPUT", steps, AskModel("INSTRUCTIONS")),
        ("MODEL_RESPONSE", answer, TakeSet(json.loads(SET))),
        ("SYSTEM_MESSAGE", told, AskModel("INSTRUCTIONS")),
        ("MODEL_RESPONSE", answer, TakeSet(json.loads(SET))),
        ("INSTRUCTION", CONTENT, RunSet(CONTENT)),
        ("SYSTEM_MESSAGE", told, AskModel("ANSWER")),
        ("MODEL_RESPONSE", answer, Ended()),
    ]
    said: list[McpMessage] = []
    for kind, content, step in course:
        said.append(message(len(said), kind, content))
        assert next_step(said, Bounds(), T0, ("COUNT",)) == step, len(said)
    assert next_step(said[:1], Bounds(), T0) == AskModel("ANSWER")
    assert next_step(said[:2], Bounds(), T0) == Ended()
    own = [by_user(said[4]), said[5]]
    assert next_step(own[:1], Bounds(), T0) == RunSet(CONTENT)
    assert next_step(own, Bounds(), T0) == Ended()


def by_user(asked: McpMessage) -> McpMessage:
    return msgspec.structs.replace(asked, sender=Sender("ana", "USER"))


@pytest.mark.promise(78)
def test_async_calls_are_accepted_each_and_then_have_one_result_each() -> None:
    calls = (ToolCall("a", "t", {}), ToolCall("b", "t", {}))
    asked = Calls(calls, "ASYNC", 9.0, 9.0, 9.0)
    later = replace(asked, mode="PARALLEL")
    one, two = (accepted(each.call_id, 0.0) for each in calls)  # a tool may answer so too

    def after(mode: Any, *results: ToolResult, hours: int = 0) -> Any:
        content = ToolCallRequest(calls, mode, 9.0)
        said = [by_user(message(0, "TOOL_CALL_REQUEST", content))]
        said += [message(1, "TOOL_CALL_RESPONSE", ToolCallResponse((e,))) for e in results]
        return next_step(said, BOUNDS, T0 + timedelta(hours=hours))

    assert after("ASYNC") == RunCalls(asked, {}, set())
    assert after("ASYNC", one) == RunCalls(asked, {}, {"a"})
    assert after("ASYNC", one, two) == RunCalls(later, {})
    assert after("ASYNC", one, two, two) == RunCalls(replace(later, calls=calls[:1]), {"b": two})
    assert after("ASYNC", one, two, two, one) == after("SYNC", one, two) == Ended()
    assert after("ASYNC", one, two, hours=1).left == calls
