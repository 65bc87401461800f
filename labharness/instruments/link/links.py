"""The interface of every link to an instrument: send bytes, receive bytes."""

from collections.abc import Callable
from typing import Protocol

from labharness.core.errors import LabError


class LinkLost(LabError, ConnectionError, code="link_lost"):
    """The link is gone: port unplugged, connection closed, host away."""


class Link(Protocol):
    """One link. ``write`` never waits: it gives the bytes to the operating system or drops them.

    Attributes:
        kind: ``loopback``, ``serial``, ``tcp``, ``visa`` or ``websocket``.
        receive: Called with bytes as they arrive (whole messages on a message link).
    """

    kind: str
    receive: Callable[[bytes], None]

    async def open(self) -> None:
        """Open the link; raise ``LinkLost`` with the address and the reason."""

    def write(self, data: bytes) -> None:
        """Send ``data``; raise ``LinkLost`` when the link is gone."""

    def close(self) -> None:
        """Close the link; a second call does nothing."""


class RemoteEnd(Protocol):
    """The other end of a loopback: a simulated bus."""

    def transmit(self, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Take bytes; call ``deliver`` with each reply when it arrives."""


def nobody(data: bytes) -> None:
    """Drop bytes: the default receiver."""
