"""The exported schemas say what the codec holds, in both directions, as far as a schema can."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from commands import ROOT, say
from fuzzed import places
from labharness.faces.cli.schema import DOCUMENTS
from labharness.faces.service.session_messages import messages_of
from labharness.journal.reading import read
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.asyncapi import asyncapi
from labharness.protocols.hcp.codec import BadPayload, HcpMessage, NotHcp, decode, encode
from labharness.protocols.hcp.messages import EVENT_DATA
from labharness.protocols.hcp.schemas import KINDS, message_schema
from labharness.protocols.mcp_cp.messages import CONTENTS
from rig import EXAMPLE, IV

SCHEMAS = {kind: message_schema(kind) for kind in KINDS}
VALIDATORS = {kind: Draft202012Validator(schema) for kind, schema in SCHEMAS.items()}
HEAD = {"hcp_version": "1.0", "message_id": "m", "timestamp": "2026-01-01T00:00:00Z"}
DATA: dict[str, dict[str, Any]] = {
    "session_created": {"state": "PENDING", "risk_level": None, "session_token": None},
    "state_changed": {"from_state": "PENDING", "to_state": "RUNNING", "reason": "r"},
    "progress": {"stage": "growth", "percent": 10.5, "message": "m"},
    "intermediate_result": {"result_type": "t", "data": [1], "is_partial": True},
    "log": {"level": "info", "message": "m", "details": {"a": 1}},
    "warning": {"code": "c", "message": "m", "details": None},
    "error": {"code": "c", "message": "m", "recoverable": False},
    "checkpoint_created": {
        "checkpoint_id": "c",
        "description": "d",
        "resumable": True,
        "created_at": "2026-01-01T00:00:00Z",
    },
    "session_closed": {"final_state": "FAILED", "reason": "r"},
}
ARTIFACT = {"name": "n", "type": "text/csv", "uri": "hcp://s/a", "size_bytes": 1, "checksum": "c"}
RISK = {"code": "c", "channel": "a.b", "value": 2.5, "limit": 1.5, "at": "t", "text": "x"}
SUMMARY = {"duration": "PT1S", "steps_executed": 1, "risk_events": ["r", RISK], "warnings": ["w"]}


def message(kind: str, payload: dict[str, Any], session_id: str | None = "s") -> dict[str, Any]:
    return {**HEAD, "session_id": session_id, "type": kind, "payload": payload}


WHOLE = [
    {**json.loads(EXAMPLE.read_text()), "session_id": None},
    message("abort", {"session_token": "t", "caller_id": "a", "reason": "r"}),
    message(
        "task_accepted",
        {
            "session_token": "t",
            "risk_level": "R3",
            "data_classification": "T2",
            "safety_envelope": {"parameters": {}},
            "constraints": {"max_duration": "PT4H", "abort_timeout": "PT5M"},
            "in_reply_to": "m",
        },
    ),
    message(
        "task_rejected",
        {
            "reason_code": "forbidden",
            "reason_message": "m",
            "assessed_risk_level": "R4",
            "suggestion": "s",
            "in_reply_to": "m",
        },
        None,
    ),
    message(
        "task_completed",
        {"outputs": {"a": 1}, "artifacts": [ARTIFACT], "execution_summary": SUMMARY},
    ),
    message(
        "task_failed",
        {
            "error_code": "timeout",
            "error_message": "m",
            "suggestion": "s",
            "error_details": {"phase": "p"},
            "partial_outputs": {"a": 1},
            "artifacts": [ARTIFACT],
            "execution_summary": SUMMARY,
        },
    ),
    *(
        message("event", {"event_type": name, "sequence": n, "data": data, "in_reply_to": "m"})
        for n, (name, data) in enumerate(DATA.items())
    ),
]


def test_each_kind_of_message_and_event_has_its_sample() -> None:
    assert {each["type"] for each in WHOLE} == set(KINDS) == set(SCHEMAS)
    assert set(DATA) == set(EVENT_DATA)
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("body", WHOLE, ids=lambda each: each["type"])
def test_a_sample_is_read_by_both(body: dict[str, Any]) -> None:
    VALIDATORS[body["type"]].validate(body)
    decode(json.dumps(body).encode())


@pytest.mark.parametrize(("event_type", "data"), DATA.items())
def test_each_event_is_written_and_needs_its_fields(event_type: str, data: dict[str, Any]) -> None:
    submit = "m" if event_type == "session_created" else None

    def built(fields: dict[str, Any]) -> HcpMessage:
        about: dict[str, Any] = {"message_id": "m", "session_id": "s", "sequence": 1}
        about |= {"timestamp": HEAD["timestamp"], "event_type": event_type, "data": fields}
        return answers.event(**about, in_reply_to=submit)

    assert decode(encode(built(data))) == built(data)
    with pytest.raises(ValueError, match="data"):
        built(dict(list(data.items())[1:]))


# Integers that all programs read, and no number that is written with a point and is whole: a schema
# takes 1.0 for an integer, and the codec does not.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda each: not each.is_integer()),
    st.text(max_size=3),
    st.sampled_from(["R3", "T4", "1.0", "1.12", "2.0", "1.01", "2026-01-01T00:00:00.123Z"]),
    st.sampled_from(["a" * 128, "a" * 129, "a.b"]),
    st.sampled_from([*KINDS, *EVENT_DATA]),
    st.builds(dict),
    st.builds(list),
    st.lists(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(0, 3), max_size=2),
)


@st.composite
def mutants(draw: st.DrawFn) -> dict[str, Any]:
    """Return a message in which something is missing, other, or more."""
    body: dict[str, Any] = deepcopy(draw(st.sampled_from(WHOLE)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([each for each in places(body) if each]))
        holder: Any = body
        for name in place[:-1]:
            holder = holder[name]
        if draw(st.booleans()):
            del holder[place[-1]]
        else:
            holder[place[-1]] = draw(ODD)
    if draw(st.booleans()):
        holder = draw(st.sampled_from([body, body.get("payload")]))
        if isinstance(holder, dict):
            holder[draw(st.sampled_from(["caller_id", "session_id", "more"]))] = draw(ODD)
    return body


def is_read(body: dict[str, Any]) -> bool:
    try:
        decode(json.dumps(body).encode())
    except (NotHcp, BadPayload):
        return False
    return True


@settings(max_examples=1_500, deadline=None)
@given(mutants())
def test_the_codec_reads_a_message_exactly_where_its_schema_takes_it(body: dict[str, Any]) -> None:
    kind = body.get("type")
    if not isinstance(kind, str) or kind not in VALIDATORS:
        assert not is_read(body)
        return
    faults = [error.message for error in VALIDATORS[kind].iter_errors(body)]
    stamp = body.get("timestamp")
    if isinstance(stamp, str) and stamp.endswith("\n"):  # Python's $ stands before a newline, too
        return
    assert is_read(body) == (not faults), faults


def test_what_a_real_run_tells_is_taken_by_the_schemas(tmp_path: Path) -> None:
    task = tmp_path / "curve.json"
    task.write_text((ROOT / "examples" / "iv-curve.json").read_text())
    said = say("run", task, "--lab", IV, "--out", tmp_path / "run", "--json")
    assert said.code == 0, said.err
    records = [*read(tmp_path / "run" / "journal.sqlite")]
    told = [
        each.message
        for each in messages_of("s", records, opened=False, accepted=None, in_reply_to="m")
    ]
    assert {"event", "task_completed"} == {each.type for each in told}
    for each in told:
        VALIDATORS[each.type].validate(json.loads(encode(each)))


# ---- the AsyncAPI document


def at(document: Any, reference: str) -> Any:
    assert reference.startswith("#/")
    for name in reference[2:].split("/"):
        document = document[name]
    return document


def references(document: object) -> Iterator[str]:
    for place in places(document):
        if place and place[-1] == "$ref":
            found: Any = document
            for name in place:
                found = found[name]
            yield found


def test_each_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi()
    found = [*references(document)]
    assert len(found) > 20
    for each in found:
        assert at(document, each)


def test_the_asyncapi_document_has_each_message_where_the_topology_has_it() -> None:
    document = asyncapi()
    assert document["asyncapi"] == "3.0.0"
    assert set(document["components"]["messages"]) == set(KINDS)
    channels = document["channels"]
    for channel in channels.values():
        assert set(re.findall(r"\{(\w+)\}", channel["address"])) == set(channel["parameters"])
    for channel, kind in (("commands", "direct"), ("events", "topic")):
        exchange = channels[channel]["bindings"]["amqp"]["exchange"]
        bound = {name: exchange[name] for name in ("name", "type", "durable", "vhost")}
        same = {"durable": True, "vhost": "/hcp"}
        assert bound == {"name": f"hcp.{channel}", "type": kind, **same}
    assert channels["command_queue"]["address"] == "hcp.cmd.{callee_id}"
    assert channels["event_queue"]["address"] == "hcp.evt.{caller_id}"
    done = document["operations"]
    taken = {
        name for each in done.values() if each["action"] == "receive" for name in messages(each)
    }
    told = {name for each in done.values() if each["action"] == "send" for name in messages(each)}
    assert taken == {"task_submit", "abort"}
    assert taken | told == set(KINDS)
    for kind, each in document["components"]["messages"].items():
        schema = each["payload"]["schema"]
        Draft202012Validator.check_schema(schema)
        assert schema["properties"]["type"] == {"const": kind}


def messages(operation: dict[str, Any]) -> set[str]:
    return {each["$ref"].rsplit("/", 1)[-1] for each in operation["messages"]}


# ---- the command


def test_the_command_lists_prints_and_writes_each_document(tmp_path: Path) -> None:
    names = say("schema").out.split()
    assert names == [*KINDS, "asyncapi", *CONTENTS] == list(DOCUMENTS)
    assert json.loads(say("schema", "event").out) == SCHEMAS["event"]
    said = say("schema", "--out", tmp_path / "new" / "folder")
    assert said.code == 0
    for path, name in zip(said.out.splitlines(), names, strict=True):
        assert json.loads(Path(path).read_text("utf-8")) == json.loads(say("schema", name).out)
    say("schema", "evnt").is_one_plain_error("evnt", "task_submit, task_accepted")
    (tmp_path / "file").write_text("")
    say("schema", "--out", tmp_path / "file").is_one_plain_error(str(tmp_path / "file"))
