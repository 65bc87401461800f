"""Facts about a machine that the doctor weighs: ports, folders, clocks, owner, latch, files."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from labharness.core.vocabulary import Trip
from labharness.lab.config.wires import Finding
from labharness.work.admission.approval import StandingApproval


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialFacts:
    """The facts of the system about a serial port.

    Attributes:
        exists: Whether there is such a name.
        is_device: Whether it is a character device.
        allowed: Whether this user may read and write it.
        group: The group that owns it; ``""`` where that group may not read and write it.
        joined: Whether this user is listed in that group, though this session does not know yet.
        held_by: The processes that have it open; ``""`` for none.
        trouble: Why it did not open; ``""`` where it did or was not tried.
        by_id: Its name below ``/dev/serial/by-id``; ``""`` where it has none.
        present: The names of all serial devices that are there.
    """

    exists: bool
    is_device: bool = False
    allowed: bool = False
    group: str = ""
    joined: bool = False
    held_by: str = ""
    trouble: str = ""
    by_id: str = ""
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFacts:
    """The facts of the system about a folder, or about the nearest one above that exists.

    Attributes:
        exists: Whether the folder itself does; if not, the rest is of the nearest above.
        is_folder: Whether what exists is a folder.
        writable: Whether this user may make files in it.
        mode: Permission bits.
        ours: Whether it belongs to this user.
        filesystem: Its kind; ``""`` where it is not known.
        sync_trouble: Why a file written there did not reach the disk; ``""`` where it did.
        free_bytes: Room for this user.
        newest: When the newest file in it was written.
    """

    path: str
    exists: bool
    is_folder: bool = True
    writable: bool = True
    mode: int = 0o700
    ours: bool = True
    filesystem: str = ""
    sync_trouble: str = ""
    free_bytes: int = 0
    newest: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The state of the clocks: the calendar, the progress of both, and the time service.

    ``synchronised`` is None where the system does not say.
    """

    now_utc: datetime
    wall_s: float
    ticks_s: float
    synchronised: bool | None


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """Whether a living process owns the line, which, and why that could not be asked."""

    held: bool
    by: str = ""
    left_behind: bool = False
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class LatchFacts:
    """The trip that latched the line and its time, or the reason that the latch cannot be read.

    ``hidden`` where this user may not even see whether there is one.
    """

    trip: Trip | None = None
    since: datetime | None = None
    trouble: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """All facts that were looked up on this machine for one lab.

    Attributes:
        python: Its version.
        missing: Packages labharness requires that are not installed.
        modules: Those of the extras that can be imported.
        serial: By port.
        unreached: Why a TCP, WebSocket or VISA port cannot be reached, ``""`` where it can; a
            port that is not named was not tried.
        callers: How many the callers file names, or why it cannot be read.
        approvals: By path, each approval or why it cannot be read.
        user: The account of this process.
        unusable: Valid settings of the lab's files that no task and no alarm could use.
        unsigned: Those approvals that are missing.
        ports_not_kept: Why the latch of a real port may not outlive a restart; ``""`` if it does.
        not_safe: Channels that a guard tries in vain to make safe, with a sentence for each.
    """

    python: str
    missing: tuple[str, ...]
    modules: frozenset[str]
    serial: Mapping[str, SerialFacts]
    unreached: Mapping[str, str]
    state: FolderFacts
    runs: FolderFacts
    clock: ClockFacts
    owner: OwnerFacts
    latch: LatchFacts
    callers: int | str
    approvals: Mapping[str, StandingApproval | str]
    user: str
    unusable: tuple[Finding, ...] = ()
    unsigned: tuple[str, ...] = ()
    ports_not_kept: str = ""
    not_safe: tuple[str, ...] = ()
