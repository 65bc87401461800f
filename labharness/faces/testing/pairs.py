"""Connect a driver to its simulator without a lab: frames one way, replies the other."""

import struct

from labharness.core.errors import LabError
from labharness.core.vocabulary import Request, crc16_modbus
from labharness.instruments.driver import Driver
from labharness.instruments.simulation import Face


class PairDisagrees(LabError, AssertionError, code="pair_disagrees"):
    """The simulator was silent, or its reply does not satisfy the driver."""


def exchange(face: Face, request: Request) -> bytes:
    """Send one frame, with its blank transaction id, and return the reply.

    Raises:
        PairDisagrees: No reply came, or the reply rule does not take all of it.
        BadReply: The reply can never become the expected one.
    """
    reply = face.receive(request.frame)
    if reply is None:
        raise PairDisagrees(f"{request.frame!r} is met with silence")
    taken = request.reply.take(reply, transaction_of(request))
    if taken != len(reply):
        raise PairDisagrees(f"{request.frame!r}: of the reply {reply!r} {taken} bytes are taken")
    return reply


def write(driver: Driver, face: Face, channel: str, value: float) -> None:
    """Set one channel.

    Raises:
        DeviceFault: The instrument refuses.
        ValueError: The driver refuses.
    """
    for request in driver.write(channel, value):
        driver.accept(channel, exchange(face, request))


def read(driver: Driver, face: Face) -> dict[str, float]:
    """Return the values of all channels that the instrument answers in its state."""
    values: dict[str, float] = {}
    for scan in sorted(driver.scans(), key=lambda each: each.only_while is not None):
        only = scan.only_while
        if only is not None and values[only.channel] not in only.values:
            continue
        for request in scan.before:
            exchange(face, request)
        values |= zip(scan.channels, scan.decode(exchange(face, scan.request)), strict=True)
    return values


def framed(body: str) -> bytes:
    """Return a Modbus RTU frame from its hex text without checksum."""
    data = bytes.fromhex(body)
    return data + struct.pack("<H", crc16_modbus(data))


def transaction_of(request: Request) -> int:
    """Return the transaction id in a frame, or 0 if it has no such field."""
    blank = request.transaction
    if blank is None:
        return 0
    stands = request.frame[blank.offset : blank.offset + blank.size]
    return int(stands) if blank.ascii else int.from_bytes(stands, "big")
