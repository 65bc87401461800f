"""Tools and errors of MCP-CP: calls, results, availability, and what is said of an error."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary.texts import in_language
from labharness.protocols.mcp_cp import errors, tools
from labharness.protocols.mcp_cp.codec import decode, encode
from labharness.protocols.mcp_cp.errors import ERROR_CODES, NotMcpCp, answer_to, error_response
from labharness.protocols.mcp_cp.messages import (
    ErrorDetails,
    ErrorResponse,
    ErrorSource,
    McpMessage,
    Sender,
    ToolCallRequest,
)
from labharness.protocols.mcp_cp.tools import AskedTool, SupportedTool, ToolCall, availability
from mcp_cp_samples import AT, CALLS, GONE, RESULT, WHOLE, changed, message, written

# ---- calls


def refusal(kind: str, content: object) -> str:
    with pytest.raises(NotMcpCp) as caught:
        decode(written(message(kind, content)))
    return str(caught.value)


@pytest.mark.parametrize("kind", ["TOOL_CALL_REQUEST", "MODEL_RESPONSE"])
def test_calls_have_distinct_ids_and_do_not_wait_for_each_other(kind: str) -> None:
    name = "calls" if kind == "TOOL_CALL_REQUEST" else "toolCalls"
    own = {} if kind == "TOOL_CALL_REQUEST" else {"text": "", "finishReason": "TOOL_CALLS"}

    def after(**waits: list[str]) -> dict[str, object]:
        one = {"name": "n", "parameters": {}}
        return {**own, name: [{**one, "callId": k, "requiredAfter": v} for k, v in waits.items()]}

    decode(written(message(kind, after(a=[], b=["a"], c=["a", "b", "earlier"]))))
    assert "a → b → c → a" in refusal(kind, after(a=["b"], b=["c"], c=["a"]))
    assert "a → a" in refusal(kind, after(a=["a"]))
    assert "'call_1' stands twice" in refusal(kind, {**own, name: [CALLS[0], CALLS[0]]})


def test_a_response_that_stopped_to_call_tools_has_calls() -> None:
    body = {"text": "t", "finishReason": "TOOL_CALLS"}
    assert "`toolCalls` is empty" in refusal("MODEL_RESPONSE", body)
    assert "length >= 1" in refusal("TOOL_CALL_REQUEST", {"calls": []})


def test_calls_that_state_neither_mode_nor_time_are_sync_and_have_30_s() -> None:
    for kind, name in (("TOOL_CALL_REQUEST", "calls"), ("MODEL_RESPONSE", "toolCalls")):
        own = {} if kind == "TOOL_CALL_REQUEST" else {"text": "", "finishReason": "TOOL_CALLS"}
        found = decode(written(message(kind, {**own, name: CALLS}))).content
        sides = (found.frontend_timeout, found.backend_timeout)
        assert found.execution_mode == "SYNC"
        assert tools.total_s(found.execution_mode, found.timeout, sides) == 30
        assert json.loads(encode(McpMessage("m", "c", AT, kind, Sender("s", "MODEL"), found)))[
            "content"
        ] == {**own, name: CALLS}


@pytest.mark.parametrize(
    ("mode", "total", "sides", "expected"),
    [
        ("FRONTEND_FIRST", None, (20.0, 30.0), 50.0),
        ("BACKEND_FIRST", None, (20.0, None), 50.0),
        ("CLIENT_SERVER_PARALLEL", None, (20.0, 40.0), 40.0),
        ("CLIENT_SERVER_PARALLEL", None, (20.0, None), 30.0),
        ("FRONTEND_FIRST", 10.0, (20.0, 30.0), 10.0),
        ("SEQUENTIAL", 60.0, (None, None), 60.0),
    ],
)
def test_the_time_of_both_sides_follows_from_the_mode(
    mode: tools.CallMode,
    total: float | None,
    sides: tuple[float | None, float | None],
    expected: float,
) -> None:
    assert tools.total_s(mode, total, sides) == expected


@pytest.mark.parametrize(
    ("name", "runtime", "parameters"),
    [
        ("calculator", None, {"expression": "2*(3+4)"}),
        ("database_query", None, {"query": "SELECT 1", "limit": 10, "timeout": 5}),
        ("weather_api", None, {"city": "北京", "forecast_days": 3, "include_details": True}),
        ("image_generator", None, {"prompt": "狼", "size": "64x64", "seeds": [42, 123]}),
        ("highlight_element", "FRONTEND", {"selector": "#main-content", "duration": 3000}),
        ("access_camera", "FRONTEND", {"mode": "photo", "resolution": "high"}),
        ("local_image_resize", "FRONTEND", {"width": 300, "preserveAspectRatio": True}),
        ("geolocation", "FRONTEND", {"accuracy": "high", "timeout": 5000}),
    ],
)
def test_a_call_of_each_kind_of_tool_is_read_and_written_as_it_was(
    name: str, runtime: str | None, parameters: dict[str, object]
) -> None:
    own = {} if runtime is None else {"runtime": runtime}
    content = {"calls": [{"callId": "call_1", "name": name, "parameters": parameters, **own}]}
    found = decode(written(message("TOOL_CALL_REQUEST", content)))
    assert json.loads(encode(found))["content"] == content


def test_a_chain_keeps_its_references_as_they_are() -> None:
    found = decode(written(WHOLE["TOOL_CALL_REQUEST"])).content
    assert isinstance(found, ToolCallRequest)
    assert found.calls[1].parameters["from"] == "${results.call_1.result.path}"
    assert found.calls[1].required_after == ("call_1",)


# ---- results


def test_an_error_stands_only_where_the_status_has_one() -> None:
    error = {"code": "OFFLINE", "message": "m"}
    late = {"code": "TIMEOUT", "message": "m"}
    for status, good, bad in (
        ("SUCCESS", [None], [error, late]),
        ("ERROR", [error, late], [None]),
        ("TIMEOUT", [late, None], [error]),
    ):
        for each in good:
            body = {**RESULT, "status": status, "error": each}
            decode(written(message("TOOL_CALL_RESPONSE", {"results": [body]})))
        for each in bad:
            said = refusal(
                "TOOL_CALL_RESPONSE", {"results": [{**RESULT, "status": status, "error": each}]}
            )
            assert said.startswith("$.content.results[0]: `error` does not fit")
    assert "stands twice" in refusal("TOOL_CALL_RESPONSE", {"results": [RESULT, RESULT]})


@pytest.mark.parametrize("result", [None, 5, "x", [1], {"value": 14}, {"city": "北京"}])
def test_a_result_is_any_json(result: object) -> None:
    body = changed(WHOLE["TOOL_CALL_RESPONSE"], ("content", "results", 0, "result"), result)
    assert decode(written(body)).content.results[0].result == result


def test_the_usual_form_of_a_result_is_held_to_its_fields() -> None:
    body = {
        "value": 14,
        "unit": "meters",
        "confidence": 0.95,
        "parsed": True,
        "source": "primary_database",
        "timestamp": AT,
        "outcome": "confirmed",
    }
    found = msgspec.convert(body, tools.ToolValue)
    assert json.loads(msgspec.json.encode(found)) == body
    for name, wrong in (("confidence", 1.01), ("parsed", 1), ("timestamp", "now")):
        with pytest.raises(msgspec.ValidationError, match=name):
            msgspec.convert({**body, name: wrong}, tools.ToolValue)
    with pytest.raises(msgspec.ValidationError, match="no calendar"):
        msgspec.convert({**body, "timestamp": "2025-02-30T00:00:00Z"}, tools.ToolValue)


def test_an_async_call_is_answered_twice_and_a_late_one_with_its_code() -> None:
    first, late = tools.accepted("call_1", 2.5), tools.timed_out("call_1", 30_000)
    assert (first.status, first.result, first.error) == ("SUCCESS", {"accepted": True}, None)
    assert late.error is not None
    assert (late.status, late.error.code) == ("TIMEOUT", "TIMEOUT")
    for each in (first, late):
        body = message(
            "TOOL_CALL_RESPONSE",
            {"results": [json.loads(msgspec.json.encode(each, enc_hook=lambda text: text[:]))]},
        )
        assert decode(written(body)).content.results == (each,)


# ---- availability

CAMERA = SupportedTool("camera", "1.2.0", ("photo", "video"))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (AskedTool("camera"), None),
        (AskedTool("camera", "1.2", ("photo",)), None),
        (AskedTool("camera", "1.1.9"), None),
        (AskedTool("camera", "1.2.0.0"), None),
        (AskedTool("camera", "1.10"), "VERSION_TOO_LOW"),
        (AskedTool("camera", "2"), "VERSION_TOO_LOW"),
        (AskedTool("camera", None, ("photo", "ar")), "CAPABILITY_MISSING"),
        (AskedTool("place"), "NOT_SUPPORTED"),
        (AskedTool("mic"), "PERMISSION_DENIED"),
    ],
)
def test_a_tool_is_available_or_the_reason_is_said(asked: AskedTool, reason: str | None) -> None:
    found = availability(asked, [CAMERA, SupportedTool("mic", "1")], denied=["mic", "place"])
    assert (found.tool_id, found.available) == (asked.tool_id, reason is None)
    assert found.reason == reason
    if reason is None:
        assert (found.version, found.capabilities) == ("1.2.0", ("photo", "video"))
    else:
        assert found.message
        assert in_language(found.message, "zh") != found.message


@pytest.mark.parametrize(
    ("found", "least", "fits"),
    [
        ("1.0.0-rc1", "1.0.0", False),
        ("1.0.0", "1.0.0-rc1", True),
        ("1.0.0-rc2", "1.0.0-rc10", False),
        ("1.0.1-rc1", "1.0.0", True),
        ("v1.0.0+build5", "1.0", True),
    ],
)
def test_a_version_before_a_release_does_not_count_as_it(
    found: str, least: str, fits: bool
) -> None:
    told = availability(AskedTool("camera", least), [SupportedTool("camera", found)])
    assert told.available is fits


def test_of_two_versions_of_a_tool_the_one_that_fits_is_available() -> None:
    both = [SupportedTool("camera", "1.0", ("ar",)), SupportedTool("camera", "2.0")]
    for each in (both, both[::-1]):
        assert availability(AskedTool("camera", "2.0"), each).version == "2.0"
        assert availability(AskedTool("camera", None, ("ar",)), each).version == "1.0"
        assert availability(AskedTool("camera", "3.0"), each).reason == "VERSION_TOO_LOW"


@pytest.mark.parametrize(("number", "name"), [(0, "version"), (1, "reason")])
def test_an_answer_about_a_tool_has_its_version_or_its_reason(number: int, name: str) -> None:
    path = ("content", "availableTools", number, name)
    with pytest.raises(NotMcpCp, match=name):
        decode(written(changed(WHOLE["TOOL_AVAILABILITY_RESPONSE"], path, GONE)))


# ---- errors


def test_there_are_six_classes_and_each_code_has_one() -> None:
    classes = {"PARSING", "VALIDATION", "EXECUTION", "TIMEOUT", "DEPENDENCY", "SYSTEM"}
    assert {errors.class_of(code) for code in ERROR_CODES} == classes
    assert errors.class_of("AUTH_FAILED") == "VALIDATION"
    assert errors.class_of("SOMEBODY_ELSES") == "SYSTEM"


@pytest.mark.parametrize(
    ("chinese", "english"),
    [("客户端", "CLIENT"), ("服务端", "SERVER"), ("工具", "TOOL"), ("系统", "SYSTEM")],
)
def test_a_source_is_written_in_chinese_and_read_in_both_languages(
    chinese: str, english: str
) -> None:
    for word in (chinese, english, english.lower()):
        found = decode(written(changed(WHOLE["ERROR_RESPONSE"], ("content", "source"), word)))
        assert found.content.source is ErrorSource[english]
        assert json.loads(encode(found))["content"]["source"] == chinese


def test_a_message_that_cannot_be_read_is_answered_with_what_was_wrong() -> None:
    with pytest.raises(NotMcpCp) as caught:
        decode(written(changed(WHOLE["USER_INPUT"], ("content", "text"), 5)))
    answer = answer_to(caught.value, AT, "trace_1")
    assert answer == ErrorResponse(
        error_code="VALIDATION_ERROR",
        message="$.content.text is 5; it must be a text",
        details=ErrorDetails("msg_1", AT, "trace_1"),
        source=ErrorSource.CLIENT,
        recoverable=True,
        suggested_action="Correct $.content.text and send the message again",
    )
    assert encode(McpMessage("m", "c", AT, "ERROR_RESPONSE", Sender("s", "SYSTEM"), answer))
    with pytest.raises(NotMcpCp) as caught:
        decode(written(message("USER_INPUT", {}, metadata={"protocolVersion": "2.0"})))
    answer = answer_to(caught.value, AT, "t")
    assert (answer.recoverable, answer.suggested_action) == (False, None)


@pytest.mark.parametrize(
    "secret",
    [
        "/srv/lab/state/journal.sqlite",
        "/etc/passwd",
        "~/lab/lab.toml",
        "C:\\Users\\ann\\lab.toml",
        "pid 4711",
        "PID=4711",
        "/srv/alice/key.pem",
        "file:///srv/alice/key.pem",
        "C:\\secret.txt",
        "/secret.txt",
        "process 4711",
        "alice@host",
    ],
)
def test_no_path_and_no_process_is_ever_sent(secret: str) -> None:
    said = f"cannot open {secret}: is it there?"
    told = error_response("SYSTEM_ERROR", said, ErrorSource.SERVER, ErrorDetails(), said)
    assert told.message == told.suggested_action == "cannot open …: is it there?"
    for before in ("无法打开文件", "open:"):
        assert errors.without_insides(f"{before}{secret}: no") == f"{before}…: no"


@pytest.mark.parametrize(
    "plain",
    [
        "15 °C/min is too fast; at most 10 °C/min",
        "MoS2 on SiO2/Si",
        "see https://example.com/docs/page",
        "$.content.toolCalls[0].name is 5; it must be a text",
        "temperature and/or flow",
        "rapid 12 s ramp",
        "温度/流量/压力",
        "100 kV @ 3 mA",
    ],
)
def test_plain_sentences_are_sent_as_they_are(plain: str) -> None:
    assert errors.without_insides(plain) == plain


traces = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["stackTrace", "a", "b"]), inner, max_size=3)
    ),
)


@settings(max_examples=50)
@given(traces)
def test_no_trace_of_a_stack_is_kept_in_an_error(details: object) -> None:
    error = tools.ToolError("E", "m", {"kept": 1, "stackTrace": "x", "deep": details})
    assert "stackTrace" not in json.dumps(msgspec.to_builtins(error))
    assert error.details["kept"] == 1


def test_no_trace_of_a_stack_passes_through() -> None:
    trace = {"stackTrace": "File '/srv/x.py'", "hint": "h"}
    path = ("content", "results", 0, "error", "details")
    result = changed(WHOLE["TOOL_CALL_RESPONSE"], path, trace)
    answer = changed(WHOLE["ERROR_RESPONSE"], ("content", "details", "stackTrace"), "srv")
    for body in (result, answer):
        sent = encode(decode(written(body)))
        assert b"stackTrace" not in sent
        assert b"srv" not in sent
    assert decode(written(result)).content.results[0].error.details == {"hint": "h"}


@pytest.mark.parametrize("kind", ["ERROR_RESPONSE", "SYSTEM_MESSAGE", "MODEL_RESPONSE"])
def test_no_trace_of_a_stack_passes_at_any_depth_of_what_the_text_does_not_name(kind: str) -> None:
    cause = {"why": 1, "causes": [{"stackTrace": "srv"}], "stackTrace": "srv"}
    body = {**WHOLE[kind], "cause": cause, "stackTrace": "srv"}
    for place in ("details", "data", "usage"):
        if place in body["content"]:
            body = changed(body, ("content", place, "cause"), cause)
            body = changed(body, ("content", place, "stackTrace"), "srv")
    found = decode(written(body))
    assert found.metadata["unknownFields"]["$.cause"] == {"why": 1, "causes": [{}]}
    assert b"srv" not in encode(found)
    sent_on = {"$.content.stackTrace": "srv", "$.content.cause": cause}
    again = changed(WHOLE[kind], ("metadata", "unknownFields"), sent_on)
    assert b"srv" not in encode(decode(written(again)))


def test_a_field_of_that_name_that_a_user_writes_is_kept() -> None:
    body = changed(WHOLE["USER_INPUT"], ("content", "stackTrace"), "mine")
    found = decode(written(body)).metadata["unknownFields"]
    assert found == {"$.content.stackTrace": "mine"}


WHOLE_CALL: dict[str, object] = {**CALLS[0]}


def test_a_call_needs_its_three_fields() -> None:
    for name in ("callId", "name", "parameters"):
        with pytest.raises(msgspec.ValidationError, match=name):
            msgspec.convert({k: v for k, v in WHOLE_CALL.items() if k != name}, ToolCall)
