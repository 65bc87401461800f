"""A Modbus driver and its simulator on one wire, and frames with their checksum."""

import struct

from labharness.driver import Driver
from labharness.simulation import Face
from labharness.vocabulary import Request, crc16_modbus

__all__ = ["exchange", "framed", "read", "write"]


def exchange(face: Face, request: Request) -> bytes:
    reply = face.receive(request.frame)
    assert reply is not None
    assert request.reply.take(reply, 0) == len(reply)
    return reply


def write(driver: Driver, face: Face, channel: str, value: float) -> None:
    for request in driver.write(channel, value):
        driver.accept(channel, exchange(face, request))


def read(driver: Driver, face: Face) -> dict[str, float]:
    values: dict[str, float] = {}
    for scan in driver.scans():
        values |= zip(scan.channels, scan.decode(exchange(face, scan.request)), strict=True)
    return values


def framed(body: str) -> bytes:
    data = bytes.fromhex(body)
    return data + struct.pack("<H", crc16_modbus(data))
