"""Watch the opens, writes and closes of a device node, in order, through Linux inotify."""

import ctypes
import os
import struct
from enum import Enum

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
