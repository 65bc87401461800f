"""What stands for the guard process in the harness: its latch as told, its links, its socket."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from labharness.core.files.durable import write_durably
from labharness.core.vocabulary import Trip
from labharness.instruments.link import LinkLost
from labharness.instruments.link.links import nobody
from labharness.safety.guard.latch import Latch, joined, probe
from labharness.safety.guard.port_latch import PortLatch
from labharness.safety.guard.socket_lines import LineSplitter

__all__ = ["GuardedLink", "SeenLatch", "Stream"]


class Near(Protocol):
    """Who uses them."""

    async def open_port(self, port: str) -> None:
        """Reach the guard, and one of its ports."""
        ...

    def connected(self, transport: asyncio.Transport) -> None:
        """Take over a connection."""
        ...

    def heard(self, message: object) -> None:
        """Take one message."""
        ...

    def parted(self, transport: asyncio.Transport) -> None:
        """Take the end of a connection."""
        ...


class GuardedLink:
    """A port that the guard process holds: the line opens it and names its kind, no more."""

    guarded = True

    def __init__(self, guard: Near, port: str, kind: str) -> None:
        self.kind = kind
        self.receive: Callable[[bytes], None] = nobody
        self._guard = guard
        self._port = port

    async def open(self) -> None:
        """Reach the guard; raise ``LinkLost`` where it has no link there."""
        await self._guard.open_port(self._port)

    def write(self, data: bytes) -> None:
        """Refuse: bytes go through the guard."""
        raise LinkLost(f"this {self.kind} port is the guard's")

    def close(self) -> None:
        """Leave it to the guard."""


class SeenLatch:
    """The latch as the guard last told of it; the file is the guard's.

    Args:
        path: The file.
        near: Of ports that the guard does not hold: their records are written here.
    """

    def __init__(self, path: Path, near: PortLatch | None = None) -> None:
        self._path = path
        self._near = near
        self._kept: Trip | None = None  # in the records of those ports
        self.trip = Latch.or_shut(path).trip  # the guard says more
        self.write_error = ""

    def close(self, trip: Trip) -> None:
        """Count as latched; the guard writes it."""
        self.trip = joined(self.trip, trip)

    def saved(self) -> bool:
        """Return whether the guard has it on disk; the guard tries again by itself."""
        if self._near is not None and self.trip is not None and self.trip != self._kept:
            with suppress(OSError):  # that they were left armed is written, and is a latch too
                self._near.close(self.trip)
                self._kept = self.trip
        return not self.write_error

    def probe(self) -> None:
        """Raise ``OSError`` if a latch could not be written now."""
        own = self._path.with_name(f"latch-{os.getpid()}.json")  # the guard may be writing its own
        probe(own, write_durably)

    def set_marker(self, procedure: str) -> None:
        """Leave the armed marker to the guard, and mark the ports that it has not."""
        if self._near is not None:
            self._near.set_marker(procedure)

    def clear_marker(self) -> None:
        """Leave the armed marker to the guard, and take it from the ports it has not."""
        if self._near is not None and self.trip is None:
            with suppress(OSError):  # they are then found latched
                self._near.clear()

    def open(self) -> None:
        """Count as not latched; raise ``OSError`` where a port of this process stays so."""
        if self._near is not None:
            self._near.clear()
        self.trip = self._kept = None


class Stream(asyncio.Protocol):
    """Passes messages up."""

    def __init__(self, guard: Near) -> None:
        self._guard = guard
        self._transport: asyncio.Transport
        self._lines = LineSplitter()

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - asyncio's own signature
        """Hand the connection up."""
        self._transport = transport
        self._guard.connected(transport)

    def data_received(self, data: bytes) -> None:
        """Hand each whole message up."""
        for message in self._lines.feed(data):
            self._guard.heard(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that the guard is gone."""
        self._guard.parted(self._transport)
