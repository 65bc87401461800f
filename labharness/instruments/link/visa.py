"""VISA resources through pyvisa; one thread per link makes the blocking calls."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from labharness.instruments.link.links import LinkLost, nobody

READ_MS = 50  # one wait for bytes; the thread repeats it until the link closes


class VisaLink:
    """A link through a VISA resource such as ``TCPIP::host::port::SOCKET``.

    The port above decides when a reply is complete, so bytes are read as they come, without VISA's
    own terminator. A refused or closed socket is noticed at the first write that fails: pyvisa-py
    0.8 reports it neither on opening nor on reading.

    Args:
        resource: VISA resource name.
        backend: pyvisa backend; ``@py`` is pyvisa-py.
    """

    kind = "visa"

    def __init__(self, resource: str, backend: str = "@py") -> None:
        self._resource = resource
        self._backend = backend
        self._session: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="visa")
        self._reader: asyncio.Task[None] | None = None
        self._lost = ""
        self.receive: Callable[[bytes], None] = nobody

    async def open(self) -> None:
        """Open the resource and begin to read; do nothing if it is open."""
        if self._session is not None and not self._lost:
            return
        loop = asyncio.get_running_loop()
        self._session = await loop.run_in_executor(self._thread, self._connect)
        self._reader = loop.create_task(self._read_on(), name=f"visa {self._resource}")

    def write(self, data: bytes) -> None:
        """Queue the bytes behind the read that is under way (``READ_MS`` at most)."""
        if self._session is None or self._lost:
            raise LinkLost(f"visa {self._resource} is closed {self._lost}".rstrip())
        self._thread.submit(self._send, self._session, data)

    def close(self) -> None:
        """Close the resource."""
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None
        if self._session is not None:
            self._thread.submit(self._session.close)
            self._session = None
        self._thread.shutdown(wait=True)

    def _connect(self) -> Any:  # noqa: ANN401 - pyvisa is untyped
        import pyvisa

        try:
            session: Any = pyvisa.ResourceManager(self._backend).open_resource(self._resource)
        except Exception as why:  # noqa: BLE001 - pyvisa-py raises any kind
            raise LinkLost(f"visa {self._resource} does not open: {why}") from None
        session.timeout = READ_MS
        session.read_termination = None
        session.write_termination = None
        return session

    def _send(self, session: Any, data: bytes) -> None:  # noqa: ANN401 - pyvisa is untyped
        import pyvisa

        try:
            session.write_raw(data)
        except (pyvisa.Error, OSError) as why:
            self._lost = str(why)

    def _look(self, session: Any) -> bytes:  # noqa: ANN401 - pyvisa is untyped
        import pyvisa

        try:
            return bytes(session.read_bytes(1))
        except (pyvisa.errors.VisaIOError, OSError) as why:
            if getattr(why, "error_code", None) != pyvisa.constants.StatusCode.error_timeout:
                self._lost = str(why)
            return b""

    async def _read_on(self) -> None:
        loop = asyncio.get_running_loop()
        session = self._session
        while not self._lost:
            data = await loop.run_in_executor(self._thread, self._look, session)
            if data:
                self.receive(data)
