"""Build the messages that a callee sends; ids and times are arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from labharness.protocols.hcp.codec import HcpMessage, MessageType
from labharness.protocols.hcp.messages import ERROR_CODES, PAYLOADS
from labharness.protocols.hcp.terms import REASON_CODES, Rejected


def task_accepted(
    *,
    message_id: str,
    timestamp: str,
    session_id: str,
    in_reply_to: str,
    session_token: str,
    risk_level: str,
    data_classification: str,
    safety_envelope: Mapping[str, Any],
    max_duration: str,
    abort_timeout: str,
) -> HcpMessage:
    """Build the answer that opens a session; only this message carries the token."""
    payload = {
        "session_token": session_token,
        "risk_level": risk_level,
        "data_classification": data_classification,
        "safety_envelope": dict(safety_envelope),
        "constraints": {"max_duration": max_duration, "abort_timeout": abort_timeout},
        "in_reply_to": in_reply_to,
    }
    return _built("task_accepted", message_id, timestamp, session_id, payload)


def task_rejected(
    *, message_id: str, timestamp: str, in_reply_to: str, rejected: Rejected
) -> HcpMessage:
    """Build the answer to a refused submission: its ``session_id`` is null.

    Raises:
        ValueError: The reason code is not one of HCP's.
    """
    if rejected.reason_code not in REASON_CODES:
        raise ValueError(f"{rejected.reason_code!r} is none of {', '.join(REASON_CODES)}")
    said = {each.name: getattr(rejected, each.name) for each in fields(rejected)}
    payload = {**said, "in_reply_to": in_reply_to}
    return _built("task_rejected", message_id, timestamp, None, payload)


def event(
    *,
    message_id: str,
    timestamp: str,
    session_id: str,
    event_type: str,
    sequence: int,
    data: Mapping[str, Any],
    in_reply_to: str | None = None,
) -> HcpMessage:
    """Build an event.

    Raises:
        ValueError: ``in_reply_to`` is missing on ``session_created``, or given on another event.
    """
    if (event_type == "session_created") != (in_reply_to is not None):
        raise ValueError(f"in_reply_to belongs to session_created and to no other: {event_type}")
    payload = {
        "event_type": event_type,
        "sequence": sequence,
        "data": dict(data),
        "in_reply_to": in_reply_to,
    }
    return _built("event", message_id, timestamp, session_id, payload)


def task_completed(
    *,
    message_id: str,
    timestamp: str,
    session_id: str,
    outputs: Mapping[str, Any],
    artifacts: Sequence[Mapping[str, Any]] = (),
    execution_summary: Mapping[str, Any] | None = None,
) -> HcpMessage:
    """Build the message with the results."""
    payload = {
        "outputs": dict(outputs),
        "artifacts": [dict(one) for one in artifacts],
        "execution_summary": None if execution_summary is None else dict(execution_summary),
    }
    return _built("task_completed", message_id, timestamp, session_id, payload)


def task_failed(
    *,
    message_id: str,
    timestamp: str,
    session_id: str,
    error_code: str,
    error_message: str,
    suggestion: str | None = None,
    error_details: Mapping[str, Any] | None = None,
    partial_outputs: Mapping[str, Any] | None = None,
    artifacts: Sequence[Mapping[str, Any]] = (),
    execution_summary: Mapping[str, Any] | None = None,
) -> HcpMessage:
    """Build the message that ends a session without success.

    Raises:
        ValueError: The error code is not one of HCP's.
    """
    if error_code not in ERROR_CODES:
        raise ValueError(f"{error_code!r} is none of {', '.join(ERROR_CODES)}")
    payload = {
        "error_code": error_code,
        "error_message": error_message,
        "suggestion": suggestion,
        "error_details": None if error_details is None else dict(error_details),
        "partial_outputs": None if partial_outputs is None else dict(partial_outputs),
        "artifacts": [dict(one) for one in artifacts],
        "execution_summary": None if execution_summary is None else dict(execution_summary),
    }
    return _built("task_failed", message_id, timestamp, session_id, payload)


def _built(
    kind: MessageType,
    message_id: str,
    timestamp: str,
    session_id: str | None,
    payload: dict[str, Any],
) -> HcpMessage:
    given = {name: value for name, value in payload.items() if value is not None}
    model = PAYLOADS[kind].model_validate(given)
    return HcpMessage(message_id, timestamp, session_id, kind, model)
