"""JSON Schemas (2020-12) of HCP's messages, made of the types and bounds that the codec reads.

A schema cannot say all that the codec holds: that a date exists, that no key stands twice, how
large and how deep a message may be, and that an integer is not beyond what all programs read.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

from labharness.protocols.hcp.codec import (
    DEPTH_MAX,
    ID_CHARACTERS,
    MESSAGE_BYTES_MAX,
    SESSION_OF,
    VERSIONS,
    MessageType,
)
from labharness.protocols.hcp.messages import (
    CALLERS,
    ERROR_CODES,
    EVENT_DATA,
    PAYLOADS,
    Payload,
)
from labharness.protocols.hcp.session import STATES
from labharness.protocols.hcp.terms import DATA_CLASSES, PRIORITIES, REASON_CODES
from labharness.protocols.json_numbers import INTEGER_MAX
from labharness.protocols.json_schemas import DIALECT, plain
from labharness.protocols.timestamps import TIMESTAMPS

KINDS: Final[tuple[MessageType, ...]] = get_args(MessageType)
"""The types of message."""

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "data_classification": DATA_CLASSES,
    "error_code": ERROR_CODES,
    "priority": PRIORITIES,
    "reason_code": REASON_CODES,
    **dict.fromkeys(("final_state", "from_state", "state", "to_state"), STATES),
}
"""Fields whose values the codec reads as any text: admission judges them, or another lab may have
more. Their known values are examples."""

TEXT_ID: Final = {
    "type": "string",
    "minLength": ID_CHARACTERS[0],
    "maxLength": ID_CHARACTERS[1],
}

CLAIMED: Final = {"anyOf": [{"type": "string", "pattern": f"^{CALLERS}$"}, {"type": "null"}]}
"""`caller_id`, wherever a payload has one."""


def message_schema(kind: MessageType) -> dict[str, Any]:
    """Return the schema of one type of message."""
    payload, parts = _payload(kind)
    null, text = SESSION_OF[kind]
    required = ["hcp_version", "message_id", "timestamp", "type", "payload"]
    schema: dict[str, Any] = {
        "$schema": DIALECT,
        "title": kind,
        "description": f"At most {MESSAGE_BYTES_MAX} bytes of UTF-8, nested at most {DEPTH_MAX} "
        f"deep, no key twice in one object, integers within ±{INTEGER_MAX}.",
        "type": "object",
        "required": [*required, *(() if null else ("session_id",))],
        "properties": {
            "hcp_version": {"type": "string", "pattern": f"^{VERSIONS}$"},
            "message_id": TEXT_ID,
            "timestamp": {"type": "string", "pattern": f"^{TIMESTAMPS}$", "format": "date-time"},
            "session_id": _either(*((TEXT_ID,) if text else ()), *(({"type": "null"},) * null)),
            "type": {"const": kind},
            "payload": payload,
        },
    }
    return schema | ({"$defs": parts} if parts else {})


def _either(*schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": [*schemas]}


def _payload(kind: MessageType) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a payload, and those of the objects that it refers to."""
    schema, parts = _of_model(PAYLOADS[kind])
    schema["properties"].setdefault("caller_id", CLAIMED)
    if kind == "event":
        schema["properties"]["event_type"] = {"enum": [*EVENT_DATA]}
        schema["allOf"] = []
        for event_type, model in EVENT_DATA.items():
            parts[event_type], more = _of_model(model)
            parts |= more
            chosen = {"properties": {"event_type": {"const": event_type}}}
            data = {"properties": {"data": {"$ref": f"#/$defs/{event_type}"}}}
            schema["allOf"].append({"if": chosen, "then": data})
    return schema, parts


def _of_model(model: type[Payload]) -> tuple[dict[str, Any], dict[str, Any]]:
    schema = model.model_json_schema(by_alias=True)
    parts = schema.pop("$defs", {})
    return plain(schema, _named), {name: plain(each, _named) for name, each in parts.items()}


def _named(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    known = EXAMPLES.get(name)
    return schema if known is None or "enum" in schema else {**schema, "examples": [*known]}
