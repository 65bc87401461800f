"""A journal's files are told apart by their inodes, whichever way the system is asked."""

import os
from pathlib import Path

import pytest

from labharness.journal import JournalFailed
from labharness.journal import file_ids as asked


@pytest.fixture(params=["the inode alone", "all there is"])
def journal(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    if request.param == "all there is":
        monkeypatch.setattr(asked, "_statx", lambda: None)
    path = tmp_path / "rün.journal"
    path.touch()
    path.with_name("rün.journal-wal").touch()
    return path


def test_both_ways_of_asking_find_the_same(journal: Path) -> None:
    stats = [os.stat(f"{journal}{end}") for end in ("", "-wal")]
    assert list(asked.file_ids(journal)) == [(one.st_dev, one.st_ino) for one in stats]


@pytest.mark.promise(20)
@pytest.mark.parametrize("end", ["", "-wal"])
def test_another_file_in_its_place_is_another_one_and_none_is_an_error(
    journal: Path, end: str
) -> None:
    before = asked.file_ids(journal)
    file = journal.with_name(f"{journal.name}{end}")
    other = file.with_name("other")
    other.touch()
    other.replace(file)
    assert asked.file_ids(journal) != before
    file.unlink()
    with pytest.raises(JournalFailed, match="removed or replaced"):
        asked.file_ids(journal)


def test_a_system_that_refuses_the_one_way_is_asked_the_other(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asked.file_ids(journal)
    monkeypatch.setattr(asked, "_statx", lambda: lambda name, told: -1)
    assert asked.file_ids(journal) == before
