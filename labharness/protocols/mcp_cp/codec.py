"""Decode MCP-CP messages from bytes and encode them, without any I/O."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar

import msgspec

from labharness.core.vocabulary.texts import Text
from labharness.protocols.json_numbers import value_fault
from labharness.protocols.mcp_cp.errors import NotMcpCp
from labharness.protocols.mcp_cp.messages import (
    CONTENTS,
    InstructionForm,
    InstructionMessage,
    LoopForm,
    McpMessage,
)
from labharness.protocols.mcp_cp.parts import END, ID_CHARACTERS_MAX, Part, Unfit
from labharness.protocols.mcp_cp.tools import TRACE, without
from labharness.protocols.strict_json import Json, NotJson, json_object
from labharness.protocols.timestamps import TIMESTAMPS

PROTOCOL_VERSION: Final = "1.0"
"""The version that a message has which states none (ruling 37)."""

MESSAGE_BYTES_MAX: Final = 1_048_576
"""Size (bytes) of the largest message; files travel by their address."""

DEPTH_MAX: Final = 64
"""Deepest nesting of objects and arrays in a message."""

UNKNOWN_MAX: Final = 256
"""Most fields of one message that the text does not name."""

UNKNOWN: Final = "unknownFields"
"""The place in `metadata` where such fields are kept, each by its JSON path (ruling 20)."""

GROUP: Final = "labharness.mcp_cp_messages"
"""Entry points of more types of message: the name is the type, the value a class of `Part`."""

_VERSION: Final = re.compile(r"([0-9]{1,4})\.[0-9]{1,4}(?:\.[0-9]{1,4})?")
_PLACE: Final = re.compile(r"(?s) - at ((?:`key` in )?`\$.*`)\Z")
_OF_NAME: Final = "`key` in "
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_WORDS: Final[Mapping[str, str]] = {  # msgspec's names of types
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "an object",
    "str": "a text",
}
_SHOWN_MAX: Final = 80  # characters of a value shown in an error
T = TypeVar("T")


def decode(data: bytes) -> McpMessage:
    """Decode a message; a field that the text does not name is kept under `metadata`.

    Raises:
        NotMcpCp: The bytes are not such a message; says where, what was found, what is allowed.
    """
    try:
        body = json_object(data, MESSAGE_BYTES_MAX, DEPTH_MAX)
    except NotJson as error:
        raise NotMcpCp(str(error), error_code="PARSING_ERROR") from error
    try:
        fault = value_fault(body, "$")
        if fault is not None:
            raise NotMcpCp(Text("mcp_cp.unfit", where=fault[0], why=fault[1]), fault[0])
        return _message(body, "$")
    except NotMcpCp as refused:
        refused.message_id, refused.context_id = _id(body, "messageId"), _id(body, "contextId")
        raise


def encode(message: McpMessage) -> bytes:
    """Encode a message as compact UTF-8, with its fields in the order of the text.

    Raises:
        NotMcpCp: `decode` would refuse it, or read another message.
    """
    try:
        data = written(message)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotMcpCp(Text("mcp_cp.unwritten", type=message.type, error=str(error))) from error
    if decode(data) != message:
        raise NotMcpCp(Text("mcp_cp.other", type=message.type))
    return data


def _plain_text(value: object) -> str:
    if isinstance(value, str):
        return value[:]  # a text is its sentence
    raise TypeError(f"{type(value).__name__} is not JSON")


written: Final = msgspec.json.Encoder(enc_hook=_plain_text).encode
"""The bytes of a message, or of a value in one, that was held to its rules before."""


@cache
def message_types() -> Mapping[str, Any]:
    """Return the type of `content` of each type of message, those of other packages too.

    Raises:
        NotMcpCp: A package defines a type that stands elsewhere too, or cannot be imported.
    """
    found = dict(CONTENTS)
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.value):
        kind: object = None
        try:
            kind = point.load()
            why = "mcp_cp.doubled" if point.name in found else "mcp_cp.not_part"
        except Exception:  # noqa: BLE001 - somebody else's package may raise anything
            why = "mcp_cp.not_imported"
        if point.name in found or not (isinstance(kind, type) and issubclass(kind, Part)):
            said = Text(why, name=point.name, where=point.value)
            raise NotMcpCp(said, "$.type", "SYSTEM_ERROR")
        found[point.name] = kind
    return found


def _message(body: Mapping[str, Any], place: str) -> McpMessage:
    """Return the message that an object holds; one that is added to a history is read first."""
    _check_version(body.get("metadata"), place)
    name = body.get("type")
    if name in ("ERROR_RESPONSE", "SYSTEM_MESSAGE"):
        body = without(body, TRACE)
    content = body.get("content")
    known = CONTENTS if isinstance(name, str) and name in CONTENTS else message_types()
    if not (isinstance(name, str) and name in known):
        raise must(f"{place}.type", name, Text("mcp_cp.one_of", names=[*known]))
    inside = f"{place}.content"
    if name == "CONTEXT_UPDATE":
        content = _with_message(body, content, inside)
    read = converted(content, known[name], inside)
    if isinstance(read, InstructionMessage):
        _check_instructions(read.instructions, f"{inside}.instructions")
    message = converted({**body, "content": read}, McpMessage, place)
    strange = dict(_strange({**body, "content": None}, message, "$"))
    strange |= dict(_strange(content, read, "$.content"))
    return _keeping(message, strange, place) if strange or UNKNOWN in message.metadata else message


def _check_instructions(instructions: Iterable[Mapping[str, Any]], place: str) -> None:
    for number, each in enumerate(instructions):
        form = InstructionForm if each.get("over") is None else LoopForm
        read = converted(each, form, f"{place}[{number}]")
        if isinstance(read, LoopForm):
            _check_instructions(read.instructions, f"{place}[{number}].instructions")


def _check_version(metadata: object, place: str) -> None:
    version = metadata.get("protocolVersion") if isinstance(metadata, dict) else None
    if version is None:
        return
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None or found[1] != PROTOCOL_VERSION.partition(".")[0]:
        allowed = Text("mcp_cp.version", version=PROTOCOL_VERSION)
        where = f"{place}.metadata.protocolVersion"
        raise must(where, version, allowed, "UNSUPPORTED_VERSION")


def _with_message(body: Mapping[str, Any], content: object, inside: str) -> object:
    """Return the content of an update with the message in it read, if it has one."""
    if not isinstance(content, dict) or content.get("operation") != "ADD_MESSAGE":
        return content
    if not isinstance(added := content.get("message"), dict):
        return content
    place = f"{inside}.message"
    if added.get("type") == "CONTEXT_UPDATE":
        raise must(f"{place}.type", added["type"], Text("mcp_cp.no_update"))
    own = added.get("contextId")
    if own != body.get("contextId", own):
        raise must(f"{place}.contextId", own, Text("mcp_cp.own_context"))
    return {**content, "message": _message(added, place)}


def _strange(body: object, part: object, place: str) -> Iterator[tuple[str, Any]]:
    """Return each field that a part of a message does not know, with its JSON path."""
    if isinstance(body, dict) and isinstance(part, Part):
        fields = dict(zip(part.__struct_encode_fields__, part.__struct_fields__, strict=True))
        tag = part.__struct_config__.tag_field
        for name, value in body.items():
            simple = re.fullmatch(r"\w+", name)
            where = f"{place}.{name}" if simple else f"{place}[{json.dumps(name)}]"
            if name in fields:
                yield from _strange(value, getattr(part, fields[name]), where)
            elif name != tag:
                yield where, value
    elif isinstance(body, list) and isinstance(part, tuple):
        for number, (value, each) in enumerate(zip(body, part, strict=True)):
            yield from _strange(value, each, f"{place}[{number}]")


def _keeping(message: McpMessage, strange: Mapping[str, Any], place: str) -> McpMessage:
    where = f"{place}.metadata.{UNKNOWN}"
    kept = message.metadata.get(UNKNOWN, {})
    if not isinstance(kept, dict):
        raise must(where, kept, Text("mcp_cp.unknown_kept"))
    kept = {**kept, **strange}
    if message.type != "USER_INPUT":  # users may name a field as they like
        kept = without(kept, TRACE)
    if not kept and UNKNOWN not in message.metadata:
        return message
    if len(kept) > UNKNOWN_MAX:
        raise must(where, len(kept), Text("mcp_cp.unknown_most", most=UNKNOWN_MAX))
    return msgspec.structs.replace(message, metadata={**message.metadata, UNKNOWN: kept})


def converted(value: object, kind: type[T], place: str) -> T:
    """Return a JSON value as a type of message part.

    Raises:
        NotMcpCp: It is not one.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _told(error, value, kind, place) from error


def _told(error: msgspec.ValidationError, value: Json, kind: object, place: str) -> NotMcpCp:
    """Return an error of msgspec in our words."""
    what, at = _PLACE.sub("", str(error)), "".join(_PLACE.findall(str(error)))
    of_name = at.startswith(_OF_NAME)
    inside, of_value, _ = at.removeprefix(_OF_NAME)[2:-1].partition(
        "[...]"
    )  # it does not say which
    steps = [int(number) if number else name for name, number in _STEP.findall(inside)]
    where = place + inside
    if isinstance(error.__cause__, Unfit):
        return NotMcpCp(Text("mcp_cp.unfit", where=where, why=str(error.__cause__)), where)
    if missing := re.fullmatch("Object missing required field `(.*)`", what):
        where = f"{where}.{missing[1]}"
        return NotMcpCp(Text("mcp_cp.missing", where=where), where)
    for step in steps:
        value = value[step]
    if of_name or of_value:
        return must(where, value, Text("mcp_cp.names_and_values", why=what))
    if what.startswith("Invalid"):
        return must(where, value, Text("mcp_cp.one_of", names=_choices(kind, steps)))
    wanted = what.removeprefix("Expected ").partition(", got ")[0]
    if repr(f"^{TIMESTAMPS}{END}") in wanted:
        return must(where, value, Text("mcp_cp.moment"))
    words = re.sub("`(.*?)`", lambda each: _in_words(each[1]), wanted)
    return must(where, value, words)


def _in_words(names: str) -> str:
    return " or ".join(_WORDS.get(each, each) for each in names.split(" | "))


def _choices(kind: object, steps: list[int | str]) -> list[str]:
    """Return the words that may stand at a place of a part."""
    first = msgspec.inspect.type_info(kind)
    at = [*getattr(first, "types", (first,))]
    for step in steps:
        if isinstance(step, int):
            at = [each.item_type for each in at if hasattr(each, "item_type")]
        else:
            structs = [each for each in at if isinstance(each, msgspec.inspect.StructType)]
            tags = [str(each.tag) for each in structs if each.tag_field == step]
            if tags:
                return tags
            fields = [field for each in structs for field in each.fields]
            at = [field.type for field in fields if field.encode_name == step]
        at = [one for each in at for one in getattr(each, "types", (each,))]
    return [
        str(value)
        for each in at
        for value in getattr(each, "values", None) or [*getattr(each, "cls", ())]
    ]


def must(where: str, found: object, allowed: str, error_code: str = "VALIDATION_ERROR") -> NotMcpCp:
    """Return the error of a value: where it stands, what was found, and what is allowed."""
    shown = json.dumps(found, ensure_ascii=False)[:_SHOWN_MAX]
    return NotMcpCp(
        Text("mcp_cp.must", where=where, found=shown, allowed=allowed), where, error_code
    )


def _id(body: Mapping[str, Any], name: str) -> str | None:
    found = body.get(name)
    return found if isinstance(found, str) and 0 < len(found) <= ID_CHARACTERS_MAX else None
