"""Who opens and closes a device node, in order: inotify, which Python's standard library lacks."""

import ctypes
import os
import struct
from collections.abc import Iterator

__all__ = ["Openings"]

# Linux, include/uapi/linux/inotify.h; the flags are those of open(2)
CLOSE_WRITE, CLOSE_NOWRITE, OPEN = 0x08, 0x10, 0x20
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of a name that a watched node has not
EVENTS_BYTES_MAX = 64 * EVENT.size


class Openings:
    """Watches one node.

    Two openings, or two closings, that follow each other before anybody looks are told as one.

    Args:
        path: Of the node.

    Raises:
        OSError: The system does not watch it.
        AttributeError: This is not Linux.
    """

    def __init__(self, path: str) -> None:
        system = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        mask = CLOSE_WRITE | CLOSE_NOWRITE | OPEN
        if system.inotify_add_watch(self.descriptor, os.fsencode(path), mask) < 0:
            error = ctypes.get_errno()
            self.close()
            raise OSError(error, os.strerror(error))

    def look(self) -> Iterator[bool]:
        """Give what happened since the last look: true for an opening, false for a closing."""
        try:
            data = os.read(self.descriptor, EVENTS_BYTES_MAX)
        except BlockingIOError:
            return
        for _, mask, _, _ in EVENT.iter_unpack(data):
            if mask & (OPEN | CLOSE_WRITE | CLOSE_NOWRITE):
                yield bool(mask & OPEN)

    def close(self) -> None:
        """Stop watching."""
        os.close(self.descriptor)
