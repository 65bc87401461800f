"""A small read-only HTTP server on 127.0.0.1, for programs of this machine."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

HOST: Final = "127.0.0.1"

HEAD_BYTES_MAX: Final = 8_192
"""Most bytes of a request's head; no body is read."""

ANSWER_S_MAX: Final = 5.0
"""Longest time (s) for a request to come, and for its answer to be made and read."""

CONNECTIONS_MAX: Final = 16
"""Most requests at once; others are refused with 503."""

NAMES: Final = ("127.0.0.1", "localhost")
"""The names by which a program of this machine asks. A page in a browser that points a name of its
own at this machine asks by that name, and is refused."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    content: bytes
    content_type: str
    status: HTTPStatus = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PageAsked:
    """A request: its path without a query, and its headers by their names in small letters."""

    path: str
    headers: Mapping[str, str]


def json_page(body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Page:
    """Return a page of JSON."""
    text = json.dumps(body, ensure_ascii=False, indent=2)
    return Page(f"{text}\n".encode(), "application/json", status)


def local_socket(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine.

    Raises:
        OSError: The port is taken, or this account may not use it.
    """
    return socket.create_server((HOST, port))


class LocalHttpServer:
    """Serves pages by their paths.

    Args:
        pages: Makes each page.
        below: Makes the pages whose paths begin with a text.
    """

    def __init__(
        self,
        pages: Mapping[str, Callable[[], Awaitable[Page]]],
        below: Mapping[str, Callable[[PageAsked], Awaitable[Page]]] | None = None,
    ) -> None:
        self._pages = pages
        self._below = below or {}
        self._open = 0

    async def serve(self, listening: socket.socket) -> asyncio.Server:
        """Begin to serve on a socket; the caller closes what is returned."""
        return await asyncio.start_server(self._asked, sock=listening, limit=HEAD_BYTES_MAX)

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                method, page = await self._page(head)
                writer.write(_answer(page, with_content=method != "HEAD"))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # it went away, is too slow (TimeoutError is an OSError), or asks too much
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _page(self, head: bytes) -> tuple[str, Page]:
        first, *rest = head.decode("latin-1").split("\r\n")
        method, _, target = first.partition(" ")
        path = target.partition(" ")[0].partition("?")[0]
        if self._open > CONNECTIONS_MAX:
            return method, refused(HTTPStatus.SERVICE_UNAVAILABLE)
        if not _is_named(rest):
            return method, refused(HTTPStatus.MISDIRECTED_REQUEST)
        if method not in ("GET", "HEAD"):
            return method, refused(HTTPStatus.METHOD_NOT_ALLOWED)
        if (make := self._pages.get(path)) is not None:
            return method, await make()
        for prefix, below in self._below.items():
            if path.startswith(prefix):
                return method, await below(PageAsked(path, _headers(rest)))
        return method, refused(HTTPStatus.NOT_FOUND)


def _is_named(lines: list[str]) -> bool:
    """Return whether the host that a request names is this machine."""
    hosts = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
    return (len(hosts) == 1 and hosts[0].rpartition(":")[0] in NAMES) or hosts in (
        [n] for n in NAMES
    )


def _headers(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _, value in pairs if value}


def refused(status: HTTPStatus, *headers: tuple[str, str]) -> Page:
    """Return a page that says only its status."""
    return Page(f"{status.phrase}\n".encode(), "text/plain", status, headers)


def _answer(page: Page, *, with_content: bool) -> bytes:
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.content_type}",
        f"Content-Length: {len(page.content)}",
        "Cache-Control: no-store",
        "Connection: close",
        *(f"{name}: {value}" for name, value in page.headers),
    )
    text = "\r\n".join((*head, "", ""))
    return text.encode("latin-1") + (page.content if with_content else b"")
