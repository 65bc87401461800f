"""One exchange on a port, awaited: lease the port, send under permit or as a read, give it back."""

import asyncio

from labharness.core.vocabulary import Request
from labharness.safety.guard import Guard, NotPermitted

__all__ = ["Exchanges", "NoReply", "PortLease"]


class NoReply(ConnectionError):
    """An instrument did not answer, or not in form."""


class Exchanges:
    """The guard's callbacks as awaitables, for commands and reads on demand.

    Args:
        guard: The only way to the ports.
        loop: Whose time it keeps.
    """

    def __init__(self, guard: Guard, loop: asyncio.AbstractEventLoop) -> None:
        self._guard = guard
        self._loop = loop

    def lease(self, port: str, *, patient: bool = False) -> "PortLease":
        """Return the port to one user for the length of an ``async with``."""
        return PortLease(self._guard, self._loop, port, patient=patient)

    async def ask(self, port: str, request: Request, *, patient: bool = False) -> bytes:
        """Send a read and await its reply.

        Args:
            port: Where.
            request: What to ask.
            patient: Whether everybody else who wants the port has it first.

        Raises:
            NoReply: None came, or not in form.
        """
        async with self.lease(port, patient=patient) as lease:
            return await lease.send(request)


class PortLease:
    """A port that is ours until the end of the block, whatever ends it."""

    def __init__(
        self, guard: Guard, loop: asyncio.AbstractEventLoop, port: str, *, patient: bool
    ) -> None:
        self._guard = guard
        self._loop = loop
        self._port = port
        self._patient = patient
        self._owned = False

    async def __aenter__(self) -> "PortLease":
        await self._take()
        return self

    async def __aexit__(self, *ended: object) -> None:
        self._release()

    async def settle(self) -> None:
        """Wait until the port may send again; others may have it in between."""
        if not self._guard.ready(self._port):
            self._release()
            await self._take()

    async def send(self, request: Request, *, command: bool = False) -> bytes:
        """Send one frame now and await its reply.

        Args:
            request: The frame.
            command: Take a permit for it, because the kernel has just allowed it.

        Raises:
            NoReply: The guard refused, or no reply came, or not in form.
        """
        ended: asyncio.Future[tuple[bytes | None, str]] = self._loop.create_future()

        def done(reply: bytes | None, error: str) -> None:
            if not ended.done():
                ended.set_result((reply, error))

        try:
            permit = None
            if command:
                permit = self._guard.permit(self._port, request)
            self._guard.exchange(self._port, request, permit, done)
        except NotPermitted as why:
            raise NoReply(str(why)) from None
        reply, error = await ended
        if reply is None:
            raise NoReply(error)
        return reply

    async def _take(self) -> None:
        given: asyncio.Future[None] = self._loop.create_future()

        def give() -> None:
            if given.cancelled():  # whoever waited has gone: the next one may have the port
                self._guard.release(self._port)
            else:
                self._owned = True
                given.set_result(None)

        self._guard.when_free(self._port, give, patient=self._patient)
        try:
            await given
        except asyncio.CancelledError:
            self._guard.leave(self._port, give)
            self._release()  # it may have been given in the same turn
            raise

    def _release(self) -> None:
        if self._owned:
            self._owned = False
            self._guard.release(self._port)
