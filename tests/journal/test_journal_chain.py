"""The hash chain: whatever is changed is found, at the first record that is bad."""

import hashlib
import io
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal_rows import SHARED, SINGLE, begun_before, opened, rows, store_rows
from labharness.journal import SqliteJournal, reading
from labharness.journal.chain import (
    FIRST_SEQ,
    Head,
    Sealed,
    canonical,
    genesis_of,
    link_hash,
    record_bytes,
    unseal,
    verify,
)
from labharness.journal.rows import ROW_BYTES_MAX, ROW_RECORDS_MAX, Row, joined, records_of

RUN = {"seed": 7}
GENESIS = genesis_of(RUN)


def chained(count: int, note: str = "") -> list[Sealed]:
    records, previous = [], GENESIS
    for seq in range(FIRST_SEQ, FIRST_SEQ + count):
        block = bytes([seq]) * 16 if seq % 3 == 0 else None
        body: dict[str, Any] = {"note": note, "value": seq / 3}
        if block is not None:
            body = {"stream": 0, "rows": 1, "sha256": hashlib.sha256(block).hexdigest()}
        data = record_bytes(seq, seq * 0.5, "samples" if block else "fact", body)
        previous = link_hash(previous, data)
        records.append(Sealed(seq, data, previous, block))
    return records


CHAIN = chained(12)
HEAD = Head(CHAIN[-1].seq, CHAIN[-1].hash.hex())


class Word(str):
    """No plain text: a library for JSON may know it or not."""

    __slots__ = ()


TEXTS = st.text(st.characters(categories=None), max_size=5) | st.sampled_from(["\ud800", "\x7f"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([1e16, 1e-5, 1e-4, -0.0, 2**64, 0.1])
NO_JSON = st.binary(max_size=2) | st.just({1}) | st.builds(Word, TEXTS)
KEYS = TEXTS | st.integers(0, 99) | st.booleans() | st.builds(Word, TEXTS)
VALUES = st.recursive(
    TEXTS | NUMBERS | st.none() | st.booleans() | NO_JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=6,
)


def said_of(write: Callable[[], bytes]) -> bytes | type[Exception]:
    try:
        return write()
    except (TypeError, ValueError) as why:
        return TypeError if isinstance(why, TypeError) else ValueError


@pytest.mark.promise(59)
@given(st.dictionaries(TEXTS, VALUES, max_size=5), NUMBERS)
@settings(deadline=None, max_examples=300)
def test_a_record_has_the_canonical_bytes_or_none(body: dict[str, Any], at_s: float) -> None:
    fields = {"seq": 1, "at_s": float(at_s), "kind": "fact", "body": body}
    assert said_of(lambda: record_bytes(1, at_s, "fact", body)) == said_of(
        lambda: canonical(fields)
    )


@pytest.mark.promise(59)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_has_not_is_refused_wherever_it_stands(number: float) -> None:
    for body in ({"value": number}, {"at": [1.0, {"deep": number}]}, {"row": (number,)}):
        with pytest.raises(ValueError, match="JSON"):
            record_bytes(1, 0.0, "fact", body)
    with pytest.raises(ValueError, match="JSON"):
        record_bytes(1, number, "fact", {})


def test_an_untouched_chain_fits_and_says_what_it_cannot_tell() -> None:
    report = verify(CHAIN, genesis=GENESIS)
    assert report.ok
    assert report.head == HEAD
    assert report.first_bad_seq is None
    assert not report.tail_known
    assert "no head kept elsewhere" in report.reason
    assert verify(CHAIN, genesis=GENESIS, outside=HEAD).tail_known


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_a_flipped_bit_is_found_at_its_record(data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(CHAIN) - 1))
    record = CHAIN[index]
    fields = ["data", "hash"] + (["block"] if record.block is not None else [])
    field = data.draw(st.sampled_from(fields))
    raw = bytearray(getattr(record, field))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    changes: dict[str, Any] = {field: bytes(raw)}
    bad = [*CHAIN]
    bad[index] = replace(record, **changes)
    report = verify(bad, genesis=GENESIS)
    assert not report.ok
    assert report.first_bad_seq == record.seq
    assert report.head.seq == record.seq - 1


@given(st.integers(0, len(CHAIN) - 2))
@settings(deadline=None, max_examples=20)
def test_a_deleted_record_is_found_in_its_place(index: int) -> None:
    report = verify(CHAIN[:index] + CHAIN[index + 1 :], genesis=GENESIS)
    assert report.first_bad_seq == CHAIN[index].seq


@given(st.integers(0, len(CHAIN) - 1), st.booleans())
@settings(deadline=None, max_examples=30)
def test_an_inserted_record_is_found_even_if_it_is_well_made(index: int, renumber: bool) -> None:
    previous = CHAIN[index - 1].hash if index else GENESIS
    seq = FIRST_SEQ + index
    data = record_bytes(seq, 0.0, "fact", {"note": "never happened"})
    forged = Sealed(seq, data, link_hash(previous, data))
    rest = [replace(one, seq=one.seq + 1) for one in CHAIN[index:]] if renumber else CHAIN[index:]
    report = verify([*CHAIN[:index], forged, *rest], genesis=GENESIS, outside=HEAD)
    assert not report.ok
    # The forged record fits by itself; the next one, or the head kept elsewhere, gives it away.
    assert report.first_bad_seq in (seq, seq + 1)


@given(st.integers(0, len(CHAIN) - 1), st.integers(0, len(CHAIN) - 1), st.booleans())
@settings(deadline=None, max_examples=60)
def test_exchanged_records_are_found_at_the_first_place(a: int, b: int, renumber: bool) -> None:
    bad = [*CHAIN]
    bad[a], bad[b] = CHAIN[b], CHAIN[a]
    if renumber:
        bad = [replace(one, seq=FIRST_SEQ + place) for place, one in enumerate(bad)]
    report = verify(bad, genesis=GENESIS)
    assert report.ok == (a == b)
    assert report.first_bad_seq == (None if a == b else FIRST_SEQ + min(a, b))


@given(st.integers(0, len(CHAIN) - 1))
@settings(deadline=None, max_examples=20)
def test_a_cut_tail_shows_against_a_head_kept_elsewhere_only(kept: int) -> None:
    assert verify(CHAIN[:kept], genesis=GENESIS).ok
    report = verify(CHAIN[:kept], genesis=GENESIS, outside=HEAD)
    assert report.first_bad_seq == FIRST_SEQ + kept
    assert "tail is cut" in report.reason


def test_records_after_the_head_kept_elsewhere_are_not_vouched_for() -> None:
    report = verify(CHAIN, genesis=GENESIS, outside=Head(5, CHAIN[4].hash.hex()))
    assert report.ok
    assert not report.tail_known
    assert "after 5" in report.reason


def test_a_chain_rewritten_from_the_start_differs_from_the_head_kept_elsewhere() -> None:
    rewritten = chained(12, note="nicer")
    assert verify(rewritten, genesis=GENESIS).ok
    report = verify(rewritten, genesis=GENESIS, outside=HEAD)
    assert report.first_bad_seq == HEAD.seq
    assert "differs" in report.reason


def test_the_chain_of_another_run_does_not_fit() -> None:
    assert verify(CHAIN, genesis=genesis_of({"seed": 8})).first_bad_seq == FIRST_SEQ


@pytest.mark.parametrize(
    "data", [b"[]", b"no json", b'{"seq":1}', record_bytes(2, 0.0, "fact", {})]
)
def test_a_well_hashed_record_that_is_none_is_bad(data: bytes) -> None:
    forged = Sealed(FIRST_SEQ, data, link_hash(GENESIS, data))
    assert verify([forged], genesis=GENESIS).first_bad_seq == FIRST_SEQ


def test_a_record_has_one_text() -> None:
    one = record_bytes(1, 0, "fact", {"b": 1.0, "a": "µ"})
    assert one == b'{"at_s":0.0,"body":{"a":"\\u00b5","b":1.0},"kind":"fact","seq":1}'
    assert unseal(Sealed(1, one, b"")).body == {"a": "µ", "b": 1.0}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_not_recorded(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"value": value})
    with pytest.raises(ValueError, match="not JSON compliant"):
        record_bytes(1, value, "fact", {})


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
