"""TCP: a byte stream to a host and port."""

import asyncio
from collections.abc import Callable

from labharness.instruments.link.descriptors import hurry, refuse_itself
from labharness.instruments.link.links import LinkLost, nobody

OPEN_S_MAX = 5.0


class TcpLink(asyncio.Protocol):
    """A link over TCP.

    Args:
        host: Name or address.
        port: TCP port.
    """

    kind = "tcp"

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self.transport: asyncio.Transport | None = None
        self.receive: Callable[[bytes], None] = nobody

    async def open(self) -> None:
        """Connect within ``OPEN_S_MAX``."""
        loop = asyncio.get_running_loop()
        where = f"{self._host}:{self._port}"
        try:
            async with asyncio.timeout(OPEN_S_MAX):
                made = await loop.create_connection(lambda: self, self._host, self._port)
                end = made[0].get_extra_info("socket")
                try:
                    refuse_itself(end)
                    hurry(end)
                except OSError:
                    made[0].abort()
                    raise
        except (OSError, TimeoutError) as why:
            raise LinkLost(f"tcp {where} does not open: {why or 'timeout'}") from None
        self.transport = made[0]

    def write(self, data: bytes) -> None:
        """Send the bytes to the socket."""
        if self.transport is None:
            raise LinkLost(f"tcp {self._host}:{self._port} is closed")
        self.transport.write(data)

    def close(self) -> None:
        """Close at once; the system still sends the bytes it has."""
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        self.receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the loss of the connection."""
        self.transport = None
