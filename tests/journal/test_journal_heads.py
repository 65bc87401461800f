"""Heads that are kept elsewhere: when they are made, who can have made them, what they show."""

import json
import os
import sqlite3
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from commands import say
from heads import KEY, keeper, kept_journal
from journal_rows import rows, store_rows
from labharness.journal import SqliteJournal, heads
from labharness.journal.chain import canonical
from labharness.journal.heads import SignedHead, head_key, verify_with_heads
from platforms import unix


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
