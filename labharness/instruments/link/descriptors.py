"""Serial and TCP links on bare file descriptors, for the guard process, which runs without asyncio.

A write gives all its bytes to the operating system or fails at once. The rest of a frame is never
sent later, when it may mean something else.
"""

import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from labharness.instruments.link.links import LinkLost

if TYPE_CHECKING:
    from asyncio.trsock import TransportSocket

    import serial  # imported when a port is opened: TCP works without pyserial

READ_BYTES_MAX = 65_536
UNCONFIRMED_MS_MAX = 2000  # a host that is up confirms bytes within half a second


_FAILURES: tuple[type[Exception], ...] = (OSError, ValueError)  # a SerialException is an OSError
if os.name == "posix":
    import termios

    # raised for an adapter that vanishes during set-up; not an OSError
    _FAILURES += (termios.error,)


class Descriptor(Protocol):
    """One file descriptor, open or closed."""

    name: str

    def open(self, within_s: float) -> None:
        """Open; raise ``LinkLost`` with the address and the reason."""

    def fileno(self) -> int:
        """Return the descriptor to watch; -1 while the link is closed."""

    def read(self) -> bytes:
        """Return the bytes that have arrived; raise ``LinkLost`` when the link is gone."""

    def write(self, data: bytes) -> None:
        """Send all of ``data``, or raise ``LinkLost``."""

    def close(self) -> None:
        """Close; a second call does nothing."""


def open_port(path: str, baud: int, parity: str, stop_bits: float) -> "serial.Serial":
    """Open a serial port for this process alone.

    Two locks, because each has a gap: ``flock`` stops only programs that ask for it, and
    ``TIOCEXCL`` stops every open except root's. Windows opens a port exclusively by itself.

    Raises:
        LinkLost: It does not open, or another process has it.
    """
    import serial

    port = None
    try:
        port = serial.Serial(
            path,
            baudrate=baud,
            parity=parity,
            stopbits=stop_bits,
            timeout=0,
            write_timeout=0,
            exclusive=True,
        )
        if os.name == "posix":
            import fcntl

            fcntl.ioctl(port.fileno(), termios.TIOCEXCL)
    except _FAILURES as why:
        if port is not None:
            port.close()
        raise LinkLost(f"serial {path} does not open: {_reason(why)}") from None
    return port


def close_port(port: "serial.Serial") -> None:
    """Close a serial port, and its lock: of a pseudo-terminal that is held elsewhere it stayed."""
    if os.name == "posix" and port.is_open:
        import fcntl

        with suppress(*_FAILURES):
            fcntl.ioctl(port.fileno(), termios.TIOCNXCL)
    port.close()


def _reason(why: Exception) -> str:
    """Return why a port does not open, without the path."""
    number = getattr(why, "errno", None)
    if number is None and why.args and type(why.args[0]) is int:  # a termios.error has no errno
        number = why.args[0]
    if number in (errno.EAGAIN, errno.EBUSY):
        return "another process has it open"
    return os.strerror(number) if number else str(why)


class SerialDescriptor:
    """A serial port.

    Args:
        path: Device node.
        baud: Line speed.
        parity: ``N``, ``E`` or ``O``.
        stop_bits: 1 or 2.
    """

    def __init__(self, path: str, baud: int, parity: str, stop_bits: float) -> None:
        self.name = f"serial {path}"
        self._settings = (path, baud, parity, stop_bits)
        self._port: serial.Serial | None = None

    def open(self, within_s: float) -> None:
        """Open the port; the system does this at once."""
        self._port = open_port(*self._settings)

    def fileno(self) -> int:
        """Return the descriptor; -1 while closed."""
        return -1 if self._port is None else int(self._port.fileno())

    def read(self) -> bytes:
        """Return the bytes that have arrived; a readable port without bytes was unplugged."""
        return _arrived(self.fileno(), self.name, lambda: taken_or_gone(self._settings[0]))

    def write(self, data: bytes) -> None:
        """Send the bytes to the port's driver."""
        hand_over(self.fileno(), data, self.name)

    def close(self) -> None:
        """Close the port; the system still sends the bytes it has."""
        if self._port is not None:
            with suppress(OSError):  # a device that is gone cannot be closed
                close_port(self._port)
            self._port = None


class TcpDescriptor:
    """A TCP connection.

    The host name is looked up once, by a thread: a name server may take longer than a trip can
    wait. The found addresses are kept while the instrument is away.

    Args:
        host: Name or address.
        port: TCP port.
    """

    def __init__(self, host: str, port: int) -> None:
        self.name = f"tcp {host}:{port}"
        self._asked = (host, port)
        self._found: list[tuple[str, int]] = []  # addresses of the host
        self._unfound = ""  # why no address was found
        self._search: Thread | None = None
        self._socket: socket.socket | None = None

    def open(self, within_s: float) -> None:
        """Connect: at most ``within_s`` for the name, and as long for the connection."""
        if not self._found:
            self._look_up(within_s)
        why: OSError | None = None
        for address in self._found:
            try:
                self._socket = _connected(address, within_s / len(self._found))
            except OSError as refused:
                why = refused
                continue
            return
        raise LinkLost(f"{self.name} does not open: {why or 'timeout'}")

    def _look_up(self, within_s: float) -> None:
        if self._search is None or not self._search.is_alive():
            self._unfound = f"its name is not found within {within_s:g} s"
            self._search = Thread(target=self._ask, daemon=True)
            self._search.start()
        self._search.join(within_s)
        if not self._found:
            raise LinkLost(f"{self.name} does not open: {self._unfound}")

    def _ask(self) -> None:
        try:
            rows = socket.getaddrinfo(*self._asked, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as why:
            self._unfound = str(why)
        else:
            self._found = [(str(row[4][0]), int(row[4][1])) for row in rows]

    def fileno(self) -> int:
        """Return the descriptor; -1 while closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def read(self) -> bytes:
        """Return the bytes that have arrived."""
        return _arrived(self.fileno(), self.name, lambda: "closed by the other side")

    def write(self, data: bytes) -> None:
        """Send the bytes to the socket."""
        hand_over(self.fileno(), data, self.name)

    def close(self) -> None:
        """Close at once."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _connected(address: tuple[str, int], within_s: float) -> socket.socket:
    made = socket.create_connection(address, timeout=within_s)
    try:
        made.setblocking(False)
        refuse_itself(made)
        hurry(made)
    except OSError:
        made.close()
        raise
    return made


def refuse_itself(made: "socket.socket | TransportSocket") -> None:
    """Refuse a connection of a socket to itself.

    If no program listens, Linux may choose the called port as the caller's own. Each frame then
    comes back, and the reply to a Modbus write is its echo.

    Raises:
        ConnectionRefusedError: Both ends are one socket.
    """
    if made.getsockname() == made.getpeername():
        raise ConnectionRefusedError("nobody listens there, it has met itself")


def hurry(made: "socket.socket | TransportSocket") -> None:
    """Send a connection's bytes at once, and end the connection if they are not confirmed soon.

    By default a system retries for a quarter of an hour, ever more seldom. Safe frames would then
    wait behind an old one, which would arrive long after its permit.
    """
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        made.setsockopt(socket.IPPROTO_TCP, option, UNCONFIRMED_MS_MAX)


def openers(path: str) -> list[str]:
    """Return the other programs that have a device open, as far as this account can see them."""
    found = set()
    with suppress(OSError):
        device = os.stat(path).st_rdev
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            with suppress(OSError):
                if int(link.parts[2]) == os.getpid() or link.stat().st_rdev != device:
                    continue
                words = (link.parents[1] / "cmdline").read_text("utf-8", "replace").split("\0")
                if not any(Path(each).name.startswith("labharness") for each in words):
                    found.add(f"process {link.parts[2]} ({' '.join(words)[:60].strip()})")
    return sorted(found)


def taken_or_gone(path: str) -> str:
    """Return why a serial port that was readable gave no bytes."""
    if not os.path.exists(path):
        return "unplugged"
    others = ", ".join(openers(path)) or "another program"
    return f"{others} reads from it too, or it was unplugged"


def _arrived(descriptor: int, name: str, end: Callable[[], str]) -> bytes:
    """Return the bytes that have arrived; raise ``LinkLost`` at the end of the stream."""
    if descriptor < 0:
        raise LinkLost(f"{name} is closed")
    try:
        data = os.read(descriptor, READ_BYTES_MAX)
    except BlockingIOError:
        return b""
    except OSError as why:
        raise LinkLost(f"{name}: {why.strerror}") from None
    if not data:
        raise LinkLost(f"{name}: {end()}")
    return data


def hand_over(descriptor: int, data: bytes, name: str) -> None:
    """Send all bytes to the system at once, or raise ``LinkLost``; never wait.

    pyserial's own write waits without limit for a port whose buffer is full, and a trip would wait
    too.
    """
    if descriptor < 0:
        raise LinkLost(f"{name} is closed")
    try:
        taken = os.write(descriptor, data)
    except BlockingIOError:
        taken = 0
    except OSError as why:
        raise LinkLost(f"{name}: {why.strerror}") from None
    if taken < len(data):
        raise LinkLost(f"{name} took {taken} of {len(data)} bytes; nobody reads there")
