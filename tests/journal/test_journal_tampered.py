"""Whatever is done to the file of a journal is found, or changes no fact that is read from it."""

import io
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heads import kept_journal
from journal_rows import Row, records, rows, store_rows
from labharness.journal import JournalFailed, reading
from labharness.journal.chain import link_hash, record_bytes
from labharness.journal.heads import JournalVerdict, verify_with_heads
from labharness.journal.rows import joined

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
