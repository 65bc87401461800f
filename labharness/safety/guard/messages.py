"""Messages of the guard, in armed.json and on its socket: how they are written, read and sealed.

What is read is read strictly: a field that is missing, of another kind or not known is an error. On
the socket a message is one JSON object a line, and neither side ever waits for the other. A permit
that crosses the socket carries a seal, HMAC-SHA-256 over the permit and the request that it is for:
who could change the reply rule or the time-out of a command could hold its port while a procedure
waits. The guard draws the key for one connection and hands it over there.
"""

import hmac
import json
import math
import re
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from labharness.core.errors import LabError
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
from labharness.core.vocabulary.texts import coded, revived
from labharness.safety.guard.core import Permit, SafeFrame

__all__ = [
    "EXCHANGE_S_MAX",
    "KEY_BYTES",
    "LINE_BYTES_MAX",
    "BadFields",
    "Fields",
    "Line",
    "LineSplitter",
    "SocketLines",
    "fits",
    "line_of",
    "read_request",
    "read_safe",
    "read_trip",
    "seal",
    "write_request",
    "write_safe",
    "write_trip",
]

WHOLE_MAX = 2**63 - 1  # what canonical bytes hold


class BadFields(LabError, ValueError, code="bad_fields"):
    """An object says something that cannot be; the message names where, and what is allowed."""


class Fields:
    """One JSON object, whose keys are taken one by one.

    Args:
        value: What was parsed.
        where: What to call it in a message.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise BadFields(f"{where} is no object")
        self._left: dict[str, object] = dict(value)
        self.where = where

    def take(self, key: str) -> object:
        """Take what stands under ``key``, whatever it is."""
        if key not in self._left:
            raise BadFields(f"{self.where} has no {key!r}")
        return self._left.pop(key)

    def text(self, key: str) -> str:
        """Take a text."""
        value = self.take(key)
        if isinstance(value, dict):  # a code with parameters
            value = revived(value)
        if not isinstance(value, str):
            raise BadFields(f"{self.where}: {key} {value!r} is no text")
        return value

    def one_of(self, key: str, allowed: Mapping[str, object] | tuple[str, ...]) -> str:
        """Take a text that is one of a few."""
        value = self.text(key)
        if value not in allowed:
            raise BadFields(f"{self.where}: {key} {value!r} is none of {', '.join(allowed)}")
        return value

    def whole(self, key: str) -> int:
        """Take a whole number from 0 on."""
        value = self.take(key)
        if type(value) is not int or not 0 <= value <= WHOLE_MAX:
            raise BadFields(f"{self.where}: {key} {str(value)[:40]} is no whole number from 0 on")
        return value

    def number(self, key: str) -> float:
        """Take a finite number."""
        value = self.take(key)
        if type(value) is int and abs(value) <= WHOLE_MAX:
            return float(value)
        if type(value) is float and math.isfinite(value):
            return value
        raise BadFields(f"{self.where}: {key} {str(value)[:40]} is no finite number")

    def seconds(self, key: str, at_most: float) -> float:
        """Take a time from 0 to ``at_most`` (s)."""
        value = self.number(key)
        if not 0 <= value <= at_most:
            raise BadFields(f"{self.where}: {key} is {value:g} s, allowed 0 to {at_most:g} s")
        return value

    def flag(self, key: str) -> bool:
        """Take true or false."""
        value = self.take(key)
        if not isinstance(value, bool):
            raise BadFields(f"{self.where}: {key} {value!r} is neither true nor false")
        return value

    def raw(self, key: str) -> bytes:
        """Take bytes, written in hexadecimal."""
        value = self.text(key)
        try:
            return bytes.fromhex(value)
        except ValueError:
            raise BadFields(f"{self.where}: {key} {value[:40]!r} is no hexadecimal") from None

    def items(self, key: str) -> list[object]:
        """Take a list."""
        value = self.take(key)
        if not isinstance(value, list):
            raise BadFields(f"{self.where}: {key} is no list")
        return value

    def inside(self, key: str) -> "Fields":
        """Take an object."""
        return Fields(self.take(key), f"{self.where}, {key}")

    def names(self) -> tuple[str, ...]:
        """Return the keys that are left."""
        return tuple(self._left)

    def has(self, key: str) -> bool:
        """Return whether ``key`` is there; for the few that may be left out."""
        return key in self._left

    def null(self, key: str) -> bool:
        """Return whether null stands under ``key``, which must be there; a null is taken."""
        found = key in self._left and self._left[key] is None
        if found:
            del self._left[key]
        return found

    def end(self) -> None:
        """Refuse what nobody asked for."""
        if self._left:
            raise BadFields(f"{self.where}: unknown {', '.join(map(repr, sorted(self._left)))}")


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
        "detail": coded(trip.detail),
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


LINE_BYTES_MAX = 32 * 1024 * 1024  # a reply of BUFFER_BYTES_MAX in hexadecimal, and its names
UNSENT_BYTES_MAX = 64 * 1024 * 1024  # a harness that reads nothing for so long is given up
READ_BYTES_MAX = 1 << 16  # each read asks for so much memory: more is slow to get
READS_MAX = 16  # at a time: a harness that talks without end holds up no port

Line = Mapping[str, object]
# json.dumps makes an encoder each time, and json.loads guesses at an encoding, while a line trips
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def line_of(message: Line) -> bytes:
    """Write one message."""
    return _encode(message).encode() + b"\n"


class LineSplitter:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._begun = b""

    def feed(self, data: bytes) -> Iterator[object]:
        """Return each message that is whole.

        Raises:
            ValueError: A line is no JSON in UTF-8, or does not end.
        """
        whole, end, rest = (self._begun + data).rpartition(b"\n")
        self._begun = rest
        if len(rest) > LINE_BYTES_MAX:
            raise ValueError(f"a message longer than {LINE_BYTES_MAX} bytes")
        if end:
            for line in whole.split(b"\n"):
                yield _decode(line.decode())


class SocketLines:
    """One connection.

    Args:
        made: The connected socket; it is made non-blocking.
    """

    def __init__(self, made: socket.socket) -> None:
        made.setblocking(False)
        self.socket = made
        self._lines = LineSplitter()
        self._unsent = bytearray()  # bytes would be copied whole for each message and each send

    @property
    def waits(self) -> bool:
        """Whether something is left to send."""
        return bool(self._unsent)

    def say(self, message: Line) -> None:
        """Send a message, or keep what the system does not take.

        Raises:
            OSError: The other side is gone, or has read nothing for too long.
        """
        self._unsent += line_of(message)
        self.flush()

    def flush(self) -> None:
        """Send what was kept; raises as ``say`` does."""
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            if len(self._unsent) > UNSENT_BYTES_MAX:
                raise BrokenPipeError(32, "the harness does not read") from None

    def hear(self) -> Iterator[object]:
        """Return the messages that have arrived.

        Raises:
            OSError: The other side is gone.
            ValueError: It speaks no JSON.
        """
        for _ in range(READS_MAX):
            try:
                data = self.socket.recv(READ_BYTES_MAX)
            except BlockingIOError:
                return
            if not data:
                raise ConnectionResetError(104, "the harness is gone")
            yield from self._lines.feed(data)


KEY_BYTES = 32
_HEAD = struct.Struct(">QQQII")  # number, epoch, expiry (us), lengths of port and frame


def seal(key: bytes, permit: Permit, request: Request) -> bytes:
    """Compute the seal of a permit for a request."""
    port = permit.port.encode()
    head = _HEAD.pack(
        permit.number,
        permit.epoch,
        round(permit.expires_s * 1e6),
        len(port),
        len(permit.frame),
    )
    rest = json.dumps(write_request(request), sort_keys=True).encode()
    return hmac.digest(key, head + port + permit.frame + rest, "sha256")


def fits(key: bytes, permit: Permit, request: Request, given: bytes) -> bool:
    """Return whether a seal is that of this permit for this request."""
    return hmac.compare_digest(seal(key, permit, request), given)
