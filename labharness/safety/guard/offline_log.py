"""The log that the guard leaves for a harness that was not there; it follows the bytes."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.files.named import is_there, open_named, open_own

__all__ = ["OfflineLog"]

ENTRIES_MAX = 10_000  # of one offline_log; the first ones are kept, they hold the cause


class OfflineLog:
    """Lines of JSON that stay until a harness has them in a journal that keeps.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: list[Mapping[str, object]] = []
        for line in _lines(path):
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
            handle = open_own(self._path, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(each) + "\n" for each in fresh)
        except OSError:
            return
        self._written = len(self.entries)

    def clear(self) -> None:
        """Forget what the harness has taken over; a file that does not go is told once more."""
        self.entries = []
        self._written = 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def _lines(path: Path) -> list[str]:
    """Return what an earlier guard left; a log that is lost keeps no guard from beginning."""
    try:
        if not is_there(path):
            return []
        with open_named(path) as file:
            return file.read().decode(errors="replace").splitlines()[:ENTRIES_MAX]
    except OSError as why:
        return [f"{path.name} cannot be read: {why.strerror}"]
