"""What every link to an instrument looks like from above: hand over bytes, be handed bytes."""

from collections.abc import Callable
from typing import Protocol

__all__ = ["Link", "LinkLost", "RemoteEnd"]


class LinkLost(ConnectionError):
    """The link itself is gone: port unplugged, connection closed, host away."""


class Link(Protocol):
    """One link. ``write`` never waits: it hands the bytes to the operating system or drops them.

    Attributes:
        kind: ``loopback``, ``serial``, ``tcp``, ``visa`` or ``websocket``.
        receive: Called with bytes as they arrive (whole messages on a message link).
    """

    kind: str
    receive: Callable[[bytes], None]

    async def open(self) -> None:
        """Open the link; raise ``LinkLost`` with the address and the reason."""
        ...

    def write(self, data: bytes) -> None:
        """Hand over ``data``; raise ``LinkLost`` when the link is gone."""
        ...

    def close(self) -> None:
        """Close the link; twice is no error."""
        ...


class RemoteEnd(Protocol):
    """What stands at the other end of a loopback: a simulated bus."""

    def transmit(self, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Take bytes, and deliver the replies when they have arrived."""
        ...


def nobody(data: bytes) -> None:
    """Take bytes that nobody waits for."""
