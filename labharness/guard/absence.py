"""What the guard leaves for a harness that was not there: a mark that the line is armed, and a log.

Both follow the bytes and never precede them. The mark is on the disk before a permit is taken, so
that a guard which died with the line armed knows it when it comes back.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from labharness.clock import utc_text, wall_clock_utc
from labharness.guard.latch import write_durably

__all__ = ["AbsenceLog", "ArmedMark"]

ENTRIES_MAX = 10_000  # of one absence; the first ones are kept, they hold the cause


class ArmedMark:
    """A file that stands while the line is armed; it names the procedure for its loss.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.procedure: str | None = None
        if path.exists():
            self.procedure = path.read_text("utf-8", errors="replace").strip()

    def set(self, procedure: str) -> None:
        """Set it; raises ``OSError`` if it does not reach the disk."""
        if procedure != self.procedure:
            write_durably(self._path, procedure + "\n")
            self.procedure = procedure

    def clear(self) -> None:
        """Take it away."""
        self._path.unlink(missing_ok=True)
        self.procedure = None


class AbsenceLog:
    """Lines of JSON that the next harness takes into its journal, and that are gone then.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: list[Mapping[str, object]] = []
        if path.exists():
            for line in path.read_text("utf-8", errors="replace").splitlines()[:ENTRIES_MAX]:
                try:
                    entry = json.loads(line)
                except ValueError:
                    entry = {"what": "unreadable", "line": line[:200]}
                self.entries.append(entry if isinstance(entry, dict) else {"what": str(entry)})
        self._written = len(self.entries)

    def add(self, what: str, **facts: object) -> None:
        """Add one fact, in memory: bytes go before it."""
        if len(self.entries) < ENTRIES_MAX:
            self.entries.append({"at": utc_text(wall_clock_utc()), "what": what, **facts})

    def flush(self) -> None:
        """Write what is new; a disk that fails is tried again."""
        fresh = self.entries[self._written :]
        if not fresh:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(each) + "\n" for each in fresh)
        except OSError:
            return
        self._written = len(self.entries)

    def clear(self) -> None:
        """Forget what the harness has taken over."""
        self.entries = []
        self._written = 0
        self._path.unlink(missing_ok=True)
