"""Finds the run that has used an agreement, in the journals of the runs.

The log of the agreements lies in the state directory, which a backup may bring back as it was; the
journal of a run says under which ticket it was agreed to, and lies elsewhere.
"""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from labharness.journal import JournalFailed
from labharness.journal.layout import JournalEmpty
from labharness.journal.reading import read_after
from labharness.work.desk.folder import JOURNAL_NAME


def used_by(runs: Path, ticket: str, since: datetime) -> str:
    """Return the name of the run that has used an agreement, or may have; ``""`` for none.

    Args:
        runs: The folder of the runs.
        ticket: Of the request that was agreed to.
        since: Journals that were last written before are not read, UTC.

    Raises:
        OSError: The folder cannot be read.
    """
    for folder in sorted(runs.iterdir()) if runs.is_dir() else ():
        journal = folder / JOURNAL_NAME
        if _written_s(journal) >= since.timestamp() and _has(journal, ticket):
            return folder.name
    return ""


def _written_s(journal: Path) -> float:
    """Return when a journal was last written; that of a killed run ends in the file beside it."""
    found = 0.0
    for path in (journal, journal.with_name(f"{journal.name}-wal")):
        with suppress(OSError):
            found = max(found, path.stat().st_mtime)
    return found


def _has(journal: Path, ticket: str) -> bool:
    try:
        ways = (each for each in read_after(journal, 0) if each.kind in ("approved", "terminal"))
        first = next(ways, None)
    except JournalEmpty:
        return False
    except JournalFailed:  # it may have used it: a person agrees once more
        return True
    return first is not None and first.body.get("agreement") == ticket
