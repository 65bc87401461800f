"""Serial ports through pyserial: exclusive, 8N1 unless the lab file says otherwise."""

import asyncio
import os
from collections.abc import Callable

import serial

import labharness.instruments.link.descriptors as descriptors
from labharness.instruments.link.links import LinkLost, nobody

READ_BYTES_MAX = 4096


class SerialLink:
    """A link over a serial port; POSIX watches its descriptor, Windows polls.

    Args:
        path: Device node or COM name.
        baud: Line speed.
        parity: ``N``, ``E`` or ``O``.
        stop_bits: 1 or 2.
    """

    kind = "serial"
    POLL_S = 0.005  # on systems whose loop cannot watch a serial descriptor

    def __init__(self, path: str, baud: int, parity: str = "N", stop_bits: float = 1) -> None:
        self._settings = (path, baud, parity, stop_bits)
        self._port: serial.Serial | None = None
        self._name = f"serial {path}"
        self._lost = f"{self._name} is closed"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._polls = False
        self.receive: Callable[[bytes], None] = nobody

    async def open(self) -> None:
        """Open the port for this process alone."""
        self._port = descriptors.open_port(*self._settings)
        self._lost = f"{self._name} is closed"
        self._loop = asyncio.get_running_loop()
        try:
            self._loop.add_reader(self._port.fileno(), self._read)
        except (NotImplementedError, AttributeError, OSError):
            self._polls = True
            self._loop.call_later(self.POLL_S, self._poll)

    def write(self, data: bytes) -> None:
        """Send the bytes to the port's driver."""
        if self._port is None:
            raise LinkLost(self._lost)
        if os.name == "posix":
            descriptors.hand_over(self._port.fileno(), data, self._name)
            return
        try:
            self._port.write(data)
        except serial.SerialException as why:
            self.close()
            raise LinkLost(f"{self._name}: {why}") from None

    def close(self) -> None:
        """Close the port; the system still sends the bytes it has."""
        if self._port is None:
            return
        if self._loop is not None and not self._polls and not self._loop.is_closed():
            self._loop.remove_reader(self._port.fileno())
        descriptors.close_port(self._port)
        self._port = None

    def _read(self) -> None:
        if self._port is None:
            return
        try:
            data = self._port.read(READ_BYTES_MAX)
        except (serial.SerialException, OSError):
            self.close()
            self._lost = f"{self._name} is lost: {descriptors.taken_or_gone(self._settings[0])}"
            return
        if data:
            self.receive(data)

    def _poll(self) -> None:
        self._read()
        if self._port is not None and self._loop is not None:
            self._loop.call_later(self.POLL_S, self._poll)
