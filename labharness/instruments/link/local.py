"""Local sockets: how the processes of a lab on one machine reach each other.

Guard, line owner, house and control each listen at a path in the lab's state directory, and what
connects names that path. That these are Unix sockets, for one account (0600) or the group of the
folder, is known here alone. The standard library is all that this module imports.
"""

import os
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if os.name == "posix":
    import pwd

if TYPE_CHECKING:
    import asyncio

GUARD: Final = "guard.sock"
CONTROL: Final = "control.sock"
OWNER: Final = "owner.sock"
HOUSE: Final = "house.sock"

SUPPORTED: Final = hasattr(socket, "AF_UNIX")
"""Whether this system's Python has such sockets: on Windows it has none."""

PATH_BYTES_MAX: Final = 100
"""Length (bytes) of the longest path; the system's bound is 104 to 108."""

CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group: unix(7), SO_PEERCRED."""


def listening_at(path: Path, *, waiting: int = 100, shared: bool = False) -> socket.socket:
    """Return a socket that listens at a path; what stands there is of a process that has died.

    Args:
        path: The path.
        waiting: Most connections that wait to be taken.
        shared: The group of its folder may connect too, if it may use that folder.

    Raises:
        OSError: It cannot be made: no such thing on this system, or a path that is too long.
    """
    if not SUPPORTED:
        raise OSError("this system's Python has no Unix sockets")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # so from its first moment
    before = os.umask(0o117 if shared and path.parent.stat().st_mode & stat.S_IRWXG else 0o177)
    try:
        path.unlink(missing_ok=True)
        listening.bind(str(path))
        listening.listen(waiting)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    return listening


def connected_to(path: Path, connect_s_max: float) -> socket.socket:
    """Return a socket that is connected to the one at a path.

    Raises:
        OSError: No process listens there, or this account may not connect.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(connect_s_max)
    try:
        made.connect(str(path))
    except OSError:
        made.close()
        raise
    return made


async def reach(
    path: Path, protocol: "Callable[[], asyncio.BaseProtocol]", loop: "asyncio.AbstractEventLoop"
) -> None:
    """Connect a protocol to the socket at a path; raises as `connected_to`."""
    await loop.create_unix_connection(protocol, str(path))


def account_behind(connection: socket.socket) -> str:
    """Return the account at the other end, as the system says; ``""`` where it says nothing."""
    if not hasattr(socket, "SO_PEERCRED"):
        return ""
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    _, uid, _ = CREDENTIALS.unpack(said)
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # a number without a name, as in a container
        return f"account {uid}"


def notify(address: str, text: str) -> None:
    """Send a word to the manager of a service, at an address of its own; never wait, never fail."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(text.encode(), address)
