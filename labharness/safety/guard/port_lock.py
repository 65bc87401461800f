"""One owner a port on this machine: a lock by what the port is, not by who asks from where.

A lab's own lock hangs on its state directory, and keeps out those who read the same file. This one
keeps out a copy of the file, another account and another shell.
"""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from labharness.core.clock.process import pause
from labharness.core.files.named import open_named
from labharness.instruments.link.identity import LinkIdentity
from labharness.safety.guard import places

if os.name == "posix":
    import fcntl

__all__ = ["GUARD", "LINE", "PortLock", "PortTaken", "who_holds"]

LINE = "line"  # of the process that drives a line, or looks at it
GUARD = "guard"  # of its guard process

WHO_BYTES_MAX = 65_536
TRIES = 4
TRY_S = 0.02  # who only looks whether a lock is held has it for as long as that takes

Who = Mapping[str, object]


class PortTaken(RuntimeError):
    """Another process has a port.

    Args:
        port: Which, by the name that this lab has for it.
        who: What that process has said of itself; empty where it has said nothing.
    """

    def __init__(self, port: str, who: Who) -> None:
        super().__init__(f"port {port} is taken on this machine")
        self.port = port
        self.who = who


class PortLock:
    """Holds ports for as long as the process lives; the system lets go when it dies.

    Args:
        ports: What they are on this machine.
        kind: ``LINE`` or ``GUARD``.
        who: Written down for others to find.

    Raises:
        PortTaken: Another process has one.
        OSError: No place takes a lock.
    """

    def __init__(self, ports: Sequence[LinkIdentity], kind: str, who: Who) -> None:
        self._handles: list[int] = []
        try:
            for port, key in _keys(ports):
                self._take(port, f"{key}.{kind}", who)
        except BaseException:
            self.release()
            raise

    def _take(self, port: str, name: str, who: Who) -> None:
        taken = 0
        trouble = OSError(errno.ENOENT, "no place for locks", str(places.LOCK_PLACES[-1]))
        for place in places.LOCK_PLACES:
            try:
                if places.makeable(place):
                    self._handles.append(_held(place, name, port))
                    _say(self._handles[-1], who)
                    taken += 1
            except OSError as why:
                trouble = why
        if not taken:
            raise trouble

    def release(self) -> None:
        """Let go, once; the files stay, for whoever waits at them."""
        handles, self._handles = self._handles, []
        for each in handles:
            os.close(each)


def who_holds(ports: Sequence[LinkIdentity], kind: str) -> tuple[str, Who] | None:
    """Return the first port that a process holds, and what that process says of itself."""
    for port, key in _keys(ports):
        for place in places.LOCK_PLACES:
            with suppress(OSError), open_named(place / f"{key}.{kind}") as file:
                try:
                    fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return port, _who(place / f"{key}.{kind}")
    return None


def _keys(ports: Sequence[LinkIdentity]) -> Iterator[tuple[str, str]]:
    """Return each key once: two ports of a lab may turn out to be one link."""
    seen: set[str] = set()
    for port in ports:
        for key in port.lock_keys:
            if key not in seen:
                seen.add(key)
                yield port.port, key


def _held(place: Path, name: str, port: str) -> int:
    """Open a lock file and lock it.

    Raises:
        PortTaken: Another process has it.
        OSError: It cannot be opened.
    """
    for left in reversed(range(TRIES)):
        handle = places.opened_in(place, name)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.lstat(place / name)):
                return handle
        except BlockingIOError:
            if not left:
                os.close(handle)
                raise PortTaken(port, _who(place / name)) from None
        except FileNotFoundError:  # cleared away between its opening and its locking
            pass
        os.close(handle)
        pause(TRY_S)
    raise OSError(errno.EAGAIN, "it is replaced again and again", str(place / name))


def _say(handle: int, who: Who) -> None:
    with suppress(OSError):  # what it says is of use to persons only
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(who).encode(), 0)


def _who(path: Path) -> Who:
    try:
        with open_named(path) as file:
            found = json.loads(file.read(WHO_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
