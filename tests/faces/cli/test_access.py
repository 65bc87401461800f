"""Reads of a run's results are logged before they are shown, in a chain beside its journal."""

import os
from pathlib import Path

import pytest

from commands import Said, say
from labharness.core.files.chained import BrokenChain
from labharness.journal import SqliteJournal
from labharness.journal.access_log import ACCESS_NAME, accesses
from labharness.journal.artifacts import Artifacts
from labharness.journal.reading import verify_file

SESSION = "s-1"
URI = f"hcp://session-{SESSION}/artifacts/curve.csv"


def run(folder: Path, data_class: str | None) -> Path:
    """Make the folder of a run with one artifact."""
    constraints = {} if data_class is None else {"data_classification": data_class}
    folder.mkdir()
    with SqliteJournal(folder / "journal.sqlite") as journal:
        journal.append("event", {"event_type": "session_created"}, 0.0)
        journal.append("submitted", {"payload": {"constraints": constraints}}, 0.0)
    Artifacts(folder / "artifacts", SESSION).put("curve", "curve.csv", "text/csv", b"1,2\n")
    return folder


READS = (
    (("journal", "show", "{run}"), "records"),
    (("journal", "export", "{run}"), "records"),
    (("artifact", URI, "--runs", "{run}"), URI),
    (("artifact", URI, "--runs", "{run}", "--cat"), URI),
)


def said(words: tuple[str, ...], folder: Path) -> Said:
    return say(*(each.format(run=folder) for each in words))


@pytest.mark.promise(70)
@pytest.mark.parametrize(("words", "what"), READS)
def test_each_read_is_logged_and_changes_no_head(
    tmp_path: Path, words: tuple[str, ...], what: str
) -> None:
    folder = run(tmp_path / "run", None)
    head = verify_file(folder / "journal.sqlite").head
    for number in (1, 2):
        assert said(words, folder).code == 0
        found = list(accesses(folder))
        assert [(each.what, each.data_class) for each in found] == [(what, "T2")] * number
        assert found[-1].via == f"labharness {words[0]}"
        assert found[-1].reader
    assert verify_file(folder / "journal.sqlite").head == head
    told = say("journal", "access", folder)
    assert told.code == 0
    assert told.out.count(what) == 2


@pytest.mark.parametrize(("words", "what"), READS)
def test_reads_of_public_data_are_not_logged(
    tmp_path: Path, words: tuple[str, ...], what: str
) -> None:
    folder = run(tmp_path / "run", "T1")
    assert said(words, folder).code == 0, what
    assert not (folder / ACCESS_NAME).exists()
    assert "no read" in say("journal", "access", folder).out


def test_a_check_of_the_chain_reads_no_result(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", "T2")
    say("journal", "verify", folder)
    assert list(accesses(folder)) == []


@pytest.mark.promise(70)
def test_nothing_is_shown_where_no_log_takes_the_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(tmp_path / "run", "T2")
    (folder / ACCESS_NAME).mkdir()  # no file can have this name, whoever runs the test
    home = tmp_path / "home" / "labharness"
    monkeypatch.setenv("LABHARNESS_STATE", str(home.parent))
    shown = said(READS[0][0], folder)
    assert shown.code == 0, shown
    assert [each.what for each in accesses(home)] == ["records"]
    (home / ACCESS_NAME).unlink()
    (home / ACCESS_NAME).mkdir()
    for words, _ in READS:
        refused = said(words, folder)
        assert (refused.code, refused.out) == (1, ""), refused
        assert "cannot be logged" in refused.err


def test_a_log_that_was_edited_is_one_plain_error(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", "T2")
    for words, _ in READS[:2]:
        said(words, folder)
    path = folder / ACCESS_NAME
    path.write_text(path.read_text("utf-8").replace("T2", "T1", 1), "utf-8")
    with pytest.raises(BrokenChain):
        list(accesses(folder))
    told = say("journal", "access", folder)
    assert told.code == 1
    assert f"{ACCESS_NAME}, line 2: this is not the line that was written" in told.err
    assert os.linesep * 2 not in told.err
