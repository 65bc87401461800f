"""Recognise frames that only read, from their bytes alone; the guard process uses this too.

Source: MODBUS Application Protocol Specification V1.1b3, section 6 (functions); MODBUS over Serial
Line V1.02, section 2.5.1 (RTU frame); MODBUS Messaging on TCP/IP V1.0b, section 3.1.3 (MBAP).
"""

from enum import StrEnum

from labharness.core.vocabulary.requests import Request, Transaction, ends_with_crc16

MODBUS_READS = {1: "read coils", 2: "read discrete inputs"}
MODBUS_READS |= {3: "read holding registers", 4: "read input registers"}
MODBUS_OTHERS = {
    5: "write single coil",
    6: "write single register",
    8: "diagnostics",
    15: "write multiple coils",
    16: "write multiple registers",
    22: "mask write register",
    23: "read and write multiple registers",
}
READ_PDU_BYTES = 5  # function, first address, count
MBAP_BYTES = 7
MBAP_COUNTED = 6  # bytes that the header's length field does not count
RTU_BYTES_MIN = 4  # address, function, checksum
MBAP_TRANSACTION = Transaction(0, 2)


class Protocol(StrEnum):
    """The frame format of an instrument."""

    MODBUS_RTU = "modbus_rtu"
    MODBUS_TCP = "modbus_tcp"
    TEXT = "text"


def why_no_read(request: Request, protocol: Protocol) -> str:
    """Return why a request cannot be a read, or ``""`` if nothing shows that.

    On Modbus the frame itself says what it does: functions 1 to 4 read. A frame that is complete
    Modbus is judged as Modbus on a port of any protocol.

    Args:
        request: The request that a driver calls a read.
        protocol: The protocol of its port.
    """
    found = _modbus(request.frame, protocol)
    if found is None:
        if protocol == Protocol.TEXT:
            return ""
        return f"it is not a whole frame of {protocol}"
    spoken, unit, pdu = found
    if protocol not in (Protocol.TEXT, spoken):
        return f"it is a frame of {spoken} and not of {protocol}"
    function = pdu[0]
    if function not in MODBUS_READS:
        name = MODBUS_OTHERS.get(function, "unknown")
        would = f"Modbus function {function} ({name}) to unit {unit}"
        if function in MODBUS_OTHERS and len(pdu) >= READ_PDU_BYTES:
            address, value = int.from_bytes(pdu[1:3], "big"), int.from_bytes(pdu[3:5], "big")
            would += f", address {address}, {value:04X}h"
        return f"it would do {would}; functions 1 to 4 read"
    if len(pdu) != READ_PDU_BYTES:
        return f"a Modbus read has {READ_PDU_BYTES} bytes of function and data, this {len(pdu)}"
    blank = MBAP_TRANSACTION if spoken == Protocol.MODBUS_TCP else None
    if request.transaction not in (None, blank):
        return "its transaction field is not where Modbus has one"
    return ""


def same_frame(one: Request, other: Request) -> bool:
    """Return whether two requests can be the same bytes; transaction fields are ignored."""
    if len(one.frame) != len(other.frame):
        return False
    blank = {
        place
        for field in (one.transaction, other.transaction)
        if field is not None
        for place in range(field.offset, field.offset + field.size)
    }
    pairs = zip(one.frame, other.frame, strict=True)
    return all(a == b or place in blank for place, (a, b) in enumerate(pairs))


def _modbus(frame: bytes, first: Protocol) -> tuple[Protocol, int, bytes] | None:
    """Split a complete Modbus frame into protocol, unit, and function with data."""
    found = None
    counted = int.from_bytes(frame[4:6], "big") == len(frame) - MBAP_COUNTED
    if frame[2:4] == b"\0\0" and counted and len(frame) > MBAP_BYTES:
        found = Protocol.MODBUS_TCP, frame[6], frame[MBAP_BYTES:]
    as_tcp = found is not None and first != Protocol.MODBUS_RTU
    if not as_tcp and len(frame) >= RTU_BYTES_MIN and ends_with_crc16(frame):
        return Protocol.MODBUS_RTU, frame[0], frame[1:-2]
    return found
