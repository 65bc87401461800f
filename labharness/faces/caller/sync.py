"""A caller for programs without an event loop: the same one, on a loop in a thread of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from pathlib import Path
from threading import Thread
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from labharness.faces.broker.connection import Broker
from labharness.faces.caller.caller import LOG, RESULT_S_MAX, AsyncCaller
from labharness.faces.caller.task_state import Gap, KnownTask
from labharness.protocols.hcp.codec import HcpMessage

P = ParamSpec("P")
T = TypeVar("T")

END_S_MAX: Final = 30.0
"""Longest time (s) to hang up."""


def _blocking(
    method: Callable[Concatenate[AsyncCaller, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[SyncCaller, P], T]":
    """Return a method of `AsyncCaller` as one that blocks."""

    @wraps(method)
    def done(self: "SyncCaller", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._do(method(self._caller, *args, **kwargs))

    return done


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

    connected = _blocking(AsyncCaller.connected)
    submit = _blocking(AsyncCaller.submit)
    received = _blocking(AsyncCaller.received)
    answer = _blocking(AsyncCaller.answer)
    result = _blocking(AsyncCaller.result)
    abort = _blocking(AsyncCaller.abort)

    def events(self, message_id: str, within_s: float = RESULT_S_MAX) -> Iterator[HcpMessage | Gap]:
        """Return what is heard of a task and was not read yet, up to its end."""
        told = self._caller.events(message_id, within_s)
        try:
            while (found := self._do(_awaited(anext(told, None)))) is not None:
                yield found
        finally:
            self._do(_awaited(told.aclose()))

    def task(self, name: str) -> KnownTask:
        """Return a task as the file knows it, by the unique beginning of an id."""
        return self._caller.file.named(name)


async def _awaited(asked: Awaitable[T]) -> T:
    return await asked
