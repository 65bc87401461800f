"""A house's one caller over standard input and output: HCP messages as JSON Lines, and no broker.

The caller is the program that has started this one, and is trusted like a person at the command
line: it is who its first message says, and cannot be another one later.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Final

from labharness.core.vocabulary.texts import Text
from labharness.faces.broker.connection import cancelled, one_ended
from labharness.faces.service.inbox import Unanswerable, claimed
from labharness.faces.service.message_service import MessageService
from labharness.faces.service.outbox import Batch, Outbox, outbox_of
from labharness.instruments.link.pipes import LinesIn, LinesOut
from labharness.lab.house.access import HouseAccess
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage, encode
from labharness.work.task.record import Tasks

VIA: Final = "stdio"

LOOK_S: Final = 0.25
"""Time (s) between two looks whether all was told, once the input has ended."""


async def serve_stdio(tell: Callable[[str], None], house: HouseAccess) -> None:
    """Serve one caller over a pair of pipes, up to the end of its input and of its tasks.

    Where the output has ended, it is up to the end of the tasks.

    Args:
        tell: Called with a line for people.
        house: The house.
    """
    with outbox_of(house, VIA) as outbox:
        pipes = _Pipes(house, outbox, tell)
        watched = [asyncio.ensure_future(pipes.send()), asyncio.ensure_future(pipes.take())]
        try:
            await one_ended(watched)
        except BrokenPipeError as why:
            tell(Text("stdio.gone", why=str(why)))
            await pipes.ended()  # a task in this process would end with it
        finally:
            await cancelled(watched)


class _Pipes(MessageService):
    """The caller at the other end."""

    via = VIA
    way = "local"

    def __init__(self, house: HouseAccess, outbox: Outbox, tell: Callable[[str], None]) -> None:
        super().__init__(house, outbox)
        self._tell = tell
        self._caller_id = ""
        self._in = LinesIn(sys.stdin.fileno(), MESSAGE_BYTES_MAX)
        self._out = LinesOut(sys.stdout.fileno())

    async def take(self) -> None:
        """Take all messages, then wait until all is told that they have brought about."""
        async for line in self._in.lines():
            self._caller_id = self._caller_id or claimed(line)
            await self.take_until_kept(line, self._caller_id)
        await self._until(self._outbox.all_sent)

    async def ended(self) -> None:
        """Wait until the tasks of the caller have ended, told or not."""
        await self._until(self._outbox.all_ended)

    async def _until(self, done: Callable[[Tasks, str], bool]) -> None:
        while not done(self._house.tasks(), self._caller_id):  # noqa: ASYNC110 - others send and end
            await asyncio.sleep(LOOK_S)

    async def publish(self, batch: Batch, message: HcpMessage) -> bool:
        """Write one message, if it is for the caller at the other end."""
        if batch.caller_id != self._caller_id:
            return False
        await self._out.put(encode(message))
        return True

    async def dead_letter(self, data: bytes, message_id: str | None, found: Unanswerable) -> None:
        """Say on standard error why a message was not taken."""
        self._counts.dead += 1
        self._tell(Text("stdio.unreadable", why=str(found.reason)))
