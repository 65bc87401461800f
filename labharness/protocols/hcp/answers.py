"""Build the messages that a callee sends; ids and times are arguments.

Each takes ``message_id``, ``timestamp``, ``session_id`` (null where it is not given) and the fields
of its payload (`messages.PAYLOADS`), which the payload's model checks. ``None`` is left out.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from labharness.protocols.hcp.codec import HcpMessage, MessageType
from labharness.protocols.hcp.messages import ERROR_CODES, PAYLOADS
from labharness.protocols.hcp.terms import Rejected

_HEAD = ("message_id", "timestamp", "session_id")


def task_accepted(*, max_duration: str, abort_timeout: str, **said: object) -> HcpMessage:
    """Build the answer that opens a session; only this message carries the token."""
    constraints = {"max_duration": max_duration, "abort_timeout": abort_timeout}
    return _built("task_accepted", {**said, "constraints": constraints})


def task_rejected(*, rejected: Rejected, **said: object) -> HcpMessage:
    """Build the answer to a refused submission: its ``session_id`` is null."""
    why = {each.name: getattr(rejected, each.name) for each in fields(rejected)}
    return _built("task_rejected", {**said, **why})


def event(**said: object) -> HcpMessage:
    """Build an event; only ``session_created`` has ``in_reply_to``."""
    return _built("event", said)


def task_completed(**said: object) -> HcpMessage:
    """Build the answer with the outputs of a task, its artifacts and its summary."""
    return _built("task_completed", said)


def task_failed(*, error_code: str, **said: object) -> HcpMessage:
    """Build the answer of a task that failed, with what it has reached.

    Raises:
        ValueError: The error code is not one of HCP's.
    """
    if error_code not in ERROR_CODES:
        raise ValueError(f"{error_code!r} is none of {', '.join(ERROR_CODES)}")
    return _built("task_failed", {**said, "error_code": error_code})


def _built(kind: MessageType, said: Mapping[str, Any]) -> HcpMessage:
    given = {n: _plain(v) for n, v in said.items() if v is not None and n not in _HEAD}
    payload = PAYLOADS[kind].model_validate(given)
    session_id = said.get("session_id")
    return HcpMessage(said["message_id"], said["timestamp"], session_id, kind, payload)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value
