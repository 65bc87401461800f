"""How far the messages of each session were sent: the only thing that the outbox itself keeps.

The messages are facts elsewhere. A position that is lost makes some of them be sent twice, with
their old ids, and a receiver drops what it knows; so nothing here needs to survive a power cut.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

OUTBOX_FILE: Final = "outbox.sqlite"
"""In the state directory of a lab."""

NOTHING_SENT: Final = -1
FINISHED: Final = 1 << 60
"""Position of a session whose last message was sent, so that nothing of it is read again."""

BUSY_S_MAX: Final = 5.0
"""Longest wait (s) for another process that reads the file."""


class Positions:
    """The positions of one lab.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(
            path, timeout=BUSY_S_MAX, isolation_level=None, check_same_thread=False
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS sent (session_id TEXT PRIMARY KEY, position INTEGER)"
        )
        self._known: dict[str, int] = dict(
            self._database.execute("SELECT session_id, position FROM sent")
        )

    def of(self, session_id: str) -> int:
        """Return the position of the last message that was sent."""
        return self._known.get(session_id, NOTHING_SENT)

    def move(self, to: Mapping[str, int]) -> None:
        """Keep new positions."""
        changed = [(name, at) for name, at in to.items() if at != self._known.get(name)]
        if changed:
            self._known.update(changed)
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO sent VALUES (?, ?)", changed)
            self._database.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
