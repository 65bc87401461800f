"""Whatever bytes come, the codec has a value or its one error; and its schemas say the same."""

import gc
import json
import random
import statistics
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from labharness.core.vocabulary.texts import Text
from labharness.protocols.mcp_cp.codec import MESSAGE_BYTES_MAX, decode, encode
from labharness.protocols.mcp_cp.context import opened
from labharness.protocols.mcp_cp.errors import NotMcpCp, answer_to
from labharness.protocols.mcp_cp.messages import McpMessage
from labharness.protocols.mcp_cp.schemas import KINDS, message_schema
from mcp_cp_samples import AT, WHOLE, drawn, message, resident_bytes, written

SCHEMAS = {kind: message_schema(kind) for kind in KINDS}
VALIDATORS = {kind: Draft202012Validator(schema) for kind, schema in SCHEMAS.items()}
MORE_THAN_A_SCHEMA = {"mcp_cp.unfit", "mcp_cp.version", "mcp_cp.must"}
"""Rules between fields and of the calendar; versions; and messages in a message."""


def outcome(data: bytes) -> McpMessage | NotMcpCp:
    """Return what comes of bytes, held to all that is promised of it."""
    try:
        found = decode(data)
    except NotMcpCp as error:
        refused = error
    else:
        sent = encode(found)
        assert decode(sent) == found
        assert encode(decode(sent)) == sent
        return found
    assert isinstance(refused.args[0], Text)
    assert refused.where.startswith("$")
    assert len(str(refused)) < 1_000
    assert answer_to(refused, AT, "t")
    return refused


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(st.binary(max_size=64) | json_values.map(lambda each: json.dumps(each).encode()))
def test_any_bytes_are_a_value_or_the_one_error(data: bytes) -> None:
    assert outcome(data)


@settings(max_examples=40)
@given(st.sampled_from([*WHOLE]), json_values, json_values)
def test_any_json_in_place_of_content_or_metadata_is_a_value_or_the_one_error(
    name: str, content: object, metadata: object
) -> None:
    outcome(json.dumps({**WHOLE[name], "content": content}).encode())
    outcome(json.dumps({**WHOLE[name], "metadata": metadata}).encode())


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_a_mutated_message_is_a_value_or_the_one_error(seed: int) -> None:
    assert outcome(drawn(random.Random(seed)))


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_what_the_codec_reads_its_schema_takes_and_what_the_schema_refuses_it_refuses(
    seed: int,
) -> None:
    data = drawn(random.Random(seed))
    found = outcome(data)
    try:
        body: Any = json.loads(data)
    except ValueError:
        return
    kind = body.get("type") if isinstance(body, dict) else None
    if not isinstance(kind, str) or kind not in SCHEMAS:
        assert isinstance(found, NotMcpCp)
        return
    faults = [each.message for each in VALIDATORS[kind].iter_errors(body)]
    if isinstance(found, McpMessage):
        assert faults == []
        VALIDATORS[kind].validate(json.loads(encode(found)))
    elif not faults:
        said = found.args[0]
        assert said.code in MORE_THAN_A_SCHEMA or found.error_code == "PARSING_ERROR", said


@pytest.mark.parametrize("name", WHOLE)
def test_a_schema_takes_the_message_with_every_field(name: str) -> None:
    kind = WHOLE[name]["type"]
    Draft202012Validator.check_schema(SCHEMAS[kind])
    VALIDATORS[kind].validate(WHOLE[name])
    assert not VALIDATORS[kind].is_valid({**WHOLE[name], "type": "OTHER"})
    assert not VALIDATORS[kind].is_valid({**WHOLE[name], "content": {}})


def test_a_schema_holds_each_instruction_and_each_word_of_a_source() -> None:
    wrong = message("INSTRUCTION", {"instructions": [{"action": "a"}], "executionMode": "PARALLEL"})
    assert not VALIDATORS["INSTRUCTION"].is_valid(wrong)
    error = WHOLE["ERROR_RESPONSE"]
    for word, fits in (("服务端", True), ("SERVER", True), ("server", True), ("nobody", False)):
        body = {**error, "content": {**error["content"], "source": word}}
        assert VALIDATORS["ERROR_RESPONSE"].is_valid(body) is fits


FUZZED = {"slice": 500, "whole": 1_000_000}
MEDIAN_S, GROWTH_BYTES = 1e-3, 64 * 2**20


@pytest.mark.parametrize("share", ["slice", pytest.param("whole", marks=pytest.mark.soak)])
@pytest.mark.timeout(7_200)
def test_fuzzed_messages_leave_nothing_behind(share: str) -> None:
    """A million takes minutes: each is decoded once, and each hundredth held to all promises."""
    chance, took, before = random.Random(35), [], 0
    context, ended = opened("ctx_1", AT, {}), {"read": 0, "refused": 0, "taken": 0}
    for number in range(FUZZED[share]):
        data = drawn(chance).replace(b'"msg_1"', b'"msg_%d"' % number)
        if number % 100 == 0:
            outcome(data)
        if number == FUZZED[share] // 100:
            gc.collect()
            before = resident_bytes()
        began = time.perf_counter()
        try:
            found = decode(data)
            ended["read"] += 1
            if found.type == "CONTEXT_UPDATE":
                context = context.apply(found).context
                ended["taken"] += 1
        except NotMcpCp:
            ended["refused"] += 1
        took.append(time.perf_counter() - began)
        del took[:-100_000]
        assert len(data) < MESSAGE_BYTES_MAX
    gc.collect()
    growth = resident_bytes() - before
    median_s = statistics.median(took)
    sys.stdout.write(f"{ended}, median {median_s * 1e6:.0f} µs, growth {growth / 2**20:.1f} MB\n")
    assert min(ended.values()) > FUZZED[share] // 100
    assert growth <= GROWTH_BYTES
    if share == "whole":
        assert median_s <= MEDIAN_S


def test_long_junk_takes_no_longer_than_its_length() -> None:
    for junk in (b'{"a":"' + b"\\" * 999_999, b'{"' + b"a" * 1_000_000, b"[" * 1_000_000):
        with pytest.raises(NotMcpCp):
            decode(junk)
    path = "a." * 500 + "b"
    for name in (path, "." * 1_024, "x" * 1_025):
        body = {"operation": "UPDATE_STATE", "path": f"customState.{name}", "value": 1}
        outcome(written(message("CONTEXT_UPDATE", body)))
