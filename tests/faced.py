"""What tests of drivers share: one exchange with a simulated instrument."""

from typing import Protocol

from labharness.core.vocabulary import Request


class Face(Protocol):
    """An instrument as the wire knows it."""

    def receive(self, frame: bytes, /) -> bytes | None: ...


def exchange(request: Request, face: Face, seen: int = 0) -> bytes:
    """Return the reply, of which the request's rule takes all."""
    reply = face.receive(request.frame)
    assert reply is not None
    assert request.reply.take(reply, seen) == len(reply)
    return reply
