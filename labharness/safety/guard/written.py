"""Requests, reply rules, safe frames and trips as data: for armed.json and the socket."""

import math
import re
from collections.abc import Callable
from typing import Any

from labharness.core.vocabulary import (
    Cause,
    Exactly,
    LengthAt,
    Lines,
    Message,
    Nothing,
    Quiet,
    ReplyRule,
    Request,
    Rtu,
    Transaction,
    Trip,
    Until,
)
from labharness.safety.guard.core import SafeFrame
from labharness.safety.guard.fields import BadFields, Fields

__all__ = [
    "EXCHANGE_S_MAX",
    "read_request",
    "read_safe",
    "read_trip",
    "write_request",
    "write_safe",
    "write_trip",
]

EXCHANGE_S_MAX = 60.0  # no exchange of any port is longer; each port's own bound is in armed.json

_RULES: dict[str, tuple[type[Any], dict[str, str]]] = {
    "until": (Until, {"end": "raw", "prefix": "raw", "bytes_max": "whole"}),
    "exactly": (Exactly, {"count": "whole", "prefix": "raw"}),
    "rtu": (Rtu, {"unit": "whole", "function": "whole", "byte_count": "whole?", "echo": "raw"}),
    "length_at": (
        LengthAt,
        {
            "offset": "whole",
            "size": "whole",
            "add": "whole",
            "transaction_size": "whole",
            "match": "raw",
            "match_at": "whole",
            "lengths": "wholes",
        },
    ),
    "lines": (Lines, {"count": "whole", "end": "raw", "prefix": "raw", "bytes_max": "whole"}),
    "quiet": (Quiet, {"silence_s": "seconds"}),
    "message": (Message, {"command": "text"}),
    "nothing": (Nothing, {}),
}
_NAMES = {rule: name for name, (rule, _) in _RULES.items()}


def _wholes(fields: Fields, key: str) -> tuple[int, ...]:
    values = fields.items(key)
    if not values or not all(type(value) is int and value >= 0 for value in values):
        raise BadFields(f"{fields.where}: {key} is no list of whole numbers")
    return tuple(value for value in values if isinstance(value, int))


_READERS: dict[str, Callable[[Fields, str], object]] = {
    "raw": Fields.raw,
    "whole": Fields.whole,
    "whole?": lambda fields, key: None if fields.null(key) else fields.whole(key),
    "wholes": _wholes,
    "seconds": lambda fields, key: fields.seconds(key, EXCHANGE_S_MAX),
    "text": Fields.text,
}


def _write_rule(rule: ReplyRule) -> dict[str, object]:
    name = _NAMES[type(rule)]
    written: dict[str, object] = {"rule": name}
    for field in _RULES[name][1]:
        value = getattr(rule, field)
        written[field] = value.hex() if isinstance(value, bytes) else value
    return written


def _read_rule(fields: Fields) -> ReplyRule:
    rule, kinds = _RULES[fields.one_of("rule", _RULES)]
    values = {field: _READERS[kind](fields, field) for field, kind in kinds.items()}
    fields.end()
    made: ReplyRule = rule(**values)
    return made


def write_request(request: Request) -> dict[str, object]:
    """Write one request, its reply rule included."""
    blank = request.transaction
    return {
        "frame": request.frame.hex(),
        "reply": _write_rule(request.reply),
        "timeout_s": request.timeout_s,
        "settle_s": request.settle_s,
        "transaction": None
        if blank is None
        else {"offset": blank.offset, "size": blank.size, "ascii": blank.ascii},
        "obeyed": request.obeyed.hex(),
    }


def read_request(fields: Fields) -> Request:
    """Read one request.

    Raises:
        BadFields: It is none.
    """
    frame = fields.raw("frame")
    blank = None
    if not fields.null("transaction"):
        inner = fields.inside("transaction")
        blank = Transaction(inner.whole("offset"), inner.whole("size"), inner.flag("ascii"))
        inner.end()
        if not 0 < blank.size <= len(frame) - blank.offset:
            raise BadFields(f"{inner.where}: the field is not inside the frame")
    request = Request(
        frame,
        _read_rule(fields.inside("reply")),
        fields.seconds("timeout_s", EXCHANGE_S_MAX),
        fields.seconds("settle_s", EXCHANGE_S_MAX),
        blank,
        fields.raw("obeyed"),
    )
    try:
        re.compile(request.obeyed)
    except re.error as why:
        raise BadFields(f"{fields.where}: obeyed is no regular expression: {why}") from None
    fields.end()
    return request


def write_safe(safe: SafeFrame) -> dict[str, object]:
    """Write one frame of a procedure with its meaning."""
    return {
        "step": safe.step,
        "channel": safe.channel,
        "value": safe.value,
        "unit": safe.unit,
        "port": safe.port,
        "request": write_request(safe.request),
        "shown": None if safe.shown is None else write_request(safe.shown),
    }


def read_safe(fields: Fields) -> SafeFrame:
    """Read one frame of a procedure; raises as ``read_request`` does."""
    safe = SafeFrame(
        step=fields.whole("step"),
        port=fields.text("port"),
        request=read_request(fields.inside("request")),
        channel=fields.text("channel"),
        value=fields.number("value"),
        unit=fields.text("unit"),
        shown=None if fields.null("shown") else read_request(fields.inside("shown")),
    )
    fields.end()
    if not (safe.request.obeyed or isinstance(safe.request.reply, Nothing)):
        raise BadFields(f"{fields.where}: {safe.channel} does not say which reply means done")
    if safe.shown is not None and not safe.shown.obeyed:
        raise BadFields(f"{fields.where}: the read of {safe.channel} does not say what it is to be")
    return safe


def write_trip(trip: Trip) -> dict[str, object]:
    """Write a trip; a value that is no finite number has no place in a message."""
    known = trip.value is not None and math.isfinite(trip.value)
    return {
        "cause": trip.cause.value,
        "procedure": trip.procedure,
        "channel": trip.channel,
        "value": trip.value if known else None,
        "at_s": trip.at_s,
        "detail": trip.detail,
    }


def read_trip(fields: Fields, procedure: str | None = None) -> Trip:
    """Read a trip, whose procedure may have been taken already; raises as ``read_request`` does."""
    trip = Trip(
        cause=Cause(fields.one_of("cause", tuple(Cause))),
        procedure=fields.text("procedure") if procedure is None else procedure,
        channel=fields.text("channel"),
        value=None if fields.null("value") else fields.number("value"),
        at_s=fields.number("at_s"),
        detail=fields.text("detail"),
    )
    fields.end()
    return trip
