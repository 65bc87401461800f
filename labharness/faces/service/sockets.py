"""A house's callers over WebSockets of this machine: HCP messages as text frames, and no broker.

A caller is whoever knows the address: it holds a secret of this process, which a file has that the
lab's account alone may read. A page in a browser states its origin, and is refused.
"""

import asyncio
import hmac
import json
import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from labharness.core.clock import Chance
from labharness.core.vocabulary.texts import Text
from labharness.faces.service.audience import for_caller
from labharness.faces.service.inbox import Unanswerable
from labharness.faces.service.message_service import MessageService, now_text
from labharness.faces.service.outbox import Batch, Outbox
from labharness.faces.service.positions import OUTBOX_FILE, Positions
from labharness.lab.house.access import HouseAccess
from labharness.lab.house.message_store import MessageStore
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage, encode
from labharness.protocols.hcp.messages import CALLERS

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

VIA: Final = "websocket"

ADDRESS_FILE: Final = "websocket.json"
"""In the state directory of a lab, as long as it is served: the address, with its secret."""

SECRET_BYTES: Final = 32

CONNECTIONS_MAX: Final = 16
"""Most callers at once; others are refused with 503."""

SEND_S_MAX: Final = 10.0
"""Longest time (s) for one message to leave; a caller that reads none for so long is hung up on."""

SPEAKS: "Final[ContextVar[ServerConnection]]" = ContextVar("SPEAKS")
"""The connection whose message is being taken; each has a task of its own."""

RETRY_S: Final = 5.0
"""World time (s) before a message is taken again that a full disk did not keep."""


class WebSocketFace:
    """Serves callers of this machine until it is cancelled.

    Args:
        listening: The socket, bound to loopback.
        tell: Called with a line for people.
    """

    def __init__(self, listening: socket.socket, tell: Callable[[str], None]) -> None:
        self._listening = listening
        self._tell = tell

    async def __call__(self, house: HouseAccess) -> None:
        """Serve.

        Raises:
            ModuleNotFoundError: The extra ``websocket`` is not installed.
        """
        from websockets.asyncio.server import serve

        secret = Chance(None).entropy(SECRET_BYTES).hex()
        port = self._listening.getsockname()[1]
        place = house.home / ADDRESS_FILE
        with Positions(house.home / OUTBOX_FILE) as positions, MessageStore(house.home) as kept:
            outbox = Outbox(
                kept,
                house.runs,
                positions,
                Chance(None).uuid4,
                now_text,
                VIA,
                left_behind=house.left_behind,
            )
            service = _Sockets(house, outbox, secret, self._tell)
            async with serve(
                service.with_caller,
                sock=self._listening.dup(),
                process_request=service.admit,
                max_size=MESSAGE_BYTES_MAX,
            ):
                _keep_address(place, f"ws://127.0.0.1:{port}/{secret}")
                self._tell(Text("websocket.address", port=port, path=str(place)))
                try:
                    await service.send()
                finally:
                    place.unlink(missing_ok=True)


def _keep_address(place: Path, address: str) -> None:
    """Write the address down, whole, for this account alone; it need not outlive this process."""
    fresh = place.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(json.dumps({"address": address}) + "\n")
    fresh.replace(place)


class _Sockets(MessageService):
    """The callers that are connected, each by its id; the newest connection of one counts."""

    via = VIA
    way = "local"

    def __init__(
        self, house: HouseAccess, outbox: Outbox, secret: str, tell: Callable[[str], None]
    ) -> None:
        super().__init__(house, outbox)
        self._secret = secret
        self._tell = tell
        self._connected: dict[str, ServerConnection] = {}

    def admit(self, connection: "ServerConnection", request: "Request") -> "Response | None":
        """Return the refusal of a connection; ``None`` where it may be made."""
        stated, caller_id = _asked(request.path)
        if "Origin" in request.headers or not hmac.compare_digest(stated, self._secret):
            return connection.respond(HTTPStatus.FORBIDDEN, Text("websocket.forbidden") + "\n")
        if not re.fullmatch(CALLERS, caller_id):
            return connection.respond(HTTPStatus.BAD_REQUEST, Text("websocket.no_caller") + "\n")
        if len(self._connected) >= CONNECTIONS_MAX and caller_id not in self._connected:
            most = Text("websocket.full", most=CONNECTIONS_MAX)
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, most + "\n")
        return None

    async def with_caller(self, connection: "ServerConnection") -> None:
        """Take what one caller asks, until it hangs up."""
        from websockets.exceptions import ConnectionClosed

        request = connection.request
        _, caller_id = _asked("" if request is None else request.path)
        self._connected[caller_id] = connection
        SPEAKS.set(connection)
        self.came(caller_id)
        try:
            async for said in connection:
                data = said.encode() if isinstance(said, str) else said
                while not await self.handle_or_dead_letter(data, caller_id):  # noqa: ASYNC110 - a disk tells nothing
                    await asyncio.sleep(RETRY_S)
        except ConnectionClosed:
            return
        finally:
            if self._connected.get(caller_id) is connection:
                del self._connected[caller_id]

    async def publish(self, batch: Batch, message: HcpMessage) -> bool:
        """Send one message, if its caller is connected; return whether it has left."""
        from websockets.exceptions import ConnectionClosed

        connection = self._connected.get(batch.caller_id)
        if connection is None:
            return False
        try:
            async with asyncio.timeout(SEND_S_MAX):
                await connection.send(encode(for_caller(message)).decode())
        except ConnectionClosed:
            return False
        except TimeoutError:
            connection.transport.abort()
            return False
        self._counts.sent[message.type] += 1
        return True

    async def dead_letter(self, data: bytes, message_id: str | None, found: Unanswerable) -> None:
        """Say why a message was not taken; HCP has no answer to it, so this is none of its own."""
        from websockets.exceptions import ConnectionClosed

        self._counts.dead += 1
        self._tell(Text("stdio.unreadable", why=str(found.reason)))
        said = {"error": {"code": "unreadable", "message": str(found.reason)}}
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(SEND_S_MAX):
                await SPEAKS.get().send(json.dumps(said, ensure_ascii=False))


def _asked(target: str) -> tuple[str, str]:
    """Return the secret and the caller of a request's target, ``/SECRET?caller=ID``."""
    with suppress(ValueError):
        parts = urlsplit(target)
        callers = parse_qs(parts.query).get("caller", [])
        secret = parts.path.removeprefix("/")
        return secret if secret.isascii() else "", callers[0] if len(callers) == 1 else ""
    return "", ""
