"""Wire faces of simulated instruments: they answer bytes with bytes, or with silence.

A face answers one complete frame at a time; its framing says where a frame ends. All of it is
written from the protocols' specifications and shares nothing with the drivers (law 5).
"""

import json
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

from labharness.core.errors import LabError


class Face(ABC):
    """One instrument as seen from its bus.

    Attributes:
        latency_s: Time before the reply starts.
        gap_characters: A silence of this many characters ends a frame, complete or not; 0 if
            silence has no meaning. It applies only to a port with a baud rate.
        panel: The settings that a person can change at the instrument's own panel: attributes of
            the face, each with the values that it can have.
    """

    latency_s = 0.005
    gap_characters = 0.0
    panel: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def turn(self, settings: Mapping[str, object]) -> None:
        """Change settings as a person does at the panel, all or none.

        Raises:
            ValueError: There is no such setting, or it has no such value.
        """
        for name, value in settings.items():
            if value not in self.panel.get(name, ()):
                known = "; ".join(f"{each}: {', '.join(v)}" for each, v in self.panel.items())
                raise ValueError(f"its panel has no {name}={value}; it has {known or 'nothing'}")
        for name, value in settings.items():
            setattr(self, name, value)

    @abstractmethod
    def frame_length(self, buffer: bytes) -> int:
        """Return the length of the first frame in ``buffer``; 0 while it is incomplete."""

    @abstractmethod
    def receive(self, frame: bytes) -> bytes | None:
        """Answer one frame; ``None`` means silence."""

    def refusal(self, frame: bytes) -> bytes | None:
        """Return the instrument's refusal of a setting frame, without any effect.

        Returns:
            ``None`` for a frame to another instrument, or one that sets nothing.
        """
        return None


WRITES = (5, 6, 15, 16)  # MODBUS Application Protocol V1.1b3: functions that set coils or registers
BUSY = 6  # exception code: server device busy; the client should try again later


class WireRefusal(LabError, code="wire_refusal"):
    """Raised by a face to answer with a Modbus exception."""

    def __init__(self, exception: int) -> None:
        super().__init__(exception)
        self.exception = exception


def _crc_of(value: int) -> int:
    for _ in range(8):  # MODBUS over Serial Line V1.02, 6.2.2: reflected polynomial A001h
        value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


_CRC = tuple(map(_crc_of, range(256)))
_WORDS: tuple[Callable[..., bytes], ...] = tuple(
    struct.Struct(f">B{count}H").pack for count in range(126)
)  # by their number, behind the number of their bytes
_SPAN = struct.Struct(">HH")  # a start and a count


@lru_cache(maxsize=1024)  # an instrument gets the same polls every second
def checksum(data: bytes) -> bytes:
    """Return the two checksum bytes of an RTU frame, low byte first."""
    crc = 0xFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return bytes((crc & 0xFF, crc >> 8))


@lru_cache(maxsize=1024)
def is_whole(frame: bytes) -> bool:
    """Return whether an RTU frame ends with its checksum."""
    return len(frame) >= 4 and checksum(frame[:-2]) == frame[-2:]


class ModbusFace(Face):
    """A Modbus RTU slave. It ignores a wrong address or checksum, as the standard says.

    A subclass implements ``read_registers``, ``write_registers``, ``read_bits`` and ``write_bits``
    for the functions it has; the others get exception 01.
    """

    functions: tuple[int, ...] = (3, 6, 16)
    gap_characters = 3.5  # MODBUS over Serial Line V1.02, 2.5.1.1

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit

    def read_registers(self, function: int, start: int, count: int) -> Sequence[int]:
        """Return ``count`` words from ``start``, or raise ``WireRefusal``."""
        raise WireRefusal(2)

    def write_registers(self, function: int, start: int, words: Sequence[int]) -> None:
        """Store words from ``start``, or raise ``WireRefusal``."""
        raise WireRefusal(2)

    def read_bits(self, function: int, start: int, count: int) -> Sequence[bool]:
        """Return ``count`` coils (function 01) or discrete inputs (02) from ``start``."""
        raise WireRefusal(2)

    def write_bits(self, function: int, start: int, states: Sequence[bool]) -> None:
        """Switch coils from ``start``."""
        raise WireRefusal(2)

    def exception_status(self) -> int:
        """Return the eight bits of function 07."""
        raise WireRefusal(1)

    def frame_length(self, buffer: bytes) -> int:
        """Return the length of a request by its function code; an unknown one takes all bytes."""
        if len(buffer) < 2:
            return 0
        function = buffer[1]
        if function in (1, 2, 3, 4, 5, 6):
            length = 8
        elif function in (15, 16):
            if len(buffer) < 7:
                return 0
            length = 9 + buffer[6]
        elif function == 7:
            length = 4
        else:
            return len(buffer)
        return length if len(buffer) >= length else 0

    def receive(self, frame: bytes) -> bytes | None:
        """Answer one RTU frame."""
        if not is_whole(frame) or frame[0] not in (self.unit, 0):
            return None
        reply = self.answer(frame[1:-2])
        if frame[0] == 0:
            return None  # a broadcast is obeyed and not answered
        reply = frame[:1] + reply
        return reply + checksum(reply)

    def refusal(self, frame: bytes) -> bytes | None:
        """Return exception 06 (slave busy) for a write of coils or registers."""
        if len(frame) < 4 or frame[0] != self.unit or frame[1] not in WRITES:
            return None
        reply = bytes([self.unit, frame[1] | 0x80, BUSY])
        return reply + checksum(reply)

    def answer(self, pdu: bytes) -> bytes:
        """Answer one protocol data unit (function code and data)."""
        function = pdu[0]
        try:
            if function not in self.functions:
                raise WireRefusal(1)
            return pdu[:1] + self._dispatch(function, pdu)
        except WireRefusal as refusal:
            return bytes([function | 0x80, refusal.exception])

    def _dispatch(self, function: int, pdu: bytes) -> bytes:
        if len(pdu) < 5:
            if function == 7:
                return bytes([self.exception_status()])
            raise WireRefusal(3)
        start, count = _SPAN.unpack_from(pdu, 1)
        if function in (3, 4):  # first, because most are
            if not 1 <= count <= 125:
                raise WireRefusal(3)
            words: bytes = _WORDS[count](2 * count, *self.read_registers(function, start, count))
            return words
        if function in (1, 2):
            if not 1 <= count <= 2000:
                raise WireRefusal(3)
            packed = 0
            for i, state in enumerate(self.read_bits(function, start, count)):
                packed |= int(state) << i
            size = (count + 7) // 8
            return bytes([size]) + packed.to_bytes(size, "little")
        if function == 5:
            if count not in (0, 0xFF00):
                raise WireRefusal(3)
            self.write_bits(5, start, [count == 0xFF00])
        elif function == 6:
            self.write_registers(6, start, [count])
        elif function == 15:
            if len(pdu) < 6 or len(pdu) != 6 + pdu[5] or pdu[5] != (count + 7) // 8:
                raise WireRefusal(3)
            packed = int.from_bytes(pdu[6:], "little")
            self.write_bits(15, start, [bool(packed >> i & 1) for i in range(count)])
        elif function == 16:
            if len(pdu) < 6 or len(pdu) != 6 + pdu[5] or pdu[5] != 2 * count:
                raise WireRefusal(3)
            self.write_registers(16, start, struct.unpack_from(f">{count}H", pdu, 6))
        return _SPAN.pack(start, count)


class ModbusTcpFace(ModbusFace):
    """A Modbus TCP server: the same PDUs behind a seven-byte header, no checksum."""

    def frame_length(self, buffer: bytes) -> int:
        """Return the length from the header's length field."""
        if len(buffer) < 6:
            return 0
        length = 6 + int.from_bytes(buffer[4:6], "big")
        return length if len(buffer) >= length else 0

    def receive(self, frame: bytes) -> bytes | None:
        """Answer one frame with its transaction id."""
        if len(frame) < 8 or frame[2:4] != b"\0\0" or frame[6] not in (self.unit, 0, 255):
            return None
        reply = frame[6:7] + self.answer(frame[7:])
        return frame[:4] + len(reply).to_bytes(2, "big") + reply

    def refusal(self, frame: bytes) -> bytes | None:
        """Return exception 06, as on a serial line, behind the header."""
        if len(frame) < 8 or frame[6] != self.unit or frame[7] not in WRITES:
            return None
        return frame[:4] + b"\0\x03" + bytes([self.unit, frame[7] | 0x80, BUSY])


class LineFace(Face):
    """An instrument that takes one line of ASCII and answers with text of its own.

    Attributes:
        end: Terminator of a line.
        writes: Pattern of the lines that set something.
        refused: Text of a refusal, with its terminator.
    """

    end = b"\r"
    writes = re.compile("(?!)")  # matches nothing
    refused = ""

    @abstractmethod
    def answer(self, line: str) -> str | None:
        """Return the reply to one command, with its terminator; the command comes without one."""

    def frame_length(self, buffer: bytes) -> int:
        """Return the length up to the terminator."""
        return buffer.find(self.end) + len(self.end) if self.end in buffer else 0

    def receive(self, frame: bytes) -> bytes | None:
        """Answer one line; bytes outside ASCII are ignored."""
        try:
            line = frame.removesuffix(self.end).decode("ascii")
        except UnicodeDecodeError:
            return None
        reply = self.answer(line)
        return None if reply is None else reply.encode("ascii")

    def refusal(self, frame: bytes) -> bytes | None:
        """Return the refusal of a line that sets something."""
        line = frame.removesuffix(self.end).decode("ascii", "replace").strip()
        return self.refused.encode("ascii") if self.writes.fullmatch(line) else None


class JsonFace(Face):
    """An instrument that takes ``{"id", "command", "parameters"}`` as whole messages.

    Attributes:
        writes: Pattern of the commands that set something.
    """

    writes = re.compile("(?!)")  # matches nothing

    @abstractmethod
    def answer(self, command: str, parameters: Mapping[str, object]) -> Mapping[str, object]:
        """Return the results of one command; raise ``ValueError("[E];code;text")`` to refuse."""

    def frame_length(self, buffer: bytes) -> int:
        """Return the whole length: a message is a frame."""
        return len(buffer)

    def receive(self, frame: bytes) -> bytes | None:
        """Answer one message."""
        try:
            body = json.loads(frame)
        except (ValueError, RecursionError):
            return None
        if not isinstance(body, dict):
            return None
        command, parameters = body.get("command"), body.get("parameters") or {}
        if not isinstance(parameters, dict):
            return None
        reply: dict[str, object] = {"id": body.get("id", 0), "command": command}
        try:
            reply["results"] = dict(self.answer(str(command), parameters))
            reply["errors"] = []
        except ValueError as why:
            reply["results"] = {}
            reply["errors"] = [str(why)]
        return json.dumps(reply).encode()

    def refusal(self, frame: bytes) -> bytes | None:
        """Return the refusal of a command that sets something."""
        body = json.loads(frame)
        command = str(body.get("command"))
        if not self.writes.fullmatch(command):
            return None
        said = {"id": body.get("id"), "command": command, "results": {}}
        return json.dumps(said | {"errors": ["[E];-1;busy"]}).encode()
