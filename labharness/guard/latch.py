"""The latch on disk: it survives restart and power cut, and a disk that fails when the line trips.

Two small files. ``latch.json`` holds the trip. ``guard.armed``, the mark, is written before the
first permit, while the disk still takes it, and goes with a clean end: where a latch cannot be
written, or nobody lived to write it, the mark is what the next one finds.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from labharness.guard.fields import Fields
from labharness.guard.named import is_there, open_named, open_own
from labharness.guard.written import read_trip, write_trip
from labharness.vocabulary import Cause, Trip

__all__ = ["Latch", "LatchUnreadable", "joined", "not_tried", "probe", "write_durably"]

MARK_FILE = "guard.armed"
NOT_YET = "not written yet"
LEFT_ARMED = "the line was left armed: its harness or guard died, or a latch could not be written"
LATCH_BYTES_MAX = 65_536  # a trip has a few hundred; what is longer is none
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a fresh file takes the place of its name: it is no link
PROBE_BYTES = 4096  # a trip and its sentence are shorter; a full disk still takes an empty file

_encode = json.JSONEncoder(sort_keys=True).encode  # json.dumps would make one while a line trips


class LatchUnreadable(RuntimeError):
    """The latch file is there and cannot be read: the line counts as latched."""


class Latch:
    """Remembers the trip that closed it until a named person resets it.

    A line that was left armed is found latched: what became of it is not known.

    Args:
        path: The latch file; its folder must exist. The mark lies beside it.

    Attributes:
        marked: What the mark names, the procedure for the loss of an armed line; ``None`` where
            there is no mark.
        trip: What latched first, with the procedure that ran last; ``None`` while open.
        unreadable: Why the files cannot be read, where that did not matter.
        write: How a file is written; a disk that is full is put in its place to see what then.
        write_error: Why the trip is not in the latch file; ``""`` when it is, or there is none.

    Raises:
        LatchUnreadable: Something is there and cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = path.with_name(MARK_FILE)
        self.write: Callable[[Path, str], None] = write_durably
        self.trip: Trip | None = None
        self.write_error = ""
        self.unreadable = ""
        self.marked = _read_mark(self._mark)
        if is_there(path):
            self.trip = _read(path)
        elif self.marked is not None:
            self.trip = Trip(Cause.COMMUNICATION, self.marked, "guard", None, 0.0, LEFT_ARMED)
            self.write_error = f"{path}: {NOT_YET}"

    @classmethod
    def or_shut(cls, path: Path, procedure: str = "") -> "Latch":
        """Give the latch, and one that is shut where it cannot be read: making safe asks for none.

        The files stay as they are: a person finds out what happened to them.
        """
        try:
            return cls(path)
        except LatchUnreadable as why:
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
        """Latch in memory; ``saved`` puts it on the disk, and the mark stands for it till then.

        Returns:
            Whether there is something new to save.
        """
        fresh = joined(self.trip, trip)
        if fresh == self.trip or self.unreadable:
            return False
        self.trip = fresh
        self.write_error = f"{self._path}: {NOT_YET}"
        return True

    def saved(self) -> bool:
        """Say whether the latch is on disk as it is in memory, after another try if it is not."""
        if self.trip is not None and self.write_error:
            try:
                self.write(self._path, _encode(write_trip(self.trip)))
            except OSError as why:
                self.write_error = f"{self._path}: {why.strerror or why}"
            else:
                self.write_error = ""
        return not self.write_error

    def probe(self) -> None:
        """Raise ``OSError`` if a latch could not be written now; called before a line is armed."""
        probe(self._path, self.write)

    def mark(self, procedure: str) -> None:
        """Set the mark before a line is armed; raises ``OSError`` if it does not reach the disk."""
        if procedure != self.marked:
            self.write(self._mark, procedure + "\n")
            self.marked = procedure

    def unmark(self) -> None:
        """Take the mark away, unless it stands for a latch that is not on the disk.

        A disk that does not let go of it changes nothing: the line is then found latched.
        """
        if self.write_error:
            return
        with suppress(OSError):
            self._mark.unlink(missing_ok=True)
            self.marked = None

    def open(self) -> None:
        """Take latch and mark away; who asked, and why, is in the journal of resets.

        Raises:
            OSError: One of them does not go; the line stays latched.
        """
        self._path.unlink(missing_ok=True)
        self._mark.unlink(missing_ok=True)
        sync_folder(self._path.parent)
        self.trip = self.marked = None
        self.write_error = ""


def not_tried(write_error: str) -> bool:
    """Say whether a latch is not on the disk only because nobody has tried: bytes go first."""
    return write_error.endswith(NOT_YET)


def joined(first: Trip | None, later: Trip) -> Trip:
    """Give the first of two trips, with the procedure that ran last."""
    return later if first is None else replace(first, procedure=later.procedure)


def _read(path: Path) -> Trip:
    try:
        with open_named(path) as file:
            text = file.read(LATCH_BYTES_MAX).decode()
        return read_trip(Fields(json.loads(text), "the latch"))
    except (OSError, ValueError, RecursionError) as why:
        raise _unreadable(path, why) from None


def _read_mark(path: Path) -> str | None:
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


def write_durably(path: Path, text: str) -> None:
    """Put a small file in its place whole, and on the disk before this returns."""
    fresh = path.with_suffix(".new")
    with os.fdopen(open_own(fresh, os.O_WRONLY | os.O_TRUNC | NO_LINK), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make what was renamed or removed in a folder outlive a power cut."""
    if os.name != "posix":
        return  # Windows makes a rename durable by itself and cannot open a folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
