"""What the texts of HCP say of each message, field by field, for a caller that knows no more."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from plain_caller import Told, history_faults, leaks

Is = Callable[[object], bool]

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
DURATION = re.compile(r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")
APART_S_MAX = 120.0
ENVELOPE = ("hcp_version", "message_id", "timestamp", "session_id", "type", "payload")
MOVES = {
    "PENDING": ("RUNNING", "REJECTED"),
    "RUNNING": ("PAUSED", "ABORTING", "COMPLETED", "FAILED"),
    "PAUSED": ("RUNNING", "ABORTING"),
    "ABORTING": ("ABORTED",),
}
REASONS = (
    *("unauthorized", "forbidden", "invalid_input", "risk_too_high", "safety_violation"),
    *("resource_unavailable", "approval_denied", "approval_expired", "aborted"),
)
ERRORS = (
    *("execution_error", "timeout", "safety_violation", "resource_unavailable"),
    *("internal_error", "input_error"),
)


def text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def flag(value: object) -> bool:
    return isinstance(value, bool)


def mapping(value: object) -> bool:
    return isinstance(value, dict)


def maybe(check: Is) -> Is:
    return lambda value: value is None or check(value)


def of(*allowed: str) -> Is:
    return lambda value: value in allowed


def like(pattern: re.Pattern[str]) -> Is:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def anything(value: object) -> bool:
    return True


RISK, CLASS = of("R1", "R2", "R3", "R4", "R5"), of("T1", "T2", "T3", "T4")
STATE = of(*MOVES, "REJECTED", "COMPLETED", "FAILED", "ABORTED")
Fields = Mapping[str, Is]
EVENTS: Mapping[str, Fields] = {
    "session_created": {"state": of("PENDING"), "risk_level": maybe(RISK), "session_token": of()},
    "state_changed": {"from_state": STATE, "to_state": STATE, "reason": text},
    "progress": {"stage": text, "message": text},
    "intermediate_result": {"result_type": text, "data": mapping, "is_partial": flag},
    "log": {"level": text, "message": text, "details": mapping},
    "warning": {"code": text, "message": text, "details": mapping},
    "error": {"code": text, "message": text, "recoverable": flag},
    "checkpoint_created": {
        "checkpoint_id": text,
        "description": text,
        "resumable": flag,
        "created_at": like(TIME),
    },
    "session_closed": {"final_state": STATE, "reason": text},
}
SUMMARY: Fields = {"duration": like(DURATION), "steps_executed": whole}
ARTIFACT: Fields = {"name": text, "type": text, "uri": text, "size_bytes": whole}
PAYLOADS: Mapping[str, Fields] = {
    "task_accepted": {
        "session_token": text,
        "risk_level": RISK,
        "data_classification": CLASS,
        "safety_envelope": mapping,
        "constraints": mapping,
        "in_reply_to": text,
    },
    "task_rejected": {"reason_code": of(*REASONS), "reason_message": text, "in_reply_to": text},
    "event": {"event_type": of(*EVENTS), "sequence": whole, "data": mapping},
    "task_completed": {"outputs": mapping},
    "task_failed": {
        "error_code": of(*ERRORS),
        "error_message": text,
        "error_details": mapping,
        "partial_outputs": mapping,
        "execution_summary": mapping,
    },
}
DETAILS: Fields = {"phase": text, "last_checkpoint": maybe(text), "recoverable": flag}


def examined(
    heard: list[Told], foreign: tuple[str, ...] = (), begun: datetime | None = None
) -> list[str]:
    """Return what in all messages to one caller is not as the texts say.

    Args:
        heard: The messages, in their order.
        foreign: Names that it is not to hear: other callers, accounts of the lab's machine.
        begun: The wall clock's time before the first of them.
    """
    faults = [*leaks(heard, foreign)]
    sessions: dict[str, list[Told]] = {}
    by_submit: dict[str, str] = {}  # up to the acceptance: then its id is used up
    for told in heard:
        faults += [f"{each}: {told}" for each in _faults(told, begun)]
        if told.is_("session_created"):
            by_submit[told.payload["in_reply_to"]] = told["session_id"]
        reply = told.payload.get("in_reply_to", "")
        of_session = told["session_id"] or by_submit.get(reply)
        if told["type"] == "task_accepted":
            by_submit.pop(reply, None)
        sessions.setdefault(of_session or told["message_id"], []).append(told)
    for mine in sessions.values():
        faults += history_faults(mine)
        faults += _out_of_order(mine)
    return faults


def _faults(told: Told, begun: datetime | None) -> Iterator[str]:
    if tuple(told) not in (ENVELOPE, (*ENVELOPE, "metadata")):
        yield "its envelope has other fields"
    if not like(TIME)(told.get("metadata", {}).get("lab_time", told["timestamp"])):
        yield "its lab time is no time"
    if not like(TIME)(told["timestamp"]):
        yield "its time is not in UTC with milliseconds"
    elif begun is not None:
        at = datetime.fromisoformat(told["timestamp"])
        early, late = (at - begun).total_seconds(), (at - datetime.now(UTC)).total_seconds()
        if early < -1.0 or late > APART_S_MAX:
            yield "its time is none of the wall clock since the caller began"
    kind, payload = told["type"], told.payload
    yield from _wrong(payload, PAYLOADS[kind])
    if kind == "event":
        data = payload["data"]
        yield from _wrong(data, EVENTS[payload["event_type"]])
        if payload["event_type"] == "intermediate_result" and {"record", "result"} & {
            *data["data"]
        } == {"record"}:
            yield "its result is a record, which no caller can read"
    if "error_details" in payload:
        yield from _wrong(payload["error_details"], DETAILS)
    if "execution_summary" in payload:
        yield from _wrong(payload["execution_summary"], SUMMARY)
    for each in payload.get("artifacts", ()):
        yield from _wrong(each, ARTIFACT)
    yield from _codes(payload, kind)


def _wrong(fields: Mapping[str, Any], wanted: Fields) -> Iterator[str]:
    for name, check in wanted.items():
        if name == "session_token" and fields.get(name, 0) is None:
            continue  # it comes with the acceptance alone
        if name not in fields:
            yield f"{name} is missing"
        elif not check(fields[name]):
            yield f"{name} is {fields[name]!r}"


def _codes(value: object, where: str) -> Iterator[str]:
    """Name each text that came as the object of a program, or as such an object's form."""
    if isinstance(value, dict):
        if value.keys() == {"code", "with"}:
            yield f"{where} is the object of a text"
        for name, each in value.items():
            yield from _codes(each, f"{where}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from _codes(each, where)
    elif isinstance(value, str) and re.search(r"\{'\w+':|Text\(|<\w+ object at 0x", value):
        yield f"{where} is {value!r}"


def _out_of_order(mine: list[Told]) -> Iterator[str]:
    """Name what runs backwards or comes too early in one session; the first time counts."""
    known: dict[str, Told] = {}
    for each in mine:
        known.setdefault(each["message_id"], each)
    first = list(known.values())
    for a, b in pairwise(first):
        if b["timestamp"] < a["timestamp"]:
            yield f"{b} is stamped before {a}"
    state = "PENDING"
    for told in first:
        if told.is_("state_changed"):
            data = told.payload["data"]
            if data["from_state"] != state or data["to_state"] not in MOVES.get(state, ()):
                yield f"{state} -> {data}"
            state = data["to_state"]
        elif told["type"] == "task_accepted" and state != "PENDING":
            yield f"accepted while {state}"
        elif told["type"] == "task_completed" and state != "COMPLETED":
            yield f"completed while {state}"
    if first and first[0]["type"] == "event" and not first[0].is_("session_created"):
        yield "the session is not opened first"
