"""A journal's files are told apart by their inodes."""

from pathlib import Path

import pytest

from labharness.journal import JournalFailed
from labharness.journal.disk import file_ids


@pytest.mark.promise(20)
@pytest.mark.parametrize("end", ["", "-wal"])
def test_another_file_in_its_place_is_another_one_and_none_is_an_error(
    tmp_path: Path, end: str
) -> None:
    journal = tmp_path / "rün.journal"
    journal.touch()
    journal.with_name("rün.journal-wal").touch()
    before = file_ids(journal)
    file = journal.with_name(f"{journal.name}{end}")
    other = file.with_name("other")
    other.touch()
    other.replace(file)
    assert file_ids(journal) != before
    file.unlink()
    with pytest.raises(JournalFailed, match="removed or replaced"):
        file_ids(journal)
