"""A file that was named, opened only where it is one: a pipe that nobody fills is waited for."""

import errno
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_named"]

HANDED_OVER = ("/dev/stdin", "/dev/fd/")
"""What the shell has opened already, such as ``<(command)``."""


def open_named(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: It cannot be opened, or is a pipe or a device, which may neither begin nor end.
    """
    if not str(path).startswith(HANDED_OVER):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))
    return path.open("rb")
