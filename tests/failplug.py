"""A plug in the seams where bytes leave a harness: one write fails there, or the harness dies.

The seams are those that are there anyway: the journal's transaction, the link of a port, and the
file calls of the operating system. A death is an exception that nothing but asyncio's own way out
lets pass; whoever raises it has fenced the harness, so that nothing on its stack writes any more.
"""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from labharness.chaos.scenario import Fault
from labharness.instruments.link import LinkLost
from labharness.journal import SqliteJournal
from labharness.journal.rows import Rows
from labharness.lab import Lab
from labharness.safety.guard import Source

Seam = Callable[[Any], Any]
WORDS = {Source.READ: "read", Source.PERMIT: "command", Source.PROCEDURE: "safe"}


class Died(SystemExit):
    """The process is gone: asyncio lets nothing but this leave a running loop at once."""


@dataclass(frozen=True, slots=True)
class Failpoint:
    """One write that fails.

    Attributes:
        write: Which: ``journal commit``, ``journal open``, ``PORT read|command|safe``, or a call of
            the operating system with the name of its file, as ``fsync latch.new``.
        how: ``dies before|within|after`` it, or the error it ends in: ``full``, ``broken``,
            ``locked``, ``lost``, ``half`` (is written, then the link is lost or the disk full).
        stage: It counts from the beginning of this stage; ``""`` is the run's own beginning.
        ends: How the growth is answered, and whether the line is latched then.
        nth: The n-th such write, from 1.
        lasts: It stays so until a person mends it; else only that one write fails.
        faults: What makes the line trip, where it takes a trip to write.
    """

    write: str
    how: str
    stage: str
    ends: str
    nth: int = 1
    lasts: bool = False
    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        lasts = " for good" if self.lasts else ""
        return f"{self.stage or 'opening'}: {self.write} {self.nth}: {self.how}{lasts}"


class Plug:
    """Sits in the seams, and lets one write fail.

    Attributes:
        on: Its stage has begun.
        fired: The write has failed.
        dead: The harness is gone: nothing of it is written any more.
        commanded: Intents of the commands of which a byte left, by record number.
        wrong: Commands that left before their intent was on the disk.
    """

    def __init__(self, point: Failpoint, folder: Path, die: Callable[[], None]) -> None:
        self.point = point
        self.on = self.fired = self.dead = False
        self.commanded: dict[int, str] = {}
        self.wrong: list[str] = []
        self._die = die
        self._folder = folder
        self._count = 0
        self._locks: list[sqlite3.Connection] = []

    def mend(self) -> None:
        """End whatever was wrong."""
        self.on = self.dead = False
        for each in self._locks:
            each.close()

    # ---- the seams

    def watch(self, lab: Lab) -> None:
        """Sit down on the links of a harness, and see that each command was recorded first."""
        if self.fired:
            return
        log = lab.guard.core.log = []
        newest: list[tuple[int, str]] = []
        journal: Any = lab.line.journal
        append = journal.append

        def append_noted(kind: str, body: Mapping[str, Any], at_s: float) -> int:
            seq: int = append(kind, body, at_s)
            if kind == "intent":
                newest[:] = [(seq, body["channel"])]
            return seq

        journal.append = append_noted
        for port, link in lab.links.items():
            write = link.write

            def plugged(
                data: bytes, port: str = port, write: Callable[[bytes], None] = write
            ) -> None:
                source = log[-1].source
                log.clear()
                if source is Source.PERMIT:
                    self._recorded_first(journal.path, newest[-1])
                half = data[: len(data) // 2]
                gone = LinkLost("planted")
                errors: dict[str, Exception] = {"lost": gone, "half": gone}
                self._pass(
                    f"{port} {WORDS[source]}", lambda: write(data), lambda: write(half), errors
                )

            link.write = plugged  # type: ignore[method-assign]  # the link, for this test

    def _recorded_first(self, path: Path, intent: tuple[int, str]) -> None:
        seq, channel = intent
        self.commanded[seq] = channel
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            durable = Rows(database).highest()
        if durable < seq:
            self.wrong.append(f"{channel} left before its intent {seq} was on the disk ({durable})")

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Sit in the journal's and the operating system's calls."""
        seams = (
            (SqliteJournal, "_write_queue", self._of_journal("journal commit")),
            (SqliteJournal, "_open", self._of_journal("journal open")),
            (os, "fsync", self._of_descriptor("fsync")),
            (os, "write", self._of_descriptor("write")),
            (os, "open", self._of_handle),
            (Path, "open", self._of_opening),
            (Path, "replace", self._of_path("replace")),
            (Path, "write_text", self._of_path("write_text")),
            (Path, "write_bytes", self._of_path("write_bytes")),
        )
        with contextlib.ExitStack() as stack:
            for owner, name, seam in seams:
                plugged = seam(getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, plugged))
            yield

    def _of_journal(self, write: str) -> Seam:
        def seam(real: Any) -> Any:
            def plugged(journal: SqliteJournal, *args: Any) -> None:
                if not journal.path.is_relative_to(self._folder / "growth1"):
                    real(journal, *args)
                    return

                def within() -> None:
                    journal._database.execute("BEGIN IMMEDIATE")
                    journal._rows.add(journal._queue)

                def locked() -> None:
                    other = sqlite3.connect(journal.path, isolation_level=None)
                    other.execute("BEGIN EXCLUSIVE")
                    self._locks.append(other)
                    try:
                        real(journal, *args)
                    finally:
                        if not self.point.lasts:
                            other.close()

                full = sqlite3.OperationalError("database or disk is full")
                broken = sqlite3.OperationalError("disk I/O error")
                errors: dict[str, Exception] = {"full": full, "broken": broken}
                self._pass(write, lambda: real(journal, *args), within, errors, locked)

            return plugged

        return seam

    def _of_path(self, call: str) -> Seam:
        def seam(real: Any) -> Any:
            def plugged(path: Path, data: Any, *args: Any) -> Any:
                if call == "replace":  # which gives the file its name
                    return self._on_file(f"{call} {Path(data).name}", lambda: real(path, data))
                return self._on_file(
                    f"{call} {path.name}",
                    lambda: real(path, data, *args),
                    lambda: real(path, data[: len(data) // 2], *args),
                )

            return plugged

        return seam

    def _of_opening(self, real: Any) -> Any:
        def plugged(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
            if mode.startswith("r"):
                return real(path, mode, *args, **options)
            return self._on_file(f"open {path.name}", lambda: real(path, mode, *args, **options))

        return plugged

    def _of_handle(self, real: Any) -> Any:
        def plugged(path: Any, flags: int, *args: Any, **options: Any) -> Any:
            if not flags & (os.O_WRONLY | os.O_RDWR):
                return real(path, flags, *args, **options)
            name = Path(os.fsdecode(path)).name
            return self._on_file(f"open {name}", lambda: real(path, flags, *args, **options))

        return plugged

    def _of_descriptor(self, call: str) -> Seam:
        def seam(real: Any) -> Any:
            def plugged(file: int, *data: bytes) -> Any:
                halves = [each[: len(each) // 2] for each in data]
                half = (lambda: real(file, *halves)) if data else None
                return self._on_file(f"{call} {_name(file)}", lambda: real(file, *data), half)

            return plugged

        return seam

    def _on_file(self, write: str, real: Callable[[], Any], half: Any = None) -> Any:
        given: list[Any] = []
        errors: dict[str, Exception] = {
            "full": OSError(errno.ENOSPC, "No space left on device"),
            "broken": OSError(errno.EIO, "Input/output error"),
            "half": OSError(errno.ENOSPC, "No space left on device"),
        }
        self._pass(write, lambda: given.append(real()), half, errors)
        return given[0]

    # ---- the one decision

    def _pass(
        self,
        write: str,
        real: Callable[[], object],
        half: Callable[[], object] | None,
        errors: Mapping[str, Exception],
        locked: Callable[[], None] | None = None,
    ) -> None:
        """Let a write pass, unless it is the one that fails."""
        how = self.point.how
        if self.dead:
            raise next(iter(errors.values()))
        if not self.on or write != self.point.write or not self._due():
            real()
            return
        self.fired = True
        if how == "locked" and locked is not None:
            if self._locks:
                real()
            else:
                locked()
            return
        if how in ("half", "dies within") and half is not None:
            half()
        if how == "dies after":
            real()
        if how.startswith("dies"):
            self.dead = True
            self._die()
        raise errors[how]

    def _due(self) -> bool:
        self._count += 1
        return self._count == self.point.nth or (self.point.lasts and self._count > self.point.nth)


def _name(file: int) -> str:
    """Name the file behind a descriptor, as Linux knows it."""
    return Path(os.readlink(f"/proc/self/fd/{file}")).name
