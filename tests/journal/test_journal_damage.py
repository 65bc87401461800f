"""A damaged journal opens to its longest valid beginning and says what was lost."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from journal_rows import SHARED, SINGLE, begun_before, changed, opened, replaced, rows, store_rows
from labharness.journal import JournalDamaged, JournalFailed, SqliteJournal, reading
from labharness.journal.chain import Sealed
from labharness.journal.salvage import salvage

COUNT = 60

layouts = pytest.mark.parametrize("table", [SHARED, SINGLE])


def written(path: Path, table: str = SHARED) -> list[Sealed]:
    """Write a journal of several rows and pages and return its records."""
    if table == SINGLE:
        begun_before(path, {"seed": 1})
    with SqliteJournal(path, run={"seed": 1}) as journal:
        for number in range(COUNT):
            journal.append("fact", {"number": number, "text": "x" * 600}, float(number))
    return list(reading.sealed(path))


def a_changed_byte(path: Path) -> None:
    replaced(path, b'"number":30', b'"number":31')


def a_missing_row(path: Path) -> None:
    store_rows(path, [row for row in rows(path) if b'"number":30' not in row[1]])


def page_of(data: bytes | bytearray) -> int:
    """Return the length of a page (https://www.sqlite.org/fileformat.html, 1.3)."""
    return int.from_bytes(data[16:18])


def a_page_of_noise(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(b'"number":30') // (page := page_of(data)) * page
    data[at : at + page] = bytes(range(256)) * (page // 256)
    path.write_bytes(data)


@pytest.mark.promise(59)
@layouts
@pytest.mark.parametrize("damage", [a_changed_byte, a_missing_row, a_page_of_noise])
def test_records_before_the_damage_are_read_and_those_behind_it_are_counted(
    tmp_path: Path, damage: Callable[[Path], None], table: str
) -> None:
    path = tmp_path / "run.journal"
    before = written(path, table)
    (row,) = [row for row in rows(path) if b'"number":30' in row[1]]
    damage(path)
    report = reading.verify_file(path)
    good = report.head.seq
    assert not report.ok
    assert report.first_bad_seq == good + 1
    assert good == 30 if damage is a_changed_byte else 20 <= good <= 30
    assert list(reading.sealed(path, good)) == before[:good]
    assert [one.seq for one in reading.read(path, good)] == list(range(1, good + 1))
    gone = len(row[1].split(b"\n")) if damage is a_missing_row else 0
    assert report.rows_lost == COUNT - good - gone
    with pytest.raises(JournalDamaged, match=f"record {good + 1} is bad or missing"):
        SqliteJournal(path, run={"seed": 1})


@layouts
@pytest.mark.promise(59)
def test_whichever_page_is_lost_what_is_read_is_a_beginning(tmp_path: Path, table: str) -> None:
    path = tmp_path / "run.journal"
    before = written(path, table)
    whole = path.read_bytes()
    for at in range(0, len(whole), page := page_of(whole)):
        path.write_bytes(whole[:at] + bytes(page) + whole[at + page :])
        try:
            good = reading.verify_file(path).head.seq
        except JournalFailed:
            assert at <= 2 * page  # the tables' own pages and the header
            continue
        assert good < COUNT
        assert list(reading.sealed(path, good)) == before[:good]


@layouts
@pytest.mark.promise(59)
def test_a_salvaged_journal_goes_on_and_the_damaged_file_is_kept(
    tmp_path: Path, table: str
) -> None:
    path = tmp_path / "run.journal"
    before = written(path, table)
    for time in (1, 2):
        changed(path, 40 - 10 * time, digest=b"x" * 32)
        damaged = path.read_bytes()
        lost = salvage(path)
        good = lost.head.seq
        assert lost.first_bad_seq == 40 - 10 * time
        assert path.with_name(f"run.journal.damaged-{time}").read_bytes() == damaged
        assert list(reading.sealed(path, good)) == before[:good]
        last = list(reading.read(path))[-1]
        assert last.kind == "salvaged"
        assert last.body["lost_from"] == good + 1
        assert last.body["rows"] == lost.rows_lost
        assert last.body["kept"] == f"run.journal.damaged-{time}"
        with SqliteJournal(path, run={"seed": 1}) as journal:
            journal.append("fact", {"after": time}, 100.0)
        assert reading.verify_file(path).ok
        with opened(path) as database:
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    assert salvage(path).ok  # a whole one is left alone
    assert not path.with_name("run.journal.damaged-3").exists()


KILLED = """
import os, pathlib, sys
from labharness.journal import SqliteJournal
journal = SqliteJournal(pathlib.Path(sys.argv[1]), run={"seed": 1})
for number in range(9):
    journal.append("fact", {"number": number}, float(number))
    journal.commit()
os._exit(0)
"""


def test_what_lay_in_the_write_ahead_log_of_a_killed_writer_is_salvaged_too(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=True)
    log = path.with_name("run.journal-wal")
    assert log.stat().st_size > 0
    log.write_bytes(log.read_bytes().replace(b'"number":5', b'"number":7'))
    found = reading.verify_file(path)
    lost = salvage(path)
    assert lost == found
    assert lost.head.seq < 9
    assert [one.body["number"] for one in reading.read(path, lost.head.seq)] == list(
        range(lost.head.seq)
    )
    assert reading.verify_file(path).ok


def test_a_journal_that_another_process_reads_is_not_salvaged_under_it(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=True)
    reader = sqlite3.connect(path)
    reader.execute("SELECT * FROM header").fetchone()  # so that the log is not emptied
    changed(path, 5, digest=b"x" * 32)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM groups").fetchone()
    with pytest.raises(JournalFailed, match=r"another process|locked"):
        salvage(path)
    reader.close()
    assert reading.verify_file(path).first_bad_seq == 5


def test_a_file_whose_header_is_lost_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    path.write_bytes(b"no database at all, but long enough " * 40)
    before = path.read_bytes()
    with pytest.raises(JournalFailed):
        salvage(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.journal"]
