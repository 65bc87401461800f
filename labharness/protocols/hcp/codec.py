"""Decode HCP messages from bytes and encode them, without any I/O."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.protocols.hcp.messages import CALLERS, PAYLOADS, Payload, TaskSubmit
from labharness.protocols.hcp.terms import Rejected, Submission
from labharness.protocols.json_numbers import value_fault
from labharness.protocols.strict_json import NotJson, check_bounds, json_object
from labharness.protocols.timestamps import moment_of

HCP_VERSION: Final = "1.0"
"""The version that we write. Other minor versions are read too, because unknown fields are kept."""

MESSAGE_BYTES_MAX: Final = 1_048_576
"""Size (bytes) of the largest message; binary data is sent by address."""

DEPTH_MAX: Final = 64
"""Deepest nesting of objects and arrays in a message."""

MessageType = Literal[
    "task_submit",
    "task_accepted",
    "task_rejected",
    "event",
    "task_completed",
    "task_failed",
    "abort",
]

ID_CHARACTERS: Final = (1, 128)
"""Fewest and most characters of a `message_id` and a `session_id`."""

VERSIONS: Final = rf"{HCP_VERSION.partition('.')[0]}\.(?:0|[1-9][0-9]{{0,3}})"
"""The versions that are read, as a regular expression of the whole text."""

SESSION_OF: Final[Mapping[str, tuple[bool, bool]]] = {
    kind: (kind in ("task_submit", "task_rejected"), kind != "task_submit")
    for kind in get_args(MessageType)
}
"""Whether `session_id` may be null, and whether it may be a text, by the type of the message."""

_FIELDS: Final = ("hcp_version", "message_id", "timestamp", "session_id", "type", "payload")
_VERSION: Final = re.compile(VERSIONS)
_WANTED: Final[Mapping[str, str]] = {  # pydantic's error types of payloads
    "dict_type": "an object",
    "float_type": "a number",
    "list_type": "a list",
    "model_type": "an object",
    "string_too_long": "at most {max_length} characters long",
    "string_too_short": "at least {min_length} characters long",
    "string_type": "a text",
}
_SHOWN_MAX: Final = 80  # characters of a value shown in an error
_CALLER: Final = re.compile(CALLERS)


class NotHcp(CodedError, ValueError, code="not_hcp", usage=True):
    """Bytes that are not an HCP message.

    They have no sender to answer, so they go to the dead letters.
    """


class BadPayload(LabError, ValueError, code="bad_payload"):
    """A message with a valid envelope and an invalid payload; its sender gets an answer."""

    def __init__(self, where: str, reason: str, message: "MessageEnvelope") -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
        self.message = message

    def rejected(self) -> Rejected:
        """Return the answer to an invalid submission."""
        return Rejected("invalid_input", str(self), None, Text("input.correct", where=self.where))


@dataclass(frozen=True, slots=True)
class MessageEnvelope:
    """The envelope of a message; `caller_id` is the one that its payload claims, if any."""

    hcp_version: str
    message_id: str
    timestamp: str
    session_id: str | None
    type: MessageType
    caller_id: str | None = None


@dataclass(frozen=True, slots=True)
class HcpMessage:
    """A message; `unknown` holds the envelope fields that HCP 1.0 does not define.

    It is never changed, so that its bytes are made once.
    """

    message_id: str
    timestamp: str
    session_id: str | None
    type: MessageType
    payload: Payload
    hcp_version: str = HCP_VERSION
    unknown: Mapping[str, Any] = field(default_factory=dict)
    _encoded: list[bytes] = field(default_factory=list, init=False, repr=False, compare=False)


def decode(data: bytes) -> HcpMessage:
    """Decode a message.

    Raises:
        NotHcp: The bytes are not JSON, too large or too deep, or the envelope is invalid.
        BadPayload: The envelope is valid, the payload is not.
    """
    # NaN and infinities pass here: an invalid payload is answered, not dead-lettered.
    try:
        body = json_object(data, MESSAGE_BYTES_MAX, DEPTH_MAX)
    except NotJson as error:
        raise NotHcp(str(error)) from error
    envelope = _envelope(body)
    fault = value_fault(
        {name: value for name, value in body.items() if name != "payload"}, "envelope"
    )
    if fault is not None:
        raise NotHcp(f"{fault[0]}: {fault[1]}")
    fault = value_fault(_heeded(body["payload"], envelope.type), "payload")
    if fault is not None:
        raise BadPayload(*fault, envelope)
    try:
        payload = PAYLOADS[envelope.type].model_validate(body["payload"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("payload", *first["loc"]))
        raise BadPayload(where, _in_words(first), envelope) from error
    if isinstance(payload, TaskSubmit) and _minor(envelope.hcp_version) > _minor(HCP_VERSION):
        payload = payload.as_newer()
    return HcpMessage(
        message_id=envelope.message_id,
        timestamp=envelope.timestamp,
        session_id=envelope.session_id,
        type=envelope.type,
        payload=payload,
        hcp_version=envelope.hcp_version,
        unknown={name: value for name, value in body.items() if name not in _FIELDS},
    )


def encode(message: HcpMessage) -> bytes:
    """Encode a message as compact UTF-8, with its fields in the order of the specification.

    Raises:
        NotHcp: `decode` would refuse it, for example because it is too large.
    """
    if not message._encoded:
        message._encoded.append(_encoded(message))
    return message._encoded[0]


def _encoded(message: HcpMessage) -> bytes:
    payload = message.payload.stated()
    body = {name: getattr(message, name) for name in _FIELDS if name != "payload"}
    unknown = {name: value for name, value in message.unknown.items() if name not in _FIELDS}
    whole = {**body, "payload": payload, **unknown}
    fault = value_fault({**whole, "payload": _heeded(payload, message.type)}, message.type)
    if fault is not None:
        raise NotHcp(f"{fault[0]}: {fault[1]}")
    try:
        data = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        raise NotHcp("message.unwritten", type=message.type, error=str(error)) from error
    try:
        check_bounds(data, MESSAGE_BYTES_MAX, DEPTH_MAX)
    except NotJson as error:
        raise NotHcp(str(error)) from error
    _envelope(whole)
    return data


def _heeded(payload: Mapping[str, Any], kind: MessageType) -> Mapping[str, Any]:
    """Return a payload without what is only kept, and is held to no rule of ours (ruling 44)."""
    kept = ("context",) if kind == "task_submit" else ()
    return {name: value for name, value in payload.items() if name not in kept}


def submission_of(payload: TaskSubmit) -> Submission:
    """Return the request in a ``task_submit``, independent of the message format."""
    constraints, expected = payload.constraints, payload.expected_output
    parts = {"payload": payload, "constraints": constraints, "expected_output": expected}
    return Submission(
        caller_id=payload.caller_id,
        capability=payload.capability,
        intent=payload.intent,
        inputs=payload.inputs,
        capability_version=payload.capability_version,
        max_duration=constraints.max_duration if constraints else None,
        confidence_threshold=constraints.confidence_threshold if constraints else None,
        data_classification=constraints.data_classification if constraints else None,
        priority=constraints.priority if constraints else None,
        output_format=expected.format if expected else None,
        required_fields=tuple(expected.required_fields) if expected else (),
        output_schema=expected.output_schema if expected else None,
        context=payload.context,
        newer=payload.is_newer,
        unknown={name: tuple(part.model_extra or ()) for name, part in parts.items() if part},
    )


def _envelope(body: Mapping[str, Any]) -> MessageEnvelope:
    version = body.get("hcp_version")
    if not (isinstance(version, str) and _VERSION.fullmatch(version)):
        _refuse("hcp_version", version, f"MAJOR.MINOR with the major of {HCP_VERSION}")
    kind = body.get("type")
    known = next((each for each in get_args(MessageType) if each == kind), None)
    if known is None:
        _refuse("type", kind, f"one of {', '.join(PAYLOADS)}")
    message_id = body.get("message_id")
    if not (isinstance(message_id, str) and _is_id(message_id)):
        _refuse("message_id", message_id, "a text of 1 to 128 characters")
    timestamp = body.get("timestamp")
    if not (isinstance(timestamp, str) and moment_of(timestamp)):
        _refuse("timestamp", timestamp, "ISO 8601 in UTC, as 2025-01-15T08:30:00.000Z")
    session_id = body.get("session_id")
    null, text = SESSION_OF[known]
    if not text and session_id is not None:
        _refuse("session_id", session_id, f"null on {known}: the callee mints it")
    if not (session_id is None and null) and not (
        isinstance(session_id, str) and _is_id(session_id)
    ):
        _refuse("session_id", session_id, f"a text of 1 to 128 characters on {known}")
    payload = body.get("payload")
    if not isinstance(payload, dict):
        _refuse("payload", payload, "an object")
    caller_id = payload.get("caller_id")
    claimed = isinstance(caller_id, str) and _CALLER.fullmatch(caller_id) is not None
    if not claimed and (known == "task_submit" or caller_id is not None):
        _refuse(
            "payload.caller_id",
            caller_id,
            "1 to 128 letters, digits, '-', '_' and '.', no '.' first",
        )
    return MessageEnvelope(version, message_id, timestamp, session_id, known, caller_id)


def _is_id(text: str) -> bool:
    return ID_CHARACTERS[0] <= len(text) <= ID_CHARACTERS[1]


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def _in_words(fault: ErrorDetails) -> str:
    if fault["type"] == "missing":
        return "it is missing, and it is required"
    wanted = _WANTED.get(fault["type"])
    if wanted is None:
        return fault["msg"]
    found = json.dumps(fault["input"], ensure_ascii=False)
    shown = found if len(found) <= _SHOWN_MAX else f"{found[:_SHOWN_MAX]}..."
    return f"it is {shown}; it must be {wanted.format(**fault.get('ctx', {}))}"


def _refuse(name: str, value: object, allowed: str) -> NoReturn:
    raise NotHcp("message.must", name=name, found=str(value)[:80], allowed=allowed)
