"""Simulated buses on real links: pseudo-terminals and local sockets that any program may open."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from labharness.instruments.simulation.conversation import Conversation, Outlet
from labharness.instruments.simulation.openings import DeviceOpenings, Happened

__all__ = ["HOST", "CannotServe", "PtyPort", "ServedPort", "TcpPort"]

HOST = "127.0.0.1"  # never another machine: these instruments are nobody else's
READ_BYTES_MAX = 4_096
FLOOD_READS_MAX = 64  # a terminal holds less than this many times as much
CLIENTS_MAX = 4  # of one TCP port at once; one more is turned away
UNREAD_BYTES_MAX = 4_194_304  # a client that reads no replies is hung up here


class CannotServe(RuntimeError):
    """A link cannot be opened; the message says which and why."""


class ServedPort(Protocol):
    """One port of the lab on a link of its own.

    Attributes:
        address: Of the link, as its clients write it.
    """

    address: str

    async def open(self) -> None:
        """Lay the link; raise ``CannotServe``."""
        ...

    def close(self) -> None:
        """Take the link away; clients that are there are hung up."""
        ...


class PtyPort:
    """A serial port: a pseudo-terminal behind a path that stays.

    A client is who has it open. When the last one closes, or dies, its exchange is over: replies
    under way are dropped, as are what the terminal still holds for it and the locks it left. The
    terminal itself stays open here, so that nobody's closing hangs it up.

    Args:
        outlet: Where it leads.
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
        """Make the terminal and lay the path to it."""
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
        """Hang up and take the path away."""
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
        """See who came and who went, and whose the bytes are that were just read."""
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
                    # where both may have written, it goes with the old one: the next one then
                    # waits in vain for one reply, which is better than somebody else's
                    self._talk.hear(data)
                    data = b""
                self._part(somebody_came=came)
                wrote = False
        if data:
            self._talk.hear(data)

    def _part(self, *, somebody_came: bool) -> None:
        """End the exchange of a client that has gone."""
        import fcntl
        import termios
        import tty

        talk = self._talk
        talk.end()
        termios.tcflush(self._slave, termios.TCIFLUSH)
        fcntl.ioctl(self._slave, termios.TIOCNXCL)
        if not somebody_came:
            tty.setraw(self._slave)
        if not talk.space:  # it wrote faster than the line carries; the system forgets the rest
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
            except OSError:  # full of what nobody reads: a real port overruns, too
                return False
            return True

        return Conversation(self._outlet, number, send, roomy=self._resume, free_s=free_s)

    def _resume(self) -> None:
        if self._paused and self._master >= 0:
            self._paused = False
            self._loop.add_reader(self._master, self._read)

    def _read(self) -> None:
        if not self._talk.space:  # then its writer waits, as at a real port
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
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"{transport} is no stream")
        self._transport = transport
        self._talk = self._port.admit(transport, self._send)

    def data_received(self, data: bytes) -> None:
        if self._talk is None:
            return
        if len(data) > self._talk.space:  # more than any frame, and none in it
            self._transport.abort()
            return
        self._talk.hear(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._talk is not None:
            self._talk.end()
            self._talk = None
        self._port.dismiss(self._transport)

    def _send(self, reply: bytes) -> bool:
        return self._write(reply)

    def _write(self, data: bytes) -> bool:
        return self._port.send(self._transport, data)


class TcpPort:
    """A TCP port on this machine, for ``CLIENTS_MAX`` at once.

    Args:
        outlet: Where it leads.
        number: The port's; 0 has the system give one that is free.
    """

    def __init__(self, outlet: Outlet, number: int = 0) -> None:
        self.address = ""
        self._outlet = outlet
        self._number = number
        self._clients = 0
        self._there: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._protocol, HOST, self._number)
        except OSError as why:
            where = f"{HOST}:{self._number}" if self._number else HOST
            said = os.strerror(why.errno) if why.errno else str(why)
            raise CannotServe(f"port {self._outlet.name!r}: {where}: {said}") from None
        number = self._server.sockets[0].getsockname()[1]
        self.address = f"{HOST}:{number}"

    def close(self) -> None:
        """Stop listening and hang up."""
        if self._server is not None:
            self._server.close()
        for transport in list(self._there):
            transport.abort()

    def admit(
        self, transport: asyncio.Transport, send: Callable[[bytes], bool]
    ) -> Conversation | None:
        """Let a client in; ``None`` turns it away."""
        if len(self._there) >= CLIENTS_MAX:
            transport.abort()
            return None
        self._there.add(transport)
        self._clients += 1
        return Conversation(self._outlet, self._clients, send)

    def dismiss(self, transport: asyncio.Transport) -> None:
        """Forget a client."""
        self._there.discard(transport)

    def send(self, transport: asyncio.Transport, data: bytes) -> bool:
        """Return bytes to a client; hang up on one that reads none."""
        if transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            transport.abort()
        if transport.is_closing():
            return False
        transport.write(data)
        return True

    def _protocol(self) -> asyncio.Protocol:
        return Client(self)
