"""Modbus for drivers: rows of registers, coils and inputs; frames by pymodbus, RTU and TCP alike.

pymodbus encodes the requests (its PDU classes and framers); the replies are checked whole by the
reply rules in ``vocabulary`` (address, function, count, exact length, checksum) before a driver
sees them, because a framer that hunts for a frame would also find a late one.

Source: MODBUS Application Protocol Specification V1.1b3; MODBUS over Serial Line V1.02; MODBUS
Messaging on TCP/IP Implementation Guide V1.0b.
"""

import math
import re
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, cast

from pymodbus.framer import FramerRTU, FramerSocket
from pymodbus.pdu import DecodePDU, bit_message, register_message
from pymodbus.pdu.pdu import ModbusPDU

import labharness.core.vocabulary.requests as requests
from labharness.core.vocabulary import BadReply, Protocol, Request, Transaction
from labharness.instruments.driver.driver import Identity, Query, Scan, fault, kept
from labharness.instruments.driver.table import ANY, ChannelRow, TableDriver

EXCEPTIONS = {  # MODBUS Application Protocol V1.1b3, section 7
    1: "illegal function",
    2: "illegal data address",
    3: "illegal data value",
    4: "device failure",
    5: "acknowledge",
    6: "device busy",
}
MBAP_BYTES = 7
REAL = struct.Struct(">f")  # IEEE 754, 32 bits: 24 binary digits
REAL_DIGITS, LEAST_REAL = 24, 2.0**-149
READS = {
    1: bit_message.ReadCoilsRequest,
    2: bit_message.ReadDiscreteInputsRequest,
    3: register_message.ReadHoldingRegistersRequest,
}


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A run of addresses that one frame reads; it holds the rows whose addresses are in it.

    Attributes:
        name: Name of the scan.
        start: First address.
        count: How many.
        every_s: How often it is polled; ``None`` where it is read on demand only.
        function: Function code that reads it: 1 coils, 2 inputs, 3 holding registers.
    """

    name: str
    start: int
    count: int
    every_s: float | None = 1.0
    function: int = 3

    def holds(self, row: "ModbusRow") -> int:
        """Return how many addresses of a row stand in it."""
        first, end = max(row.address, self.start), self.start + self.count
        return 0 if row.function != self.function else min(row.address + row.size, end) - first


@dataclass(frozen=True, kw_only=True)
class ModbusRow(ChannelRow):
    """A row of an instrument that speaks Modbus: a ``Holding`` register, a ``Coil``, an ``Input``.

    Attributes:
        address: Address on the wire (0-based PDU address).
        step: value = integer * step; a read-back agrees to it. ``None`` for whole numbers.
        signed: Two's complement.
        size: Words (1 or 2).
        low_first: Whether the low word of two stands first. Two words are high word first, unless
            it is said; a ``real`` row has to say it, because makers differ.
        bit: Only the bits of the word from this one on.
        bits: How many of them.
        real: Two words are a number of 32 bits as IEEE 754 has it, read and set.
        function: Function code that reads it, as in ``ReadBlock``.
    """

    address: int = field(kw_only=False)
    step: float | None = None
    signed: bool = False
    size: int = 1
    low_first: bool | None = None
    bit: int | None = None
    bits: int = 1
    real: bool = False
    function: int = 3

    def bound(self, name: str, driver: object) -> "ModbusRow":
        """Return the row with a driver's settings in it; bits show what they can."""
        row = super().bound(name, driver)
        return row if row.bit is None else replace(row, shows=(0.0, 2.0**row.bits - 1))

    def wrong(self) -> Iterator[str]:
        """Return what is wrong with the row as it is written."""
        yield from super().wrong()
        if self.size not in (1, 2):
            yield f"size is 1 or 2 words, not {self.size}"
        if self.real and (self.size != 2 or self.low_first is None):
            yield "a real row takes size=2 and low_first, False (high word first) or True"
        if self.real and (self.step is not None or self.signed or self.bit is not None):
            yield "a real row has no step, signed or bit"
        if self.real and self.sets == ANY:
            yield "sets of a real row are two numbers: its read-back agrees to their last digit"
        if self.sets is not None and self.function == 3 and self.bit is not None:
            yield "a bit of a register cannot be set: its other bits would be written too"

    @property
    def step_set(self) -> float:
        """Return the step of its encoding; of a real one, the largest between its bounds."""
        if not self.real or self.sets is None:
            return self.step or 0.0
        return math.ldexp(1.0, math.frexp(max(map(abs, self.sets)))[1] - REAL_DIGITS)

    @property
    def scale(self) -> float:
        """Return what one of the wire's integers is worth."""
        return self.step or 1.0

    def decode(self, block: Sequence[int], start: int) -> float:
        """Read the value out of a block of words that starts at address ``start``."""
        at = self.address - start
        raw = block[at]
        if self.size == 2:
            high, low = (block[at + 1], raw) if self.low_first else (raw, block[at + 1])
            raw = high << 16 | low
        if self.bit is not None:
            return float(raw >> self.bit & (1 << self.bits) - 1)
        if self.real:
            return float(REAL.unpack(raw.to_bytes(4, "big"))[0])
        if self.signed and raw >> (16 * self.size - 1):
            raw -= 1 << 16 * self.size
        return raw * self.scale if self.scale >= 1 else raw / round(1 / self.scale)

    def encode(self, value: float) -> tuple[int, ...]:
        """Turn a value into words; refuse what does not fit, never clip.

        Raises:
            ValueError: The value is outside what the words can carry, or is not zero and would
                be written as zero.
        """
        if not math.isfinite(value):
            raise ValueError(f"{value} does not fit register {self.address}: not finite")
        raw = self._real(value) if self.real else self._whole(value)
        if self.size == 1:
            return (raw,)
        words = raw >> 16, raw & 0xFFFF
        return words[::-1] if self.low_first else words

    def sent(self, value: float) -> float:
        """Return the value on the wire, as it would be read back."""
        return value if self.function == 1 else self.decode(self.encode(value), self.address)

    def _whole(self, value: float) -> int:
        """Return a value as a number of steps, as the words have it."""
        raw = round(value / self.scale)
        if self.step is None and raw != value:
            raise ValueError(f"{value} does not fit register {self.address}: whole numbers only")
        kept(f"register {self.address}", value, raw, self.scale)
        span = 1 << 16 * self.size
        low, high = (-span // 2, span // 2 - 1) if self.signed else (0, span - 1)
        if not low <= raw <= high:
            raise ValueError(
                f"{value} does not fit register {self.address}: "
                f"{low * self.scale} to {high * self.scale}"
            )
        return raw % span

    def _real(self, value: float) -> int:
        """Return a value as the 32 bits of IEEE 754."""
        try:
            bits = REAL.pack(value)
        except OverflowError:
            raise ValueError(f"{value} does not fit register {self.address}: too large") from None
        kept(f"register {self.address}", value, REAL.unpack(bits)[0], LEAST_REAL)
        return int.from_bytes(bits, "big")

    def decoder(self, name: str, start: int) -> Callable[[Sequence[int]], float]:
        """Return the reader of its value in a block that starts at an address."""

        def checked(block: Sequence[int]) -> float:
            value = self.decode(block, start)
            if not math.isfinite(value):
                raise BadReply(f"{name}: {value} is not a number")
            return self.right(name, value)

        if self.must is not None or self.real:
            return checked
        if self.size == 2:
            return lambda block: self.decode(block, start)
        return self._of_one_word(self.address - start)

    def _of_one_word(self, at: int) -> Callable[[Sequence[int]], float]:
        """Return ``decode`` for one plain word, which most are: all choices are made here, once."""
        if self.bit is not None:
            shift, mask = self.bit, (1 << self.bits) - 1
            return lambda block: float(block[at] >> shift & mask)
        sign = 0x8000 if self.signed else 0
        times, parts = (self.scale, 1) if self.scale >= 1 else (1, round(1 / self.scale))
        return lambda block: ((block[at] ^ sign) - sign) * times / parts


Holding = ModbusRow
Coil = partial(ModbusRow, function=1, bit=0)
Input = partial(ModbusRow, function=2, bit=0)


class ModbusDriver(TableDriver):
    """Base of the drivers that speak Modbus; a subclass gives rows, and the blocks they stand in.

    Attributes:
        unit: Slave address.
        blocks: Runs that one frame reads, in the order of the polls; a row outside of them has a
            frame of its own, after these.
        who: The registers of its identity, which ``known`` reads.
        tcp: Modbus TCP instead of RTU.
        timeout_s: Longest wait for a reply.
        settle_s: Silence the instrument needs after its reply.
    """

    tcp = False
    timeout_s = 0.5
    settle_s = 0.0
    blocks: ClassVar[tuple[ReadBlock, ...]] = ()
    who: ClassVar[ReadBlock]

    def __init__(self, *, unit: int = 1) -> None:
        if not 1 <= unit <= 247:
            raise ValueError(f"Modbus address {unit} is not within 1 to 247")
        self.unit = unit
        super().__init__()
        split = self.split(self.who)
        asks = self.read(self.who)
        self._identity = Query("identity", asks, lambda reply: self.known(split(reply)))

    @classmethod
    def wrong_table(cls) -> Iterator[str]:
        """Return the rows that stand in two blocks, or across the end of one."""
        for name, row in cls.rows.items():
            held = {each.name: n for each in cls.blocks if (n := each.holds(cast("Any", row))) > 0}
            if held and list(held.values()) != [cast("ModbusRow", row).size]:
                yield f"{name}: it has to stand in one block, not in parts of {' and '.join(held)}"

    @abstractmethod
    def known(self, words: Sequence[int]) -> Identity:
        """Return the identity in the registers of ``who``.

        Raises:
            BadReply: They hold none.
        """

    @property
    def protocol(self) -> Protocol:
        """Modbus, whose frames themselves say whether they read."""
        return Protocol.MODBUS_TCP if self.tcp else Protocol.MODBUS_RTU

    def scans_of(self, rows: Mapping[str, ModbusRow]) -> Iterator[Scan]:
        """Return a scan for each block that holds a row, and one for each other row."""
        left = dict(rows)
        for block in self.blocks:
            inside = {name: left.pop(name) for name, row in rows.items() if block.holds(row) > 0}
            if inside:
                yield self._scan(block, inside)
        for name, row in left.items():
            yield self._scan(_alone(name, row), {name: row})

    def commands(self, channel: str, row: ModbusRow, value: float) -> tuple[Request, ...]:
        """Return the one frame that sets a channel."""
        if row.function == 1:
            return (self.write_coil(row.address, value == 1),)
        words = row.encode(value)
        if row.size == 1:
            return (self.write_register(row.address, words[0]),)
        return (self.write_registers(row.address, words),)

    def shown(self, channel: str, value: float) -> Request | None:
        """Read the coil or the register that shows a channel, in steps of its own."""
        row: Any = self.channels[str(self.channels[channel].readback)]
        if row.function != 3:
            data = bytes([1, value == 1])
        elif row.bit is not None:
            return None  # other bits stand beside it
        else:
            try:
                words = row.encode(value)
            except ValueError:  # its words have no such value
                return None
            data = struct.pack(f">B{len(words)}H", 2 * len(words), *words)
        asks = self.read(_alone(channel, row))
        return replace(asks, obeyed=self._reply(row.function, data))

    def read(self, block: ReadBlock) -> Request:
        """Ask for a block."""
        pdu = READS[block.function](address=block.start, count=block.count, dev_id=self.unit)
        return self._request(pdu, block.function, byte_count=_data_bytes(block))

    def write_register(self, address: int, word: int) -> Request:
        """Store one word (function 06)."""
        pdu = register_message.WriteSingleRegisterRequest(
            address=address, registers=[word], dev_id=self.unit
        )
        return self._request(pdu, 6, echo=struct.pack(">HH", address, word))

    def write_registers(self, address: int, words: Sequence[int]) -> Request:
        """Store several words in one transaction (function 16)."""
        pdu = register_message.WriteMultipleRegistersRequest(
            address=address, registers=list(words), dev_id=self.unit
        )
        return self._request(pdu, 16, echo=struct.pack(">HH", address, len(words)))

    def write_coil(self, address: int, on: bool) -> Request:
        """Switch one coil (function 05)."""
        pdu = bit_message.WriteSingleCoilRequest(address=address, bits=[on], dev_id=self.unit)
        return self._request(pdu, 5, echo=struct.pack(">HH", address, 0xFF00 if on else 0))

    def split(self, block: ReadBlock) -> Callable[[bytes], tuple[int, ...]]:
        """Return the decoder of a reply to a block: its words, or its bits."""
        at = 9 if self.tcp else 3
        count, data_bytes = block.count, _data_bytes(block)
        length = at + data_bytes + (0 if self.tcp else 2)
        unpack = struct.Struct(f">{count}H").unpack_from

        def decode(reply: bytes) -> tuple[int, ...]:
            self.accept(block.name, reply)
            # A reply rule for TCP cannot tie the length to the function, so both are tied here.
            if len(reply) != length or reply[at - 1] != data_bytes:
                what = f"{len(reply)} bytes, expected {length}: {reply.hex(' ')}"
                raise BadReply(f"{block.name}: {what}")
            if block.function == 3:
                return unpack(reply, at)
            return tuple([reply[at + i // 8] >> i % 8 & 1 for i in range(count)])

        return decode

    def accept(self, channel: str, reply: bytes) -> None:
        """Turn a Modbus exception into ``DeviceFault``."""
        at = MBAP_BYTES if self.tcp else 1
        if reply[at] & 0x80:
            code = reply[at + 1]
            raise fault(channel, f"Modbus exception {code} ({EXCEPTIONS.get(code, 'unknown')})")

    def _scan(self, block: ReadBlock, rows: Mapping[str, ModbusRow]) -> Scan:
        split = self.split(block)
        decoders = {name: row.decoder(name, block.start) for name, row in rows.items()}
        channels = tuple([name for name, row in rows.items() if not row.hidden])
        table = tuple([decoders[name] for name in channels])
        checks = tuple([decode for name, decode in decoders.items() if rows[name].hidden])

        def values(reply: bytes) -> tuple[float, ...]:
            found = split(reply)
            for check in checks:
                check(found)
            return tuple([decode(found) for decode in table])

        return Scan(block.name, self.read(block), channels, values, block.every_s)

    def _request(
        self, pdu: ModbusPDU, function: int, *, byte_count: int | None = None, echo: bytes = b""
    ) -> Request:
        framer = (FramerSocket if self.tcp else FramerRTU)(DecodePDU(is_server=False))
        frame = framer.buildFrame(pdu)
        obeyed = self._reply(function, echo) if echo else b""  # a write's reply repeats it
        if not self.tcp:
            rtu = requests.Rtu(self.unit, function, byte_count, echo)
            return Request(frame, rtu, self.timeout_s, self.settle_s, obeyed=obeyed)
        body = len(echo) if byte_count is None else 1 + byte_count
        rule = requests.LengthAt(
            offset=4,
            size=2,
            add=6,
            transaction_size=2,
            match=bytes([self.unit, function]),
            match_at=6,
            lengths=(8 + body, 9),
        )
        return Request(frame, rule, self.timeout_s, self.settle_s, Transaction(0, 2), obeyed)

    def _reply(self, function: int, data: bytes) -> bytes:
        """Return the regular expression of the one right reply: its transaction is the port's."""
        body = bytes([self.unit, function]) + data
        if self.tcp:
            return b"(?s:..)" + re.escape(struct.pack(">HH", 0, len(body)) + body)
        return re.escape(body + requests.crc16_modbus(body).to_bytes(2, "little"))


def _alone(name: str, row: ModbusRow) -> ReadBlock:
    return ReadBlock(row.scan or name, row.address, row.size, row.every_s, row.function)


def _data_bytes(block: ReadBlock) -> int:
    return 2 * block.count if block.function == 3 else (block.count + 7) // 8
