"""A lock on a file, held while its process lives: of a TCP port, a house, a line owner, a campaign.

For an instrument on TCP it lets one machine alone drive it. A lock of this machine says nothing to
another one, so the file is on a share of the gateway's host that all machines can reach, and that
carries locks between them (NFS 4, SMB). An instrument with room for a claim that others can read
would need no file; no driver here declares such a register.
"""

import errno
import os
import platform
from pathlib import Path
from threading import Thread

from labharness.core.clock import pause, steady_s
from labharness.core.files.named import hold_alone, open_own, said_in, say_in
from labharness.core.vocabulary.texts import CodedError

LEASE_S_MAX = 5.0
"""Time (s) for a share to answer; one whose host is gone would block for minutes."""

LOOK_S = 0.1  # between two tries


class Leased(CodedError, RuntimeError, code="line_leased"):
    """Another process, maybe on another machine, has the lease; the message says which."""


def lease_within(path: Path, who: str, within_s: float) -> "Lease":
    """Take a lease, or wait for a process that lets go of it as it ends.

    Raises:
        Leased: Another one has it still after that time.
        OSError: As `Lease`.
    """
    until_s = steady_s() + within_s
    while True:
        try:
            return Lease(path, who)
        except Leased:
            if steady_s() > until_s:
                raise
        pause(LOOK_S)


class Lease:
    """Holds a lease for as long as the process lives; the share's host lets go when it dies.

    Args:
        path: The file.
        who: Of this process, for others to read.

    Raises:
        Leased: Another one has it.
        OSError: The share does not answer in time, or takes no lock.
    """

    def __init__(self, path: Path, who: str) -> None:
        self._handle = -1
        self._given_up = False
        found: list[BaseException | None] = []

        def take() -> None:
            try:
                self._take(path, who)
            except (OSError, Leased) as why:
                found.append(why)
            else:
                found.append(None)
            if self._given_up:
                self.release()

        taking = Thread(target=take, daemon=True)
        taking.start()
        taking.join(LEASE_S_MAX)
        if not found:
            self._given_up = True
            text = f"its share does not answer within {LEASE_S_MAX:g} s"
            raise OSError(errno.ETIMEDOUT, text, str(path))
        if found[0] is not None:
            raise found[0]

    def _take(self, path: Path, who: str) -> None:
        handle = open_own(path, os.O_RDWR)
        try:
            hold_alone(handle)
        except OSError as why:
            os.close(handle)
            if why.errno in (errno.EAGAIN, errno.EACCES):
                raise Leased("lease.taken", path=str(path), who=_who(path)) from None
            raise
        say_in(handle, f"{who} on {platform.node()}")
        self._handle = handle

    def release(self) -> None:
        """Release the lease; a second call does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _who(path: Path) -> str:
    said = said_in(path)
    return "a process that says nothing of itself" if said is None else str(said)
