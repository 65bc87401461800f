"""One owner a line: an advisory lock on a file of the lab's state directory."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from labharness.guard.named import open_named, open_own

__all__ = ["LOCK_NAME", "MAKES_SAFE", "LineBusy", "LineLock", "Owner", "read_owner"]

LOCK_NAME = "line.lock"
OWNER_NAME = "owner.json"  # beside it; it counts only while the lock is held
OWNER_BYTES_MAX = 65_536
MAKES_SAFE = "makes the line safe"  # what nobody is told to end


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a line, for whoever finds it taken.

    Attributes:
        pid: Of its process.
        lab_option: What a command takes to mean this lab: `` --lab FILE``, or nothing.
        folder: Where the journal goes; ``""`` of who drives nothing.
        does: What who drives nothing does instead, such as ``"reads the line"``.
    """

    pid: int
    lab_option: str
    folder: str
    does: str = ""

    def __str__(self) -> str:
        """Say which process it is, and what it does with the line."""
        does = self.does or f"owns the line and writes {self.folder}"
        return f"process {self.pid} {does}"

    @property
    def advice(self) -> str:
        """What whoever wants the line does about it, as it follows on who it is."""
        if not self.does:
            return f"; see it: labharness watch{self.lab_option}"
        if self.does == MAKES_SAFE:
            return ": wait until it has ended"
        return f": end it (Ctrl-C there, or kill {self.pid}), or wait until it has ended"


def read_owner(state_dir: Path) -> Owner | None:
    """Give who held a line last, as far as it is known."""
    try:
        with open_named(state_dir / OWNER_NAME) as file:
            found = Owner(**json.loads(file.read(OWNER_BYTES_MAX)))
    except (OSError, ValueError, TypeError):
        return None
    return found


class LineBusy(RuntimeError):
    """Another process owns the line.

    Args:
        text: Which, and what to do about it.
        owner: Which, where it is known.
    """

    def __init__(self, text: str, owner: Owner | None = None) -> None:
        super().__init__(text)
        self.owner = owner


class LineLock:
    """Owns a line for as long as the process lives; the system lets go when it dies.

    Args:
        state_dir: The lab's state directory; it must exist.
        owner: Written down for others to find.

    Raises:
        LineBusy: Another process holds it; says which, and what to do about it, where it is known.
    """

    def __init__(self, state_dir: Path, owner: Owner | None = None) -> None:
        self._file: IO[bytes] = os.fdopen(open_own(state_dir / LOCK_NAME, os.O_RDWR), "r+b")
        self._told = state_dir / OWNER_NAME if owner is not None else None
        try:
            _lock(self._file)
        except OSError:
            self._file.close()
            raise _busy(state_dir) from None
        with suppress(OSError):  # what it says is of use to persons only
            (state_dir / OWNER_NAME).unlink(missing_ok=True)
            if owner is not None:
                handle = open_own(state_dir / OWNER_NAME, os.O_WRONLY | os.O_TRUNC)
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(owner)))

    def release(self) -> None:
        """Let go, once: another process may have the line by now."""
        if self._file.closed:
            return
        if self._told is not None:
            with suppress(OSError):
                self._told.unlink(missing_ok=True)
        self._file.close()

    def __enter__(self) -> "LineLock":
        return self

    def __exit__(self, *ended: object) -> None:
        self.release()


def _busy(state_dir: Path) -> LineBusy:
    owner = read_owner(state_dir)
    if owner is None:
        return LineBusy(f"another process owns the line ({state_dir})")
    return LineBusy(f"{owner}{owner.advice}", owner)


if os.name == "posix":
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)

else:
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # Windows
