"""The shell around kernel and guard for one line: perform, read, poll, trip, verify.

It takes no safety decision: the kernel judges, the guard lets bytes out. What it adds is order:
one writer, the intent on disk before the first byte, the verdict and the first frame without a
pause between them, and the port held until the read-back is folded into memory.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from labharness.clock import Clock
from labharness.driver import Identity
from labharness.guard import LoopGuard
from labharness.journal import Journal, JournalFailed
from labharness.kernel import (
    Envelope,
    Memory,
    Mode,
    PurgedOf,
    change,
    observe,
    tick,
)
from labharness.line.command import Writer
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.parts import (
    BoundScan,
    Instrument,
    bind,
    channel_of,
    prepare_commands,
    query_of,
)
from labharness.line.poll import Poller
from labharness.line.safing import Safing
from labharness.link import Link
from labharness.vocabulary import (
    BadReply,
    Cause,
    Command,
    DeviceFault,
    Ending,
    Outcome,
    Trip,
)

__all__ = ["Line", "NotArmed", "Tripped"]

T = TypeVar("T")

TICK_S = 1.0  # poll period of the line; the kernel's clock hand
READ_TRIES = 2


class NotArmed(RuntimeError):
    """The line cannot be armed as it stands; the message names what stands in the way."""


class Tripped(RuntimeError):
    """The line has tripped; nothing but reading and making safe is left."""

    def __init__(self, trip: Trip) -> None:
        super().__init__(trip.detail)
        self.trip = trip


class Line:
    """One line of instruments behind its gate.

    Args:
        envelope: Its rules.
        instruments: What stands on it.
        guard: The only way to the ports.
        links: The roads, to open and close.
        journal: Where facts go.
        clock: Lab time.
        tick_s: Poll period; another one than the usual is for predictions.
    """

    def __init__(
        self,
        *,
        envelope: Envelope,
        instruments: Sequence[Instrument],
        guard: LoopGuard,
        links: Mapping[str, Link],
        journal: Journal,
        clock: Clock,
        tick_s: float = TICK_S,
    ) -> None:
        self.envelope = envelope
        self.instruments = {each.name: each for each in instruments}
        self.guard = guard
        self.journal = journal
        self.clock = clock
        self.memory = Memory(envelope)
        self.identities: dict[str, Identity] = {}
        self.journal_lost = ""
        self.warnings: list[str] = []
        self.on_warning: Callable[[str], None] = self.warnings.append
        self._links = dict(links)
        self._loop = clock.loop
        self._warned: set[str] = set()
        self._changes = 0
        streams = {
            (each.name, scan.name): journal.stream(f"{each.name}.{scan.name}", scan.channels)
            for each in instruments
            for scan in each.driver.scans()
        }
        scans = [scan for each in instruments for scan in bind(each, self.memory, streams, tick_s)]
        self._scan_of = {channel: scan for scan in scans for channel in scan.channels}
        self._poller = Poller(self._loop, guard, scans, tick_s, self._take, self._tick)
        self._exchanges = Exchanges(guard, self._loop)
        self._writer = Writer(
            memory=self.memory,
            instruments=self.instruments,
            exchanges=self._exchanges,
            journal=journal,
            now_s=self._loop.time,
            read=self.read,
        )
        self.safing = Safing(
            memory=self.memory,
            guard=guard,
            instruments=self.instruments,
            loop=self._loop,
            note=self._note,
            read=self.read_all,
            wake=self._poller.wake,
        )

    # ---- opening and closing

    async def open(self) -> None:
        """Open the roads, ask every instrument who it is, and begin to poll. Nothing is written.

        Raises:
            LinkLost: A road does not open.
            NoReply: An instrument is silent, or answers as another.
        """
        for link in self._links.values():
            await link.open()
        for instrument in self.instruments.values():
            await self.identify(instrument.name)
        self._poller.start()
        await self.next_tick()

    async def identify(self, name: str) -> Identity:
        """Ask one instrument who it is.

        Raises:
            NoReply: It is silent, or answers as another.
        """
        instrument = self.instruments[name]
        identity = await self.query(name, "identity")
        wrong = "it does not say who it is"
        if isinstance(identity, Identity):
            wrong = instrument.driver.expects(identity)
            if not wrong:
                self.identities[name] = identity
                said = {"model": identity.model, "firmware": identity.firmware}
                self._record("identified", {"instrument": name, **said})
                return identity
        raise NoReply(f"{name} ({instrument.kind}): {wrong}")

    async def arm(self, safe_table: str) -> None:
        """Bring the line to its safe state, prepare its instruments, and hold.

        Args:
            safe_table: The procedure whose state every run begins from.

        Raises:
            NotArmed: Latched, a trip condition stands, or an instrument does not take its state.
        """
        hindrances = self.hindrances()
        if hindrances:
            raise NotArmed("; ".join(hindrances))
        self.guard.core.arm()
        self._mode(Mode.ARMING)
        self._record("armed", {"safe_table": safe_table})
        verification = await self.safing.make_safe(safe_table)
        missing = verification.unverified()
        if missing:
            self.disarm()
            raise NotArmed(f"the safe table does not hold: {'; '.join(missing)}")
        for instrument in self.instruments.values():
            for command in prepare_commands(instrument, self.envelope):
                outcome = await self.perform(command)
                if outcome.ending is not Ending.CONFIRMED:
                    self.disarm()
                    what = f"{command.channel} = {command.value:g}"
                    raise NotArmed(f"prepare {what} {outcome.ending}: {outcome.detail}")
        self._mode(Mode.HELD)

    def start(self) -> None:
        """Let commands through: HELD becomes RUNNING."""
        self._mode(Mode.RUNNING)

    def disarm(self) -> None:
        """Make the line read-only again. What it was set to stays; make it safe first."""
        if self.memory.mode not in (Mode.TRIPPED, Mode.DISARMED):
            self._mode(Mode.DISARMED)
        self.guard.core.disarm()
        self._note("disarmed", {})

    async def close(self) -> None:
        """Stop polling and close the roads, after a procedure that is still being verified.

        A line that was not disarmed did not come to a clean end: it is made safe first.
        """
        try:
            if self.memory.mode in (Mode.ARMING, Mode.HELD, Mode.RUNNING):
                await self.safing.make_safe(self.envelope.procedure_of[Cause.STOP_REQUEST])
                self.disarm()
            await self.safing.verified()
        finally:
            self._poller.stop()
            self.guard.close()

    # ---- what the plan uses

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command: judged, journaled, sent under permit, read back.

        Raises:
            JournalFailed: The intent could not be recorded; no byte was sent, and the line trips.
        """
        try:
            return await self._writer.perform(command)
        except JournalFailed as why:
            self.lose_journal(str(why))
            raise

    async def read(self, channel: str) -> float:
        """Measure one channel now.

        Raises:
            NoReply: The instrument does not answer in form.
            LookupError: There is no such channel.
        """
        scan = self._scan_of.get(channel)
        if scan is None:
            channel_of(self.instruments, channel)
            raise LookupError(f"{channel} is in no scan, so it cannot be read")
        why = ""
        for _ in range(READ_TRIES):
            try:
                reply = await self._exchanges.ask(scan.port, scan.scan.request)
                self._take(scan, scan.scan.decode(reply))
            except (BadReply, DeviceFault, NoReply) as error:
                why = str(error)
                continue
            return self.memory.tracks[channel].value
        raise NoReply(f"{channel}: {why}")

    async def read_all(self, channels: Sequence[str], within_s: float) -> dict[str, float]:
        """Measure channels now, ports side by side and each scan once; give those that answered.

        Args:
            channels: What to measure.
            within_s: Longest wait; who has not answered by then is left out.
        """
        asked: dict[BoundScan, str] = {}
        for channel in channels:
            asked.setdefault(self._scan_of[channel], channel)
        looks = {scan: self._loop.create_task(self.read(name)) for scan, name in asked.items()}
        if looks:
            await asyncio.wait(looks.values(), timeout=within_s)
        answered = set()
        for scan, look in looks.items():
            if not look.done():
                look.cancel()
            elif look.exception() is None:
                answered.add(scan)
            elif not isinstance(look.exception(), NoReply):
                self._note("look_failed", {"scan": scan.scan.name, "error": repr(look.exception())})
        return {
            channel: self.memory.tracks[channel].value
            for channel in channels
            if self._scan_of[channel] in answered
        }

    async def query(self, instrument: str, name: str) -> object:
        """Ask an instrument for something that is no number (its identity, a spectrum).

        Raises:
            NoReply: The instrument does not answer in form.
            LookupError: There is no such query.
        """
        owner = self.instruments[instrument]
        query = query_of(owner, name)
        why = ""
        for _ in range(READ_TRIES):
            try:
                return query.decode(await self._exchanges.ask(owner.port, query.request))
            except (BadReply, DeviceFault, NoReply) as error:
                why = str(error)
        raise NoReply(f"{instrument} ({owner.kind}): {why}")

    def latest(self, channel: str) -> float:
        """Give the last reading of a channel; NaN if it is stale or was never read."""
        track = self.memory.tracks.get(channel)
        if track is None or not self.memory.fresh(track, self._loop.time()):
            return float("nan")
        return track.value

    def volumes_purged(self, contaminant: str) -> float:
        """Tube volumes of measured inert flow since a contaminant was last in the tube."""
        return self.memory.volumes(contaminant)

    async def next_tick(self) -> None:
        """Wait for the end of the next poll.

        Raises:
            Tripped: The line has tripped, or trips while waiting.
        """
        await self._poller.next_tick()
        self.check()

    async def unless_tripped(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work``, and give it up when the line trips meanwhile.

        Raises:
            Tripped: The line has tripped; ``work`` was cancelled.
        """
        task = self._loop.create_task(work)
        try:
            while not task.done():
                self.check()
                tick = self._loop.create_task(self._poller.next_tick())
                await asyncio.wait((task, tick), return_when=asyncio.FIRST_COMPLETED)
                tick.cancel()
            return task.result()
        finally:
            task.cancel()

    async def watch_until_cold(self, channels: Sequence[str], below: float, bound_s: float) -> bool:
        """Go on polling, with trips in force, until all channels read below a value.

        Returns:
            Whether they do; ``False`` after ``bound_s``, or as soon as one is not heard or its
            sensor is broken: a watch that sees nothing is none.
        """
        until_s = self._loop.time() + bound_s
        while self._loop.time() < until_s:
            values = [self.latest(channel) for channel in channels]
            if all(value < below for value in values):
                return True
            if any(value != value for value in values) or self._blind(channels):
                return False
            await self._poller.next_tick()
        return False

    def _blind(self, channels: Sequence[str]) -> bool:
        """Say whether one of these channels' instruments knows that its sensor is broken."""
        owners = {channel.partition(".")[0] for channel in channels}
        return any(
            row.cause is Cause.SENSOR_BREAK
            and row.channel.partition(".")[0] in owners
            and not row.low <= self.latest(row.channel) <= row.high
            for row in self.envelope.trips
        )

    def check(self) -> None:
        """Raise ``Tripped`` if the line has tripped."""
        if self.memory.trip is not None:
            raise Tripped(self.memory.trip)

    # ---- making safe

    def hindrances(self) -> tuple[str, ...]:
        """Say all that stands in the way of arming this line as it is."""
        found = [*self.unguarded(), *self.standing_trips()]
        latch = self.guard.latch
        if latch.trip is not None:
            found.append(f"latched since {latch.trip.detail}: reset it first")
        try:
            latch.probe()
        except OSError as why:
            found.append(f"a latch could not be written: {why.strerror}")
        return tuple(found)

    def unguarded(self) -> tuple[str, ...]:
        """Say which roads may not energise: a real one takes the guard process (law 10)."""
        return tuple(
            f"port {port} is a real link ({link.kind}), and energising on it takes the guard "
            "process, which this version does not have"
            for port, link in self._links.items()
            if link.kind != "loopback"
        )

    def lost_conditions(self, channel: str) -> tuple[str, ...]:
        """Say which conditions on a contact, whose loss under power trips, do not hold now.

        A contact (lid, exhaust, enclosure) must be back before a reset. A flow or a temperature is
        as the procedure left it, and its row stands before the next command.
        """
        now = self._loop.time()
        spec = channel_of(self.instruments, channel)[2]
        if spec.unit or spec.settable:
            return ()
        return tuple(
            f"{row.name}: {condition} does not hold"
            for row in self.envelope.interlocks
            for condition in row.require
            if row.on_loss
            and not isinstance(condition, PurgedOf)
            and condition.channel == channel
            and not self.memory.holds(condition, now)
        )

    def standing_trips(self) -> tuple[str, ...]:
        """Say which trip conditions hold by the latest readings."""
        found = []
        for row in self.envelope.trips:
            value = self.latest(row.channel)
            if row.procedure and value == value and not row.low <= value <= row.high:
                found.append(f"{row.name}: {row.channel} is {value:g} {row.unit}".rstrip())
        return tuple(found)

    # ---- inside

    def _mode(self, to: Mode) -> None:
        self.memory.mode = change(self.memory.mode, to)
        self.guard.core.new_epoch()
        self._note("mode", {"mode": to.value})

    def _record(self, kind: str, body: Mapping[str, object]) -> int:
        return self.journal.append(kind, body, self._loop.time())

    def _note(self, kind: str, body: Mapping[str, object]) -> None:
        """Record what cannot wait for a record: making safe goes on without a journal."""
        try:
            self._record(kind, body)
        except JournalFailed as why:
            self.journal_lost = str(why)

    def _take(self, scan: BoundScan, values: tuple[float, ...]) -> None:
        now = self._loop.time()
        trips = observe(self.memory, scan.tracks, values, now)
        try:
            self.journal.sample(scan.stream, now, values)
        except JournalFailed as why:
            self.lose_journal(str(why))
        if self.memory.changes != self._changes:
            self._changes = self.memory.changes
            self.guard.core.new_epoch()
        if trips:
            self._answer(trips)

    def lose_journal(self, why: str) -> None:
        """Trip: a line whose facts are lost is not driven on (law 8)."""
        now = self._loop.time()
        self.journal_lost = why
        procedure = self.envelope.procedure_of[Cause.JOURNAL_LOST]
        self.safing.trip(Trip(Cause.JOURNAL_LOST, procedure, "journal", None, now, why))

    def _tick(self) -> None:
        trips = tick(self.memory, self._loop.time())
        if trips:
            self._answer(trips)

    def _answer(self, trips: Sequence[Trip]) -> None:
        for trip in trips:
            if not trip.procedure and trip.detail.split(":")[0] not in self._warned:
                self._warned.add(trip.detail.split(":")[0])
                self._note("warning", {"detail": trip.detail})
                self.on_warning(trip.detail)
        severe = [trip for trip in trips if trip.procedure]
        if severe:
            self.safing.trip(min(severe, key=lambda trip: trip.cause.rank))
