"""What is appended is on the disk, whole, before anybody goes on: alarms, and who agreed."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from labharness.core.files.durable import append_durably
from labharness.safety.alarm.board import AlarmEvent, Fact
from labharness.safety.alarm.outlets import AlarmFile

FACT = Fact(event=AlarmEvent.ACTIVATE, alarm="warm", at=datetime(2026, 1, 1, tzinfo=UTC))

APPENDS: dict[str, Callable[[Path], None]] = {
    "an alarm": lambda path: AlarmFile(path).append([FACT]),
    "a decision": lambda path: append_durably(path, "a line"),
}


@pytest.mark.promise(20)
@pytest.mark.parametrize("what", APPENDS)
def test_a_line_is_on_the_disk_before_anybody_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path, fsync = tmp_path / "lines", os.fsync
    synced: list[bytes] = []

    def counted(handle: int) -> None:
        fsync(handle)
        if os.fstat(handle).st_ino == path.stat().st_ino:  # not the folder's
            synced.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", counted)
    for number in (1, 2):
        APPENDS[what](path)
        assert [each.count(b"\n") for each in synced] == [*range(1, number + 1)]
        assert synced[-1] == path.read_bytes()
