"""A caller for programs without an event loop: the same one, on a loop in a thread of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any, Final, Self, TypeVar

from labharness.faces.broker.connection import Broker
from labharness.faces.caller import caller as its
from labharness.faces.caller.caller import LOG, AsyncCaller
from labharness.faces.caller.task_state import Gap, KnownTask
from labharness.protocols.hcp.codec import HcpMessage

T = TypeVar("T")

END_S_MAX: Final = 30.0
"""Longest time (s) to hang up."""


class SyncCaller:
    """A `AsyncCaller` whose methods block; a context.

    Each method takes, returns and raises what that of `AsyncCaller` does.
    """

    def __init__(
        self, broker: Broker, file: Path, *, warn: Callable[[str], None] = LOG.warning
    ) -> None:
        self._caller = AsyncCaller(broker, file, warn=warn)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="hcp-caller", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._caller.__aenter__())
        return self

    def __exit__(self, *ended: object) -> None:
        self._do(self._caller.__aexit__(*ended))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_S_MAX)
        self._loop.close()

    def _do(self, asked: Coroutine[Any, Any, T]) -> T:
        done = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return done.result()
        except BaseException:  # Ctrl-C too ends what was asked
            done.cancel()
            raise

    def connected(self, within_s: float = its.CONNECT_S) -> None:
        """Wait for the broker."""
        self._do(self._caller.connected(within_s))

    def submit(
        self,
        callee_id: str,
        payload: Mapping[str, Any],
        *,
        message_id: str | None = None,
        within_s: float = its.SEND_S,
    ) -> str:
        """Submit a task; return its `message_id`."""
        asked = self._caller.submit(callee_id, payload, message_id=message_id, within_s=within_s)
        return self._do(asked)

    def received(self, message_id: str, within_s: float = its.RECEIVE_S) -> KnownTask:
        """Wait until a lab has a task."""
        return self._do(self._caller.received(message_id, within_s))

    def answer(self, message_id: str, within_s: float = its.ANSWER_S_MAX) -> HcpMessage:
        """Wait for the acceptance or the rejection of a task."""
        return self._do(self._caller.answer(message_id, within_s))

    def result(self, message_id: str, within_s: float = its.RESULT_S_MAX) -> HcpMessage:
        """Wait for the message that ends a task."""
        return self._do(self._caller.result(message_id, within_s))

    def events(
        self, message_id: str, within_s: float = its.RESULT_S_MAX
    ) -> Iterator[HcpMessage | Gap]:
        """Return what is heard of a task and was not read yet, up to its end."""
        told = self._caller.events(message_id, within_s)
        try:
            while (found := self._do(_awaited(anext(told, None)))) is not None:
                yield found
        finally:
            self._do(_awaited(told.aclose()))

    def abort(self, message_id: str, reason: str = "", within_s: float = its.SEND_S) -> None:
        """Ask a lab to abort a task."""
        self._do(self._caller.abort(message_id, reason, within_s))

    def task(self, name: str) -> KnownTask:
        """Return a task as the file knows it, by the unique beginning of an id."""
        return self._caller.file.named(name)


async def _awaited(asked: Awaitable[T]) -> T:
    return await asked
