"""Serve simulated buses on pseudo-terminals and local sockets, for any program to open.

Watch the opens, writes and closes of a device node, in order, through Linux inotify.
"""

import asyncio
import ctypes
import os
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Protocol

from labharness.core.errors import LabError
from labharness.instruments.simulation.conversation import Conversation, Outlet

# Linux, include/uapi/linux/inotify.h; the flags are those of open(2)
MODIFY, CLOSE_WRITE, CLOSE_NOWRITE, OPEN = 0x02, 0x08, 0x10, 0x20
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of a name (0 for a watched node)
EVENTS_BYTES_MAX = 64 * EVENT.size


class Happened(Enum):
    """An event on a node."""

    OPENED = OPEN
    WROTE = MODIFY
    CLOSED = CLOSE_WRITE
    CLOSED_UNWRITTEN = CLOSE_NOWRITE


class DeviceOpenings:
    """Watch one node.

    Two equal events in a row are reported as one, if ``look`` was not called between them.

    Args:
        path: Path of the node.

    Raises:
        OSError: The system does not watch it.
        AttributeError: This is not Linux.
    """

    def __init__(self, path: str) -> None:
        system = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        mask = MODIFY | CLOSE_WRITE | CLOSE_NOWRITE | OPEN
        if system.inotify_add_watch(self.descriptor, os.fsencode(path), mask) < 0:
            error = ctypes.get_errno()
            self.close()
            raise OSError(error, os.strerror(error))

    def look(self) -> list[Happened]:
        """Return the events since the last call, in order."""
        try:
            data = os.read(self.descriptor, EVENTS_BYTES_MAX)
        except BlockingIOError:
            return []
        masks = (mask for _, mask, _, _ in EVENT.iter_unpack(data))
        return [each for mask in masks for each in Happened if mask & each.value]

    def close(self) -> None:
        """Stop watching."""
        os.close(self.descriptor)


HOST = "127.0.0.1"  # local only: the instruments are not for other machines
READ_BYTES_MAX = 4_096
FLOOD_READS_MAX = 64  # a terminal holds less than this many reads
CLIENTS_MAX = 4  # of one TCP port at once; further ones are refused
UNREAD_BYTES_MAX = 4_194_304  # a client that does not read its replies is disconnected at this size


class CannotServe(LabError, RuntimeError, code="cannot_serve", usage=True):
    """A link cannot be opened; the message names it and the reason."""


class ServedPort(Protocol):
    """One port of the lab on its own link.

    Attributes:
        address: Address of the link, in the form that clients use.
    """

    address: str

    async def open(self) -> None:
        """Open the link; raise ``CannotServe``."""

    def close(self) -> None:
        """Close the link and disconnect its clients."""


class PtyPort:
    """A serial port: a pseudo-terminal behind a fixed path.

    The programs that have it open count as one client. When the last one closes or dies, its
    exchange is over: replies under way, bytes left in the terminal and its locks are dropped. The
    terminal itself stays open here, so that a closing client does not hang it up.

    Args:
        outlet: The bus behind the port.
        path: The link that clients open.
    """

    def __init__(self, outlet: Outlet, path: Path) -> None:
        self.address = str(path)
        self._outlet = outlet
        self._path = path
        self._master = self._slave = -1
        self._openings: DeviceOpenings | None = None
        self._open_now = 0
        self._clients = 0
        self._paused = self._laid = False

    async def open(self) -> None:
        """Make the terminal and link the path to it."""
        self._loop = asyncio.get_running_loop()
        self._talk = self._next_client(0.0)
        try:
            import tty

            self._master, self._slave = os.openpty()
            tty.setraw(self._slave)
            os.set_blocking(self._master, False)
            node = os.ttyname(self._slave)
            self._openings = DeviceOpenings(node)
            self._lay(node)
        except (ImportError, AttributeError):
            self.close()
            raise CannotServe(f"port {self._outlet.name!r}: a serial port takes Linux") from None
        except OSError as why:
            self.close()
            raise CannotServe(f"port {self._outlet.name!r}: {self._path}: {why.strerror}") from None
        self._loop.add_reader(self._openings.descriptor, self._look)
        self._loop.add_reader(self._master, self._read)

    def close(self) -> None:
        """Hang up and remove the path."""
        if self._openings is not None:
            self._loop.remove_reader(self._openings.descriptor)
            self._openings.close()
            self._openings = None
        if self._laid:
            self._path.unlink(missing_ok=True)
        if self._master >= 0:
            self._loop.remove_reader(self._master)
            os.close(self._master)
            os.close(self._slave)
            self._master = -1

    def _lay(self, node: str) -> None:
        if os.path.lexists(self._path) and not self._path.is_symlink():
            raise FileExistsError(0, "it is in the way")
        beside = self._path.with_name(f".{self._path.name}.next")
        beside.unlink(missing_ok=True)
        beside.symlink_to(node)
        beside.replace(self._path)
        self._laid = True

    def _look(self, data: bytes = b"") -> None:
        """Follow opens and closes, and give the bytes just read to the right client."""
        if self._openings is None:
            return
        seen = deque(self._openings.look())
        wrote = False
        while seen:
            happened = seen.popleft()
            if happened is Happened.WROTE:
                wrote = True
            elif happened is Happened.OPENED:
                self._open_now += 1
            else:
                self._open_now = max(0, self._open_now - 1)
                if self._open_now:
                    continue
                data += self._unread(self._talk.space - len(data))
                seen.extend(self._openings.look())
                came = Happened.OPENED in seen
                if data and (wrote or not came):
                    # If both clients may have written, the bytes go to the old one: then the new
                    # one misses a reply, which is better than a reply to another client's request.
                    self._talk.hear(data)
                    data = b""
                self._part(somebody_came=came)
                wrote = False
        if data:
            self._talk.hear(data)

    def _part(self, *, somebody_came: bool) -> None:
        """End the exchange of a client that has closed."""
        import fcntl
        import termios
        import tty

        talk = self._talk
        talk.end()
        termios.tcflush(self._slave, termios.TCIFLUSH)
        fcntl.ioctl(self._slave, termios.TIOCNXCL)
        if not somebody_came:
            tty.setraw(self._slave)
        if not talk.space:  # it wrote faster than the line sends; drop the rest
            for _ in range(FLOOD_READS_MAX):
                if not self._unread(READ_BYTES_MAX):
                    break
        self._talk = self._next_client(talk.free_s)
        self._resume()

    def _next_client(self, free_s: float) -> Conversation:
        self._clients += 1
        number = self._clients

        def send(data: bytes) -> bool:
            self._look()
            if number != self._clients:
                return False
            try:
                os.write(self._master, data)
            except OSError:  # the buffer is full because no program reads; a real port overruns too
                return False
            return True

        return Conversation(self._outlet, number, send, roomy=self._resume, begins_s=free_s)

    def _resume(self) -> None:
        if self._paused and self._master >= 0:
            self._paused = False
            self._loop.add_reader(self._master, self._read)

    def _read(self) -> None:
        if not self._talk.space:  # the writer waits, as at a real port
            self._paused = True
            self._loop.remove_reader(self._master)
            return
        self._look(self._unread(self._talk.space))

    def _unread(self, count: int) -> bytes:
        try:
            return os.read(self._master, min(count, READ_BYTES_MAX)) if count > 0 else b""
        except BlockingIOError:
            return b""


class Client(asyncio.Protocol):
    """One TCP client: its bytes go to the instrument as they come."""

    def __init__(self, port: "TcpPort") -> None:
        self._port = port
        self._talk: Conversation | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a conversation with a new client."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"{transport} is not a stream")
        self._transport = transport
        self._talk = self._port.admit(transport, self._send)

    def data_received(self, data: bytes) -> None:
        """Hand over the bytes that arrived."""
        if self._talk is None:
            return
        if len(data) > self._talk.space:  # longer than any frame, and none is complete
            self._transport.abort()
            return
        self._talk.hear(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the conversation."""
        if self._talk is not None:
            self._talk.end()
            self._talk = None
        self._port.there.discard(self._transport)

    def _send(self, reply: bytes) -> bool:
        return self._write(reply)

    def _write(self, data: bytes) -> bool:
        """Send bytes to the client; disconnect one that does not read."""
        if self._transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self._transport.abort()
        if self._transport.is_closing():
            return False
        self._transport.write(data)
        return True


class LocalServer(ABC):
    """A TCP server for other processes of this machine.

    Args:
        what: Its name in an error.
        number: Port number; with 0 the system chooses a free one.

    Attributes:
        address: ``host:port`` once it is open.
        there: The connections of its clients.
    """

    def __init__(self, what: str, number: int = 0) -> None:
        self.address = ""
        self.there: set[asyncio.Transport] = set()
        self._what = what
        self._number = number
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen; raise ``CannotServe`` if that cannot be."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._protocol, HOST, self._number)
        except OSError as why:
            where = f"{HOST}:{self._number}" if self._number else HOST
            said = os.strerror(why.errno) if why.errno else str(why)
            raise CannotServe(f"{self._what}: {where}: {said}") from None
        self.address = f"{HOST}:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for transport in list(self.there):
            transport.close()

    @abstractmethod
    def _protocol(self) -> asyncio.Protocol:
        """Return the end of one connection."""


class TcpPort(LocalServer):
    """A TCP port on this machine, for at most ``CLIENTS_MAX`` clients at once.

    Args:
        outlet: The bus behind the port.
        number: Port number; with 0 the system chooses a free one.
    """

    def __init__(self, outlet: Outlet, number: int = 0) -> None:
        super().__init__(f"port {outlet.name!r}", number)
        self._outlet = outlet
        self._clients = 0

    def close(self) -> None:
        """Stop listening, and cut all connections: what they have not sent is lost."""
        for transport in list(self.there):
            transport.abort()
        super().close()

    def admit(
        self, transport: asyncio.Transport, send: Callable[[bytes], bool]
    ) -> Conversation | None:
        """Accept a client; ``None`` refuses it."""
        if len(self.there) >= CLIENTS_MAX:
            transport.abort()
            return None
        self.there.add(transport)
        self._clients += 1
        return Conversation(self._outlet, self._clients, send)

    def _protocol(self) -> asyncio.Protocol:
        return Client(self)
