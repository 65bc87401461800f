"""What tests of drivers and frames share: an exchange with a simulated instrument."""

from typing import Protocol

from labharness.core.vocabulary import Request
from labharness.faces.testing.pairs import framed


class Face(Protocol):
    """An instrument as the wire knows it."""

    def receive(self, frame: bytes, /) -> bytes | None: ...


def rtu(*body: int) -> bytes:
    """Return a Modbus RTU frame from its bytes without checksum."""
    return framed(bytes(body).hex())


def answer(face: Face, frame: bytes) -> bytes:
    """Return the reply to a frame, which is not silence."""
    reply = face.receive(frame)
    assert reply is not None
    return reply


def exchange(request: Request, face: Face, seen: int = 0) -> bytes:
    """Return the reply, of which the request's rule takes all."""
    reply = answer(face, request.frame)
    assert request.reply.take(reply, seen) == len(reply)
    return reply
