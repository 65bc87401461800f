"""The latch of a port on this machine: whoever else's file, account or shell leads there finds it.

Beside a lab's own latch and marker one small record a port: *armed* while a line is, *latched*
when it has tripped, and empty when it is open. A record that says armed and whose owner is gone is
of a line that was left armed.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labharness.core.files.durable import sync_folder
from labharness.core.files.named import is_there, open_named
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link.identity import LinkAddress, identify
from labharness.safety.guard import places
from labharness.safety.guard.fields import Fields
from labharness.safety.guard.written import read_trip, write_trip

__all__ = ["LEFT_ARMED", "PortLatch", "PortRecord", "clear_ports"]

LEFT_ARMED = "the line was left armed: its harness or guard died, or a latch could not be written"
SUFFIX = ".latch"
RECORD_BYTES_MAX = 65_536


@dataclass(frozen=True, slots=True)
class PortRecord:
    """What is written of one port.

    Attributes:
        port: Its name in the lab file of who reads this.
        trip: What latched it.
        state_dir: Of the lab that latched it.
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
        """Find what is latched: by this lab, and by another that stands by it.

        One whose own latch and marker are gone stands by nothing: the record is this lab's then.

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
        """Say before the first permit that the ports are armed; raises ``OSError``."""
        self._find(anew=True)
        self._write(Trip(Cause.COMMUNICATION, procedure, "guard", None, 0.0, LEFT_ARMED))

    def close(self, trip: Trip) -> None:
        """Latch the ports; raises ``OSError`` where one is not on the disk."""
        self._write(trip)

    def clear(self) -> None:
        """Open the ports, but for what another lab stands by; raises ``OSError``."""
        for record in self._records():
            if record.state_dir == self._home or not _stands(record.state_dir):
                _empty(record.path)

    def _records(self) -> Iterator[PortRecord]:
        self._find()
        for place in places.places_to_look():
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

        What was found stays: a port that is unplugged meanwhile keeps its record.
        """
        addresses = [
            address for address in self._addresses if anew or address.path or not self._names
        ]
        self._names |= _names(addresses)


def clear_ports(addresses: Sequence[LinkAddress]) -> None:
    """Forget what was latched under names that an instrument has just been given by the system."""
    for name in _names(addresses):
        for place in places.LATCH_PLACES:
            with suppress(OSError):
                if is_there(place / name):
                    _empty(place / name)


def _names(addresses: Sequence[LinkAddress]) -> dict[str, str]:
    """Return the name of each record, and whose it is."""
    found = [identify(address) for address in addresses]
    return {f"{key}{SUFFIX}": each.port for each in found for key in each.latch_keys}


def _stands(state_dir: str) -> bool:
    """Return whether a lab has its own latch or marker still, or hides whether it has."""
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

    In its place, not beside it: in a folder of all accounts nobody may replace another's file. A
    record that a power cut has torn cannot be read, and so is a latch.
    """
    trouble = OSError(2, "there is no place for what latches a port", str(places.LATCH_PLACES[-1]))
    for place in places.LATCH_PLACES:
        try:
            if not places.makeable(place):
                continue
            handle = places.opened_in(place, name)
            try:
                _replace(handle, data)
            finally:
                os.close(handle)
            sync_folder(place)
        except OSError as why:
            trouble = why
        else:
            return
    raise trouble


def _empty(path: Path) -> None:
    handle = places.opened_in(path.parent, path.name)
    try:
        _replace(handle, b"")
    finally:
        os.close(handle)


def _replace(handle: int, data: bytes) -> None:
    if os.pwrite(handle, data, 0) != len(data):
        raise OSError(28, "only a part could be written")
    os.ftruncate(handle, len(data))
    os.fsync(handle)
