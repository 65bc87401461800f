"""Whatever is done to the file of a journal is found, or changes no fact that is read from it."""

import io
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from commands import say
from heads import KEY, keeper, kept_journal
from journal_rows import (
    SHARED,
    SINGLE,
    Row,
    begun_before,
    changed,
    opened,
    records,
    replaced,
    rows,
    store_rows,
)
from labharness.journal import JournalDamaged, JournalFailed, SqliteJournal, heads, reading
from labharness.journal.chain import Sealed, canonical, link_hash, record_bytes
from labharness.journal.heads import JournalVerdict, SignedHead, head_key, verify_with_heads
from labharness.journal.rows import joined
from labharness.journal.salvage import salvage
from platforms import unix

DAILY = 60
THOROUGH = 10_000

Chance = random.Random


def facts(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return all that anybody reads from a journal."""
    out = io.BytesIO()
    reading.export_jsonl(path, out)
    return out.getvalue(), reading.about(path)


def flipped(data: bytes, chance: Chance) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def flip_in_file(path: Path, chance: Chance) -> None:
    path.write_bytes(flipped(path.read_bytes(), chance))


def cut_file(path: Path, chance: Chance) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(1, len(data))])


def insert_in_file(path: Path, chance: Chance) -> None:
    data = path.read_bytes()
    at, more = chance.randrange(len(data)), chance.randbytes(chance.randint(1, 64))
    path.write_bytes(data[:at] + more + data[at:])


def delete_in_file(path: Path, chance: Chance) -> None:
    data = path.read_bytes()
    at = chance.randrange(len(data))
    path.write_bytes(data[:at] + data[at + chance.randint(1, 64) :])


def exchange_pages(path: Path, chance: Chance) -> None:
    data = path.read_bytes()
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    one, other = chance.sample(range(len(pages)), 2)
    pages[one], pages[other] = pages[other], pages[one]
    path.write_bytes(b"".join(pages))


def in_rows(change: Callable[[list[Row], Chance], list[Row]]) -> Callable[[Path, Chance], None]:
    """Return a tampering with the rows of the table, as a program that knows SQLite does it."""

    def tamper(path: Path, chance: Chance) -> None:
        store_rows(path, change(rows(path), chance))

    tamper.__name__ = change.__name__
    return tamper


def in_records(change: Callable[[list[Row], Chance], list[Row]]) -> Callable[[Path, Chance], None]:
    """Return a tampering with single records, which are then put into rows by chance."""

    def tamper(path: Path, chance: Chance) -> None:
        fresh = change(records(path), chance)
        store_rows(path, list(joined(fresh, chance.randint(1, 12))))

    tamper.__name__ = change.__name__
    return tamper


def flip_in_row(rows: list[Row], chance: Chance) -> list[Row]:
    at = chance.randrange(len(rows))
    row: list[Any] = list(rows[at])
    column = chance.choice([n for n in (1, 2, 3) if row[n]])
    row[column] = flipped(row[column], chance)
    return [*rows[:at], (row[0], row[1], row[2], row[3]), *rows[at + 1 :]]


def delete_row(rows: list[Row], chance: Chance) -> list[Row]:
    at = chance.randrange(len(rows))
    return rows[:at] + rows[at + 1 :]


def reorder_rows(rows: list[Row], chance: Chance) -> list[Row]:
    one, other = chance.sample(range(len(rows)), 2)
    rows[one], rows[other] = (
        (rows[one][0], *rows[other][1:]),
        (rows[other][0], *rows[one][1:]),
    )
    return rows


def truncate_rows(rows: list[Row], chance: Chance) -> list[Row]:
    return rows[: chance.randrange(len(rows))]


def end_row(rows: list[Row], chance: Chance) -> list[Row]:
    """Put a text, a hash or both behind the last record of a row."""
    at = chance.randrange(len(rows))
    first, data, chained, block = rows[at]
    text, digest = chance.choice(
        ((b"", b"x" * 32), (b"\n{}", b""), (b"\n", b"x"), (b"\n", b"x" * 32))
    )
    return [*rows[:at], (first, data + text, chained + digest, block), *rows[at + 1 :]]


def overlap_rows(rows: list[Row], chance: Chance) -> list[Row]:
    """Begin a row within the one before it, or before the first record."""
    at = chance.randrange(len(rows))
    moved = rows[at][0] - chance.randint(1, 2)
    return [*rows[:at], (moved, *rows[at][1:]), *rows[at + 1 :]]


def delete_record(records: list[Row], chance: Chance) -> list[Row]:
    """Delete a record; those behind it move up within their row."""
    at = chance.randrange(len(records))
    return [*records[:at], *((row[0] - 1, *row[1:]) for row in records[at + 1 :])]


def insert_record(records: list[Row], chance: Chance) -> list[Row]:
    """Insert a record that fits the one before it."""
    at = chance.randint(1, len(records))
    seq = records[at - 1][0] + 1
    data = record_bytes(seq, 0.0, "fact", {"never": "happened"})
    forged = (seq, data, link_hash(records[at - 1][2], data), None)
    return [*records[:at], forged, *((row[0] + 1, *row[1:]) for row in records[at:])]


def rewrite_records(records: list[Row], chance: Chance) -> list[Row]:
    """Change one record and chain all after it again, as a program that knows the chain does it."""
    at = chance.randrange(1, len(records))
    fresh = records[:at]
    for seq, data, _, block in records[at:]:
        if seq == records[at][0]:
            data, block = record_bytes(seq, 0.0, "fact", {"never": "happened"}), None
        fresh.append((seq, data, link_hash(fresh[-1][2], data), block))
    return fresh


def change_header(path: Path, chance: Chance) -> None:
    part = chance.choice(("run", "about"))
    with sqlite3.connect(path) as database:
        (value,) = database.execute("SELECT value FROM header WHERE part = ?", (part,)).fetchone()
        change = chance.choice((flipped(value, chance), value + b" ", b"{}", None))
        if change is None:
            database.execute("DELETE FROM header WHERE part = ?", (part,))
        else:
            database.execute("UPDATE header SET value = ? WHERE part = ?", (change, part))
    database.close()


ROW_CHANGES = (
    flip_in_row,
    delete_row,
    reorder_rows,
    truncate_rows,
    end_row,
    overlap_rows,
)
RECORD_CHANGES = (delete_record, insert_record, rewrite_records)
TAMPERINGS = (
    flip_in_file,
    cut_file,
    insert_in_file,
    delete_in_file,
    exchange_pages,
    change_header,
    *map(in_rows, ROW_CHANGES),
    *map(in_records, RECORD_CHANGES),
)


def checked(path: Path, places: list[Path]) -> JournalVerdict | None:
    """Return the verdict; ``None`` where the file is refused as a whole."""
    try:
        return verify_with_heads(path, places)
    except JournalFailed:
        return None


def tampered(folder: Path, count: int, seed: int) -> Counter[str]:
    """Tamper so many times; return how often each kind was found, or changed no fact."""
    first, place = folder / "run.journal", folder / "heads"
    kept_journal(first, place)
    whole, before = first.read_bytes(), facts(first)
    chance, tally = Chance(seed), Counter[str]()
    for number in range(count):
        path = folder / f"{number}.journal"  # SQLite may have left files beside the one before
        path.write_bytes(whole)
        tamper = TAMPERINGS[number % len(TAMPERINGS)]
        tamper(path, chance)
        found = checked(path, [place])
        if found is None or not found.ok:
            tally[f"{tamper.__name__}: found"] += 1
        else:
            # A byte that SQLite does not use, or a row that was put back as it was.
            assert facts(path) == before, f"{tamper.__name__}, number {number} of seed {seed}"
            assert found.report.tail_known
            tally[f"{tamper.__name__}: no fact changed"] += 1
        if tamper.__name__ == "truncate_rows":
            alone = checked(path, [])
            assert alone is not None
            assert alone.ok
            assert not alone.report.tail_known
        for each in folder.glob(f"{path.name}*"):
            each.unlink()
    return tally


@pytest.mark.promise(59)
def test_tamperings_of_the_file_are_found(tmp_path: Path) -> None:
    tally = tampered(tmp_path, DAILY, 1)
    assert all(tally[f"{each.__name__}: found"] for each in TAMPERINGS)


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.promise(59)
def test_ten_thousand_tamperings_of_the_file_are_found(tmp_path: Path) -> None:
    tally = tampered(tmp_path, THOROUGH, 2)
    for change in (
        *ROW_CHANGES,
        *RECORD_CHANGES,
    ):  # of rows, and so of facts: none of them may stay unseen
        unseen = tally[f"{change.__name__}: no fact changed"]
        assert unseen <= (10 if change is flip_in_row else 0), tally


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


def only_head(place: Path) -> SignedHead:
    (file,) = place.glob("*.json")
    return SignedHead(**json.loads(file.read_bytes()))


def test_a_head_is_kept_each_minute_and_at_the_end(tmp_path: Path) -> None:
    place = tmp_path / "heads"
    journal = SqliteJournal(tmp_path / "run.journal", heads=keeper(place))
    stream = journal.stream("furnace", ["temperature"])
    kept = []
    for second in range(240):
        journal.sample(stream, float(second), (20.0,))
        if place.exists():
            kept.append(only_head(place).seq)
    assert len(set(kept)) == 3  # of the minutes 1, 2 and 3
    journal.append("fact", {}, 241.0)
    journal.close()
    assert only_head(place).head == journal.head


@pytest.mark.promise(59)
def test_a_cut_tail_is_found_and_without_a_head_nobody_can_tell(tmp_path: Path) -> None:
    path, place = tmp_path / "run.journal", tmp_path / "heads"
    kept_journal(path, place)
    found = verify_with_heads(path, [place])
    assert found.ok
    assert found.report.tail_known
    assert found.about_known
    store_rows(path, [row for row in rows(path) if row[0] <= 15])
    assert "tail is cut" in verify_with_heads(path, [place]).report.reason
    alone = verify_with_heads(path, [])
    assert alone.ok
    assert not alone.report.tail_known
    assert not alone.about_known


@pytest.mark.promise(59)
def test_what_is_added_behind_the_end_is_found_and_a_continued_journal_has_no_end(
    tmp_path: Path,
) -> None:
    path, place = tmp_path / "run.journal", tmp_path / "heads"
    kept_journal(path, place)
    with SqliteJournal(path, run={"seed": 1}) as journal:  # by one who cannot sign
        added = journal.append("fact", {"never": "happened"}, 500.0)
    report = verify_with_heads(path, [place]).report
    assert report.first_bad_seq == added
    assert "after the journal was closed" in report.reason
    continued = SqliteJournal(path, run={"seed": 1}, heads=keeper(place, at="2026-01-02"))
    continued.append("fact", {}, 501.0)
    continued.commit()
    assert verify_with_heads(path, [place]).ok
    continued.close()


@pytest.mark.promise(59)
def test_a_change_of_the_facts_about_the_process_is_found(tmp_path: Path) -> None:
    path, place = tmp_path / "run.journal", tmp_path / "heads"
    kept_journal(path, place)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE header SET value = '{\"pid\":1}' WHERE part = 'about'")
    found = verify_with_heads(path, [place])
    assert found.report.ok  # the chain does not cover it
    assert found.about_changed
    assert not found.ok


@pytest.mark.promise(59)
@pytest.mark.parametrize(
    "change", [{"seq": 3}, {"at": "x"}, {"ended": False}, {"hash": "00"}, {"signature": "00"}]
)
def test_a_head_that_the_lab_did_not_sign_counts_for_nothing(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path, place = tmp_path / "run.journal", tmp_path / "heads"
    kept_journal(path, place)
    (file,) = place.glob("*.json")
    file.write_bytes(canonical(asdict(replace(only_head(place), **change))))
    assert verify_with_heads(path, [place]).vouched is None


def test_only_the_key_that_is_asked_for_counts(tmp_path: Path) -> None:
    path, place = tmp_path / "run.journal", tmp_path / "heads"
    kept_journal(path, place)
    key = only_head(place).key
    assert verify_with_heads(path, [place], key).report.tail_known
    assert verify_with_heads(path, [place], key[::-1]).vouched is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"seq": 1}', b"\xff", b"[" * 5000])
def test_a_file_that_is_no_head_is_passed_over(tmp_path: Path, content: bytes) -> None:
    path, place = tmp_path / "run.journal", tmp_path / "heads"
    kept_journal(path, place)
    (file,) = place.glob("*.json")
    file.with_name(f"{file.name[:33]}0.json").write_bytes(content)
    assert verify_with_heads(path, [place]).report.tail_known


def test_two_runs_of_one_seed_have_heads_of_their_own(tmp_path: Path) -> None:
    place = tmp_path / "heads"
    kept_journal(tmp_path / "a.journal", place)
    with SqliteJournal(
        tmp_path / "b.journal", run={"seed": 1}, about={"pid": 2}, heads=keeper(place)
    ) as journal:
        journal.append("fact", {}, 0.0)  # and then it was aborted
    for name in ("a.journal", "b.journal"):
        assert verify_with_heads(tmp_path / name, [place]).report.tail_known


def test_a_place_that_takes_no_head_stops_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept_journal(tmp_path / "run.journal", tmp_path / "file" / "heads")
    assert caplog.text.count("no head of the journal is kept") == 1
    assert verify_with_heads(tmp_path / "run.journal", [tmp_path / "file" / "heads"]).ok


def test_the_oldest_heads_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "RUNS_MAX", 3)
    for number in range(5):
        path = tmp_path / f"{number}.journal"
        with SqliteJournal(path, run={"n": number}, heads=keeper(tmp_path / "heads")) as journal:
            journal.append("fact", {}, 0.0)
        for each in (tmp_path / "heads").glob("*.json"):
            os.utime(each, (1e9 + number, 1e9 + number)) if each.stat().st_mtime > 2e9 else None
    assert len(list((tmp_path / "heads").glob("*.json"))) == 3
    assert verify_with_heads(tmp_path / "4.journal", [tmp_path / "heads"]).report.tail_known


@unix
def test_the_key_of_a_lab_is_made_once_and_is_its_accounts_alone(tmp_path: Path) -> None:
    os.umask(mask := os.umask(0))
    key = head_key(tmp_path)
    assert len(key) == len(KEY)
    assert head_key(tmp_path) == key
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.umask(mask) == mask


def test_the_command_says_who_vouches_for_the_end_of_a_journal(tmp_path: Path) -> None:
    kept_journal(tmp_path / "journal.sqlite", tmp_path / "heads")
    said = say("journal", "verify", tmp_path, "--heads", tmp_path / "heads")
    assert said.code == 0
    assert "tail known" in said.out
    assert str(tmp_path / "heads") in said.out
    said = say("journal", "verify", tmp_path, "--heads", tmp_path)
    assert said.code == 0
    assert "cannot tell" in said.out
