"""Modbus for drivers: registers as a table, frames by pymodbus, RTU and TCP alike.

pymodbus encodes the requests (its PDU classes and framers); the replies are checked whole by the
reply rules in ``vocabulary`` (address, function, count, exact length, checksum) before a driver
sees them, because a framer that hunts for a frame would also find a late one.

Source: MODBUS Application Protocol Specification V1.1b3; MODBUS over Serial Line V1.02; MODBUS
Messaging on TCP/IP Implementation Guide V1.0b.
"""

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pymodbus.framer import FramerRTU, FramerSocket
from pymodbus.pdu import DecodePDU
from pymodbus.pdu.bit_message import (
    ReadCoilsRequest,
    ReadDiscreteInputsRequest,
    WriteSingleCoilRequest,
)
from pymodbus.pdu.pdu import ModbusPDU
from pymodbus.pdu.register_message import (
    ReadHoldingRegistersRequest,
    WriteMultipleRegistersRequest,
    WriteSingleRegisterRequest,
)

from labharness.core.vocabulary import (
    BadReply,
    LengthAt,
    Protocol,
    Request,
    Rtu,
    Transaction,
    crc16_modbus,
)
from labharness.instruments.driver.channels import Scan
from labharness.instruments.driver.driver import Driver, fault
from labharness.instruments.driver.steps import kept

__all__ = ["ModbusDriver", "Register"]

EXCEPTIONS = {  # MODBUS Application Protocol V1.1b3, section 7
    1: "illegal function",
    2: "illegal data address",
    3: "illegal data value",
    4: "device failure",
    5: "acknowledge",
    6: "device busy",
}
MBAP_BYTES = 7


@dataclass(frozen=True, slots=True)
class Register:
    """Where a value lives in 16-bit words, and how words become a number.

    Attributes:
        address: Address on the wire (0-based PDU address).
        scale: value = integer * scale.
        signed: Two's complement.
        size: Words, most significant first (1 or 2).
        bit: Only this bit of the word, as 0 or 1.
    """

    address: int
    scale: float = 1.0
    signed: bool = False
    size: int = 1
    bit: int | None = None

    def decode(self, block: Sequence[int], start: int) -> float:
        """Read the value out of a block of words that starts at address ``start``."""
        at = self.address - start
        raw = block[at]
        if self.size == 2:
            raw = raw << 16 | block[at + 1]
        if self.bit is not None:
            return float(raw >> self.bit & 1)
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
        raw = round(value / self.scale)
        kept(f"register {self.address}", value, raw, self.scale)
        span = 1 << 16 * self.size
        low, high = (-span // 2, span // 2 - 1) if self.signed else (0, span - 1)
        if not low <= raw <= high:
            raise ValueError(
                f"{value} does not fit register {self.address}: "
                f"{low * self.scale} to {high * self.scale}"
            )
        raw %= span
        return (raw >> 16, raw & 0xFFFF) if self.size == 2 else (raw,)


class ModbusDriver(Driver):
    """Base of the drivers that speak Modbus; a subclass gives registers and blocks.

    Attributes:
        unit: Slave address.
        tcp: Modbus TCP instead of RTU.
        timeout_s: Longest wait for a reply.
        settle_s: Silence the instrument needs after its reply.
    """

    tcp = False
    timeout_s = 0.5
    settle_s = 0.0

    def __init__(self, *, unit: int = 1) -> None:
        if not 1 <= unit <= 247:
            raise ValueError(f"Modbus address {unit} is not within 1 to 247")
        self.unit = unit

    @property
    def protocol(self) -> Protocol:
        """Modbus, whose frames themselves say whether they read."""
        return Protocol.MODBUS_TCP if self.tcp else Protocol.MODBUS_RTU

    def shows_word(self, address: int, word: int) -> Request:
        """Ask for one holding register; ``obeyed`` is the one reply that shows ``word``."""
        return self._shows(self.read_registers(address, 1), 3, struct.pack(">BH", 2, word))

    def shows_coil(self, address: int, on: bool) -> Request:
        """Ask for one coil; ``obeyed`` is the one reply that shows it on or off."""
        return self._shows(self.read_coils(address, 1), 1, bytes([1, on]))

    def read_registers(self, start: int, count: int) -> Request:
        """Ask for ``count`` holding registers (function 03)."""
        pdu = ReadHoldingRegistersRequest(address=start, count=count, dev_id=self.unit)
        return self._request(pdu, 3, byte_count=2 * count)

    def read_coils(self, start: int, count: int) -> Request:
        """Ask for coils (function 01)."""
        pdu = ReadCoilsRequest(address=start, count=count, dev_id=self.unit)
        return self._request(pdu, 1, byte_count=(count + 7) // 8)

    def read_inputs(self, start: int, count: int) -> Request:
        """Ask for discrete inputs (function 02)."""
        pdu = ReadDiscreteInputsRequest(address=start, count=count, dev_id=self.unit)
        return self._request(pdu, 2, byte_count=(count + 7) // 8)

    def write_register(self, address: int, word: int) -> Request:
        """Store one word (function 06)."""
        pdu = WriteSingleRegisterRequest(address=address, registers=[word], dev_id=self.unit)
        return self._request(pdu, 6, echo=struct.pack(">HH", address, word))

    def write_registers(self, address: int, values: Sequence[int]) -> Request:
        """Store several words in one transaction (function 16)."""
        pdu = WriteMultipleRegistersRequest(
            address=address, registers=list(values), dev_id=self.unit
        )
        return self._request(pdu, 16, echo=struct.pack(">HH", address, len(values)))

    def write_coil(self, address: int, on: bool) -> Request:
        """Switch one coil (function 05)."""
        pdu = WriteSingleCoilRequest(address=address, bits=[on], dev_id=self.unit)
        return self._request(pdu, 5, echo=struct.pack(">HH", address, 0xFF00 if on else 0))

    def block(
        self,
        name: str,
        start: int,
        count: int,
        registers: Mapping[str, Register],
        period_s: float | None = 1.0,
    ) -> Scan:
        """Make the scan that reads one block of registers and the channels in it.

        Raises:
            ValueError: A register stands outside the block.
        """
        table = tuple(registers.values())
        outside = [n for n, r in registers.items() if not start <= r.address < start + count]
        if outside:
            raise ValueError(f"block {name} does not hold {', '.join(outside)}")
        decode = self.words_of(name, count)

        def values(reply: bytes) -> tuple[float, ...]:
            block = decode(reply)
            return tuple([register.decode(block, start) for register in table])

        request = self.read_registers(start, count)
        return Scan(name, request, tuple(registers), values, period_s)

    def words_of(self, what: str, count: int) -> Callable[[bytes], tuple[int, ...]]:
        """Return the decoder of a reply of ``count`` words."""
        unpack = struct.Struct(f">{count}H").unpack_from
        at = 9 if self.tcp else 3
        check = self._data_check(what, 2 * count)

        def decode(reply: bytes) -> tuple[int, ...]:
            check(reply)
            return unpack(reply, at)

        return decode

    def bits_of(self, what: str, count: int) -> Callable[[bytes], tuple[bool, ...]]:
        """Return the decoder of a reply of ``count`` bits (coils or discrete inputs)."""
        at = 9 if self.tcp else 3
        check = self._data_check(what, (count + 7) // 8)

        def decode(reply: bytes) -> tuple[bool, ...]:
            check(reply)
            return tuple([bool(reply[at + i // 8] >> i % 8 & 1) for i in range(count)])

        return decode

    def _data_check(self, what: str, byte_count: int) -> Callable[[bytes], None]:
        # a reply rule for TCP cannot tie the length to the function, so both are tied here
        at = 8 if self.tcp else 2
        length = at + 1 + byte_count + (0 if self.tcp else 2)

        def check(reply: bytes) -> None:
            self.accept(what, reply)
            if len(reply) != length or reply[at] != byte_count:
                raise BadReply(f"{what}: {len(reply)} bytes, expected {length}: {reply.hex(' ')}")

        return check

    def accept(self, channel: str, reply: bytes) -> None:
        """Turn a Modbus exception into ``DeviceFault``."""
        at = MBAP_BYTES if self.tcp else 1
        if reply[at] & 0x80:
            code = reply[at + 1]
            raise fault(channel, f"Modbus exception {code} ({EXCEPTIONS.get(code, 'unknown')})")

    def _request(
        self, pdu: ModbusPDU, function: int, *, byte_count: int | None = None, echo: bytes = b""
    ) -> Request:
        framer = (FramerSocket if self.tcp else FramerRTU)(DecodePDU(is_server=False))
        frame = framer.buildFrame(pdu)
        obeyed = self._reply(function, echo) if echo else b""  # a write's reply repeats it
        if not self.tcp:
            rtu = Rtu(self.unit, function, byte_count, echo)
            return Request(frame, rtu, self.timeout_s, self.settle_s, obeyed=obeyed)
        body = len(echo) if byte_count is None else 1 + byte_count
        rule = LengthAt(
            offset=4,
            size=2,
            add=6,
            transaction_size=2,
            match=bytes([self.unit, function]),
            match_at=6,
            lengths=(8 + body, 9),
        )
        return Request(frame, rule, self.timeout_s, self.settle_s, Transaction(0, 2), obeyed)

    def _shows(self, read: Request, function: int, data: bytes) -> Request:
        return replace(read, obeyed=self._reply(function, data))

    def _reply(self, function: int, data: bytes) -> bytes:
        """Return the regular expression of the one right reply: its transaction is the port's."""
        body = bytes([self.unit, function]) + data
        if self.tcp:
            return b"(?s:..)" + re.escape(struct.pack(">HH", 0, len(body)) + body)
        return re.escape(body + crc16_modbus(body).to_bytes(2, "little"))
