"""The latch on disk: one fsynced file that survives restart and power cut."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from labharness.guard.written import write_trip
from labharness.vocabulary import Cause, Trip

__all__ = ["Latch", "LatchUnreadable", "probe", "write_durably"]

_encode = json.JSONEncoder(sort_keys=True).encode  # json.dumps would make one while a line trips


class LatchUnreadable(RuntimeError):
    """The latch file is there and cannot be read: the line counts as latched."""


class Latch:
    """Remembers the trip that closed it until a named person resets it.

    Args:
        path: The latch file; its folder must exist.

    Attributes:
        write: How a file is written; a disk that is full is put in its place to see what then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.write: Callable[[Path, str], None] = write_durably
        self.trip: Trip | None = None
        self.write_error = ""
        if path.exists():
            self.trip = _read(path)

    def close(self, trip: Trip) -> None:
        """Latch. A disk that fails is remembered, and the latch still holds in memory.

        The first trip stays in the file: it is the cause to clear; later ones are in the journal.
        """
        if self.trip is not None:
            return
        self.trip = trip
        text = _encode(write_trip(trip))
        try:
            self.write(self._path, text)
        except OSError as why:
            self.write_error = f"{self._path}: {why.strerror or why}"

    def saved(self) -> bool:
        """Say whether the latch is on disk as it is in memory, after another try if it is not."""
        if self.trip is not None and self.write_error:
            trip, self.trip = self.trip, None
            self.write_error = ""
            self.close(trip)
        return not self.write_error

    def probe(self) -> None:
        """Raise ``OSError`` if a latch could not be written now; called before a line is armed."""
        probe(self._path, self.write)

    def open(self) -> None:
        """Take the latch away; who asked, and why, is in the journal of resets."""
        self._path.unlink(missing_ok=True)
        sync_folder(self._path.parent)
        self.trip = None


def _read(path: Path) -> Trip:
    try:
        fields = json.loads(path.read_text("utf-8"))
        return Trip(**{**fields, "cause": Cause(fields["cause"])})
    except (OSError, ValueError, TypeError, KeyError) as why:
        raise LatchUnreadable(f"{path} cannot be read ({why}); the line stays latched") from None


def probe(latch_file: Path, write: Callable[[Path, str], None]) -> None:
    """Raise ``OSError`` if a latch could not be written beside this file now."""
    beside = latch_file.with_suffix(".probe")
    write(beside, "")
    beside.unlink()


def write_durably(path: Path, text: str) -> None:
    """Put a small file in its place whole, and on the disk before this returns."""
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
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
