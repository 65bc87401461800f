"""HCP messages: what is read, what is refused, and where to."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labharness.core.clock import utc_text
from labharness.journal.chain import record_bytes
from labharness.protocols.hcp import answers, codec, wire
from labharness.protocols.hcp.codec import BadPayload, NotHcp, decode, encode
from labharness.protocols.hcp.messages import TaskAccepted, TaskCompleted, TaskRejected, TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from rig import HERE

EXAMPLE = (HERE.parent / "examples" / "mos2-monolayer.json").read_bytes()
IDS: dict[str, Any] = {"message_id": "msg-010", "timestamp": "2025-01-15T08:32:15.000Z"}


THRESHOLD = ("payload", "constraints", "confidence_threshold")
HIGHEST = ("payload", "inputs", "temperature_range", "max")
FIELDS = ("payload", "expected_output", "required_fields")
GONE = object()


def changed(*path: str, to: object = GONE) -> bytes:
    """Return the example with another value at a place, or without one."""
    body = json.loads(EXAMPLE)
    place = body
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = to
    if to is GONE:
        del place[path[-1]]
    return json.dumps(body).encode()


without = changed


def test_the_example_of_layer_four_is_read_as_it_stands() -> None:
    message = decode(EXAMPLE)
    assert isinstance(message.payload, TaskSubmit)
    submission = codec.submission_of(message.payload)
    assert submission.capability_version == "1.x"
    assert submission.inputs["temperature_range"] == {"min": 700, "max": 750, "unit": "celsius"}
    assert submission.required_fields == ("peak_distance", "layer_count", "confidence")
    assert submission.max_duration == "PT72H"
    assert submission.data_classification == "T2"
    assert json.loads(encode(message)) == json.loads(EXAMPLE)


def test_a_written_message_keeps_the_order_of_the_specification() -> None:
    body = json.loads(encode(decode(EXAMPLE)))
    fields = ["hcp_version", "message_id", "timestamp", "session_id", "type", "payload"]
    assert list(body) == fields
    first = ["capability", "capability_version", "caller_id", "intent"]
    assert list(body["payload"])[:4] == first


def test_unknown_fields_are_kept_at_every_depth() -> None:
    body = json.loads(EXAMPLE)
    body["x_trace"] = "abc"
    body["payload"]["x_budget"] = 12
    body["payload"]["constraints"]["x_day"] = "monday"
    body["payload"]["expected_output"]["x_style"] = {"a": [1]}
    assert json.loads(encode(decode(json.dumps(body).encode()))) == body


def test_a_chinese_intent_travels_as_itself() -> None:
    message = decode(changed("payload", "intent", to="合成单层二硫化钼"))
    assert "合成单层二硫化钼".encode() in encode(message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
@example(2**60)
@example("why")
@example([1, {"code": "hcp.aborted", "with": {}}])
def test_a_context_of_any_form_is_kept_as_it_came(context: object) -> None:
    message = decode(changed("payload", "context", to=context))
    assert isinstance(message.payload, TaskSubmit)
    assert message.payload.context == context
    assert codec.submission_of(message.payload).context == context
    assert json.loads(encode(message))["payload"]["context"] == context
    body = message.payload.stated()
    assert json.loads(record_bytes(1, 0.0, "submitted", body))["body"]["context"] == context


@pytest.mark.parametrize(
    ("context", "why"), [("é" * 33_000, "66002 bytes"), (float("nan"), "cannot be written as JSON")]
)
def test_a_context_is_refused_for_its_size_or_where_it_is_no_json(
    context: object, why: str
) -> None:
    with pytest.raises(BadPayload, match=why):
        decode(changed("payload", "context", to=context))
    assert decode(changed("payload", "context", to="é" * 32_767)).payload


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not JSON"),
        (b"no json", "is not JSON"),
        (EXAMPLE[:-20], "is not JSON"),
        (b"\xff\xfe{}", "is not JSON"),
        (b"[]", "not an object"),
        (b"[" * 100_000, "nested more than 64"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nested more than 64"),
        (b" " * (codec.MESSAGE_BYTES_MAX + 1), "at most 1048576"),
        (b'{"type":"abort","type":"event"}', "stands twice"),
        (changed("payload", "context", to={"a": 1}).replace(b'"a": 1', b'"a":1,"a":2'), "twice"),
        (changed("payload", "intent", to="\ud800"), "UTF-8"),
        (b'{"hcp_version": ' + b"9" * 5000 + b"}", "is not JSON"),
        (changed("hcp_version", to="2.0"), "hcp_version"),
        (changed("hcp_version", to="1"), "hcp_version"),
        (changed("hcp_version", to=1.0), "hcp_version"),
        (without("hcp_version"), "hcp_version"),
        (changed("type", to="task_destroy"), "type"),
        (changed("type", to=["abort"]), "type"),
        (changed("message_id", to=""), "message_id"),
        (changed("message_id", to="m" * 129), "message_id"),
        (changed("message_id", to=7), "message_id"),
        (changed("timestamp", to="2025-01-15 08:30"), "timestamp"),
        (changed("timestamp", to="2025-13-15T08:30:00.000Z"), "timestamp"),
        (changed("timestamp", to="2025-01-15T08:30:00.000+02:00"), "timestamp"),
        (changed("session_id", to="session-xyz"), "session_id"),
        (changed("payload", to="text"), "payload"),
        (without("payload", "caller_id"), "caller_id"),
        (changed("payload", "caller_id", to="a.*"), "caller_id"),
        (changed("payload", "caller_id", to="a#"), "caller_id"),
        (changed("payload", "caller_id", to=".a"), "caller_id"),
        (changed("payload", "caller_id", to="a\n"), "caller_id"),
        (changed("x_extra", to=float("nan")), "envelope.x_extra"),
    ],
)
def test_a_bad_envelope_is_no_hcp_and_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(NotHcp, match=reason):
        decode(data)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (without("payload", "intent"), "payload.intent"),
        (changed("payload", "intent", to=""), "payload.intent"),
        (without("payload", "inputs"), "payload.inputs"),
        (changed("payload", "inputs", to=[]), "payload.inputs"),
        (changed("payload", "capability", to=7), "payload.capability"),
        (changed(*HIGHEST, to=float("nan")), ".".join(HIGHEST)),
        (changed("payload", "inputs", "x", to=[float("inf")]), "payload.inputs.x[0]"),
        (changed("payload", "inputs", "x", to=12345).replace(b"12345", b"1e999"), "inputs.x"),
        (changed("payload", "inputs", "x", to=2**53), "payload.inputs.x"),
        (changed(*THRESHOLD, to="high"), ".".join(THRESHOLD)),
        (changed(*THRESHOLD, to=True), ".".join(THRESHOLD)),
        (changed(*FIELDS, to="all"), ".".join(FIELDS)),
    ],
)
def test_a_bad_payload_is_answered_as_invalid_input(data: bytes, where: str) -> None:
    with pytest.raises(BadPayload) as caught:
        decode(data)
    assert where in caught.value.where
    assert caught.value.message.message_id == json.loads(EXAMPLE)["message_id"]
    assert caught.value.message.caller_id == "harness-alpha-001"
    answer = answers.task_rejected(
        **IDS, in_reply_to=caught.value.message.message_id, rejected=caught.value.rejected()
    )
    assert isinstance(answer.payload, TaskRejected)
    assert answer.payload.reason_code == "invalid_input"


@pytest.mark.parametrize("end", ["Z", ".1Z", ".123456789Z", "+00:00", ".000+00:00"])
def test_a_time_in_utc_is_read_in_either_writing(end: str) -> None:
    text = f"2025-01-15T08:30:00{end}"
    assert decode(changed("timestamp", to=text)).timestamp == text


def test_a_caller_may_have_dots_in_its_id_and_its_topic_is_one_word() -> None:
    payload = decode(changed("payload", "caller_id", to="lab.alpha-1")).payload
    assert isinstance(payload, TaskSubmit)
    told = decode(changed("timestamp", to="2025-01-15T08:30:00Z"))
    topic = wire.topic(payload.caller_id, "session-xyz", told)
    assert topic.split(".") == ["lab%2Ealpha-1", "session-xyz", "task_submit"]
    assert wire.pattern(payload.caller_id) == "lab%2Ealpha-1.#"
    assert wire.word("lab%2Ealpha-1") != wire.word("lab.alpha-1")
    assert wire.event_queue(payload.caller_id) == "hcp.evt.lab.alpha-1"


def test_another_minor_version_is_understood() -> None:
    assert decode(changed("hcp_version", to="1.7")).hcp_version == "1.7"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=200)
def test_arbitrary_bytes_give_a_message_or_a_reason(data: bytes) -> None:
    with pytest.raises((NotHcp, BadPayload)):
        decode(data)


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_a_mutilated_example_gives_a_message_or_a_reason(data: st.DataObject) -> None:
    body = json.loads(EXAMPLE)
    place: Any = body
    for _ in range(data.draw(st.integers(0, 3))):
        inner = [name for name, value in place.items() if isinstance(value, dict) and value]
        if not inner:
            break
        place = place[data.draw(st.sampled_from(inner))]
    place[data.draw(st.sampled_from(list(place)))] = data.draw(json_values)
    raw = bytearray(json.dumps(body).encode())
    for _ in range(data.draw(st.integers(0, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = decode(bytes(raw))
    except (NotHcp, BadPayload):
        return
    assert decode(encode(message)) == message


def test_acceptance_and_rejection_name_the_submission_they_answer() -> None:
    accepted = answers.task_accepted(
        **IDS,
        session_id="session-xyz",
        in_reply_to="msg-001",
        session_token="secret",
        risk_level="R3",
        data_classification="T2",
        safety_envelope={"parameters": {}},
        max_duration="PT4H",
        abort_timeout="PT5M",
    )
    rejected = answers.task_rejected(
        **IDS, in_reply_to="msg-001", rejected=Rejected("risk_too_high", "too hot", "R4", "cool it")
    )
    assert isinstance(accepted.payload, TaskAccepted)
    assert isinstance(rejected.payload, TaskRejected)
    assert accepted.payload.in_reply_to == rejected.payload.in_reply_to == "msg-001"
    assert rejected.session_id is None
    assert b'"session_id":null' in encode(rejected)
    assert decode(encode(accepted)) == accepted


def test_results_carry_outputs_artifacts_and_summary() -> None:
    artifact = {"name": "raw", "type": "text/csv", "uri": "hcp://session-x/artifacts/a.csv"}
    completed = answers.task_completed(
        **IDS,
        session_id="session-xyz",
        outputs={"layer_count": 1},
        artifacts=[{**artifact, "size_bytes": 3}],
        execution_summary={"duration": "PT2H15M", "steps_executed": 42, "risk_events": []},
    )
    assert isinstance(completed.payload, TaskCompleted)
    assert decode(encode(completed)) == completed
    failed = answers.task_failed(
        **IDS, session_id="session-xyz", error_code="execution_error", error_message="bus silent"
    )
    assert decode(encode(failed)) == failed
    with pytest.raises(ValueError, match="'oops' is none of"):
        answers.task_failed(**IDS, session_id="s", error_code="oops", error_message="")


def test_an_abort_needs_a_session_and_no_token_while_pending() -> None:
    abort = {"hcp_version": "1.0", **IDS, "session_id": "s-1", "type": "abort", "payload": {}}
    assert decode(json.dumps(abort).encode()).session_id == "s-1"
    with pytest.raises(NotHcp, match="session_id"):
        decode(json.dumps({**abort, "session_id": None}).encode())


def test_nothing_is_written_that_would_not_be_read() -> None:
    message = answers.task_completed(**IDS, session_id="s", outputs={"x": float("nan")})
    with pytest.raises(NotHcp, match=r"outputs\.x"):
        encode(message)
    large = answers.task_completed(
        **IDS, session_id="s", outputs={"x": "y" * codec.MESSAGE_BYTES_MAX}
    )
    with pytest.raises(NotHcp, match="at most"):
        encode(large)


def test_brackets_within_a_text_nest_nothing() -> None:
    data = changed("payload", "intent", to="[{" * 100)
    assert decode(data).payload.model_dump()["intent"] == "[{" * 100
    deep = b'{"a":' * 64 + b'"[{"' + b"}" * 64
    with pytest.raises(NotHcp, match="hcp_version"):
        decode(deep)


def test_a_message_made_of_another_has_bytes_of_its_own() -> None:
    one = decode(EXAMPLE)
    assert encode(one) == encode(one)
    other = replace(one, message_id="another")
    assert json.loads(encode(other))["message_id"] == "another"
    assert json.loads(encode(one))["message_id"] == one.message_id


def test_a_moment_is_written_in_utc_with_milliseconds() -> None:
    moment = datetime(2025, 1, 15, 10, 30, tzinfo=timezone(timedelta(hours=2)))
    assert utc_text(moment) == "2025-01-15T08:30:00.000Z"
    assert utc_text(datetime(2025, 1, 1, 0, 0, 0, 1500, UTC)) == "2025-01-01T00:00:00.001Z"
    with pytest.raises(ValueError, match="no time zone"):
        utc_text(datetime(2025, 1, 15))
