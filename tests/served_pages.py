"""Pages of a service, served on a free port while a test asks for them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from threading import Thread
from typing import Any

from labharness.faces.service.local_http import LocalHttpServer, Page, PageAsked, local_socket

__all__ = ["with_pages"]


def with_pages(
    pages: Mapping[str, Callable[[], Awaitable[Page]]],
    ask: Callable[[int], Any],
    below: Mapping[str, Callable[[PageAsked], Awaitable[Page]]] | None = None,
) -> Any:
    """Serve pages while something is asked in a thread; return its answer."""
    found: list[Any] = []

    async def serve() -> None:
        with local_socket(0) as listening:
            server = await LocalHttpServer(pages, below).serve(listening)
            port: int = listening.getsockname()[1]
            asking = Thread(target=lambda: found.append(ask(port)), daemon=True)
            asking.start()
            await asyncio.to_thread(asking.join, 30.0)
            server.close()

    asyncio.run(serve())
    return found[0]
