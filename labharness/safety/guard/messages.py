"""Messages of the guard, in armed.json and on its socket: how they are written, read and sealed.

`ASKS`, `SAYS` and the tables above them state each message once, for the end that writes it and the
end that reads it. Reading is strict: a field that is missing, of another kind or not known is an
error. On the socket a message is one JSON object a line, and neither side ever waits for the other.
A permit that crosses the socket carries a seal, HMAC-SHA-256 over the permit and its request: a
program that could change the reply rule or the time-out of a command could hold its port while a
procedure waits. The guard draws the key for one connection and hands it over there.
"""

import hmac
import json
import math
import re
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import labharness.core.vocabulary.requests as requests
from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause, Protocol, ReplyRule, Request, Transaction, Trip
from labharness.core.vocabulary.requests import SEALS
from labharness.core.vocabulary.texts import coded, revived
from labharness.safety.guard.core import Permit
from labharness.safety.guard.port import SafeFrame

WHOLE_MAX = 2**63 - 1  # what canonical bytes hold


class BadFields(LabError, ValueError, code="bad_fields"):
    """A field of an object is wrong; the message names it, and the values that are allowed."""


class Fields:
    """One JSON object, whose keys are taken one by one.

    Args:
        value: The parsed JSON.
        where: Name of the object in a message.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise BadFields(f"{where} is not an object")
        self._left: dict[str, object] = dict(value)
        self.where = where

    def take(self, key: str) -> object:
        """Take the value under ``key``, of any kind."""
        if key not in self._left:
            raise BadFields(f"{self.where} has no {key!r}")
        return self._left.pop(key)

    def text(self, key: str) -> str:
        """Take a text."""
        value = self.take(key)
        if isinstance(value, dict):  # a code with parameters
            value = revived(value)
        if not isinstance(value, str):
            raise BadFields(f"{self.where}: {key} {value!r} is not a text")
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
            raise BadFields(
                f"{self.where}: {key} {str(value)[:40]} is not a whole number from 0 on"
            )
        return value

    def number(self, key: str) -> float:
        """Take a finite number."""
        value = self.take(key)
        if type(value) is int and abs(value) <= WHOLE_MAX:
            return float(value)
        if type(value) is float and math.isfinite(value):
            return value
        raise BadFields(f"{self.where}: {key} {str(value)[:40]} is not a finite number")

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
            raise BadFields(f"{self.where}: {key} {value[:40]!r} is not hexadecimal") from None

    def items(self, key: str) -> list[object]:
        """Take a list."""
        value = self.take(key)
        if not isinstance(value, list):
            raise BadFields(f"{self.where}: {key} is not a list")
        return value

    def inside(self, key: str) -> "Fields":
        """Take an object."""
        return Fields(self.take(key), f"{self.where}, {key}")

    def names(self) -> tuple[str, ...]:
        """Return the keys that are left."""
        return tuple(self._left)

    def null(self, key: str) -> bool:
        """Return whether null stands under ``key``, which must be there; a null is taken."""
        found = key in self._left and self._left[key] is None
        if found:
            del self._left[key]
        return found

    def end(self) -> None:
        """Refuse keys that were not taken."""
        if self._left:
            raise BadFields(f"{self.where}: unknown {', '.join(map(repr, sorted(self._left)))}")


EXCHANGE_S_MAX = 60.0  # no exchange of any port is longer; each port's own bound is in armed.json

Kinds = Mapping[str, str]
"""The fields of a JSON object in the order in which they are written, each with its kind."""


def kinds_of(fields: str) -> Kinds:
    """Return fields and kinds from ``name kind, name kind``: a kind is one of `_KINDS`.

    A ``?`` after the kind means that null may stand there.
    """
    return dict(field.split() for field in fields.split(", ") if field)


_RULES: dict[str, tuple[type[Any], Kinds]] = {
    "until": (
        requests.Until,
        kinds_of("end raw, prefix raw, bytes_max whole, after whole, alone raw"),
    ),
    "exactly": (requests.Exactly, kinds_of("count whole, prefix raw")),
    "rtu": (requests.Rtu, kinds_of("unit whole, function whole, byte_count whole?, echo raw")),
    "length_at": (
        requests.LengthAt,
        kinds_of(
            "offset whole, size whole, add whole, transaction_size whole, match raw, "
            "match_at whole, lengths wholes"
        ),
    ),
    "sealed": (requests.Checked, kinds_of("how seal, start whole, tail whole, inner rule")),
    "lines": (requests.Lines, kinds_of("count whole, end raw, prefix raw, bytes_max whole")),
    "quiet": (requests.Quiet, kinds_of("silence_s seconds")),
    "message": (requests.Message, kinds_of("command text")),
    "nothing": (requests.Nothing, kinds_of("")),
}
_NAMES = {rule: name for name, (rule, _) in _RULES.items()}
_TRANSACTION = kinds_of("offset whole, size whole, ascii flag")
_REQUEST = kinds_of(
    "frame raw, reply rule, timeout_s seconds, settle_s seconds, transaction transaction?, "
    "obeyed raw"
)
_SAFE_FRAME = kinds_of(
    "step whole, channel text, value number, unit text, port text, request request, shown request?"
)
_TRIP = kinds_of(
    "cause cause, procedure text, channel text, value number?, at_s number, detail coded"
)
PERMIT = kinds_of("number whole, epoch whole, expires_us whole, seal raw")

ASKS = {
    "send": kinds_of("port text, number whole"),  # then a frame, or a permit and its request
    "doubt": kinds_of("port text"),
    "trip": kinds_of(""),  # then the trip, which is read after the bytes of its procedure have left
    "repeat": kinds_of("frames items"),
    "epoch": kinds_of(""),
    "arm": kinds_of("lost text"),
    "disarm": kinds_of(""),
    "heartbeat": kinds_of("made_s number, lost text"),
    "reset": kinds_of(""),
    "imported": kinds_of(""),
    "bye": kinds_of("retire flag"),
}
"""The messages of the harness by their ``do``, each with its fields."""

SAYS = {
    "welcome": kinds_of("digest text, key raw, permits whole, trip trip?, log items"),
    "busy": kinds_of(""),
    "status": kinds_of(""),
    "free": kinds_of(""),
    "ended": kinds_of("port text, number whole, reply raw?, error coded"),
    "safe": kinds_of("frame items, error coded"),
    "lost": kinds_of("port text, why text"),
    "tripped": kinds_of("trip trip"),
    "armed": kinds_of("error text"),
    "reset": kinds_of("error text"),
}
"""The messages of the guard by their ``say``; `STANDING` follows in each but ``busy``."""

STANDING = kinds_of(
    "epoch whole, moves whole, armed flag, latched flag, write_error coded, free items, "
    "shut texts, heard whole"
)


def _same(value: object) -> object:
    return value


def _wholes(fields: Fields, key: str) -> tuple[int, ...]:
    values = fields.items(key)
    if not values or not all(type(value) is int and value >= 0 for value in values):
        raise BadFields(f"{fields.where}: {key} is not a list of whole numbers")
    return tuple(value for value in values if isinstance(value, int))


def _texts(fields: Fields, key: str) -> dict[str, str]:
    inside = fields.inside(key)
    return {name: inside.text(name) for name in inside.names()}


def write_fields(kinds: Kinds, values: Mapping[str, Any]) -> dict[str, object]:
    """Return the JSON object with these fields."""
    written: dict[str, object] = {}
    for name, kind in kinds.items():
        value = values[name]
        written[name] = None if value is None else _KINDS[kind.rstrip("?")][0](value)
    return written


def written(kinds: Kinds, value: object) -> dict[str, object]:
    """Return the JSON object with these attributes of a value."""
    return write_fields(kinds, {name: getattr(value, name) for name in kinds})


def read_fields(kinds: Kinds, fields: Fields, **taken: object) -> dict[str, Any]:
    """Take these fields, but for those that were taken already; `Fields.end` is the caller's.

    Raises:
        BadFields: One is missing or of another kind.
    """
    for name, kind in kinds.items():
        if name not in taken:
            null = kind[-1] == "?" and fields.null(name)
            taken[name] = None if null else _KINDS[kind.rstrip("?")][1](fields, name)
    return taken


def read_all(kinds: Kinds, fields: Fields, **taken: object) -> dict[str, Any]:
    """Take these fields, as `read_fields` does, and refuse any other."""
    values = read_fields(kinds, fields, **taken)
    fields.end()
    return values


def _write_rule(rule: ReplyRule) -> dict[str, object]:
    name = _NAMES[type(rule)]
    return {"rule": name, **written(_RULES[name][1], rule)}


def _read_rule(fields: Fields, key: str) -> ReplyRule:
    inside = fields.inside(key)
    rule, kinds = _RULES[inside.one_of("rule", _RULES)]
    made: ReplyRule = rule(**read_all(kinds, inside))
    return made


def write_request(request: Request) -> dict[str, object]:
    """Write one request, its reply rule included."""
    return written(_REQUEST, request)


def read_request(fields: Fields) -> Request:
    """Read one request.

    Raises:
        BadFields: The object is not a request.
    """
    request = Request(**read_all(_REQUEST, fields))
    blank = request.transaction
    if blank is not None and not 0 < blank.size <= len(request.frame) - blank.offset:
        raise BadFields(f"{fields.where}, transaction: the field is not inside the frame")
    try:
        re.compile(request.obeyed)
    except re.error as why:
        raise BadFields(f"{fields.where}: obeyed is not a regular expression: {why}") from None
    return request


def _requests(fields: Fields, key: str) -> tuple[Request, ...]:
    return tuple(read_request(Fields(e, f"{fields.where}, {key}")) for e in fields.items(key))


def write_safe(safe: SafeFrame) -> dict[str, object]:
    """Write one frame of a procedure with its meaning."""
    return written(_SAFE_FRAME, safe)


def read_safe(fields: Fields) -> SafeFrame:
    """Read one frame of a procedure; raises as ``read_request`` does."""
    safe = SafeFrame(**read_all(_SAFE_FRAME, fields))
    if not (safe.request.obeyed or isinstance(safe.request.reply, requests.Nothing)):
        raise BadFields(f"{fields.where}: {safe.channel} does not say which reply means done")
    if safe.shown is not None and not safe.shown.obeyed:
        raise BadFields(f"{fields.where}: the read of {safe.channel} does not say what it is to be")
    return safe


def write_trip(trip: Trip) -> dict[str, object]:
    """Write a trip; a value that is not a finite number becomes null."""
    known = trip.value is not None and math.isfinite(trip.value)
    return written(_TRIP, trip if known else replace(trip, value=None))


def read_trip(fields: Fields, procedure: str | None = None) -> Trip:
    """Read a trip, whose procedure may have been taken already; raises as ``read_request`` does."""
    taken = {} if procedure is None else {"procedure": procedure}
    return Trip(**read_all(_TRIP, fields, **taken))


_KINDS: dict[str, tuple[Callable[[Any], object], Callable[[Fields, str], object]]] = {
    "text": (_same, Fields.text),
    "coded": (coded, Fields.text),
    "texts": (_same, _texts),
    "raw": (bytes.hex, Fields.raw),
    "whole": (_same, Fields.whole),
    "wholes": (_same, _wholes),
    "number": (_same, Fields.number),
    "seconds": (_same, lambda fields, key: fields.seconds(key, EXCHANGE_S_MAX)),
    "flag": (_same, Fields.flag),
    "items": (_same, Fields.items),
    "cause": (_same, lambda fields, key: Cause(fields.one_of(key, tuple(Cause)))),
    "rule": (_write_rule, _read_rule),
    "seal": (_same, lambda fields, key: fields.one_of(key, SEALS)),
    "transaction": (
        lambda blank: written(_TRANSACTION, blank),
        lambda fields, key: Transaction(**read_all(_TRANSACTION, fields.inside(key))),
    ),
    "request": (write_request, lambda fields, key: read_request(fields.inside(key))),
    "requests": (lambda requests: [*map(write_request, requests)], _requests),
    "protocol": (str, lambda fields, key: Protocol(fields.one_of(key, tuple(Protocol)))),
    "trip": (write_trip, lambda fields, key: read_trip(fields.inside(key))),
}
"""The function that writes a field of each kind, and the function that reads it."""


LINE_BYTES_MAX = 32 * 1024 * 1024  # a reply of BUFFER_BYTES_MAX in hexadecimal, and its names
UNSENT_BYTES_MAX = 64 * 1024 * 1024  # a harness that reads nothing for so long is given up
READ_BYTES_MAX = 1 << 16  # each read asks for so much memory: more is slow to get
READS_MAX = 16  # at a time: a harness that talks without end holds up no port

Line = Mapping[str, object]
# json.dumps makes an encoder each time, and json.loads guesses at an encoding, while a line trips
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def places(procedures: Mapping[str, tuple[SafeFrame, ...]]) -> dict[SafeFrame, tuple[str, int]]:
    """Return the place by which a message names each frame: its procedure, and its number there."""
    named = procedures.items()
    return {frame: (name, at) for name, frames in named for at, frame in enumerate(frames)}


def ask(what: str, /, **fields: object) -> dict[str, object]:
    """Return one of the messages `ASKS` of the harness."""
    return {"do": what, **write_fields(ASKS[what], fields)}


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
            ValueError: A line is not JSON in UTF-8, or does not end.
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
