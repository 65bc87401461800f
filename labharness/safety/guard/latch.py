"""The latch on disk: it survives a restart, a power cut, and a disk that fails during a trip.

On real links it also holds for each port, with any lab file: ``port_records``.

Two small files. ``latch.json`` holds the trip. ``guard.armed``, the marker, is written before the
first permit, while the disk still takes it, and is removed at a clean end. If a latch
cannot be written, or its process died before, the next process finds the armed marker.
"""

import errno
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from labharness.core.errors import LabError
from labharness.core.files.durable import sync_folder, write_durably
from labharness.core.files.named import is_there, open_named
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text, several
from labharness.safety.guard.messages import Fields, read_trip, write_trip
from labharness.safety.guard.port_records import LEFT_ARMED, PortLatch, PortRecord
from labharness.safety.guard.service import BackgroundWork

MARKER_FILE = "guard.armed"
LATCH_BYTES_MAX = 65_536  # a trip has a few hundred; what is longer is none
PROBE_BYTES = 4096  # a trip and its sentence are shorter; a full disk still takes an empty file

_encode = json.JSONEncoder(sort_keys=True).encode  # json.dumps would make one while a line trips


class LatchUnreadable(LabError, RuntimeError, code="latch_unreadable"):
    """The latch file is there and cannot be read: the line counts as latched."""


class LatchedElsewhere(LatchUnreadable, code="latched_elsewhere"):
    """The latch of another lab holds one of these ports; the message names it and the next step.

    Args:
        record: The record of the port.
    """

    def __init__(self, record: PortRecord) -> None:
        super().__init__(elsewhere(record))
        self.trip = record.trip


class Latch:
    """Remembers the trip that closed it until a named person resets it.

    A line that was left armed is found latched, because its state is not known.

    Args:
        path: The latch file; its folder must exist. The armed marker lies beside it.
        ports: The records of the line's real ports; ``None`` where it has none.

    Attributes:
        marker: The procedure in the marker, for the loss of an armed line; ``None`` without one.
        trip: The first trip, with the procedure that ran last; ``None`` while open.
        unreadable: Reason why the files cannot be read; ``""`` otherwise.
        write: Writes a file durably; tests put a full disk in its place.
        write_error: Reason why the trip is not in the file; ``""`` if it is, or there is none.

    Raises:
        LatchUnreadable: Something is there and cannot be read, or another lab has latched a port.
    """

    def __init__(self, path: Path, ports: PortLatch | None = None) -> None:
        self._path = path
        self._ports = ports
        self._marker_file = path.with_name(MARKER_FILE)
        self.write: Callable[[Path, str], None] = write_durably
        self.trip: Trip | None = None
        self.write_error = ""
        self.unreadable = ""
        self.marker = _read_marker(self._marker_file)
        if is_there(path):
            self.trip = _read(path)
        elif self.marker is not None:
            self.trip = Trip(Cause.COMMUNICATION, self.marker, "guard", None, 0.0, LEFT_ARMED)
            self.write_error = Text("latch.not_yet", path=str(path))
        found = None if ports is None else _found(ports)
        if found is not None and self.trip is None:
            self.trip = found.trip  # its own file was lost with its folder, or was another lab's
            self.write_error = Text("latch.not_yet", path=str(path))

    @classmethod
    def or_shut(cls, path: Path, procedure: str = "", ports: PortLatch | None = None) -> "Latch":
        """Return the latch, and a shut one where it cannot be read: making safe needs none.

        The files stay as they are: a person finds out what happened to them.
        """
        try:
            return cls(path, ports)
        except LatchUnreadable as why:
            if isinstance(why, LatchedElsewhere):
                procedure = why.trip.procedure
            latch = cls(path.with_name("unreadable.latch") / path.name)
            latch.trip = Trip(Cause.COMMUNICATION, procedure, "latch", None, 0.0, str(why))
            latch.unreadable = str(why)
            return latch

    def close(self, trip: Trip) -> None:
        """Latch. A disk that fails is remembered, and the latch still holds in memory.

        The first trip stays in the file: it is the cause to clear; later ones are in the journal.
        Of one that follows, graver or by hand, the file takes the procedure: that is how the line
        was left.
        """
        if self.hold(trip):
            self.saved()

    def hold(self, trip: Trip) -> bool:
        """Latch in memory; ``saved`` puts it on the disk, and the marker stands for it till then.

        Returns:
            Whether there is something new to save.
        """
        fresh = joined(self.trip, trip)
        if fresh == self.trip or self.unreadable:
            return False
        self.trip = fresh
        self.write_error = Text("latch.not_yet", path=str(self._path))
        return True

    def saved(self) -> bool:
        """Return whether disk and memory hold the same latch, after another try if not."""
        if self.trip is not None and self.write_error:
            trip = self.trip
            text = _encode(write_trip(trip))
            found = [_trouble(self._path, lambda: self.write(self._path, text))]
            if self._ports is not None:  # its folder may be gone, and the ports are there
                ports = self._ports
                found.append(_trouble(Path("a port's record"), lambda: ports.close(trip)))
            self.write_error = several(*found)
        return not self.write_error

    def probe(self) -> None:
        """Raise ``OSError`` if a latch could not be written now; called before a line is armed."""
        probe(self._path, self.write)

    def set_marker(self, procedure: str) -> None:
        """Set the marker before a line is armed; ``OSError`` if it does not reach the disk."""
        if procedure == self.marker:
            return
        ports = self._ports if self.marker is None else None
        if ports is not None:
            _must_be_ours(ports)
        self.write(self._marker_file, procedure + "\n")
        self.marker = procedure
        if ports is not None:
            try:
                ports.set_marker(procedure)
            except OSError:
                self.clear_marker()
                raise

    def clear_marker(self) -> None:
        """Take the armed marker away, unless it stands for a latch that is not on the disk.

        A disk that does not let go of it changes nothing: the line is then found latched.
        """
        if self.write_error:
            return
        with suppress(OSError):
            self._marker_file.unlink(missing_ok=True)
            self.marker = None
            if self._ports is not None and self.trip is None:
                self._ports.clear()

    def open(self) -> None:
        """Remove latch and marker; the journal of resets has the person and the reason.

        Raises:
            OSError: One of them cannot be removed; the line stays latched.
        """
        self._path.unlink(missing_ok=True)
        self._marker_file.unlink(missing_ok=True)
        sync_folder(self._path.parent)
        if self._ports is not None:
            self._ports.clear()
        self.trip = self.marker = None
        self.write_error = ""


def not_tried(write_error: str) -> bool:
    """Return whether a latch is not on the disk yet because the bytes of the trip go first."""
    return isinstance(write_error, Text) and write_error.code == "latch.not_yet"


def joined(first: Trip | None, later: Trip) -> Trip:
    """Return the first of two trips, with the procedure that ran last."""
    return later if first is None else replace(first, procedure=later.procedure)


def elsewhere(record: PortRecord) -> str:
    """Return the message about a port that another lab has latched, with its reset command."""
    return (
        f"port {record.port} is latched on this machine by the lab of {record.state_dir}: "
        f"{record.trip.detail}; when the cause is gone: {record.reset}"
    )


def _found(ports: PortLatch) -> PortRecord | None:
    """Return the record by which this lab has latched its ports, if any.

    Raises:
        LatchedElsewhere: Another lab's latch does.
        LatchUnreadable: That cannot be known.
    """
    try:
        ours, theirs = ports.look()
    except PermissionError as why:
        raise LatchUnreadable(
            f"this account may not see what is latched on this machine ({why.filename}); the line "
            "stays latched until it may: put the account into the group of that folder"
        ) from None
    except (OSError, ValueError) as why:
        raise _unreadable(Path(getattr(why, "filename", None) or "a port's record"), why) from None
    if theirs is not None:
        raise LatchedElsewhere(theirs)
    return ours


def _must_be_ours(ports: PortLatch) -> None:
    """Raise ``OSError`` where another lab has latched a port since this latch was opened."""
    try:
        found = _found(ports)
    except LatchUnreadable as why:
        raise OSError(errno.EBUSY, str(why)) from None
    if found is not None:
        raise OSError(errno.EBUSY, f"port {found.port} is latched: {found.trip.detail}")


def _trouble(where: Path, write: Callable[[], None]) -> str:
    """Write, and return the error; ``""`` if it reached the disk."""
    try:
        write()
    except OSError as why:
        return Text("pair", what=str(where), why=str(why.strerror or why))
    return ""


def _read(path: Path) -> Trip:
    try:
        with open_named(path) as file:
            text = file.read(LATCH_BYTES_MAX).decode()
        return read_trip(Fields(json.loads(text), "the latch"))
    except (OSError, ValueError, RecursionError) as why:
        raise _unreadable(path, why) from None


def _read_marker(path: Path) -> str | None:
    if not is_there(path):
        return None
    try:
        with open_named(path) as file:
            return file.read(LATCH_BYTES_MAX).decode(errors="replace").strip()
    except OSError as why:
        raise _unreadable(path, why) from None


def _unreadable(path: Path, why: Exception) -> LatchUnreadable:
    until = "a person has found out what happened to the disk and has removed the file by hand"
    return LatchUnreadable(f"{path} cannot be read ({why}); the line stays latched until {until}")


def probe(latch_file: Path, write: Callable[[Path, str], None]) -> None:
    """Raise ``OSError`` if a latch could not be written beside this file now."""
    beside = latch_file.with_suffix(".probe")
    write(beside, " " * PROBE_BYTES)
    beside.unlink()


APART_S = 1.0  # heartbeats may change their mind ten times a second; a disk need not


class ArmedMarker(BackgroundWork):
    """Writes one marker at a time, and in the end the last one that was wanted.

    Args:
        latch: The latch that it belongs to.

    Attributes:
        wanted: The procedure that the last heartbeat named.
    """

    def __init__(self, latch: Latch) -> None:
        super().__init__(APART_S)
        self.wanted = ""
        self._latch = latch

    def follow(self, now: float) -> None:
        """Begin to write what is wanted, where it is not written yet; waits for nothing."""
        if self.wanted != self._latch.marker:
            self.begin(now, self._write, self.wanted)

    def _write(self, procedure: str) -> None:
        with suppress(OSError):  # the name that stands there is one for this line too
            self._latch.set_marker(procedure)
