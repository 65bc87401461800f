"""Looks whether a line is owned and latched; nothing is opened or changed."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from labharness.core.vocabulary import Text, Trip
from labharness.lab.config.address import LabAddress
from labharness.lab.config.lock import LOCK_NAME, LineBusy, LineLock, owner_elsewhere
from labharness.safety.guard.latch import MARKER_FILE, Latch, LatchUnreadable


@dataclass(frozen=True, slots=True)
class LatchFacts:
    """The trip that latched the line and its time, or the reason that the latch cannot be read.

    ``hidden`` where this user may not even see whether there is one.
    """

    trip: Trip | None = None
    since: datetime | None = None
    trouble: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """Whether a living process owns the line, which, and why that could not be asked."""

    held: bool
    by: str = ""
    left_behind: bool = False
    trouble: str = ""


def seen_owner(place: LabAddress) -> OwnerFacts:
    """Return whether a process holds the line, by this lab file or another one."""
    elsewhere = owner_elsewhere(place.identities(), place.state_dir)
    if elsewhere is not None:
        return OwnerFacts(held=True, by=elsewhere.abroad)
    lock = place.state_dir / LOCK_NAME
    if not os.path.exists(lock):
        return OwnerFacts(held=False)
    try:
        LineLock(place.state_dir).release()
    except LineBusy:
        return OwnerFacts(held=True)
    except OSError as why:
        return OwnerFacts(held=False, trouble=Text("pair", what=str(lock), why=why.strerror))
    return OwnerFacts(held=False, left_behind=True)


def seen_latch(place: LabAddress, *, owned: bool) -> LatchFacts:
    """Return what is known of a latch; the mark of an ``owned`` line says nothing of a trip."""
    path = place.state_dir / "latch.json"
    try:
        latch = Latch(path, place.port_latch())
        if latch.trip is None or (latch.write_error and owned):  # the mark of a line in use
            return LatchFacts()
        marked = latch.write_error and latch.marker is not None
        if latch.write_error and not marked:  # a port's record is all there is of it
            return LatchFacts(latch.trip)
        file = path.with_name(MARKER_FILE) if marked else path
        return LatchFacts(latch.trip, datetime.fromtimestamp(file.stat().st_mtime, UTC))
    except LatchUnreadable as why:
        return LatchFacts(trouble=str(why))
    except OSError as why:
        return LatchFacts(trouble=Text("pair", what=str(path), why=why.strerror), hidden=True)
