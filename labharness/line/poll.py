"""The poller of a line: each second it starts every scan that is due, each port by itself.

It is written with callbacks and not with tasks, because it runs for days: one poll of one scan
costs one frame out, one frame in, and no future.

The monitor of a line: it passes readings to the kernel and the journal, and answers trips. The
kernel decides what trips and what only warns. A fact that cannot be recorded delays no byte of a
procedure.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from labharness.core.vocabulary import BadReply, Cause, DeviceFault, Trip
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.requests import disobeyed
from labharness.core.vocabulary.texts import Text
from labharness.journal import Journal, JournalFailed
from labharness.line.events import Events
from labharness.line.instrument import BoundScan
from labharness.safety.guard import Guard, Shell
from labharness.safety.kernel import Memory, observe, tick
from labharness.safety.kernel.modes import LIVE

LOG = logging.getLogger(__name__)
TICK_S = 1.0  # poll period of a line; the kernel's clock hand


@dataclass(eq=False)
class Poller:
    """Polls the scans of a line on an absolute grid of seconds, so that it never drifts.

    Attributes:
        loop: The event loop.
        guard: The way to the ports.
        scans: The scans of the line.
        tick_s: Period of the grid.
        take: Called with each scan's values.
        tick: Called on each grid point, before the scans are sent.
        heartbeat: Called every ``guard.heartbeat_s`` on a grid: the proof that this
            loop lives. A grid point whose work breaks or never comes ends the heartbeats with it.
        fault: Called with each scan that its instrument refuses, and the reason.
    """

    loop: asyncio.AbstractEventLoop
    guard: Guard
    scans: Sequence[BoundScan]
    tick_s: float
    take: Callable[[BoundScan, tuple[float, ...]], object]
    tick: Callable[[], None]
    heartbeat: Callable[[], None]
    fault: Callable[[BoundScan, str], None] = lambda scan, why: None

    def __post_init__(self) -> None:
        self._heartbeat_s = self.guard.heartbeat_s
        self._heartbeat_timer: asyncio.TimerHandle | None = None
        self._number = 0
        self._start_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []
        ports: dict[str, list[BoundScan]] = {}
        for scan in self.scans:
            if scan.ticks:
                ports.setdefault(scan.port, []).append(scan)
        self._chains = [
            _Chain(port, self.guard.at(port), each, self.take, self.fault)
            for port, each in ports.items()
        ]

    def start(self) -> None:
        """Begin: the first poll is now."""
        self._start_s = self.loop.time()
        self._turn()

    def stop(self) -> None:
        """End; exchanges under way finish by themselves."""
        for timer in (self._timer, self._heartbeat_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._heartbeat_timer = None
        self.wake()

    def wake(self) -> None:
        """Wake all users that wait for the next tick."""
        waiters, self._waiters = self._waiters, []
        for each in waiters:
            if not each.done():
                each.set_result(None)

    async def next_tick(self) -> None:
        """Wait for the next grid point, when the scans of this one have long been answered."""
        waiter = self.loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _turn(self) -> None:
        self.tick()
        self.wake()
        number = self._number
        for chain in self._chains:
            chain.poll(number)
        self._number = number + 1
        next_s = self._start_s + (number + 1) * self.tick_s
        self._timer = self.loop.call_at(next_s, self._turn)
        if self._heartbeat_s < float("inf"):
            self._feed(next_s)

    def _feed(self, until_s: float) -> None:
        self.heartbeat()
        next_s = self.loop.time() + self._heartbeat_s
        self._heartbeat_timer = None
        if next_s < until_s:
            self._heartbeat_timer = self.loop.call_at(next_s, self._feed, until_s)


@dataclass(eq=False)
class _Chain:
    """The scans of one port, one after the other while the port is ours."""

    port: str
    guard: Shell
    scans: Sequence[BoundScan]
    take: Callable[[BoundScan, tuple[float, ...]], object]
    fault: Callable[[BoundScan, str], None]

    def __post_init__(self) -> None:
        self._every = math.gcd(*(scan.ticks for scan in self.scans))  # between them nothing is due
        self._due: list[BoundScan] = []
        self._at = self._step = 0
        self._owned = False
        self._last: dict[BoundScan, tuple[bytes, tuple[float, ...]]] = {}  # decoded
        self._told = False

    def poll(self, number: int) -> None:
        """Ask for the port, unless the last poll still waits for it or holds it."""
        if self._owned or number % self._every:
            return
        self._due = [scan for scan in self.scans if number % scan.ticks == 0 and scan.answers]
        if self._due:
            self._owned = True
            self._at = 0
            self._told = LOG.isEnabledFor(logging.DEBUG)
            self.guard.when_free(self.port, self._ask)

    def _next(self) -> None:
        guard = self.guard
        if self._at == len(self._due):
            self._owned = False
            guard.release(self.port)
        elif guard.ready(self.port):
            self._ask()
        else:  # the port settles, drains, or makes safe: stand in the queue again
            self._step = 0  # another may ask in between
            guard.when_free(self.port, self._ask)
            guard.release(self.port)

    def _ask(self) -> None:
        """Send the next scan on a port that is ours and ready."""
        request = self._due[self._at].scan.requests[self._step]
        if self._told:
            LOG.debug("%s > %r", self.port, request.frame)
        self.guard.exchange(self.port, request, None, self._done)

    def _done(self, reply: bytes | None, error: str) -> None:
        scan = self._due[self._at]
        if reply is not None and self._step < len(scan.scan.before):
            error = disobeyed(scan.scan.requests[self._step], reply)
            if not error:
                self._step += 1
                self._next()
                return
            self.fault(scan, error)
            reply = None
        self._at, self._step = self._at + 1, 0
        if self._told:
            LOG.debug("%s < %r %s", self.port, reply, error)
        try:
            if reply is not None:
                self.take(scan, self._decode(scan, reply))
        except (BadReply, DeviceFault) as why:  # the reading grows stale, and staleness trips
            if isinstance(why, BadReply):
                self.guard.doubt(self.port)
            LOG.debug("%s: %s counts as silence: %s", self.port, scan.scan.name, why)
            if isinstance(why, DeviceFault):
                self.fault(scan, str(why))
        finally:  # any other error fails the run, and the port is still free for making safe
            self._next()

    def _decode(self, scan: BoundScan, reply: bytes) -> tuple[float, ...]:
        """Return the values of a reply; most are the same, byte by byte, as the one before."""
        last = self._last.get(scan)
        if last is not None and last[0] == reply:
            return last[1]
        values = scan.scan.decode(reply)
        self._last[scan] = reply, values
        return values


@dataclass(eq=False, kw_only=True)
class Monitor:
    """Passes the readings of a line to the kernel, and carries out its answers.

    Attributes:
        memory: The kernel's memory.
        guard: Gets the heartbeats, and a new epoch when a verdict may no longer hold.
        journal: Gets facts and samples.
        loop: The event loop.
        events: Run the procedure of a trip, and report trips and warnings. A warning of a channel
            is shown the first time.
        journal_lost: Reason why the journal could not be written; ``""`` while it can.
    """

    memory: Memory
    guard: Guard
    journal: Journal
    loop: asyncio.AbstractEventLoop
    events: Events

    def __post_init__(self) -> None:
        self.journal_lost = ""
        self._otherwise: dict[str, dict[str, str]] = {}  # by instrument and scan, the reason
        self._warned: set[tuple[str, object]] = set()
        self._changes = 0
        self.guard.on_offline_log = self.keep

    def take(self, scan: BoundScan, values: tuple[float, ...]) -> str:
        """Fold the values of a scan into memory, answer its trips, and record the values.

        Returns:
            The reason why they do not count: the instrument is set otherwise; ``""`` if they do.
        """
        wrong = self._otherwise.get(scan.instrument)
        if wrong:
            wrong.pop(scan.scan.name, None)
            if wrong:
                return "; ".join(wrong.values())
        now = self.loop.time()
        trips = observe(self.memory, scan.tracks, values, now)
        if trips:
            self._answer(trips)  # first, because recording a sample may wait for a disk
        try:
            if values:
                self.journal.sample(scan.stream, now, values)
        except JournalFailed as why:
            self.lose_journal(str(why))
        if self.memory.changes != self._changes:
            self._changes = self.memory.changes
            self.guard.new_epoch()
        return ""

    def fault(self, scan: BoundScan, why: str) -> None:
        """Take an instrument's refusal of a scan that proves how it is set.

        Its readings are in another unit, or of another gas: they are unknown until all is right.
        """
        wrong = self._otherwise.setdefault(scan.instrument, {})
        known = scan.scan.name in wrong
        if not scan.proves or known:
            return
        wrong[scan.scan.name] = why
        detail = Text("instrument.otherwise", instrument=scan.instrument, why=why)
        self.note("warning", {"detail": detail})
        self.events.on_warning(detail)
        self.guard.new_epoch()
        memory, now = self.memory, self.loop.time()
        for channel, track in memory.tracks.items():
            if owner_of(channel) == scan.instrument:  # as before its first reading
                track.value, track.at_s = math.nan, -math.inf
        counts = [
            watch for watch, _ in memory.watched if owner_of(watch.channel) == scan.instrument
        ]
        if memory.mode in LIVE:
            cause = Cause.COMMUNICATION
            self._answer(
                [Trip(cause, each.procedure, each.channel, None, now, detail) for each in counts]
            )

    def tick(self) -> None:
        """Let time pass in the kernel, and answer its trips: silence trips too."""
        trips = tick(self.memory, self.loop.time())
        if trips:
            self._answer(trips)

    def heartbeat(self) -> None:
        """Send the guard a heartbeat, with the procedure for the present state of the line."""
        memory = self.memory
        lost = memory.envelope.procedure_of[Cause.COMMUNICATION]
        if memory.trip is not None:  # a guard that begins anew goes on with it
            lost = memory.trip.procedure
        self.guard.heartbeat(memory.procedure(lost))

    def record(self, kind: str, body: Mapping[str, object]) -> int:
        """Record a fact; return its number.

        Raises:
            JournalFailed: It could not be recorded.
        """
        return self.journal.append(kind, body, self.loop.time())

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        """Record a fact if the journal takes it: making safe goes on without a journal."""
        try:
            self.record(kind, body)
        except JournalFailed as why:
            self.journal_lost = str(why)

    def keep(self, log: Sequence[Mapping[str, object]]) -> bool:
        """Record the log of a guard without a harness; return whether all of it is on a disk."""
        try:
            for each in log:
                self.record("guard_log", each)
            self.journal.commit()
        except JournalFailed as why:
            self.journal_lost = str(why)
            return False
        return self.journal.keeps

    def lose_journal(self, why: str) -> None:
        """Trip: a line without a record of its facts must not go on (law 8)."""
        self.journal_lost = why
        procedure = self.memory.envelope.procedure_of[Cause.JOURNAL_LOST]
        now = self.loop.time()
        self._answer((Trip(Cause.JOURNAL_LOST, procedure, "journal", None, now, why),))

    def lose_link(self, port: str, why: str) -> None:
        """Trip: the instruments behind a link are not known any more."""
        procedure = self.memory.envelope.procedure_of[Cause.COMMUNICATION]
        now = self.loop.time()
        self._answer((Trip(Cause.COMMUNICATION, procedure, port, None, now, why),))

    def _answer(self, trips: Sequence[Trip]) -> None:
        severe = sorted((each for each in trips if each.procedure), key=lambda t: t.cause.rank)
        mild = [each for each in trips if not each.procedure]
        for each in severe:
            self.events.on_trip(each)  # the gravest runs before any listener is called (law 2)
        for each in mild:
            about = (each.channel, _rule(each.detail))  # a rule may bear on many channels
            if about not in self._warned:
                self._warned.add(about)
                self.note("warning", {"detail": each.detail})
                self.events.on_warning(each.detail)
        for each in mild:
            self.events.on_abnormal(each)


def _rule(detail: str) -> object:
    """Return the row of a warning; its whole text if it has none."""
    return detail.params.get("row", detail) if isinstance(detail, Text) else detail
