"""Journals with a keeper of heads, for tests."""

from pathlib import Path

from labharness.journal import SqliteJournal
from labharness.journal.heads import HeadKeeper

KEY = bytes(range(32))


def keeper(place: Path, every_s: float = 60.0, at: str = "2026-01-01T08:00:00.000Z") -> HeadKeeper:
    return HeadKeeper(place, KEY, lambda: at, every_s=every_s, synced=False)


def kept_journal(path: Path, place: Path, records: int = 20) -> None:
    """Write a journal with facts and samples, whose last head is kept."""
    about = {"pid": 17, "lab_file": "lab.toml"}
    with SqliteJournal(path, run={"seed": 1}, about=about, heads=keeper(place)) as journal:
        stream = journal.stream("furnace", ["temperature"])
        for number in range(records):
            journal.append("fact", {"number": number, "said": "x" * 40}, 10.0 * number)
            journal.sample(stream, 10.0 * number, (20.0 + number / 8,))
