"""Serve a simulated instrument on a local WebSocket, with wsproto's protocol state machine."""

import asyncio

from wsproto import ConnectionType, WSConnection, events
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from labharness.instruments.simulation.served import Client, TcpPort

MESSAGE_BYTES_MAX = 1_048_576


class WebSocketPort(TcpPort):
    """A TCP port for WebSocket clients; a text message is a frame."""

    async def open(self) -> None:
        """Listen."""
        await super().open()
        self.address = f"ws://{self.address}"

    def _protocol(self) -> asyncio.Protocol:
        return _Messages(self)


class _Messages(Client):
    """One WebSocket client; its messages go to the instrument one by one."""

    def __init__(self, port: WebSocketPort) -> None:
        super().__init__(port)
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._parts: list[bytes] = []
        self._size = 0

    def data_received(self, data: bytes) -> None:
        try:
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                self._take(event)
        except (LocalProtocolError, RemoteProtocolError):  # another protocol
            self._transport.abort()

    def _take(self, event: object) -> None:
        if isinstance(event, events.Request):
            self._write(self._protocol.send(events.AcceptConnection()))
        elif isinstance(event, events.CloseConnection):
            self._write(self._protocol.send(event.response()))
            self._transport.close()
        elif isinstance(event, events.Ping):
            self._write(self._protocol.send(event.response()))
        elif isinstance(event, events.TextMessage | events.BytesMessage):
            part = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
            self._parts.append(part)
            self._size += len(part)
            if self._size > MESSAGE_BYTES_MAX:
                self._transport.abort()
            elif event.message_finished:
                whole, self._parts, self._size = b"".join(self._parts), [], 0
                if self._talk is not None and whole:
                    self._talk.hear(whole)

    def _send(self, reply: bytes) -> bool:
        # Garbled bytes may not be text, and a text frame cannot carry them.
        message = events.TextMessage(data=reply.decode("utf-8", "replace"))
        try:
            return self._write(self._protocol.send(message))
        except LocalProtocolError:  # about to close
            return False
