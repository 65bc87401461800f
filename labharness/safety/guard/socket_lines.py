"""Messages on a socket: one JSON object a line, never waiting, bounded both ways.

A line that was cut short, because its sender was killed, is never taken.
"""

import json
import socket
from collections.abc import Iterator, Mapping

__all__ = ["LINE_BYTES_MAX", "Line", "LineSplitter", "SocketLines", "line_of"]

LINE_BYTES_MAX = 32 * 1024 * 1024  # a reply of BUFFER_BYTES_MAX in hexadecimal, and its names
UNSENT_BYTES_MAX = 64 * 1024 * 1024  # a harness that reads nothing for so long is given up
READ_BYTES_MAX = 1 << 16  # each read asks for so much memory: more is slow to get
READS_MAX = 16  # at a time: a harness that talks without end holds up no port

Line = Mapping[str, object]
# json.dumps makes an encoder each time, and json.loads guesses at an encoding, while a line trips
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def line_of(message: Line) -> bytes:
    """Write one message."""
    return _encode(message).encode() + b"\n"


class LineSplitter:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._begun = b""

    def feed(self, data: bytes) -> Iterator[object]:
        """Return each message that is whole.

        Raises:
            ValueError: A line is no JSON in UTF-8, or does not end.
        """
        whole, end, rest = (self._begun + data).rpartition(b"\n")
        self._begun = rest
        if len(rest) > LINE_BYTES_MAX:
            raise ValueError(f"a message longer than {LINE_BYTES_MAX} bytes")
        if end:
            for line in whole.split(b"\n"):
                yield _decode(line.decode())


class SocketLines:
    """One connection.

    Args:
        made: The connected socket; it is made non-blocking.
    """

    def __init__(self, made: socket.socket) -> None:
        made.setblocking(False)
        self.socket = made
        self._lines = LineSplitter()
        self._unsent = bytearray()  # bytes would be copied whole for each message and each send

    @property
    def waits(self) -> bool:
        """Whether something is left to send."""
        return bool(self._unsent)

    def say(self, message: Line) -> None:
        """Send a message, or keep what the system does not take.

        Raises:
            OSError: The other side is gone, or has read nothing for too long.
        """
        self._unsent += line_of(message)
        self.flush()

    def flush(self) -> None:
        """Send what was kept; raises as ``say`` does."""
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            if len(self._unsent) > UNSENT_BYTES_MAX:
                raise BrokenPipeError(32, "the harness does not read") from None

    def hear(self) -> Iterator[object]:
        """Return the messages that have arrived.

        Raises:
            OSError: The other side is gone.
            ValueError: It speaks no JSON.
        """
        for _ in range(READS_MAX):
            try:
                data = self.socket.recv(READ_BYTES_MAX)
            except BlockingIOError:
                return
            if not data:
                raise ConnectionResetError(104, "the harness is gone")
            yield from self._lines.feed(data)
