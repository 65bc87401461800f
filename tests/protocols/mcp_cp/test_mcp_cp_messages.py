"""Messages of MCP-CP: every type with every field is read and written, all else refused by name."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from fuzzed import places
from labharness.core.vocabulary.texts import in_language
from labharness.protocols.mcp_cp import codec, errors, messages, tools
from labharness.protocols.mcp_cp.codec import decode, encode, message_types
from labharness.protocols.mcp_cp.errors import NotMcpCp
from labharness.protocols.mcp_cp.messages import McpMessage, Sender, UserInput
from labharness.protocols.mcp_cp.parts import Part, Unfit
from labharness.protocols.mcp_cp.schemas import message_schema
from mcp_cp_samples import (
    AT,
    ATTACHMENT,
    CALLS,
    CONTENTS,
    GONE,
    HEAD,
    INSTRUCTION,
    RESULT,
    TOOL,
    WHOLE,
    changed,
    message,
    written,
)

Path = tuple[str | int, ...]


def read(body: object) -> McpMessage:
    return decode(written(body))


def refused(body: object) -> NotMcpCp:
    """Return the error of a message, the same whether it is read or written."""
    with pytest.raises(NotMcpCp) as caught:
        decode(body if isinstance(body, bytes) else written(body))
    return caught.value


# ---- the form of every message, and all eleven types


def test_the_text_names_eleven_types_and_all_are_read() -> None:
    assert set(messages.CONTENTS) == {each["type"] for each in WHOLE.values()}
    assert len(messages.CONTENTS) == 11


@pytest.mark.parametrize("name", WHOLE)
def test_a_message_with_every_field_is_read_and_written_without_loss(name: str) -> None:
    found = read(WHOLE[name])
    assert found.metadata == {"a": 1}, "no field of the text is unknown"
    assert json.loads(encode(found)) == WHOLE[name]
    assert decode(encode(found)) == found
    order = ["messageId", "contextId", "timestamp", "type", "sender", "content", "metadata"]
    assert list(json.loads(encode(found))) == order


def parts_of(value: object) -> Iterator[Part]:
    if isinstance(value, Part):
        yield value
        for name in value.__struct_fields__:
            yield from parts_of(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from parts_of(each)


def test_the_samples_state_every_field_that_the_code_knows() -> None:
    stated: dict[type[Part], set[str]] = {}
    for body in WHOLE.values():
        for part in parts_of(read(body)):
            fields = {f for f in part.__struct_fields__ if getattr(part, f) not in (None, (), {})}
            stated.setdefault(type(part), set()).update(fields)
    missing = {
        kind.__name__: set(kind.__struct_fields__) - fields for kind, fields in stated.items()
    }
    assert {name: fields for name, fields in missing.items() if fields} == {}
    assert set(INSTRUCTION) == set(messages.InstructionForm.__struct_encode_fields__)


REQUIRED = """
messageId contextId timestamp type sender sender.id sender.type content content.text
content.attachments.type content.attachments.url content.attachments.metadata
content.attachments.metadata.fileName content.attachments.metadata.fileSize
content.attachments.metadata.mimeType content.finishReason content.usage.promptTokens
content.usage.completionTokens content.usage.totalTokens content.toolCalls.callId
content.toolCalls.name content.toolCalls.parameters content.calls content.calls.callId
content.calls.name content.calls.parameters content.results content.results.callId
content.results.status content.results.executionTime content.results.error
content.results.error.code content.results.error.message content.action content.instructions
content.instructions.instructionId content.instructions.action content.executionMode
content.clientId content.deviceType content.platform content.version
content.supportedTools.toolId content.supportedTools.version content.tools content.tools.toolId
content.availableTools content.availableTools.toolId content.availableTools.available
content.availableTools.version content.availableTools.reason content.errorCode content.message
content.source content.recoverable content.operation content.path content.value
content.filter.beforeTimestamp content.message.messageId content.message.contextId
content.message.timestamp content.message.type content.message.sender content.message.sender.id
content.message.sender.type content.message.content content.message.content.text
"""
NEEDED = set(re.findall(r"\S+", REQUIRED))
MODE_MAY_BE_MISSING = ("TOOL_CALL_REQUEST", "MODEL_RESPONSE")  # ruling 35: SYNC
NEEDS_ITS_CALLS = ("MODEL_RESPONSE", ("content", "toolCalls"))  # its finishReason says so


@pytest.mark.parametrize("name", WHOLE)
def test_what_must_be_there_is_missed_by_its_place_and_the_rest_may_be_missing(name: str) -> None:
    body = WHOLE[name]
    tried = 0
    for path in places(body):
        words = ".".join(each for each in path if isinstance(each, str))
        if not (path and isinstance(path[-1], str)):
            continue
        needed = words in NEEDED and not (
            words == "content.executionMode" and name in MODE_MAY_BE_MISSING
        )
        if needed or (name, path) == NEEDS_ITS_CALLS:
            fault = refused(changed(body, path, GONE))
            assert fault.error_code == "VALIDATION_ERROR"
            where = re.sub(r"\[\d+\]", "", fault.where).removeprefix("$.")
            assert words == where or words.startswith(where), fault
            tried += 1
        else:
            read(changed(body, path, GONE))
    assert tried >= 8


MODES = "SYNC ASYNC PARALLEL SEQUENTIAL FRONTEND_FIRST BACKEND_FIRST CLIENT_SERVER_PARALLEL"
WORDS: tuple[tuple[str, Path, str], ...] = (
    ("USER_INPUT", ("sender", "type"), "USER MODEL SYSTEM TOOL"),
    ("MODEL_RESPONSE", ("content", "finishReason"), "STOP LENGTH TOOL_CALLS ERROR"),
    ("MODEL_RESPONSE", ("content", "executionMode"), MODES),
    ("MODEL_RESPONSE", ("content", "toolCalls", 1, "runtime"), "FRONTEND BACKEND"),
    ("TOOL_CALL_REQUEST", ("content", "executionMode"), MODES),
    (
        "TOOL_CALL_REQUEST",
        ("content", "calls", 1, "fallbackBehavior"),
        "ABORT SKIP USE_ALTERNATIVE",
    ),
    ("SYSTEM_MESSAGE", ("content", "action"), "NOTIFICATION WARNING ERROR INFO"),
    ("INSTRUCTION", ("content", "executionMode"), "SEQUENTIAL PARALLEL CONDITIONAL"),
    ("CLIENT_CAPABILITIES", ("content", "supportedTools", 0, "runtime"), "FRONTEND BACKEND"),
    ("ERROR_RESPONSE", ("content", "source"), "客户端 服务端 工具 系统"),
)


@pytest.mark.parametrize(("name", "path", "words"), WORDS)
def test_a_closed_set_of_words_is_read_and_another_is_refused_with_the_words(
    name: str, path: Path, words: str
) -> None:
    for word in words.split():
        found = json.loads(encode(read(changed(WHOLE[name], path, word))))
        for step in path[:-1]:
            found = found[step]
        assert found.get(path[-1], "SYNC") == word
    for wrong in ("OTHER", f"{words.split()[0]}x", ""):
        fault = refused(changed(WHOLE[name], path, wrong))
        assert fault.where == "$" + "".join(
            f"[{each}]" if isinstance(each, int) else f".{each}" for each in path
        )
        for word in words.split():
            assert word in str(fault)
        assert json.dumps(wrong, ensure_ascii=False) in str(fault)


def test_an_operation_that_is_not_one_of_three_is_refused_with_the_three() -> None:
    fault = refused(changed(WHOLE["CLEAR_HISTORY"], ("content", "operation"), "DROP"))
    assert fault.where == "$.content.operation"
    assert str(fault).endswith("one of ADD_MESSAGE, UPDATE_STATE, CLEAR_HISTORY")


@pytest.mark.parametrize("status", ["SUCCESS", "TIMEOUT"])
def test_each_status_of_a_result_is_read(status: str) -> None:
    body = changed(WHOLE["TOOL_CALL_RESPONSE"], ("content", "results", 0, "error"), GONE)
    assert read(changed(body, ("content", "results", 0, "status"), status))
    fault = refused(changed(body, ("content", "results", 0, "status"), "DONE"))
    assert "ERROR, SUCCESS, TIMEOUT" in str(fault)


@pytest.mark.parametrize("kind", ["IMAGE", "FILE", "AUDIO", "VIDEO"])
def test_each_type_of_attachment_is_read_where_its_mime_type_is_of_that_kind(kind: str) -> None:
    at: Path = ("content", "attachments", 0)
    body = changed(WHOLE["USER_INPUT"], (*at, "type"), kind)
    own = {"FILE": "application/pdf"}.get(kind, f"{kind.lower()}/x")
    assert read(changed(body, (*at, "metadata", "mimeType"), own))
    if kind != "FILE":
        fault = refused(changed(body, (*at, "metadata", "mimeType"), "text/html"))
        assert fault.where == "$.content.attachments[0]"
        assert "text/html" in str(fault)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("metadata", "fileName"), "../a"),
        (("metadata", "fileName"), "a\n"),
        (("metadata", "fileName"), ""),
        (("metadata", "fileSize"), -1),
        (("metadata", "fileSize"), 2**31),
        (("metadata", "fileSize"), 1.5),
        (("metadata", "mimeType"), "jpeg"),
        (("metadata", "digest"), "sha256:12"),
        (("url",), "file:///etc/passwd"),
        (("url",), "javascript:1"),
    ],
)
def test_an_attachment_that_cannot_be_is_refused_at_its_place(path: Path, wrong: object) -> None:
    fault = refused(changed(WHOLE["USER_INPUT"], ("content", "attachments", 0, *path), wrong))
    assert fault.where == ".".join(["$.content.attachments[0]", *map(str, path)])


@pytest.mark.parametrize(
    ("mime_type", "fits"),
    [
        ("text/plain; charset=utf-8", True),
        ('text/plain;charset="utf 8"; a=b', True),
        ("text/plain; charset", False),
        ("text/plain;", False),
    ],
)
def test_a_mime_type_may_have_parameters(mime_type: str, fits: bool) -> None:
    one = {**ATTACHMENT, "type": "FILE"}
    one["metadata"] = {"fileName": "a", "fileSize": 3, "mimeType": mime_type}
    body = message("USER_INPUT", {"text": "t", "attachments": [one]})
    assert read(body) if fits else refused(body)


def test_of_two_numbers_that_json_has_not_the_first_is_named() -> None:
    body = message("USER_INPUT", {"text": "t"}, metadata={"a": [0, 2**53, 2**54], "b": 2**53})
    assert refused(body).where == "$.metadata.a[1]"


def test_bytes_behind_an_address_are_held_to_size_and_digest() -> None:
    attachment = msgspec.convert(ATTACHMENT, messages.Attachment)
    attachment.check(b"abc")
    with pytest.raises(Unfit, match="4 bytes"):
        attachment.check(b"abcd")
    with pytest.raises(Unfit, match="another digest"):
        attachment.check(b"abd")
    without = {**ATTACHMENT, "metadata": {"fileName": "a", "fileSize": 3, "mimeType": "image/x"}}
    msgspec.convert(without, messages.Attachment).check(b"abd")


# ---- moments


@pytest.mark.parametrize("at", ["2025-12-01T12:34:56Z", AT, "2025-12-01T12:34:56.7+00:00"])
def test_a_moment_is_read_in_each_writing_of_utc(at: str) -> None:
    assert read(changed(WHOLE["USER_INPUT"], ("timestamp",), at)).timestamp == at


@pytest.mark.parametrize(
    "at", ["2025-12-01", "2025-12-01T12:34:56", "2025-02-30T00:00:00Z", AT + "\n", "", 1, None]
)
def test_what_is_no_moment_is_refused_wherever_it_stands(at: object) -> None:
    assert "timestamp" in str(refused(changed(WHOLE["USER_INPUT"], ("timestamp",), at)))
    clear = ("content", "filter", "beforeTimestamp")
    assert "beforeTimestamp" in str(refused(changed(WHOLE["CLEAR_HISTORY"], clear, at)))
    error = changed(WHOLE["ERROR_RESPONSE"], ("content", "details", "timestamp"), at)
    if at is not None:
        assert "timestamp" in str(refused(error))


# ---- versions and unknown fields


@pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.7", "1.12.3"])
def test_each_minor_version_is_read(version: str) -> None:
    found = read(message("USER_INPUT", {"text": "t"}, metadata={"protocolVersion": version}))
    assert found.metadata == {"protocolVersion": version}
    assert json.loads(encode(found))["metadata"] == {"protocolVersion": version}


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "1", "one", "", 1.0, 1, [], "1.0\n"])
def test_another_major_version_is_refused_before_all_else(version: object) -> None:
    fault = refused(message("OF_THE_FUTURE", 5, metadata={"protocolVersion": version}))
    assert (fault.where, fault.error_code) == (
        "$.metadata.protocolVersion",
        "UNSUPPORTED_VERSION",
    )
    assert json.dumps(version) in str(fault)


def test_a_message_without_a_version_has_the_first() -> None:
    assert read(message("USER_INPUT", {"text": "t"})).metadata == {}
    assert codec.PROTOCOL_VERSION == "1.0"


@pytest.mark.parametrize("version", ["1.0", "1.9"])
def test_unknown_fields_are_kept_under_metadata_by_their_place(version: str) -> None:
    body = message(
        "USER_INPUT",
        {"text": "t", "tone": "kind", "attachments": [{**ATTACHMENT, "a b": [{"x": None}]}]},
        urgent=True,
        sender={**HEAD["sender"], "team": 3},
        metadata={"mine": 1, "protocolVersion": version, "unknownFields": {"$.before": 0}},
    )
    found = read(body)
    assert found.metadata["mine"] == 1
    assert found.metadata["unknownFields"] == {
        "$.before": 0,
        "$.urgent": True,
        "$.sender.team": 3,
        "$.content.tone": "kind",
        '$.content.attachments[0]["a b"]': [{"x": None}],
    }
    assert decode(encode(found)) == found


def test_unknown_fields_of_a_message_in_an_update_are_kept_with_that_message() -> None:
    inner = message("USER_INPUT", {"text": "t", "tone": "kind"})
    found = read(message("CONTEXT_UPDATE", {"operation": "ADD_MESSAGE", "message": inner, "n": 1}))
    assert found.metadata == {"unknownFields": {"$.content.n": 1}}
    assert found.content.message.metadata == {"unknownFields": {"$.content.tone": "kind"}}
    assert isinstance(found.content.message.content, UserInput)
    assert decode(encode(found)) == found


def test_too_many_unknown_fields_and_a_false_place_for_them_are_refused() -> None:
    many = {f"x{n}": n for n in range(codec.UNKNOWN_MAX)}
    assert len(read({**WHOLE["USER_INPUT"], **many}).metadata["unknownFields"]) == len(many)
    assert "at most 256" in str(refused({**WHOLE["USER_INPUT"], **many, "y": 1}))
    body = message("USER_INPUT", {"text": "t"}, more=1, metadata={"unknownFields": 5})
    assert refused(body).where == "$.metadata.unknownFields"


def test_what_an_instruction_has_besides_its_form_stays_in_it() -> None:
    own = {**INSTRUCTION, "recovery": {"retry": 2}}
    body = changed(WHOLE["INSTRUCTION"], ("content", "instructions"), [own])
    assert read(body).content.instructions == (own,)
    assert read(body).metadata == {"a": 1}


def test_a_set_with_loops_passes_unmoved_as_its_reader_takes_it() -> None:
    inner = {"instructionId": "b", "action": "A", "recovery": {"otherwise": "skip"}, "more": 1}
    loop = {"instructionId": "l", "over": {"t": {"from": 1, "to": 2, "points": 3}}}
    deep = {**loop, "instructions": [{**loop, "over": {"x": [1, "a"]}, "instructions": [inner]}]}
    content = {"instructions": [inner, deep], "executionMode": "SEQUENTIAL", "goesOn": True}
    body = message("INSTRUCTION", content)
    found = read(body)
    assert json.loads(encode(found))["content"] == content
    assert found.metadata == {}
    assert Draft202012Validator(message_schema("INSTRUCTION")).is_valid(body)


@pytest.mark.parametrize(
    ("path", "wrong", "where"),
    [
        ((), {"instructionId": "l", "over": {}, "instructions": [INSTRUCTION]}, ".over"),
        ((), {"instructionId": "l", "over": {"a": [1]}}, ".instructions"),
        (("condition",), None, ".condition"),
        (
            (),
            {"instructionId": "l", "over": {"a": [1]}, "instructions": [{"instructionId": "b"}]},
            ".instructions[0].action",
        ),
        ((), {"instructionId": "l", "over": None}, ".action"),
    ],
)
def test_a_loop_or_an_instruction_that_its_reader_refuses_is_refused_at_its_place(
    path: Path, wrong: object, where: str
) -> None:
    body = changed(WHOLE["INSTRUCTION"], ("content", "instructions", 0, *path), wrong)
    assert refused(body).where == f"$.content.instructions[0]{where}"


# ---- bytes


@pytest.mark.promise(66)
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff{}", "not JSON"),
        (b"[]", "a JSON list"),
        (b'"x"', "a JSON str"),
        (b'{"a":1,"a":1}', "stands twice"),
        (written(WHOLE["USER_INPUT"]).replace(b'"text"', b'"text":"t","text"'), "stands twice"),
        (b'{"a":"\\ud800"}', "not JSON"),
        (b"[" * 65 + b"]" * 65, "more than 64 deep"),
        (b" " * 1_048_577, "1048577 bytes"),
    ],
)
def test_bytes_that_are_not_one_object_are_an_error_of_parsing(data: bytes, said: str) -> None:
    fault = refused(data)
    assert (fault.error_code, errors.class_of(fault.error_code)) == ("PARSING_ERROR", "PARSING")
    assert said in str(fault)


@pytest.mark.parametrize(("number", "where"), [("NaN", "n"), ("-Infinity", "n"), ("1e999", "n")])
def test_a_number_that_json_has_not_is_refused_at_its_place(number: str, where: str) -> None:
    body = written(message("SYSTEM_MESSAGE", CONTENTS["SYSTEM_MESSAGE"], metadata={where: 1}))
    fault = refused(body.replace(b'{"n": 1}', b'{"n": ' + number.encode() + b"}"))
    assert fault.where == f"$.metadata.{where}"


def test_an_integer_that_others_read_differently_is_refused_at_its_place() -> None:
    path = ("content", "usage", "totalTokens")
    assert read(changed(WHOLE["MODEL_RESPONSE"], path, 2**53 - 1))
    for wrong in (2**53, 1.5, -1):
        fault = refused(changed(WHOLE["MODEL_RESPONSE"], path, wrong))
        assert fault.where == "$.content.usage.totalTokens"


@pytest.mark.parametrize(
    ("name", "path", "most"),
    [
        ("USER_INPUT", ("content", "attachments"), messages.ATTACHMENTS_MAX),
        ("TOOL_CALL_REQUEST", ("content", "calls"), tools.CALLS_MAX),
        ("TOOL_CALL_RESPONSE", ("content", "results"), tools.CALLS_MAX),
        ("MODEL_RESPONSE", ("content", "toolCalls"), tools.CALLS_MAX),
        ("CLIENT_CAPABILITIES", ("content", "supportedTools"), tools.TOOLS_MAX),
        ("TOOL_AVAILABILITY_REQUEST", ("content", "tools"), tools.TOOLS_MAX),
        ("INSTRUCTION", ("content", "instructions"), 10_000),
    ],
)
def test_lists_are_bounded(name: str, path: Path, most: int) -> None:
    place: Any = WHOLE[name]
    for step in path:
        place = place[step]
    one = {key: each for key, each in place[0].items() if key not in ("requiredAfter", "metadata")}
    if name == "USER_INPUT":
        one = ATTACHMENT
    many = [{**one, "callId": f"c{n}"} if "callId" in one else one for n in range(most + 1)]
    if name == "INSTRUCTION":
        many = [{"instructionId": "i", "action": "a"}] * (most + 1)
    read(changed(WHOLE[name], path, many[:-1]))
    fault = refused(changed(WHOLE[name], path, many))
    assert fault.where == "$." + ".".join(map(str, path))
    assert f"length <= {most}" in str(fault)


def test_ids_have_1_to_128_characters() -> None:
    for path in (("messageId",), ("contextId",), ("sender", "id")):
        read(changed(WHOLE["USER_INPUT"], path, "x" * 128))
        for wrong in ("", "x" * 129, 5, None):
            assert refused(changed(WHOLE["USER_INPUT"], path, wrong)).where.endswith(path[-1])


@pytest.mark.parametrize("wrong", [0, -1, 604_801, "30", True, [30]])
def test_a_timeout_is_a_number_of_seconds_up_to_a_week(wrong: object) -> None:
    path = ("content", "timeout")
    for name in ("TOOL_CALL_REQUEST", "MODEL_RESPONSE", "INSTRUCTION"):
        assert refused(changed(WHOLE[name], path, wrong)).where == "$.content.timeout"
        assert read(changed(WHOLE[name], path, 604_800)).content.timeout == 604_800


# ---- errors


def test_a_refusal_carries_the_ids_of_the_message_where_they_can_be_read() -> None:
    fault = refused(changed(WHOLE["USER_INPUT"], ("content",), 5))
    assert (fault.message_id, fault.context_id) == ("msg_1", "ctx_1")
    fault = refused(changed(WHOLE["USER_INPUT"], ("messageId",), "x" * 200))
    assert (fault.message_id, fault.context_id) == (None, "ctx_1")


def test_a_refusal_names_place_value_and_rule_in_both_languages() -> None:
    fault = refused(changed(WHOLE["USER_INPUT"], ("content", "text"), 5))
    assert str(fault) == "$.content.text is 5; it must be a text"
    assert in_language(str(fault), "zh") == "$.content.text 为 5；须为 文字"
    long = refused(changed(WHOLE["USER_INPUT"], ("sender", "type"), "x" * 5_000))
    assert len(str(long)) < 250


def test_updates_within_updates_and_messages_of_another_context_are_refused() -> None:
    at: Path = ("content", "message")
    inner = {**WHOLE["CLEAR_HISTORY"]}
    assert refused(changed(WHOLE["ADD_MESSAGE"], at, inner)).where == "$.content.message.type"
    other = changed(WHOLE["ADD_MESSAGE"], (*at, "contextId"), "ctx_2")
    assert refused(other).where == "$.content.message.contextId"
    deeper = changed(WHOLE["ADD_MESSAGE"], (*at, "content", "text"), 5)
    assert refused(deeper).where == "$.content.message.content.text"


# ---- what is written


def made(content: object, kind: str = "USER_INPUT", **more: Any) -> McpMessage:
    return McpMessage("m", "c", AT, kind, Sender("s", "SYSTEM"), content, **more)


def test_a_message_that_would_be_read_as_another_is_not_written() -> None:
    assert encode(made(UserInput("t")))
    for wrong in (
        made(UserInput("t"), "SYSTEM_MESSAGE"),
        made(UserInput("t"), metadata={"n": float("nan")}),
        made(UserInput("t"), metadata={"n": 2**53}),
        made(UserInput("t"), metadata={"n": object()}),
        made(UserInput("t"), metadata={"n": "\ud800"}),
        made(UserInput("t" * 1_048_577)),
        made({"text": "t"}),
    ):
        with pytest.raises(NotMcpCp):
            encode(wrong)


# ---- types of others


class Spectrum(Part, frozen=True):
    """A type of message that a plug-in has."""

    peaks: tuple[float, ...]


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    points: list[Any] = []
    monkeypatch.setattr(
        codec, "entry_points", lambda group: points if group == "labharness.mcp_cp_messages" else []
    )
    message_types.cache_clear()
    yield points
    message_types.cache_clear()


def test_a_type_of_another_package_is_read_written_and_strict(plugged: list[Any]) -> None:
    body = message("SPECTRUM", {"peaks": [383.5, 1], "more": 1})
    assert "one of USER_INPUT" in str(refused(body))
    message_types.cache_clear()
    plugged.append(_Loaded("SPECTRUM", Spectrum))
    found = read(body)
    assert found.content == Spectrum((383.5, 1))
    assert found.metadata == {"unknownFields": {"$.content.more": 1}}
    assert decode(encode(found)) == found
    assert refused(message("SPECTRUM", {})).where == "$.content.peaks"
    assert "SPECTRUM" in str(refused(message("SPECTRE", {})))


class Counts(Part, frozen=True):
    """A type of message whose names and values are held to a type."""

    counts: dict[str, int]
    numbers: dict[int, list[Spectrum]] = msgspec.field(default_factory=dict)


@pytest.mark.parametrize(
    "content",
    [
        {"counts": {"a": "x"}},
        {"counts": {}, "numbers": {"x": []}},
        {"counts": {}, "numbers": {"1": [{"peaks": 5}]}},
    ],
)
def test_a_wrong_name_or_value_of_a_plug_ins_object_is_refused_at_that_object(
    plugged: list[Any], content: dict[str, Any]
) -> None:
    plugged.append(_Loaded("COUNTS", Counts))
    assert read(message("COUNTS", {"counts": {"a": 1}}))
    fault = refused(message("COUNTS", content))
    assert fault.where == f"$.content.{[*content][-1]}"
    assert "Expected" in str(fault)


class _Loaded:
    """An entry point that has its object, or an error, at hand."""

    def __init__(self, name: str, found: object) -> None:
        self.name, self.value, self._found = name, f"package:{name}", found

    def load(self) -> object:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


@pytest.mark.promise(66)
@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([_Loaded("USER_INPUT", Spectrum)], "USER_INPUT of package:USER_INPUT stands elsewhere"),
        ([_Loaded("A", Spectrum), _Loaded("A", Spectrum)], "stands elsewhere too"),
        ([_Loaded("A", RuntimeError("/srv/secret"))], "cannot be imported"),
        ([_Loaded("A", dict)], "not a class of message parts"),
    ],
)
def test_a_broken_package_breaks_no_type_of_the_text(
    plugged: list[Any], points: list[_Loaded], said: str
) -> None:
    plugged[:] = points
    fault = refused(message("A", {}))
    assert said in str(fault)
    assert "secret" not in str(fault)
    assert errors.class_of(fault.error_code) == "SYSTEM"
    answer = errors.answer_to(fault, AT, "trace_1")
    assert answer.source is messages.ErrorSource.SYSTEM
    assert "package" not in answer.message
    assert "trace_1" in answer.message
    assert read(WHOLE["USER_INPUT"])


def test_a_tool_call_and_a_definition_of_the_text_are_read_as_they_stand() -> None:
    for call in CALLS:
        found = msgspec.convert(call, tools.ToolCall)
        assert json.loads(msgspec.json.encode(found)) == call
    definition = msgspec.convert(TOOL, tools.ToolDefinition)
    assert json.loads(msgspec.json.encode(definition)) == TOOL
    for name in ("toolId", "name", "description", "version", "runtime", "parameters"):
        with pytest.raises(msgspec.ValidationError, match=name):
            msgspec.convert({k: v for k, v in TOOL.items() if k != name}, tools.ToolDefinition)
    assert read(message("TOOL_CALL_RESPONSE", {"results": [RESULT]}))
