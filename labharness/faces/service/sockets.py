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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from labharness.core.clock import Chance
from labharness.core.vocabulary.texts import Text
from labharness.faces.service.application import application, refused, serving
from labharness.faces.service.inbox import Unanswerable
from labharness.faces.service.message_service import MessageService
from labharness.faces.service.outbox import Batch, Outbox, outbox_of
from labharness.lab.house.access import HouseAccess
from labharness.protocols.hcp.codec import HcpMessage, encode
from labharness.protocols.hcp.messages import CALLERS

VIA: Final = "websocket"

ADDRESS_FILE: Final = "websocket.json"
"""In the state directory of a lab, as long as it is served: the address, with its secret."""

SECRET_BYTES: Final = 32

CONNECTIONS_MAX: Final = 16
"""Most callers at once; others are refused with 503."""

SEND_S_MAX: Final = 10.0
"""Longest time (s) for one message to leave; a caller that reads none for so long is hung up on."""

Connection = WebSocket
"""A connection as other faces take it."""

GONE: Final = (TimeoutError, RuntimeError, WebSocketDisconnect)
"""A connection takes nothing more."""

SPEAKS: Final[ContextVar[WebSocket]] = ContextVar("SPEAKS")
"""The connection whose message is being taken; each has a task of its own."""


async def serve_websockets(
    listening: socket.socket, tell: Callable[[str], None], house: HouseAccess
) -> None:
    """Serve callers of this machine until it is cancelled.

    Args:
        listening: The socket, bound to loopback.
        tell: Called with a line for people.
        house: The house.
    """
    secret = new_secret()
    with outbox_of(house, VIA) as outbox:
        service = _Sockets(house, outbox, secret, tell)
        async with at_address(
            service.with_caller, secret, listening, house.home / ADDRESS_FILE, tell
        ):
            await service.send()


def new_secret() -> str:
    """Return a secret of this process."""
    return Chance(None).entropy(SECRET_BYTES).hex()


@asynccontextmanager
async def at_address(
    answer: Callable[[WebSocket], Awaitable[None]],
    secret: str,
    listening: socket.socket,
    place: Path,
    tell: Callable[[str], None],
) -> AsyncIterator[None]:
    """Serve WebSockets as long as the block runs, at an address that a file has.

    Args:
        answer: Takes a connection, which is not accepted yet.
        secret: Part of the address.
        listening: The socket, bound to loopback.
        place: The file.
        tell: Called with a line for people.
    """
    port = listening.getsockname()[1]
    async with serving(application([WebSocketRoute("/{secret}", answer)]), listening):
        with _kept_address(place, f"ws://127.0.0.1:{port}/{secret}"):
            tell(Text("websocket.address", port=port, path=str(place)))
            yield


def refusal_of(asked: WebSocket, secret: str, others: int) -> Response | None:
    """Return the refusal of a connection; ``None`` where it may be made.

    Args:
        asked: The connection.
        secret: That it must state.
        others: Number of connections beside it.
    """
    stated = asked.path_params["secret"].encode()
    callers = asked.query_params.getlist("caller")
    if "Origin" in asked.headers or not hmac.compare_digest(stated, secret.encode()):
        return refused(HTTPStatus.FORBIDDEN, Text("websocket.forbidden"))
    if len(callers) != 1 or not re.fullmatch(CALLERS, callers[0]):
        return refused(HTTPStatus.BAD_REQUEST, Text("websocket.no_caller"))
    if others >= CONNECTIONS_MAX:
        most = Text("websocket.full", most=CONNECTIONS_MAX)
        return refused(HTTPStatus.SERVICE_UNAVAILABLE, most)
    return None


@contextmanager
def _kept_address(place: Path, address: str) -> Iterator[None]:
    """Have the address in a file, whole, for this account alone, as long as the block runs."""
    fresh = place.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(json.dumps({"address": address}) + "\n")
    fresh.replace(place)
    try:
        yield
    finally:
        place.unlink(missing_ok=True)


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
        self._connected: dict[str, tuple[WebSocket, asyncio.Timeout]] = {}

    async def with_caller(self, connection: WebSocket) -> None:
        """Take what one caller asks, until it hangs up."""
        others = self._connected.keys() - {connection.query_params.get("caller")}
        if (refusal := refusal_of(connection, self._secret, len(others))) is not None:
            await connection.send_denial_response(refusal)
            return
        caller_id = connection.query_params["caller"]
        await connection.accept()
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as patience:
                await self._take(caller_id, (connection, patience))

    async def _take(self, caller_id: str, talks: tuple[WebSocket, asyncio.Timeout]) -> None:
        connection, _ = self._connected[caller_id] = talks
        SPEAKS.set(connection)
        self.came(caller_id)
        try:
            while (said := await connection.receive())["type"] == "websocket.receive":
                await self.take_until_kept(said.get("bytes") or said["text"].encode(), caller_id)
        finally:
            if self._connected.get(caller_id) is talks:
                del self._connected[caller_id]

    async def publish(self, batch: Batch, message: HcpMessage) -> bool:
        """Send one message, if its caller is connected; return whether it has left."""
        talks = self._connected.get(batch.caller_id)
        if talks is None:
            return False
        connection, patience = talks
        try:
            async with asyncio.timeout(SEND_S_MAX):
                await connection.send_text(encode(message).decode())
        except TimeoutError:
            if self._connected.get(batch.caller_id) is talks:
                del self._connected[batch.caller_id]
                patience.reschedule(0.0)  # it reads nothing, and is hung up on
            return False
        except (WebSocketDisconnect, RuntimeError):
            return False
        return True

    async def dead_letter(self, data: bytes, message_id: str | None, found: Unanswerable) -> None:
        """Say why a message was not taken; HCP has no answer to it, so this is none of its own."""
        self._counts.dead += 1
        self._tell(Text("stdio.unreadable", why=str(found.reason)))
        said = {"error": {"code": "unreadable", "message": str(found.reason)}}
        with suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            async with asyncio.timeout(SEND_S_MAX):
                await SPEAKS.get().send_text(json.dumps(said, ensure_ascii=False))
