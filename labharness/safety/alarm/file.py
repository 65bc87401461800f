"""The facts about a lab's alarms on disk: one line each, appended and never changed.

The process that owns the line appends its observations, and people at other terminals append their
actions; each reads the facts of the others. A line that the board refuses changes nothing, so there
is no lock, and a terminal that is stopped in the middle of writing blocks no other.
"""

import errno
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from labharness.core.clock import utc_text
from labharness.core.files.durable import sync_folder
from labharness.core.vocabulary.texts import coded, revived
from labharness.safety.alarm.board import Fact
from labharness.safety.alarm.states import Actor, AlarmEvent, Severity

LOOK_BYTES_MAX: Final = 1 << 20
"""Bytes that one look reads; what is left is for the next."""

LINE_BYTES_MAX: Final = 16_384
"""A longer line is not a fact, and is skipped."""

YEARS: Final = range(2000, 3000)
"""A fact of another year is not ours, and its times could not be computed with."""

TEXT_MAX: Final = 500
"""Characters kept of a name, a reason or an observation."""


FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)  # Windows has it

NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
"""A pipe in the file's place is not waited for; Windows has none."""


class AlarmFile:
    """Appends facts and reads those that it has not read yet.

    Args:
        path: The file; its folder must exist when something is appended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._read_to = 0
        self._which = (0, 0)

    def append(self, facts: Sequence[Fact]) -> None:
        """Add facts; on return they survive a power cut.

        Raises:
            OSError: The disk does not take them.
        """
        text = "".join(_line(fact) + "\n" for fact in facts)
        fresh = not self.path.exists()
        handle = os.open(self.path, FLAGS | NO_WAIT, 0o600)
        try:
            _must_be_file(self.path, os.fstat(handle))
            _share(handle, self.path.parent)
            size = os.fstat(handle).st_size
            if size and not self._ends_well(handle, size):
                text = "\n" + text  # a power cut left half a line; ours begins on its own
            data = text.encode()
            if os.write(handle, data) != len(data):
                raise OSError(28, "only a part could be written")
            os.fsync(handle)
        finally:
            os.close(handle)
        if fresh:
            sync_folder(self.path.parent)

    def look(self) -> tuple[Fact, ...]:
        """Return the facts that any process appended since the last look; cheap without news.

        A file that was cut short, or another of its name, is read from its beginning: what was
        read already may come again.

        Raises:
            OSError: The file cannot be read.
        """
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            self._read_to = 0
            return ()
        _must_be_file(self.path, now)
        which = (now.st_dev, now.st_ino)
        if which != self._which or now.st_size < self._read_to:
            self._which, self._read_to = which, 0
        if now.st_size == self._read_to:
            return ()
        with open(
            self.path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAIT)
        ) as file:
            file.seek(self._read_to)
            data = file.read(LOOK_BYTES_MAX)
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LINE_BYTES_MAX:
            end = len(data)
        self._read_to += end
        facts = []
        for line in data[:end].splitlines():
            fact = _fact(line)
            if fact is not None:
                facts.append(fact)
            elif line.strip():
                self.damaged += 1
        return tuple(facts)

    def look_at_all(self) -> tuple[Fact, ...]:
        """Return every fact since the last look, in as many looks as it takes."""
        facts: list[Fact] = []
        read_to = -1
        while read_to < self._read_to:  # each look moves on, or was the last
            read_to = self._read_to
            facts += self.look()
        return tuple(facts)

    @staticmethod
    def _ends_well(handle: int, size: int) -> bool:
        os.lseek(handle, size - 1, os.SEEK_SET)
        return os.read(handle, 1) == b"\n"


def _must_be_file(path: Path, status: os.stat_result) -> None:
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))


def _share(handle: int, folder: Path) -> None:
    """Let the group write if it may make files in this folder: it shares the lab."""
    if os.name == "posix" and folder.stat().st_mode & stat.S_IWGRP:
        with suppress(PermissionError):  # it is of another account, which has done so
            os.fchmod(handle, 0o660)


def _line(fact: Fact) -> str:
    body = {
        "event": fact.event.value,
        "alarm": fact.alarm,
        "at": utc_text(fact.at),
        "role": fact.role.value,
        "who": fact.who[:TEXT_MAX],
        "why": coded(fact.why if len(fact.why) <= TEXT_MAX else fact.why[:TEXT_MAX]),
        "severity": fact.severity.value,
        "source": fact.source,
        "rank": fact.rank,
        "shelve_s": fact.shelve_s,
    }
    return json.dumps(body, ensure_ascii=True, sort_keys=True)


def _fact(line: bytes) -> Fact | None:
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        body = json.loads(line, object_hook=revived)
        at = datetime.fromisoformat(body["at"].replace("Z", "+00:00"))
        if at.tzinfo is None or at.year not in YEARS:
            return None
        return Fact(
            event=AlarmEvent(body["event"]),
            alarm=str(body["alarm"]),
            at=at,
            role=Actor(body["role"]),
            who=str(body["who"]),
            why=str(body["why"]),
            severity=Severity(body["severity"]),
            source=str(body["source"]),
            rank=int(body["rank"]),
            shelve_s=float(body["shelve_s"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None  # written by hand or by a broken disk: not a fact
