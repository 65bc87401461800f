"""Serial and TCP roads for a loop of selectors: bare descriptors, no asyncio.

A write hands all its bytes to the operating system or fails at once: half a frame is never finished
later, when it may mean something else.
"""

import errno
import os
import socket
from contextlib import suppress
from typing import Protocol

import serial

from labharness.link.roads import LinkLost

__all__ = ["Road", "SerialRoad", "TcpRoad", "hand_over", "open_port"]

READ_BYTES_MAX = 65_536


class Road(Protocol):
    """One open descriptor, or none."""

    name: str

    def open(self, within_s: float) -> None:
        """Open; raise ``LinkLost`` with the address and the reason."""
        ...

    def fileno(self) -> int:
        """Give the descriptor to watch; -1 while the road is closed."""
        ...

    def read(self) -> bytes:
        """Take what has arrived; raise ``LinkLost`` when the road is gone."""
        ...

    def write(self, data: bytes) -> None:
        """Hand over all of ``data``, or raise ``LinkLost``."""
        ...

    def close(self) -> None:
        """Close; twice is no error."""
        ...


def open_port(path: str, baud: int, parity: str, stop_bits: float) -> serial.Serial:
    """Open a serial port for this process alone.

    Two locks, because each has a hole: ``flock`` stops those who ask for it, ``TIOCEXCL`` stops
    every open but root's. Windows opens a port exclusively by itself.

    Raises:
        LinkLost: It does not open, or another process has it.
    """
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
            import termios

            fcntl.ioctl(port.fileno(), termios.TIOCEXCL)
    except (OSError, ValueError) as why:  # a SerialException is an OSError
        if port is not None:
            port.close()
        raise LinkLost(f"serial {path} does not open: {_reason(why)}") from None
    return port


def _reason(why: OSError | ValueError) -> str:
    """Say once, without the path again, why a port does not open."""
    number = getattr(why, "errno", None)
    if number in (errno.EAGAIN, errno.EBUSY):
        return "another process has it open"
    return os.strerror(number) if number else str(why)


class SerialRoad:
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
        """Open the port; that takes no time worth bounding."""
        self._port = open_port(*self._settings)

    def fileno(self) -> int:
        """Give the descriptor; -1 while closed."""
        return -1 if self._port is None else int(self._port.fileno())

    def read(self) -> bytes:
        """Take what has arrived; a port that is readable and gives nothing was unplugged."""
        try:
            data = os.read(self.fileno(), READ_BYTES_MAX)
        except BlockingIOError:
            return b""
        except OSError as why:
            raise LinkLost(f"{self.name}: {why.strerror}") from None
        if not data:
            raise LinkLost(f"{self.name}: unplugged")
        return data

    def write(self, data: bytes) -> None:
        """Hand the bytes to the driver of the port."""
        if self._port is None:
            raise LinkLost(f"{self.name} is closed")
        hand_over(self.fileno(), data, self.name)

    def close(self) -> None:
        """Close the port; bytes already handed over are still sent by the system."""
        if self._port is not None:
            with suppress(OSError):  # a device that is gone cannot be closed either
                self._port.close()
            self._port = None


class TcpRoad:
    """A TCP connection.

    Args:
        host: Name or address.
        port: TCP port.
    """

    def __init__(self, host: str, port: int) -> None:
        self.name = f"tcp {host}:{port}"
        self._address = (host, port)
        self._socket: socket.socket | None = None

    def open(self, within_s: float) -> None:
        """Connect."""
        try:
            made = socket.create_connection(self._address, timeout=within_s)
        except OSError as why:
            raise LinkLost(f"{self.name} does not open: {why or 'timeout'}") from None
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = made

    def fileno(self) -> int:
        """Give the descriptor; -1 while closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def read(self) -> bytes:
        """Take what has arrived."""
        if self._socket is None:
            raise LinkLost(f"{self.name} is closed")
        try:
            data = self._socket.recv(READ_BYTES_MAX)
        except BlockingIOError:
            return b""
        except OSError as why:
            raise LinkLost(f"{self.name}: {why.strerror}") from None
        if not data:
            raise LinkLost(f"{self.name}: closed by the other side")
        return data

    def write(self, data: bytes) -> None:
        """Hand the bytes to the socket."""
        if self._socket is None:
            raise LinkLost(f"{self.name} is closed")
        hand_over(self.fileno(), data, self.name)

    def close(self) -> None:
        """Close at once."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def hand_over(descriptor: int, data: bytes, name: str) -> None:
    """Hand all bytes to the system at once, or raise ``LinkLost``; never wait.

    pyserial's own write would wait, without end, for a port whose buffer is full, and a trip with
    it.
    """
    try:
        taken = os.write(descriptor, data)
    except BlockingIOError:
        taken = 0
    except OSError as why:
        raise LinkLost(f"{name}: {why.strerror}") from None
    if taken < len(data):
        raise LinkLost(f"{name} took {taken} of {len(data)} bytes; nobody reads there")
