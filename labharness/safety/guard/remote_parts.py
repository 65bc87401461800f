"""The guard process as the harness sees it: its latch, links, socket and child process.

The process is spawned, never forked, in a session of its own. A fork would share the descriptors of
the ports, and with them their locks. The session keeps a Ctrl-C at the terminal from reaching the
guard, whose work begins when the harness dies of it.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.clock import steady_s
from labharness.core.clock.process import pause
from labharness.core.files.durable import write_durably
from labharness.core.files.named import open_named, open_own
from labharness.core.vocabulary import Trip
from labharness.instruments.link import LinkLost
from labharness.instruments.link.links import nobody
from labharness.safety.guard.latch import Latch, joined, probe
from labharness.safety.guard.messages import LineSplitter
from labharness.safety.guard.port_records import PortLatch

if TYPE_CHECKING:
    from labharness.safety.guard.remote import RemoteGuard


class GuardedLink:
    """A port that the guard process holds: the line opens it and names its kind, no more."""

    guarded = True

    def __init__(self, guard: "RemoteGuard", port: str, kind: str) -> None:
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
    """The latch as the guard last reported it; the file belongs to the guard.

    Args:
        path: The file.
        near: Records of the ports that the guard does not hold; they are written here.
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

    def __init__(self, guard: "RemoteGuard") -> None:
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
        """Report the end of the connection."""
        self._guard.parted(self._transport)


LOOK_S = 0.005
COMPLAINT_BYTES_MAX = 2000


class Child:
    """At most one living guard of ours.

    Args:
        command: Program and arguments.
        log: Where its output goes.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self._log = log
        self.pid: int | None = None
        self._started = False

    def start(self) -> None:
        """Start it; raises ``OSError``."""
        self._started = True
        try:  # a log that does not open keeps no guard from beginning
            log = open_own(self._log, os.O_WRONLY | os.O_TRUNC, 0o600)
        except OSError:
            log = os.open(os.devnull, os.O_WRONLY)
        try:
            self.pid = os.posix_spawn(
                self._command[0],
                self._command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ],
                setsid=True,
            )
        finally:
            os.close(log)

    def running(self) -> bool:
        """Return whether it lives, and bury it if not."""
        if self.pid is None:
            return False
        try:
            found, _ = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else buried it
            found = self.pid
        if found:
            self.pid = None
        return self.pid is not None

    def end(self) -> None:
        """End it at once, where it is still ours to end."""
        if self.running() and self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)

    def complaint(self) -> str:
        """Return the last line that it said before it ended, if it said any."""
        if not self._started:  # what stands there is of an earlier run
            return ""
        try:
            with open_named(self._log) as file:
                said = file.read()[-COMPLAINT_BYTES_MAX:]
        except OSError:
            return ""
        lines = said.decode("utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def leave(self, within_s: float) -> None:
        """Wait until it has ended, so long at most; one with work left goes on by itself."""
        until_s = steady_s() + within_s
        while self.running() and steady_s() < until_s:
            pause(LOOK_S)
