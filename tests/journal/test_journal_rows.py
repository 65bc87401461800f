"""Records that are committed together share rows, and nobody who reads them can tell."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal_rows import SHARED, SINGLE, begun_before, opened, rows, store_rows
from labharness.journal import SqliteJournal, reading
from labharness.journal.rows import ROW_BYTES_MAX, ROW_RECORDS_MAX, Row, joined, records_of

RECORDS = 300
SIZES = st.sampled_from([2, 40, 2_000, ROW_BYTES_MAX - 1, ROW_BYTES_MAX, 2 * ROW_BYTES_MAX])
DRAWN = st.lists(st.tuples(SIZES, st.booleans()), max_size=40)


def written(path: Path, run: dict[str, int] | None = None) -> Path:
    """Write records of many sizes, some with a block, in commits of many sizes."""
    with SqliteJournal(path, run=run or {"seed": 1}) as journal:
        for number in range(RECORDS):
            journal.append("fact", {"text": "x" * (number % 7) ** 4}, float(number))
            if number % 31 == 0:
                journal.append_block("samples", {"of": []}, bytes(number), float(number))
            if number % (1 + number // 20) == 0:
                journal.commit()
    return path


def exported(path: Path) -> bytes:
    out = io.BytesIO()
    reading.export_jsonl(path, out)
    return out.getvalue()


def tables(path: Path) -> set[str]:
    with opened(path) as database:
        return {name for (name,) in database.execute("SELECT tbl_name FROM sqlite_master")}


@given(DRAWN, st.integers(1, ROW_RECORDS_MAX))
@settings(deadline=None, max_examples=100)
def test_rows_hold_the_records_as_they_were_and_no_more_than_they_may(
    drawn: list[tuple[int, bool]], records_max: int
) -> None:
    records: list[Row] = [
        (seq, b"r" * size, bytes([seq]) * 32, b"block" if block else None)
        for seq, (size, block) in enumerate(drawn, 1)
    ]
    shared = list(joined(records, records_max))
    read = [one for row in shared for one in records_of(row)]
    assert [(one.seq, one.data, one.hash, one.block) for one in read] == records
    for row in shared:
        together = list(records_of(row))
        assert len(together) <= records_max
        assert len(together) == 1 or (len(row[1]) < ROW_BYTES_MAX + len(together) and not row[3])


def test_records_of_one_commit_share_rows_and_each_is_found_by_its_number(tmp_path: Path) -> None:
    path = written(tmp_path / "run.journal")
    whole = list(reading.read(path))
    assert len(whole) > 2 * len(rows(path))
    assert max(len(list(records_of(row))) for row in rows(path)) > 10
    for seq in range(len(whole) + 2):
        assert list(reading.read_after(path, seq)) == whole[seq:]
        assert list(reading.read(path, seq)) == whole[:seq]


@pytest.mark.promise(59)
def test_the_layout_changes_neither_the_chain_nor_what_is_read(tmp_path: Path) -> None:
    single = written(begun_before(tmp_path / "single.journal", {"seed": 1}))
    shared = written(tmp_path / "shared.journal")
    assert tables(single) == {"header", SINGLE}
    assert tables(shared) == {"header", SHARED}
    assert len(rows(single)) == len(list(reading.read(shared)))
    assert exported(single) == exported(shared)
    assert reading.verify_file(single) == reading.verify_file(shared)


@pytest.mark.promise(59)
def test_a_file_of_an_earlier_version_goes_on_in_its_own_layout(tmp_path: Path) -> None:
    path = written(begun_before(tmp_path / "run.journal", {"seed": 1}))
    before = rows(path)
    with SqliteJournal(path, run={"seed": 1}) as journal:
        for number in range(5):
            journal.append("fact", {"number": number}, float(number))
    assert rows(path)[: len(before)] == before
    assert len(rows(path)) == len(before) + 5
    assert reading.verify_file(path).head == journal.head


@pytest.mark.promise(59)
@pytest.mark.parametrize("more", [(b"\n{}", b""), (b"", b"x" * 32), (b"\n", b"x"), (b"", b"x")])
def test_what_stands_behind_the_records_of_a_row_is_found(
    tmp_path: Path, more: tuple[bytes, bytes]
) -> None:
    path = written(tmp_path / "run.journal")
    whole = rows(path)
    for at in (0, len(whole) // 2, len(whole) - 1):
        first, data, chained, block = whole[at]
        row = (first, data + more[0], chained + more[1], block)
        store_rows(path, [*whole[:at], row, *whole[at + 1 :]])
        assert reading.verify_file(path).first_bad_seq == first + len(data.split(b"\n"))


@pytest.mark.promise(59)
def test_a_row_before_the_first_record_is_found(tmp_path: Path) -> None:
    path = written(tmp_path / "run.journal")
    whole = rows(path)
    store_rows(path, [(-3, *whole[0][1:]), *whole])
    assert reading.verify_file(path).first_bad_seq == 1


def test_a_block_beside_several_records_belongs_to_none(tmp_path: Path) -> None:
    path = written(tmp_path / "run.journal")
    whole = rows(path)
    at = next(at for at, row in enumerate(whole) if b"\n" in row[1])
    store_rows(path, [*whole[:at], (*whole[at][:3], b"block"), *whole[at + 1 :]])
    assert reading.verify_file(path).first_bad_seq == whole[at][0]
