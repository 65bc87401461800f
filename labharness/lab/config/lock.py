"""Locks that give a line one owner: on a file of the state directory, and on each real port.

The first keeps out processes with the same lab file, the others those with another one.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from labharness.core.errors import LabError
from labharness.core.files.named import hold_alone, open_own, said_in
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link.identity import LinkIdentity
from labharness.lab.config.lease import Lease, Leased
from labharness.safety.guard.port_records import (
    GUARD,
    LINE,
    LOCK_PLACES,
    PortLock,
    PortTaken,
    who_holds,
)

LOCK_NAME = "line.lock"
OWNER_NAME = "owner.json"  # beside it; it counts only while the lock is held
MAKES_SAFE = "makes the line safe"  # a process that no person is told to end


@dataclass(frozen=True, slots=True)
class LockOwner:
    """The process that holds a line, as another process is told of it.

    Attributes:
        pid: Of its process.
        lab_option: The option of a command for this lab: `` --lab FILE``, or empty.
        folder: The folder of the journal; ``""`` where it drives nothing.
        does: Its activity where it drives nothing, such as ``"reads the line"``.
        account: The account of the process.
        state_dir: The state directory of its lab, with its control socket.
    """

    pid: int
    lab_option: str
    folder: str
    does: str = ""
    account: str = ""
    state_dir: str = ""

    def __str__(self) -> str:
        """Return a text that names the process, and its activity."""
        if self.does:
            return Text("owner.does", pid=self.pid, does=self.does)
        return Text("owner.drives", pid=self.pid, folder=self.folder)

    @property
    def abroad(self) -> str:
        """Return the same text for a process with another lab file."""
        if self == UNKNOWN:
            return Text("owner.unknown")
        of = Text("owner.of", account=self.account) if self.account else ""
        does, by = self.does or "owns the line", self.lab_option.strip()
        return Text("owner.abroad", pid=self.pid, of=of, does=does, by=by)

    @property
    def advice(self) -> str:
        """Advice for a person who wants the line; it follows ``held``."""
        if self == UNKNOWN:
            return Text("owner.find", place=str(LOCK_PLACES[-1]))
        if not self.does:
            return Text("owner.see", option=self.lab_option)
        if self.does == MAKES_SAFE:
            return Text("owner.wait")
        return Text("owner.end", pid=self.pid)


UNKNOWN = LockOwner(0, "", "")
"""An owner of a port that has left no word about itself."""


def read_owner(state_dir: Path) -> LockOwner | None:
    """Return the last known owner of a line."""
    return _owner_of(said_in(state_dir / OWNER_NAME))


def owner_elsewhere(ports: Sequence[LinkIdentity], state_dir: Path) -> LockOwner | None:
    """Return the known owner of one of these ports that uses another lab file."""
    held = who_holds(ports, LINE)
    if held is None or held[1].get("state_dir") == os.path.realpath(state_dir):
        return None
    return _owner_of(held[1]) or UNKNOWN


def guarded_elsewhere(ports: Sequence[LinkIdentity], state_dir: Path) -> Path | None:
    """Return the lab file whose guard process holds one of these ports, if it is another lab's."""
    held = who_holds(ports, GUARD)
    if held is None or held[1].get("state_dir") == os.path.realpath(state_dir):
        return None
    lab = held[1].get("lab")
    return Path(lab) if isinstance(lab, str) else None


def _owner_of(said: object) -> LockOwner | None:
    try:
        found = LockOwner(**said)  # type: ignore[arg-type]  # a file may hold anything
    except TypeError:
        return None
    texts = (found.lab_option, found.folder, found.does, found.account, found.state_dir)
    whole = type(found.pid) is int and all(isinstance(each, str) for each in texts)
    return found if whole else None


class LineBusy(LabError, RuntimeError, code="line_busy"):
    """Another process owns the line.

    Args:
        text: Names the process, and the remedy.
        owner: The process, where it is known.
    """

    def __init__(self, text: str, owner: LockOwner | None = None) -> None:
        super().__init__(text)
        self.owner = owner


class LineLock:
    """Owns a line while the process lives; the system releases it when the process dies.

    Args:
        state_dir: The lab's state directory; it must exist.
        owner: Written to a file that others read.
        ports: Names of the line's real ports on this machine.
        leases: Files that each machine locks before it drives one of them.

    Raises:
        LineBusy: Another process holds it; names it and the remedy, where they are known.
    """

    def __init__(
        self,
        state_dir: Path,
        owner: LockOwner | None = None,
        ports: Sequence[LinkIdentity] = (),
        leases: Sequence[str] = (),
    ) -> None:
        self._ports: PortLock | None = None
        self._leases: list[Lease] = []
        self._file: IO[bytes] = os.fdopen(open_own(state_dir / LOCK_NAME, os.O_RDWR), "r+b")
        self._told: Path | None = None
        try:
            hold_alone(self._file.fileno())
        except OSError:
            self._file.close()
            raise _busy(state_dir) from None
        try:
            if ports:
                self._ports = PortLock(ports, LINE, {} if owner is None else asdict(owner))
            self._lease(leases, owner)
        except (OSError, LineBusy, PortTaken) as why:
            self.release()
            raise (_taken(why) if isinstance(why, PortTaken) else why) from None
        with suppress(OSError):  # its text is for people only
            (state_dir / OWNER_NAME).unlink(missing_ok=True)
            if owner is not None:
                self._told = state_dir / OWNER_NAME
                handle = open_own(self._told, os.O_WRONLY | os.O_TRUNC)
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(owner)))

    def _lease(self, paths: Sequence[str], owner: LockOwner | None) -> None:
        who = "a process" if owner is None else f"process {owner.pid} of {owner.account}"
        for path in sorted({*paths}):
            try:
                self._leases.append(Lease(Path(path), who))
            except Leased as why:
                raise LineBusy(Text("lease.busy", why=str(why))) from None

    def release(self) -> None:
        """Release, once: another process may have the line by now."""
        if self._file.closed:
            return
        if self._told is not None:
            with suppress(OSError):
                self._told.unlink(missing_ok=True)
        for lease in self._leases:
            lease.release()
        if self._ports is not None:
            self._ports.release()
        self._file.close()

    def __enter__(self) -> "LineLock":
        return self

    def __exit__(self, *ended: object) -> None:
        self.release()


def _busy(state_dir: Path) -> LineBusy:
    owner = read_owner(state_dir)
    if owner is None:
        return LineBusy(Text("owner.some", state_dir=str(state_dir)))
    return LineBusy(Text("owner.busy", owner=str(owner), advice=owner.advice), owner)


def _taken(why: PortTaken) -> LineBusy:
    owner = _owner_of(why.who)
    said = UNKNOWN if owner is None else owner
    return LineBusy(Text("owner.port", port=why.port, owner=said.abroad, advice=said.advice), owner)
