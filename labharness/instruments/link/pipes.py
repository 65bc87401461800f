"""Reads and writes lines on two descriptors, in threads that never delay the end of the process.

A reader that has gone slow, or a writer that says nothing, does not stop the loop either. The
threads hold no lock of Python's streams, and the system ends them with the process.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import CancelledError
from queue import SimpleQueue
from threading import Thread
from typing import Final

READ_BYTES: Final = 65_536

LINES_MAX: Final = 32
"""Most lines that wait here to be taken; beyond them the writer at the other end waits."""


class LinesIn:
    """The lines that come in at a descriptor, up to its end.

    Args:
        handle: The descriptor.
        bytes_max: Most bytes of a line; of a longer one the first of them and one more are given.
    """

    def __init__(self, handle: int, bytes_max: int) -> None:
        self._handle, self._bytes_max = handle, bytes_max
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(LINES_MAX)
        Thread(target=self._read, name="lines-in", daemon=True).start()

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Return each line that is not empty, without its end."""
        while (line := await self._lines.get()) is not None:
            if line.strip():
                yield line

    def _read(self) -> None:
        try:
            for line in self._split():
                self._give(line)
            self._give(None)
        except (RuntimeError, CancelledError):  # the loop has ended
            return

    def _give(self, line: bytes | None) -> None:
        giving = self._lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(giving, self._loop).result()
        except RuntimeError:
            giving.close()  # nothing takes it any more
            raise

    def _split(self) -> Iterator[bytes]:
        rest, most = b"", self._bytes_max + 1
        while data := self._more():
            *whole, last = data.split(b"\n")
            for part in whole:
                yield (rest + part)[:most]
                rest = b""
            rest = (rest + last)[:most]
        if rest:
            yield rest

    def _more(self) -> bytes:
        try:
            return os.read(self._handle, READ_BYTES)
        except OSError:
            return b""


class LinesOut:
    """Lines that go out at a descriptor, in the order in which they are given.

    Args:
        handle: The descriptor.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        Thread(target=self._write, name="lines-out", daemon=True).start()

    async def put(self, line: bytes) -> None:
        """Write a line; it has left this process when this returns.

        Raises:
            BrokenPipeError: The other end has gone.
        """
        done = self._loop.create_future()
        self._waiting.put((line + b"\n", done))
        await done

    def _write(self) -> None:
        while True:
            data, done = self._waiting.get()
            fault: BrokenPipeError | None = None
            try:
                while data:
                    data = data[os.write(self._handle, data) :]
            except OSError as why:
                fault = BrokenPipeError(why.strerror)
            try:
                self._loop.call_soon_threadsafe(settle, done, fault)
            except RuntimeError:  # the loop has ended
                return


def settle(done: "asyncio.Future[None]", fault: BaseException | None) -> None:
    """End a future by a fault, or without one; of one that has ended nothing changes."""
    if done.done():
        return
    if fault is None:
        done.set_result(None)
    else:
        done.set_exception(fault)
