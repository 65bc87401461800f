"""At real speed a thread commits: the loop goes on, and nothing counts as kept that is not."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from labharness.core.clock import steady_s
from labharness.journal import JournalFailed, SqliteJournal, committing, reading, store

KEPT_S = 1.0  # of a thread on a busy machine


class Disk:
    """Holds each commit back until it is let go on.

    Attributes:
        commits: Numbers of the records of each commit that has begun.
        begun: A commit waits.
        free: Commits pass.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commits: list[list[int]] = []
        self.begun, self.free = Event(), Event()
        write = SqliteJournal._write_queue

        def held(journal: SqliteJournal, rows: Any) -> None:
            self.commits.append([seq for seq, *_ in rows])
            self.begun.set()
            self.free.wait(10.0)
            write(journal, rows)

        monkeypatch.setattr(SqliteJournal, "_write_queue", held)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    held = Disk(monkeypatch)
    yield held
    held.free.set()


def kinds(path: Path) -> list[str]:
    return [each.kind for each in reading.read(path)]


async def until(so: Callable[[], bool]) -> None:
    end_s = steady_s() + 10.0
    while not so() and steady_s() < end_s:  # noqa: ASYNC110 - a thread changes it
        await asyncio.sleep(0.001)
    assert so()


@pytest.mark.promise(20)
def test_a_record_is_durable_when_its_commit_has_ended_and_the_loop_goes_on(
    tmp_path: Path, disk: Disk
) -> None:
    path = tmp_path / "run.journal"

    async def live(journal: SqliteJournal) -> None:
        kept = asyncio.create_task(journal.durable(journal.append("intent", {}, 0.0)))
        await until(disk.begun.is_set)
        for _ in range(5):  # the loop lives, and so does the queue
            await asyncio.sleep(0)
            journal.append("fact", {}, 0.0)
        assert not kept.done()
        assert kinds(path) == []
        disk.free.set()
        await kept
        assert kinds(path)[:1] == ["intent"]

    with SqliteJournal(path, speed=1.0) as journal:
        asyncio.run(live(journal))
    assert reading.verify_file(path).head == journal.head
    assert len(kinds(path)) == 6


def test_all_who_wait_meanwhile_share_one_commit(tmp_path: Path, disk: Disk) -> None:
    async def live(journal: SqliteJournal) -> None:
        first = asyncio.create_task(journal.durable(journal.append("intent", {}, 0.0)))
        await until(disk.begun.is_set)
        others = [
            asyncio.create_task(journal.durable(journal.append("intent", {}, 0.0)))
            for _ in range(20)
        ]
        await asyncio.sleep(0)
        others[3].cancel()  # one of them gives up
        disk.free.set()
        await asyncio.gather(first, *others[:3], *others[4:])

    with SqliteJournal(tmp_path / "run.journal", speed=1.0) as journal:
        asyncio.run(live(journal))
    assert disk.commits == [[1], list(range(2, 22))]


@pytest.mark.promise(20)
def test_a_failed_commit_is_told_to_all_who_wait_and_to_the_next_record(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"

    async def live(journal: SqliteJournal) -> None:
        await journal.durable(journal.append("fact", {}, 0.0))
        journal._database.execute("PRAGMA max_page_count = 5")
        large = [journal.append("large", {"text": "x" * 50_000}, 0.0) for _ in range(3)]
        told = await asyncio.gather(*map(journal.durable, large), return_exceptions=True)
        assert [type(each) for each in told] == [JournalFailed] * 3
        assert all("full" in str(each) for each in told)
        with pytest.raises(JournalFailed, match="nothing is appended"):
            journal.append("fact", {}, 1.0)
        journal._database.execute("PRAGMA max_page_count = 100000")
        await journal.durable(large[-1])
        await journal.durable(journal.append("fact", {}, 2.0))

    with SqliteJournal(path, speed=1.0) as journal:
        asyncio.run(live(journal))
    assert reading.verify_file(path).head == journal.head
    assert kinds(path) == ["fact", "large", "large", "large", "fact"]


@pytest.mark.promise(20)
def test_an_idle_line_with_a_thread_meets_a_full_disk_within_five_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.journal"
    journal = SqliteJournal(path, block_s=store.block_lab_s(1.0), speed=1.0)
    stream = journal.stream("furnace", ["measured_c"])
    journal.commit()
    thread = journal._thread
    assert thread is not None
    full = Mock(side_effect=sqlite3.OperationalError("database or disk is full"))
    monkeypatch.setattr(journal, "_write_queue", full)

    async def lived_s() -> int:
        for second in range(100):
            try:
                journal.sample(stream, float(second), (second / 3,))
                if second % 4 == 0:  # a second of real time is enough for the thread to fail
                    await until(lambda: thread._idle.locked() and thread._began_s is None)
                    await asyncio.sleep(0.01)
            except JournalFailed:
                return second
        return 100

    assert asyncio.run(lived_s()) <= 5
    with pytest.raises(JournalFailed):
        journal.close()


@pytest.mark.promise(20)
def test_a_disk_that_is_stuck_is_a_failure_within_a_bound(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound_s = 0.05
    monkeypatch.setattr(committing, "COMMIT_S_MAX", bound_s)
    monkeypatch.setattr(store, "COMMIT_S_MAX", bound_s)
    journal = SqliteJournal(tmp_path / "run.journal", speed=1.0)

    async def live() -> None:
        with pytest.raises(JournalFailed, match="not on the disk after"):
            await journal.durable(journal.append("intent", {}, 0.0))
        await asyncio.sleep(2 * bound_s)
        with pytest.raises(JournalFailed, match="takes more than"):
            journal.append("fact", {}, 100.0)

    asyncio.run(live())
    began_s = steady_s()
    with pytest.raises(JournalFailed, match="no answer"):
        journal.close()
    assert steady_s() - began_s < 2 * bound_s + KEPT_S


def test_a_record_beyond_the_queue_is_refused_at_once(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "QUEUE_RECORDS_MAX", 5)
    with SqliteJournal(tmp_path / "run.journal", speed=1.0) as journal:
        for _ in range(5):
            journal.append("fact", {}, 0.0)
        before = journal.head
        with pytest.raises(JournalFailed, match="5 records wait"):
            journal.append("fact", {}, 0.0)
        assert journal.head == before
        disk.free.set()
        journal.commit()
        journal.append("fact", {}, 0.0)


def test_the_chain_is_the_same_with_a_thread_and_without(tmp_path: Path) -> None:
    heads = []
    for name, speed in (("with", 1.0), ("without", None)):
        with SqliteJournal(tmp_path / name, run={"seed": 1}, speed=speed) as journal:
            stream = journal.stream("furnace", ["measured_c"])
            for second in range(200):
                journal.sample(stream, float(second), (second / 3,))
                journal.append("fact", {"value": second}, float(second))
        heads.append(journal.head)
        assert reading.verify_file(tmp_path / name, outside=journal.head).tail_known
    assert heads[0] == heads[1]
