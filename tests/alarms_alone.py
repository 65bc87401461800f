"""The alarms of a line that is not there: what it would tell is told by hand, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from kernel_line import ENVELOPE, healthy, running
from labharness.core.clock import Clock, VirtualLoop, run
from labharness.core.vocabulary import Cause, Trip
from labharness.journal import JournalFailed
from labharness.line import Line, LineAlarms
from labharness.line.events import Events
from labharness.safety.alarm.board import Fact, Severity
from labharness.safety.alarm.outlets import AlarmFile, AlertChannel, Done

LEVELS = (
    AlertChannel(name="mail"),
    AlertChannel(name="chat", severities=frozenset({Severity.CRITICAL})),
    AlertChannel(name="boss", level=1),
    AlertChannel(name="chief", level=2),
)


def trip(cause: Cause, channel: str, value: float | None = None, **more: Any) -> Trip:
    """A trip of that line; ``procedure=""`` makes it a warning."""
    return Trip(cause, more.pop("procedure", "shutdown"), channel, value, 0.0, **more or NO_WORDS)


NO_WORDS = {"detail": "seen"}


class Sender:
    """Takes messages, and answers with what a test has made it answer; ``None`` is not at all."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []
        self.dones: list[Done] = []
        self.answers: dict[str, str | None] = {}

    def send(self, channel: str, title: str, text: str, done: Done) -> None:
        """Keep a message."""
        self.said.append((channel, title, text))
        self.dones.append(done)
        answer = self.answers.get(channel, "")
        if answer is not None:
            done(answer)


@dataclass(eq=False)
class Disk:
    """A file of alarms that breaks, and holds what others wrote."""

    path: Path = Path("alarms.jsonl")
    broken: OSError | None = None
    unreadable: OSError | None = None

    def __post_init__(self) -> None:
        self.kept: list[Fact] = []
        self.writes: list[list[Fact]] = []
        self.others: list[Fact] = []

    def append(self, facts: Sequence[Fact]) -> None:
        """Keep facts."""
        self.writes.append(list(facts))
        if self.broken is not None:
            raise self.broken
        self.kept += facts

    def look(self) -> tuple[Fact, ...]:
        """Return what others wrote since the last look."""
        if self.unreadable is not None:
            raise self.unreadable
        found, self.others = tuple(self.others), []
        return found

    look_at_all = look


class SlowLoop(VirtualLoop):
    """A loop whose threads end when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[Any]] = []

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: object) -> Any:
        """Begin nothing; the test ends it."""
        func(*args)
        self.waiting.append(self.create_future())
        return self.waiting[-1]


class Alone:
    """Alarms, and the line, people and disk that they see.

    Args:
        channels: Whom to tell.
        disk: Where the facts are kept.
        loop: Whose time it is; without one that of a test that is a coroutine, or its own.
        option: What names the lab in a command.
    """

    def __init__(
        self,
        channels: Sequence[AlertChannel] = LEVELS,
        *,
        disk: Disk | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        option: str = "",
    ) -> None:
        self.loop = loop or asyncio._get_running_loop() or VirtualLoop()
        self.clock = Clock(self.loop)
        self.disk = disk or Disk()
        self.sender = Sender()
        self.memory = running()
        self.records: list[tuple[str, Mapping[str, object]]] = []
        self.latch = SimpleNamespace(write_error="")
        self.monitor = SimpleNamespace(journal_lost="")
        self.journal_fails = False
        self.line: Any = SimpleNamespace(
            memory=self.memory,
            envelope=ENVELOPE,
            journal=self,
            guard=SimpleNamespace(latch=self.latch),
            monitor=self.monitor,
            events=Events(),
            latest=self.latest,
        )
        self.alarms = LineAlarms(
            line=cast("Line", self.line),
            clock=self.clock,
            file=cast("AlarmFile", self.disk),
            channels=channels,
            senders=self.sender,
            title="the lab",
            option=option,
        )

    def append(self, kind: str, body: Mapping[str, object], at_s: float) -> int:
        """Be the line's journal."""
        if self.journal_fails:
            raise JournalFailed("gone")
        self.records.append((kind, {**body, "at_s": at_s}))
        return len(self.records)

    def latest(self, channel: str) -> float:
        """Return the last reading as the line does."""
        track = self.memory.tracks[channel]
        return track.value if track.fresh(self.clock.now_s()) else float("nan")

    def play(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have it happen, and end the loop."""

        async def main() -> None:
            await work()

        run(main(), self.loop)

    async def ticks(self, for_s: float, each_s: Callable[[], object] | None = None) -> None:
        """Let the line be polled every second for a while."""
        for _ in range(round(for_s)):
            if each_s is not None:
                each_s()
            self.line.events.on_tick()
            await asyncio.sleep(1.0)

    def well(self) -> None:
        """Read every channel as it should be."""
        healthy(self.memory, self.clock.now_s())

    def journaled(self, kind: str, *names: str) -> list[tuple[object, ...]]:
        """Return what stands in the journal, of each record these."""
        return [tuple(body[name] for name in names) for what, body in self.records if what == kind]

    def active(self) -> list[str]:
        """Name the alarms that are active."""
        return [each.name for each in self.alarms.board.alarms.values() if each.state.active]

    def told(self) -> list[str]:
        """Name the channels that were told, in order."""
        return [channel for channel, _, _ in self.sender.said]

    def kept(self) -> Iterable[tuple[str, str]]:
        """Return what the disk has, by event and name."""
        return [(each.event.value, each.alarm) for each in self.disk.kept]
