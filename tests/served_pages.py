"""Pages of a service, served on a free port while a test asks for them."""

import asyncio
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from starlette.routing import BaseRoute

from labharness.faces.service.application import application, local_socket, serving


def with_pages(pages: Sequence[BaseRoute], ask: Callable[[int], Any]) -> Any:
    """Serve pages while something is asked in a thread; return its answer."""
    found: list[Any] = []

    async def serve() -> None:
        with local_socket(0) as listening:
            port: int = listening.getsockname()[1]
            async with serving(application(pages), listening):
                asking = Thread(target=lambda: found.append(ask(port)), daemon=True)
                asking.start()
                await asyncio.to_thread(asking.join, 30.0)

    asyncio.run(serve())
    return found[0]
