"""One owner a line: an advisory lock on a file of the lab's state directory."""

import os
from pathlib import Path
from types import TracebackType
from typing import IO

__all__ = ["LineBusy", "LineLock"]


class LineBusy(RuntimeError):
    """Another process owns the line."""


class LineLock:
    """Owns a line for as long as the process lives; the system lets go when it dies.

    Args:
        state_dir: The lab's state directory; it must exist.

    Raises:
        LineBusy: Another process holds it.
    """

    def __init__(self, state_dir: Path) -> None:
        self._file: IO[bytes] = (state_dir / "line.lock").open("ab")
        try:
            _lock(self._file)
        except OSError:
            self._file.close()
            raise LineBusy(f"another process owns the line ({state_dir})") from None

    def release(self) -> None:
        """Let go."""
        self._file.close()

    def __enter__(self) -> "LineLock":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


if os.name == "posix":
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)

else:
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # Windows
