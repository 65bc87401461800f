"""A server of MCP-CP: over WebSockets of this machine, or for one program over a pair of pipes."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from labharness.faces.dialogue.rooms import Participant, Rooms
from labharness.instruments.link.pipes import LinesIn, LinesOut
from labharness.protocols.mcp_cp.codec import MESSAGE_BYTES_MAX, encode
from labharness.protocols.mcp_cp.context import MESSAGES_MAX
from labharness.protocols.mcp_cp.errors import NotMcpCp
from labharness.protocols.mcp_cp.messages import McpMessage

ADDRESS_FILE: Final = "mcp-cp.json"
"""In the state directory of a lab, as long as it is served: the address, with its secret."""

WAITING_MAX: Final = 2 * MESSAGES_MAX
"""Most messages that wait to be read by one client: a whole history, and as many again."""


async def serve_pipes(rooms: Rooms, caller_id: str) -> None:
    """Serve one client over standard input and output, up to the end of its input."""
    lines, out = LinesIn(sys.stdin.fileno(), MESSAGE_BYTES_MAX), LinesOut(sys.stdout.fileno())
    try:
        async with _client(rooms, caller_id, out.put) as client:
            async for line in lines.lines():
                await asyncio.to_thread(rooms.take, client, line)
            await asyncio.to_thread(rooms.leave, client, hears=True)
            await asyncio.to_thread(rooms.close)
    except* BrokenPipeError:  # no program reads: the turns go on to their ends
        await asyncio.to_thread(rooms.close)


async def serve_sockets(
    rooms: Rooms, listening: socket.socket, tell: Callable[[str], None]
) -> None:
    """Serve clients of this machine until it is cancelled.

    Args:
        rooms: The dialogues.
        listening: The socket, bound to loopback.
        tell: Called with a line for people.
    """
    from labharness.faces.service.sockets import serve_talks

    async def talk(
        caller_id: str, frames: AsyncIterator[bytes], send: Callable[[bytes], Awaitable[None]]
    ) -> None:
        async with _client(rooms, caller_id, send) as client:
            async for data in frames:
                await asyncio.to_thread(rooms.take, client, data)

    await serve_talks(talk, listening, rooms.state_dir / ADDRESS_FILE, tell)


@asynccontextmanager
async def _client(
    rooms: Rooms, caller_id: str, send: Callable[[bytes], Awaitable[None]]
) -> AsyncIterator[Participant]:
    """Have a client take part as long as the block runs; what is due to it leaves beside.

    Raises:
        ExceptionGroup: With that by which a message did not leave.
    """
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[McpMessage | None](WAITING_MAX)

    async def pump() -> None:
        while (message := await waiting.get()) is not None:
            try:
                data = encode(message)
            except NotMcpCp as why:  # too large: the connection has others
                await asyncio.to_thread(rooms.unsent, client, message, why)
            else:
                await send(data)

    def put(message: McpMessage) -> None:
        with suppress(asyncio.QueueFull):  # it reads nothing, and is hung up on
            waiting.put_nowait(message)

    def send_soon(message: McpMessage) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(put, message)

    client = Participant(caller_id, send_soon)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pump())
            yield client
            loop.call_soon(waiting.put_nowait, None)
    finally:
        await asyncio.to_thread(rooms.leave, client)
