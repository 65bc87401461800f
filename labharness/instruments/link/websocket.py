"""WebSocket messages over TCP, with wsproto's protocol state machine."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection, events
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from labharness.instruments.link.links import LinkLost, nobody
from labharness.instruments.link.tcp import OPEN_S_MAX, TcpLink

MESSAGE_BYTES_MAX = 8 * 1024 * 1024


class WebSocketLink:
    """A link of whole messages.

    Args:
        url: ``ws://host:port/path``.

    Raises:
        ValueError: The URL has another form.
    """

    kind = "websocket"

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "ws" or not parts.hostname:
            raise ValueError(f"websocket url {url!r} is not ws://host:port/path")
        self._url = url
        self._host = parts.netloc
        self._target = parts.path or "/"
        self._stream = TcpLink(parts.hostname, parts.port or 80)
        self._stream.receive = self._feed
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._accepted: asyncio.Future[None] | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self.receive: Callable[[bytes], None] = nobody

    async def open(self) -> None:
        """Connect and shake hands within ``OPEN_S_MAX`` each."""
        await self._stream.open()
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._accepted = asyncio.get_running_loop().create_future()
        self._stream.write(
            self._protocol.send(events.Request(host=self._host, target=self._target))
        )
        try:
            async with asyncio.timeout(OPEN_S_MAX):
                await self._accepted
        except TimeoutError:
            self.close()
            raise LinkLost(f"websocket {self._url} does not shake hands: timeout") from None

    def write(self, data: bytes) -> None:
        """Send one text message."""
        try:
            framed = self._protocol.send(events.TextMessage(data=data.decode()))
        except LocalProtocolError as why:
            raise LinkLost(f"websocket {self._url} is closed: {why}") from None
        self._stream.write(framed)

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def _feed(self, data: bytes) -> None:
        try:
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                self._take(event)
        except RemoteProtocolError as why:
            self._fail(str(why))

    def _take(self, event: object) -> None:
        if isinstance(event, events.AcceptConnection):
            if self._accepted is not None and not self._accepted.done():
                self._accepted.set_result(None)
        elif isinstance(event, events.RejectConnection | events.CloseConnection):
            self._fail("closed by the other side")
        elif isinstance(event, events.Ping):
            self._stream.write(self._protocol.send(event.response()))
        elif isinstance(event, events.TextMessage | events.BytesMessage):
            part = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
            self._size += len(part)
            if self._size > MESSAGE_BYTES_MAX:
                self._fail(f"message larger than {MESSAGE_BYTES_MAX} bytes")
                return
            self._parts.append(part)
            if event.message_finished:
                whole, self._parts, self._size = b"".join(self._parts), [], 0
                self.receive(whole)

    def _fail(self, why: str) -> None:
        self._stream.close()
        if self._accepted is not None and not self._accepted.done():
            self._accepted.set_exception(LinkLost(f"websocket {self._url}: {why}"))
