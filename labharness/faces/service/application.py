"""The one ASGI application of a service, and its server: for programs of this machine alone.

Pages and WebSockets are routes of it. What asks too slowly, too much or by another name than this
machine's is refused.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Host, Router
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX

HOST: Final = "127.0.0.1"

HEAD_BYTES_MAX: Final = 8_192
"""Most bytes of a request's head."""

ANSWER_S_MAX: Final = 5.0
"""Longest time (s) for a request to come, and for its answer to be made and read."""

CONNECTIONS_MAX: Final = 16
"""Most requests at once; others are refused with 503."""

NAMES: Final = (HOST, "localhost")
"""The names by which a program of this machine asks. A page in a browser that points a name of its
own at this machine asks by that name, and is refused."""


def local_socket(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine.

    Raises:
        OSError: The port is taken, or this account may not use it.
    """
    return socket.create_server((HOST, port))


def refused(status: HTTPStatus, why: str = "", **headers: str) -> Response:
    """Return a page that says only its status, or why."""
    return PlainTextResponse(f"{why or status.phrase}\n", status, headers)


def application(routes: Sequence[BaseRoute]) -> Starlette:
    """Return the application that answers by some routes whoever asks this machine by its name."""
    found = Starlette(routes=[Host(name, Router(routes)) for name in NAMES])
    found.router.default = refused(HTTPStatus.MISDIRECTED_REQUEST)
    return found


@asynccontextmanager
async def serving(app: Starlette, listening: socket.socket) -> AsyncIterator[None]:
    """Serve an application on a socket as long as the block runs."""
    config = Config(
        app,
        http=_Request,
        ws=_WebSocket,
        ws_max_size=2 * MESSAGE_BYTES_MAX,  # one that is too long is answered, and not hung up on
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("Cache-Control", "no-store")],
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        limit_concurrency=CONNECTIONS_MAX + 1,  # it counts the one that asks
        timeout_keep_alive=0,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    running = asyncio.ensure_future(server.serve([listening.dup()]))
    try:
        yield
    finally:
        server.should_exit = True
        await running


class _Server(Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the house."""
        yield


class _Request(H11Protocol):
    """A connection that is hung up on unless it asks, and has read its answer, in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn too narrows what asyncio gives
        super().connection_made(transport)
        self.loop.call_later(ANSWER_S_MAX, self._hang_up)

    def _hang_up(self) -> None:
        if self.transport.get_protocol() is self:  # it has not become a WebSocket
            self.transport.abort()


class _WebSocket(WSProtocol):
    """A WebSocket that does not wait for ever until its other end has read all, once it ends."""

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        self.loop.call_later(ANSWER_S_MAX, self.transport.abort)
