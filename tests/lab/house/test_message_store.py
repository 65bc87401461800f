"""The messages that no journal holds, in one file that several processes and threads use."""

import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed
from labharness.lab.house.intake import session_created
from labharness.lab.house.message_store import (
    FILE,
    MessageStore,
    Receipt,
    keep_message,
    made_submit_file,
    told_on_receipt,
)
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage, encode
from labharness.protocols.hcp.terms import Rejected

LOOKS = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("SELECT * FROM messages").fetchall()
database.close()
"""
NOW = "2026-01-01T00:00:00.000Z"


def told(number: int) -> HcpMessage:
    return session_created(f"m{number}", NOW, f"s{number}", "asked")


@pytest.mark.promise(65)
def test_a_second_user_in_one_process_takes_no_lock_from_the_first(tmp_path: Path) -> None:
    with MessageStore(tmp_path) as first:
        first.keep("s1", "accepted", told(1))
        with MessageStore(tmp_path):  # opened and closed beside it
            pass
        other = [sys.executable, "-c", LOOKS, str(tmp_path / FILE)]
        subprocess.run(other, check=True)  # a process that is not the last one to use the file
        assert (tmp_path / f"{FILE}-wal").exists(), "it took itself for the last one"


def test_what_is_kept_beside_an_open_file_is_read_by_all(tmp_path: Path) -> None:
    with MessageStore(tmp_path) as first:
        for number in range(20):
            keep_message(tmp_path, f"s{number}", "accepted", told(number))
            assert first.kept(f"s{number}", "accepted") == (told(number),)
    with MessageStore(tmp_path) as again:
        assert all(again.acceptance(f"s{number}") == told(number) for number in range(20))


def test_only_this_account_may_read_the_tokens(tmp_path: Path) -> None:
    with MessageStore(tmp_path) as messages:
        messages.receive(Receipt("t", b"asked", session_id="s1", told=(told(1), told(1))))
        for each in tmp_path.glob(f"{FILE}*"):
            assert stat.S_IMODE(each.stat().st_mode) == 0o600, each.name


def test_a_kept_text_is_its_code_and_parameters(tmp_path: Path) -> None:
    why = Text("caller.one_of", callers="alpha, beta")
    rejected = answers.task_rejected(
        message_id="m",
        timestamp=NOW,
        in_reply_to="asked",
        rejected=Rejected("unauthorized", Text("caller.unknown", caller="x"), None, why),
    )
    with MessageStore(tmp_path) as messages:
        messages.receive(Receipt("t", b"asked", answer=rejected))
        kept = messages.answer("t")
    assert kept == rejected
    assert kept is not None
    suggestion = getattr(kept.payload, "suggestion", "")
    assert isinstance(suggestion, Text)
    assert suggestion.code == why.code


def test_what_an_earlier_version_has_kept_is_read(tmp_path: Path) -> None:
    with MessageStore(tmp_path) as messages:
        messages._write([("s1", "accepted", 0, encode(told(1)))])
        assert messages.acceptance("s1") == told(1)


@pytest.mark.promise(61)
def test_a_receipt_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    with MessageStore(tmp_path) as messages:
        messages._database.execute(
            "CREATE TRIGGER broken BEFORE INSERT ON messages WHEN new.number = 1"
            " BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with pytest.raises(JournalFailed, match="no"):
            messages.receive(Receipt("t", b"asked", session_id="s1", told=(told(1), told(1))))
        assert messages.submission("t") == b""
        assert messages.kept("s1", "created") == ()


@pytest.mark.promise(20)
def test_a_receipt_waits_for_the_disk_itself(tmp_path: Path) -> None:
    with MessageStore(tmp_path) as messages:
        (level,) = messages._database.execute("PRAGMA synchronous").fetchone()
        full = 2  # https://www.sqlite.org/pragma.html#pragma_synchronous
        assert level == full


def test_where_nothing_was_told_on_receipt_no_file_is_made(tmp_path: Path) -> None:
    assert told_on_receipt(tmp_path, "s") is None
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_submission_is_made_once_and_left_as_it_is(tmp_path: Path) -> None:
    kept: Any = SimpleNamespace(submission=lambda task_id: f"of {task_id}".encode())
    (tmp_path / "tasks").mkdir()
    path = made_submit_file(tmp_path, kept, "t")
    assert path.read_bytes() == b"of t"
    path.write_bytes(b"as it was")
    assert made_submit_file(tmp_path, kept, "t").read_bytes() == b"as it was"
