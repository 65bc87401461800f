"""One exchange on a wire: the frame that is sent, and the rule for a complete, correct reply.

A reply rule is data with one method, ``take(buffer, transaction)``. It returns or raises:

* ``n > 0``: the first ``n`` bytes are a complete reply to this request;
* ``0``: more bytes are needed;
* ``n < 0``: the first ``-n`` bytes answer another transaction and are to be dropped;
* ``BadReply``: the bytes can never become the expected reply.

A complete reply in the right form may still be a refusal: a Modbus exception, ``?``, a syntax
error. ``Request.obeyed`` says which replies mean that the instrument did what the frame asks.

Only the standard library is used, because the guard process has nothing else.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import xor
from typing import Protocol

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text

SHOWN_BYTES_MAX = 40  # shown of a reply in an error
# a CCD readout in JSON is about 10 kB; a sender that never stops is cut off here
REPLY_BYTES_MAX = 1_048_576
ECHO_BYTES_MIN = 3  # unit and function of a reply are those of the request


class BadReply(LabError, ValueError, code="bad_reply"):
    """The received bytes are not the expected reply."""


class DeviceFault(LabError, RuntimeError, code="device_fault"):
    """The instrument answered in the right form, with a refusal or an error of its own."""


class ReplyRule(Protocol):
    """A rule that says when a reply is complete and correct."""

    def take(self, buffer: bytes, transaction: int) -> int:
        """Return how many bytes of ``buffer`` are the reply, as the module's first lines say."""


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ 0xA001 if byte & 1 else byte >> 1
    return byte


_CRC = tuple(map(_crc_of, range(256)))


@lru_cache(maxsize=1024)
def crc16_modbus(data: bytes) -> int:
    """Return the Modbus RTU checksum (polynomial A001h, start FFFFh; low byte goes first).

    Results are cached: a line sends mostly the same frames each second.
    """
    crc = 0xFFFF
    table = _CRC
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc


@lru_cache(maxsize=1024)
def ends_with_crc16(frame: bytes) -> bool:
    """Return whether a Modbus RTU frame ends with its checksum; cached, as the checksum is."""
    return crc16_modbus(frame[:-2]) == frame[-2] | frame[-1] << 8


@dataclass(frozen=True, slots=True)
class Until:
    """An ASCII reply: starts with ``prefix``, ends with ``end``, at most ``bytes_max`` long.

    Attributes:
        end: Its end.
        prefix: Its beginning.
        bytes_max: Its greatest length.
        after: Bytes that follow the end and belong to it (a checksum).
        alone: Bytes of which each is a whole reply by itself (NAK).
    """

    end: bytes
    prefix: bytes = b""
    bytes_max: int = 512
    after: int = 0
    alone: bytes = b""

    def take(self, buffer: bytes, transaction: int) -> int:
        """See the module's first lines."""
        if buffer[:1] and buffer[:1] in self.alone:
            return 1
        if not buffer.startswith(self.prefix[: len(buffer)]):
            raise BadReply(f"reply {buffer[:40]!r} does not start with {self.prefix!r}")
        at = buffer.find(self.end, len(self.prefix), self.bytes_max)
        if at < 0:
            if len(buffer) >= self.bytes_max:
                raise BadReply(f"no {self.end!r} within {self.bytes_max} bytes")
            return 0
        whole = at + len(self.end) + self.after
        return whole if len(buffer) >= whole else 0


SEALS: dict[str, Callable[[bytes], bytes]] = {
    "xor raw": lambda data: bytes([reduce(xor, data, 0)]),
    "xor hex": lambda data: b"%02X" % reduce(xor, data, 0),
    "sum raw": lambda data: bytes([sum(data) & 0xFF]),
    "sum hex": lambda data: b"%02X" % (sum(data) & 0xFF),
    "sum decimal": lambda data: b"%03d" % (sum(data) & 0xFF),
    "crc16 raw": lambda data: crc16_modbus(data).to_bytes(2, "little"),
    "crc16 hex": lambda data: b"%04X" % crc16_modbus(data),
}
"""The checksums, as raw bytes, as hexadecimal digits or as three decimal ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A checksum that stands in its own frame.

    Attributes:
        how: One of ``SEALS``: ``xor raw``, ``sum hex``, ``crc16 raw`` and the like.
        start: First byte that counts.
        tail: Bytes that follow it.
    """

    how: str
    start: int = 0
    tail: int = 0

    def __post_init__(self) -> None:
        if self.how not in SEALS:
            raise ValueError(f"checksum {self.how!r} is none of {', '.join(SEALS)}")

    def put(self, frame: bytes) -> bytes:
        """Return a frame with its checksum."""
        end = len(frame) - self.tail
        return frame[:end] + SEALS[self.how](frame[self.start : end]) + frame[end:]

    def cut(self, frame: bytes) -> bytes:
        """Return a frame without its checksum."""
        end = len(frame) - self.tail
        return frame[: end - len(SEALS[self.how](b""))] + frame[end:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Seal):
    """A reply with its own checksum: one that does not fit is a bad reply.

    Attributes:
        inner: The rule for its form.
    """

    inner: ReplyRule

    def take(self, buffer: bytes, transaction: int) -> int:
        """See the module's first lines."""
        taken = self.inner.take(buffer, transaction)
        reply = buffer[:taken]
        alone = taken == 1 and reply in getattr(self.inner, "alone", b"")
        if taken > 0 and not alone and self.put(self.cut(reply)) != reply:
            raise BadReply(f"checksum of {reply.hex(' ')} is wrong")
        return taken


@dataclass(frozen=True, slots=True)
class Exactly:
    """A reply of exactly ``count`` bytes that starts with ``prefix``."""

    count: int
    prefix: bytes = b""

    def take(self, buffer: bytes, transaction: int) -> int:
        """See the module's first lines."""
        if not buffer.startswith(self.prefix[: len(buffer)]):
            raise BadReply(f"reply {buffer[:40]!r} does not start with {self.prefix!r}")
        if len(buffer) > self.count:
            raise BadReply(f"reply of {len(buffer)} bytes, expected {self.count}")
        return self.count if len(buffer) == self.count else 0


@dataclass(frozen=True, slots=True)
class Rtu:
    """A Modbus RTU reply: unit, function and exact length are checked, then the checksum.

    Attributes:
        unit: Slave address that must answer.
        function: Function code that must be echoed; with its high bit set the reply is an
            exception, which is complete and of the right form (the driver turns it into
            ``DeviceFault``).
        byte_count: Data bytes of a read, or ``None`` where the reply echoes the request.
        echo: Bytes after the function code that a write's reply must repeat.
    """

    unit: int
    function: int
    byte_count: int | None = None
    echo: bytes = b""

    def take(self, buffer: bytes, transaction: int) -> int:
        """See the module's first lines."""
        if len(buffer) < 2:
            return 0
        if buffer[0] != self.unit:
            raise BadReply(f"reply of unit {buffer[0]}, asked unit {self.unit}")
        function = buffer[1]
        if function == self.function:
            length = 5 + self.byte_count if self.byte_count is not None else 4 + len(self.echo)
        elif function == self.function | 0x80:
            length = 5
        else:
            raise BadReply(f"reply to function {function}, asked function {self.function}")
        reads = function == self.function and self.byte_count is not None
        if reads and len(buffer) > 2 and buffer[2] != self.byte_count:
            raise BadReply(f"{buffer[2]} data bytes announced, asked {self.byte_count}")
        if len(buffer) < length:
            return 0
        if len(buffer) > length:
            raise BadReply(f"reply of {len(buffer)} bytes, expected {length}")
        if function == self.function and not reads and buffer[2:-2] != self.echo:
            raise BadReply(f"write echoed as {buffer.hex(' ')}")
        if not ends_with_crc16(buffer):
            raise BadReply(f"checksum of {buffer.hex(' ')} is wrong")
        return length


@dataclass(frozen=True, slots=True)
class LengthAt:
    """A binary reply with a length field (Modbus TCP and similar protocols).

    Attributes:
        offset: First byte of the length field.
        size: Bytes of the length field, big-endian.
        add: Number to add to it for the length of the whole reply.
        transaction_size: Leading bytes that repeat the transaction id, big-endian; 0 for none.
        match: Bytes that must stand at ``match_at``. The last one may have its high bit set, as in
            a Modbus exception.
        match_at: First byte of ``match``.
        lengths: Whole lengths that may occur.
    """

    offset: int
    size: int
    add: int
    transaction_size: int
    match: bytes
    match_at: int
    lengths: tuple[int, ...]

    def take(self, buffer: bytes, transaction: int) -> int:
        """See the module's first lines."""
        if len(buffer) < self.offset + self.size:
            return 0
        length = int.from_bytes(buffer[self.offset : self.offset + self.size], "big") + self.add
        if length > REPLY_BYTES_MAX:
            raise BadReply(f"reply announces {length} bytes, at most {REPLY_BYTES_MAX}")
        if len(buffer) < length:
            return 0
        if int.from_bytes(buffer[: self.transaction_size], "big") != transaction:
            return -length
        if length not in self.lengths:
            raise BadReply(f"reply of {length} bytes, expected one of {self.lengths}")
        found = buffer[self.match_at : self.match_at + len(self.match)]
        refused = self.match[:-1] + bytes([self.match[-1] | 0x80])
        if found not in (self.match, refused):
            raise BadReply(f"reply of {found.hex(' ')}, asked {self.match.hex(' ')}")
        return length


@dataclass(frozen=True, slots=True)
class Lines:
    """A reply of exactly ``count`` lines, each ended by ``end`` and started by ``prefix``."""

    count: int
    end: bytes
    prefix: bytes = b""
    bytes_max: int = 4096

    def take(self, buffer: bytes, transaction: int) -> int:
        """See the module's first lines."""
        start = 0
        for _ in range(self.count):
            head = buffer[start : start + len(self.prefix)]
            if head != self.prefix[: len(head)]:
                raise BadReply(f"line {head!r} does not start with {self.prefix!r}")
            at = buffer.find(self.end, start, self.bytes_max)
            if at < 0:
                if len(buffer) >= self.bytes_max:
                    raise BadReply(f"{self.count} lines do not end within {self.bytes_max} bytes")
                return 0
            start = at + len(self.end)
        return start


@dataclass(frozen=True, slots=True)
class Quiet:
    """A reply that ends only with a silence of ``silence_s``; the port's clock completes it."""

    silence_s: float

    def take(self, buffer: bytes, transaction: int) -> int:
        """Return 0 always: only silence ends this reply."""
        return 0


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON message that answers this transaction (``id``) and this ``command``."""

    command: str

    def take(self, buffer: bytes, transaction: int) -> int:
        """Follow the module's first lines; a link of messages passes one message at a time."""
        try:
            body = json.loads(buffer)
        except (ValueError, RecursionError) as why:
            raise BadReply(f"reply {buffer[:40]!r} is not JSON: {why}") from None
        if not isinstance(body, dict):
            raise BadReply(f"reply {buffer[:40]!r} is not a JSON object")
        if body.get("id") != transaction:
            return -len(buffer)
        if body.get("command") != self.command:
            raise BadReply(f"reply to {body.get('command')!r}, asked {self.command!r}")
        return len(buffer)


@dataclass(frozen=True, slots=True)
class Nothing:
    """No reply. The exchange ends ``settle_s`` after the frame was passed to the port."""

    def take(self, buffer: bytes, transaction: int) -> int:
        """Refuse any bytes."""
        raise BadReply(f"no reply was expected, got {buffer[:40]!r}")


@dataclass(frozen=True, slots=True)
class Transaction:
    """The place of the transaction id in a frame; the port fills it in after the frame was checked.

    Attributes:
        offset: First byte of the field.
        size: Bytes of the field.
        ascii: Decimal digits instead of a big-endian number (JSON messages).
    """

    offset: int
    size: int
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One frame to send and the reply to wait for.

    Attributes:
        frame: The bytes; a transaction field in them is blank until the port fills it in.
        reply: Rule for a complete, correct reply.
        timeout_s: Longest wait from sending the frame to the reply's last byte.
        settle_s: Silence to keep on the port after the reply before the next frame.
        transaction: The blank field, if the protocol has one.
        obeyed: Regular expression for the whole reply that matches only if the instrument did what
            the frame asks; for a read, only if the reading shows the value that was set. ``b""`` if
            it is not known.
    """

    frame: bytes
    reply: ReplyRule
    timeout_s: float
    settle_s: float = 0.0
    transaction: Transaction | None = None
    obeyed: bytes = b""

    def take(self, buffer: bytes, transaction: int) -> int:
        """Return what ``reply`` takes; an echo of the frame that is refused is named.

        Raises:
            BadReply: The bytes can never become the expected reply.
        """
        try:
            return self.reply.take(buffer, transaction)
        except BadReply:
            if self.frame.startswith(buffer[: len(self.frame)]) and len(buffer) >= ECHO_BYTES_MIN:
                raise BadReply(Text("reply.own")) from None
            raise


def unfinished(reply: ReplyRule, buffer: bytes, timeout_s: float) -> str:
    """Return an error text for a reply that was not complete in time.

    A partial reply is reported apart from silence: half a reply points to speed, wiring or
    firmware, silence to power or address.
    """
    if not buffer:
        return Text("reply.none", within_s=timeout_s)
    asked = None
    if isinstance(reply, Rtu) and len(buffer) > 1:
        refused = buffer[1] != reply.function
        count = reply.byte_count
        asked = 5 if refused else 4 + len(reply.echo) if count is None else 5 + count
    elif isinstance(reply, LengthAt) and len(buffer) >= reply.offset + reply.size:
        field = buffer[reply.offset : reply.offset + reply.size]
        asked = int.from_bytes(field, "big") + reply.add
    elif isinstance(reply, Exactly):
        asked = reply.count
    return Text(
        "reply.short",
        count=len(buffer),
        asked="" if asked is None else Text("reply.asked", count=asked),
        within_s=timeout_s,
        shown=buffer[:SHOWN_BYTES_MAX].hex(" "),
    )


def disobeyed(request: Request, reply: bytes) -> str:
    """Return why a complete reply does not show that the frame was obeyed, or ``""``."""
    if not request.obeyed or re.fullmatch(request.obeyed, reply):
        return ""
    return Text("reply.disobeyed", shown=reply[:SHOWN_BYTES_MAX].hex(" "))
