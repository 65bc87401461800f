"""Where this machine keeps who holds a port and what latched it, for all accounts alike.

No variable of the environment and no line of a file moves these places: a shell of another account,
a service and a copy of the lab file must find one another.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from labharness.core.files.named import GROUP_FILE_MODE, open_named

__all__ = ["KEPT_PLACE", "LATCH_PLACES", "LOCK_PLACES", "makeable", "opened_in", "places_to_look"]

KEPT_PLACE = Path("/var/lib/labharness/ports")
"""What latched a port outlives a restart here. Who runs the machine makes it: docs/how-to."""

SHARED_PLACE = Path("/var/tmp/labharness")
"""Every account may write here, and files are kept over a restart (FHS 3.0, 5.15), for 30 days
where systemd-tmpfiles clears it (tmpfiles.d(5))."""

LOCK_PLACES = (Path("/run/lock/labharness"), SHARED_PLACE)
"""A lock is held in each that there is: a service may have a /var/tmp of its own."""

LATCH_PLACES = (KEPT_PLACE, SHARED_PLACE)
"""A latch is written to the first that takes it, and looked for in all."""

PLACE_MODE = 0o1777
FILE_MODE = 0o666
NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def makeable(place: Path) -> bool:
    """Return whether a place is there, or was made; the kept one is made by a person alone."""
    if place != KEPT_PLACE:
        with suppress(OSError):  # it is there, or there is nothing above it
            place.mkdir(PLACE_MODE)
            place.chmod(PLACE_MODE)
    try:
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def places_to_look() -> Iterator[Path]:
    """Return the places where a latch may be.

    Raises:
        OSError: This account may not see whether there is one.
    """
    for place in LATCH_PLACES:
        if os.path.lexists(place):
            os.listdir(place)
            yield place


def opened_in(place: Path, name: str) -> int:
    """Open a file of a place for reading and writing, and make it for all who may use the place.

    It is never made over what is there: in a folder of all accounts a system may refuse that
    (fs.protected_regular, proc_sys_fs(5)).

    Raises:
        OSError: It cannot be opened, or is no file.
    """
    path = place / name
    try:
        open_named(path).close()
        return os.open(path, os.O_RDWR | NO_WAIT)
    except FileNotFoundError:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_WAIT, FILE_MODE)
    open_to_all = place.stat().st_mode & stat.S_IWOTH
    os.fchmod(handle, FILE_MODE if open_to_all else GROUP_FILE_MODE)
    return handle
