"""Open files by name, and only files: a pipe or device in a file's place must not block the caller.

A pipe, a socket, a device or a dangling link is never opened and never waited for. It does not
count as an absent file either.
"""

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

HANDED_OVER = ("/dev/stdin", "/dev/fd/")
"""Descriptors that the shell has opened already, such as ``<(command)``."""

NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Between the look at a name and its opening a pipe may be put there; Windows has neither flag."""

BINARY = getattr(os, "O_BINARY", 0)  # Windows has it
SAID_BYTES_MAX = 65_536
"""Of a file in which a process says something of itself; it is read no further."""
GROUP_FILE_MODE = 0o660


def is_there(path: Path) -> bool:
    """Return whether anything stands at a path: a link that leads nowhere or to itself does, too.

    Raises:
        OSError: That may not be known, such as ``PermissionError``.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def open_named(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: It cannot be opened, or is a pipe or a device, which may neither begin nor end.
    """
    if str(path).startswith(HANDED_OVER):
        return path.open("rb")
    _must_be_file(path, path.stat().st_mode)
    handle = os.open(path, os.O_RDONLY | NO_WAIT | BINARY)
    try:
        _must_be_file(path, os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except OSError:  # a folder is none that can be read
        os.close(handle)
        raise


def said_in(path: Path) -> object:
    """Return the JSON of a file in which a process says something; ``None`` where there is none."""
    try:
        with open_named(path) as file:
            return json.loads(file.read(SAID_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None


def say_in(handle: int, said: object) -> None:
    """Write into a file that is held what people are told of its holder, if the disk takes it."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(said).encode(), 0)


def open_own(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file of ours for writing, create it if it is absent, and return its descriptor.

    In a folder that a group shares it is the group's as well, whatever the umask.

    Args:
        path: The file.
        flags: As ``os.open`` takes them; ``O_CREAT`` is added.
        mode: Rights of a fresh file, less the umask, in a folder that no group shares.

    Raises:
        OSError: It cannot be opened, or is a pipe or a device.
    """
    with suppress(FileNotFoundError):  # it is made, or the link that leads nowhere tells of itself
        _must_be_file(path, path.stat().st_mode)
    handle = os.open(path, flags | os.O_CREAT | NO_WAIT | BINARY, mode)
    try:
        _must_be_file(path, os.fstat(handle).st_mode)
        if shared_by_group(path.parent):
            with suppress(PermissionError):  # it is of another account, which has done so
                os.fchmod(handle, GROUP_FILE_MODE)
    except OSError:
        os.close(handle)
        raise
    return handle


def shared_by_group(folder: Path) -> bool:
    """Return whether the group of a folder may make files in it."""
    return os.name == "posix" and bool(folder.stat().st_mode & stat.S_IWGRP)


def hold_alone(handle: int) -> None:
    """Take the one lock of an open file; the system gives it back when the file is closed.

    Raises:
        OSError: Another process has it, or there are no locks here.
    """
    if os.name == "posix":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        os.lseek(handle, 2**30, os.SEEK_SET)  # behind what is written, which stays readable
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # Windows has it
        os.lseek(handle, 0, os.SEEK_SET)


def _must_be_file(path: Path, mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))
