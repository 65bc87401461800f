"""The records of each port on this machine, for all accounts: its lock and its latch.

A lab's own lock and latch lie in its state directory and bind those who read the same lab file.
These records bind a copy of that file, another account and another shell as well, because their
names come from the port itself. No environment variable and no setting moves them.

A lock has one owner a port. A latch is one small record a port: *armed* while a line is, *latched*
when it has tripped, and empty when it is open. A record that says armed and whose owner is gone is
of a line that was left armed.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labharness.core.clock.process import pause
from labharness.core.errors import LabError
from labharness.core.files.durable import sync_folder
from labharness.core.files.named import (
    GROUP_FILE_MODE,
    is_there,
    open_named,
    said_in,
    say_in,
)
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link.identity import LinkAddress, LinkIdentity, identify
from labharness.safety.guard.messages import Fields, read_trip, write_trip

if os.name == "posix":
    import fcntl

KEPT_PLACE = Path("/var/lib/labharness/ports")
"""A latch here outlives a restart. The administrator of the machine makes it: docs/how-to."""

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
    """Return whether a place exists or was made; only a person makes the kept one."""
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
        OSError: It cannot be opened, or is not a file.
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


LINE = "line"  # held by the process that drives a line, or looks at it
GUARD = "guard"  # of its guard process

TRIES = 4
TRY_S = 0.02  # a process that only looks whether a lock is held has it for that long

Who = Mapping[str, object]


class PortTaken(LabError, RuntimeError, code="port_taken"):
    """Another process has a port.

    Args:
        port: The port, by its name in this lab.
        who: The description that the process has written; empty without one.
    """

    def __init__(self, port: str, who: Who) -> None:
        super().__init__(f"port {port} is taken on this machine")
        self.port = port
        self.who = who


class PortLock:
    """Holds ports for as long as the process lives; the system lets go when it dies.

    Args:
        ports: The ports on this machine.
        kind: ``LINE`` or ``GUARD``.
        who: Description of this process, written for others to find.

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
        trouble = OSError(errno.ENOENT, "no place for locks", str(LOCK_PLACES[-1]))
        for place in LOCK_PLACES:
            try:
                if makeable(place):
                    self._handles.append(_held(place, name, port))
                    say_in(self._handles[-1], who)
                    taken += 1
            except OSError as why:
                trouble = why
        if not taken:
            raise trouble

    def release(self) -> None:
        """Release the locks, once; the files stay for processes that wait at them."""
        handles, self._handles = self._handles, []
        for each in handles:
            os.close(each)


def who_holds(ports: Sequence[LinkIdentity], kind: str) -> tuple[str, Who] | None:
    """Return the first port that a process holds, and the description of that process."""
    for port, key in _keys(ports):
        for place in LOCK_PLACES:
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
        handle = opened_in(place, name)
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


def _who(path: Path) -> Who:
    found = said_in(path)
    return found if isinstance(found, dict) else {}


LEFT_ARMED = "the line was left armed: its harness or guard died, or a latch could not be written"
SUFFIX = ".latch"
RECORD_BYTES_MAX = 65_536


@dataclass(frozen=True, slots=True)
class PortRecord:
    """The latch record of one port.

    Attributes:
        port: Its name in the reader's lab file.
        trip: The trip that latched it.
        state_dir: State directory of the lab that latched it.
        reset: The command that resets it there.
        path: The record.
    """

    port: str
    trip: Trip
    state_dir: str
    reset: str
    path: Path


class PortLatch:
    """The records of a lab's ports.

    Args:
        addresses: The ports, as the lab file names them.
        state_dir: Of the lab.
        reset: The command that resets it, from whatever folder.
    """

    def __init__(self, addresses: Sequence[LinkAddress], state_dir: Path, reset: str) -> None:
        self._addresses = addresses
        self._names: dict[str, str] = {}  # of the records, and their ports
        self._home = os.path.realpath(state_dir)
        self._reset = reset

    def look(self) -> tuple[PortRecord | None, PortRecord | None]:
        """Find the record of this lab, and the record of another lab that is still latched itself.

        The record of a lab whose own latch and marker are gone counts as this lab's.

        Raises:
            OSError: A place or a record cannot be read; the message says which.
            ValueError: A record says something that cannot be.
        """
        ours: PortRecord | None = None
        for record in self._records():
            if record.state_dir != self._home and _stands(record.state_dir):
                return ours, record
            ours = ours or record
        return ours, None

    def set_marker(self, procedure: str) -> None:
        """Mark the ports as armed, before the first permit; raises ``OSError``."""
        self._find(anew=True)
        self._write(Trip(Cause.COMMUNICATION, procedure, "guard", None, 0.0, LEFT_ARMED))

    def close(self, trip: Trip) -> None:
        """Latch the ports; raises ``OSError`` where one is not on the disk."""
        self._write(trip)

    def clear(self) -> None:
        """Open the ports that no other lab has latched; raises ``OSError``."""
        for record in self._records():
            if record.state_dir == self._home or not _stands(record.state_dir):
                _replace(record.path, b"")

    def _records(self) -> Iterator[PortRecord]:
        self._find()
        for place in places_to_look():
            for name, port in self._names.items():
                record = _read(place / name, port)
                if record is not None:
                    yield record

    def _write(self, trip: Trip) -> None:
        body = {"trip": write_trip(trip), "state_dir": self._home, "reset": self._reset}
        data = json.dumps(body).encode()
        self._find()
        for name in self._names:
            _write_first(name, data)

    def _find(self, *, anew: bool = False) -> None:
        """Find the names of the records; a device each time, a host once, as that takes time.

        A name that was found stays: a port that is unplugged meanwhile keeps its record.
        """
        addresses = [
            address for address in self._addresses if anew or address.path or not self._names
        ]
        self._names |= _names(addresses)


def clear_ports(addresses: Sequence[LinkAddress]) -> None:
    """Clear the records under names that the system has just assigned to an instrument."""
    for name in _names(addresses):
        for place in LATCH_PLACES:
            with suppress(OSError):
                if is_there(place / name):
                    _replace(place / name, b"")


def _names(addresses: Sequence[LinkAddress]) -> dict[str, str]:
    """Return the port of each record by the record's name."""
    found = [identify(address) for address in addresses]
    return {f"{key}{SUFFIX}": each.port for each in found for key in each.latch_keys}


def _stands(state_dir: str) -> bool:
    """Return whether a lab still has its own latch or marker, or does not let us see."""
    try:
        return any(is_there(Path(state_dir) / name) for name in ("latch.json", "guard.armed"))
    except OSError:
        return True


def _read(path: Path, port: str) -> PortRecord | None:
    if not is_there(path):
        return None
    with open_named(path) as file:
        data = file.read(RECORD_BYTES_MAX)
    if not data.strip():
        return None
    try:
        fields = Fields(json.loads(data), "the record")
        trip = read_trip(fields.inside("trip"))
        return PortRecord(port, trip, fields.text("state_dir"), fields.text("reset"), path)
    except (ValueError, RecursionError) as why:
        raise ValueError(f"{path}: {why}") from None


def _write_first(name: str, data: bytes) -> None:
    """Write a record to the first place that takes it.

    It is written in place: in a folder of all accounts no account may replace another's file. A
    record that a power cut has torn cannot be read, and so counts as a latch.
    """
    trouble = OSError(2, "there is no place for what latches a port", str(LATCH_PLACES[-1]))
    for place in LATCH_PLACES:
        try:
            if not makeable(place):
                continue
            _replace(place / name, data)
            sync_folder(place)
        except OSError as why:
            trouble = why
        else:
            return
    raise trouble


def _replace(path: Path, data: bytes) -> None:
    handle = opened_in(path.parent, path.name)
    try:
        if os.pwrite(handle, data, 0) != len(data):
            raise OSError(28, "only a part could be written")
        os.ftruncate(handle, len(data))
        os.fsync(handle)
    finally:
        os.close(handle)
