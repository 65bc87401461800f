"""Room in the log is no records, and a full disk is met by the next one whatever room there is."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from labharness.journal import JournalFailed, SqliteJournal, disk, reading
from labharness.journal.disk import FREE_BYTES_MIN, ROOM_BYTES
from rig import HERE

ON_A_SMALL_DISK = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs -o size=$0 tmpfs "$1" && shift 1 && exec "$@"',
)
"""Runs a command that sees another disk at a folder: of a size, the folder, the command."""

FILLED = """
import asyncio, pathlib, sys
from labharness.journal import JournalFailed, SqliteJournal, reading
path, commits = pathlib.Path(sys.argv[1]) / "journal.sqlite", int(sys.argv[2])

async def live(journal):
    kept = 0
    for number in range(commits):
        kept = journal.append("fact", {"number": number, "text": "x" * 500}, 0.0)
        await journal.durable(kept)
    with (path.parent / "other").open("wb", buffering=0) as other:
        try:
            while True:
                other.write(bytes(4096))
        except OSError:
            pass
    try:
        await journal.durable(journal.append("intent", {}, 0.0))
    except JournalFailed as why:
        print(why)
    else:
        print("taken")
    return kept

journal = SqliteJournal(path, speed=1.0)
kept = asyncio.run(live(journal))
found = reading.verify_file(path)
print(found.ok, found.head.seq == kept)
"""


def small_disk(folder: Path, size: str, *command: object) -> str:
    """Run Python on a disk of its own; without the privilege to make one, skip the test."""
    run = (*ON_A_SMALL_DISK, size, folder, sys.executable, *command)
    try:
        done = subprocess.run(
            list(map(str, run)), cwd=HERE.parent, capture_output=True, encoding="utf-8", check=False
        )
    except OSError as why:
        pytest.skip(str(why))
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stderr == ""
    return done.stdout


def full(monkeypatch: pytest.MonkeyPatch, free: int, total: int = 2**40) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (total, total - free, free))


@pytest.mark.promise(20)
@pytest.mark.parametrize("speed", [None, 1.0])
def test_the_next_record_meets_a_full_disk_although_the_log_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speed: float | None
) -> None:
    path = tmp_path / "run.journal"
    with SqliteJournal(path, speed=speed) as journal:
        asyncio.run(journal.durable(journal.append("fact", {}, 0.0)))
        full(monkeypatch, FREE_BYTES_MIN - 1)
        with pytest.raises(JournalFailed, match="the disk is full"):
            asyncio.run(journal.durable(journal.append("intent", {}, 0.0)))
        with pytest.raises(JournalFailed, match="nothing is appended"):
            journal.append("intent", {}, 1.0)
        assert [one.kind for one in reading.read(path)] == ["fact"]
        full(monkeypatch, FREE_BYTES_MIN)
        journal.commit()
        full(monkeypatch, free=0, total=0)  # a file system that does not tell
        asyncio.run(journal.durable(journal.append("fact", {}, 2.0)))
    assert [one.kind for one in reading.read(path)] == ["fact", "intent", "fact"]


@pytest.mark.promise(20)
@pytest.mark.parametrize("commits", [10, 1_500], ids=["a new log", "a log begun anew"])
def test_a_disk_that_is_filled_is_met_by_the_next_record(tmp_path: Path, commits: int) -> None:
    said = small_disk(tmp_path, "16m", "-c", FILLED, tmp_path, commits).splitlines()
    assert "the disk is full" in said[0]
    assert said[1:] == ["True True"]


def test_a_disk_without_room_for_the_log_is_a_typed_failure(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from labharness.journal import JournalFailed, SqliteJournal\n"
        "path = pathlib.Path(sys.argv[1]) / 'journal.sqlite'\n"
        "try: SqliteJournal(path, speed=1.0)\n"
        "except JournalFailed as why: print(why)"
    )
    assert "cannot open: database or disk is full" in small_disk(
        tmp_path, "512k", "-c", code, tmp_path
    )


@pytest.mark.promise(20)
def test_room_in_the_log_is_no_record_and_covers_none(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    log = path.with_name("run.journal-wal")
    first = SqliteJournal(path)
    for number in range(20):
        first.append("fact", {"number": number}, 0.0)
        first.commit()
    assert log.stat().st_size < ROOM_BYTES
    other = sqlite3.connect(path, isolation_level=None)
    disk.make_room(other, path)  # as another process does that opens the same journal
    room = log.stat().st_size
    assert room >= ROOM_BYTES
    for number in range(20, 40):
        first.append("fact", {"number": number}, 0.0)
        first.commit()
    disk.make_room(other, path)
    assert log.stat().st_size == room
    tables = other.execute("SELECT name FROM sqlite_master WHERE name = 'room'").fetchall()
    assert tables == [], "it was taken back"
    assert [one.body["number"] for one in reading.read(path)] == list(range(40))
    other.close()
    first.close()
    assert reading.verify_file(path).head == first.head
