"""One line as a whole: its parts are made here; a run opens, arms, commands, holds and leaves it.

It takes no safety decision: the kernel judges, the guard lets bytes out. The line adds order: one
writer, the intent on disk before the first byte, the verdict and the first frame without a
pause between them, and the port held until the read-back is folded into memory.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from labharness.core.clock import Clock
from labharness.core.vocabulary import Cause, Command, Refused
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.link import Link
from labharness.journal import Journal
from labharness.line.command import Programs, Writer
from labharness.line.events import Events
from labharness.line.exchanges import Exchanges, NoReply, Reader
from labharness.line.gate import Gate
from labharness.line.hindrances import NotArmed, Room, active_trips, left_over, may_not_energise
from labharness.line.instrument import Instrument, bind, channel_of, spoilt
from labharness.line.poll import TICK_S, Monitor, Poller
from labharness.line.preparing import Reconnecting
from labharness.line.procedures import Verification
from labharness.line.trip_response import (
    HOLD_S_MAX,
    DownStage,
    Hold,
    Reached,
    Tripped,
    TripResponse,
    latch_lost,
)
from labharness.safety.guard import Guard
from labharness.safety.kernel import Envelope, Memory, Mode, change, expect

T = TypeVar("T")

POLL_S_MAX = 60.0  # lab time; a poll comes each second
COOL_WATCH_S_MAX = 12 * 3600.0  # lab time; the shipped tube needs less than five hours


class Line:
    """One line of instruments behind its gate.

    Args:
        envelope: Its rules.
        instruments: Its instruments.
        guard: The only way to the ports.
        links: The links, to open and close.
        journal: Gets the facts.
        clock: Lab time.
        tick_s: Poll period; another one than the usual is for predictions.
        attended: Whether a person is there.
        room: The room, against which the envelope's pressures were made absolute.
        cold: Each temperature that it is cold by, and below which value, in its own unit.

    Attributes:
        perform: Carries out one command; waits and raises as ``Reconnecting.perform`` does.
        read, read_all: Measure channels now, as those of ``Reader`` do.
        identify, prove, meet, query: Ask an instrument, as those of ``Reader`` do.
    """

    def __init__(
        self,
        *,
        envelope: Envelope,
        instruments: Sequence[Instrument],
        guard: Guard,
        links: Mapping[str, Link],
        journal: Journal,
        clock: Clock,
        tick_s: float = TICK_S,
        attended: bool = True,
        room: Room,
        cold: Mapping[str, float],
    ) -> None:
        self.envelope = envelope
        self.instruments = {each.name: each for each in instruments}
        self.guard = guard
        self.journal = journal
        self.clock = clock
        self.events = events = Events()
        self.memory = memory = Memory(envelope)
        self.holding = Hold(clock.now_s)
        self._standing: asyncio.Task[None] | None = None
        self.cold = cold
        self._links = dict(links)
        self._attended = attended
        self._room = room
        self._loop = loop = clock.loop
        scans = [scan for each in instruments for scan in bind(each, memory, journal, tick_s)]
        exchanges = Exchanges(guard, loop)
        self._gate = gate = Gate(memory, self.instruments, loop.time)
        self.monitor = monitor = Monitor(
            memory=memory, guard=guard, journal=journal, loop=loop, events=events
        )
        self._poller = Poller(
            loop, guard, scans, tick_s, monitor.take, self._tick, monitor.heartbeat, monitor.fault
        )
        self._reader = reader = Reader(
            memory=memory,
            instruments=self.instruments,
            scans={channel: scan for scan in scans for channel in scan.channels},
            exchanges=exchanges,
            loop=loop,
            take=monitor.take,
            note=monitor.note,
            record=monitor.record,
        )
        self.trip_response = TripResponse(
            memory=memory,
            guard=guard,
            instruments=self.instruments,
            loop=loop,
            note=monitor.note,
            read=reader.read_all,
            wake=self._poller.wake,
            events=events,
        )
        self._writer = writer = Writer(
            gate=gate,
            instruments=self.instruments,
            exchanges=exchanges,
            journal=journal,
            now_s=loop.time,
            read=reader.read,
            lost=monitor.lose_journal,
        )
        self._reconnecting = Reconnecting(
            gate=gate,
            identify=reader.meet,
            carry_out=writer.perform,
            note=monitor.note,
            trip=monitor.lose_link,
            events=events,
        )
        self.programs = Programs(writer=writer, perform=self._reconnecting.perform)
        self.identities, self.meet, self.prove = reader.identities, reader.meet, reader.prove
        self.identify, self.query = reader.identify, reader.query
        self.read, self.read_all = reader.read, reader.read_all
        self.perform = self._reconnecting.perform
        guard.on_link_lost = self._reconnecting.lost

    # ---- opening and closing

    async def open(self) -> None:
        """Open the links, identify every instrument, and begin to poll. Nothing is written.

        Raises:
            LinkLost: A link does not open.
            NoReply: An instrument is silent, or answers as another.
            Tripped: It was tripped by hand meanwhile.
        """
        for link in self._links.values():
            await link.open()
        for instrument in self.instruments.values():
            await self.meet(instrument.name)
        self.check()  # or what was never read yet would trip it once more, as silent
        await self.listen()

    async def listen(self) -> None:
        """Begin to poll, even if no instrument answers, and wait for the end of the first poll."""
        self._poller.start()
        await self.next_tick()

    async def arm(self, safe_table: str) -> None:
        """Bring the line to its safe state, prepare its instruments, read them all, and hold.

        Args:
            safe_table: The procedure whose state every run begins from.

        Raises:
            NotArmed: Latched, a trip condition stands, or an instrument does not take its state.
            Tripped: It was tripped by hand before it was armed.
        """
        if hindrances := self.hindrances(safe_table):
            raise NotArmed("; ".join(hindrances))
        try:
            await self._reconnecting.meet()
        except NoReply as why:
            raise NotArmed(str(why)) from None
        self.check()
        try:
            await self.guard.arm()
        except OSError as why:
            raise NotArmed(Text("arm.guard", why=str(why.strerror or why))) from None
        self.check()
        self._mode(Mode.ARMING)
        self.monitor.record("armed", {"safe_table": safe_table})
        verification = await self.trip_response.make_safe(safe_table)
        if missing := verification.unverified():
            wrong: str = Text("arm.table", missing=missing)
        else:
            wrong = await self._reconnecting.prepare(
                self.perform, self._reader.polled, self.read_all
            )
        if not wrong and (lost := self._reconnecting.missing()):
            wrong = Text("arm.lost", ports=lost)
        if wrong:
            self.disarm()
            raise NotArmed(wrong)
        self._mode(Mode.HELD)

    def start(self) -> None:
        """Let commands through: HELD becomes RUNNING."""
        self.holding.end()
        self.trip_response.let_go()
        self._mode(Mode.RUNNING)
        self._reconnecting.serve()

    async def hold(self, may: Callable[[], bool] = lambda: True) -> bool:
        """Let no further command through: RUNNING becomes HELD, after the one on its way.

        All settings stay; polls and trips go on.

        Args:
            may: Called once no command is on its way; if it returns false, nothing changes.

        Returns:
            Whether the line is held.

        Raises:
            NotArmed: The line is not running.
        """

        def held() -> bool:
            if self.memory.mode is not Mode.RUNNING:
                raise NotArmed(Text("hold.mode", mode=self.memory.mode))
            if not may():
                return False
            self.holding.begin()
            self._mode(Mode.HELD)
            if self.clock.stands:  # a person thinks, and the hold lasts as long by the calendar
                stand = self.clock.stand(HOLD_S_MAX, lambda: self.holding.on)
                self._standing = self.clock.loop.create_task(stand)
            return True

        return await self._writer.between(held)

    async def released(self) -> None:
        """Wait while the line is held.

        Raises:
            Tripped: The line has tripped.
            HoldTooLong: It was held for longer than is allowed.
        """
        while self.holding.on:
            await self.next_tick()
            self.holding.check()

    async def settle(self, procedure: str) -> Verification:
        """Accept no more commands, and bring the line to a procedure's safe state.

        A line that has tripped runs its own procedure: that one is waited for. One that does not
        get there is brought down further, and has tripped if nothing verifies that it is down.
        """
        self.holding.end()
        if self.memory.mode is Mode.RUNNING:  # or a value that waits for its turn would follow
            self._mode(Mode.HELD)
        self._reconnecting.leave()
        if self.memory.trip is None:
            verification = await self.trip_response.make_safe(procedure)
            if not verification.complete and self.memory.trip is None:
                await self.bring_down(DownStage.ABORT)
            if self.memory.trip is None:
                return verification
        await self.trip_response.verified()
        return self.trip_response.verifications[-1]

    def disarm(self) -> None:
        """Make the line read-only again. All settings stay, so make it safe first."""
        if self.memory.mode not in (Mode.TRIPPED, Mode.DISARMED):
            self._mode(Mode.DISARMED)
        self.guard.disarm()
        for channel in self.envelope.limits:  # from now on others may set it
            expect(self.memory, channel, math.nan)
        self.monitor.note("disarmed", {})

    async def close(self) -> None:
        """Stop polling and close the links, after a procedure that is still being verified.

        A line that was not disarmed did not come to a clean end: it is brought down first, and
        latches if nothing verifies that it is down.
        """
        try:
            if self.memory.mode in (Mode.ARMING, Mode.HELD, Mode.RUNNING):
                self._reconnecting.leave()
                await self.bring_down(DownStage.STOP)
                self.disarm()
            await self.trip_response.verified()
            await latch_lost(self.guard, self.clock)
        finally:
            self.trip_response.close()
            self._reconnecting.close()
            self._poller.stop()
            self.guard.close()
            await self.events.on_close()

    # ---- what the plan uses

    def latest(self, channel: str) -> float:
        """Return the last reading of a channel; NaN if it is stale, spoilt, or was never read."""
        track = self.memory.tracks.get(channel)
        unsound = spoilt(self.instruments, self.memory, channel)
        if track is None or not track.fresh(self._loop.time()) or unsound:
            return float("nan")
        return track.value

    def refusal(self, command: Command) -> str:
        """Return why a command would be refused now; ``""`` if it would not. Nothing is sent."""
        verdict = self._gate.judge(command)
        return verdict.reason if isinstance(verdict, Refused) else ""

    def volumes_purged(self, contaminant: str) -> float:
        """Tube volumes of measured inert flow since a contaminant was last in the tube."""
        return self.memory.proofs.purged.volumes(contaminant)

    async def next_tick(self) -> None:
        """Wait for the end of the next poll.

        Raises:
            Tripped: The line has tripped, or trips while waiting.
        """
        await self.polled()
        self.check()

    async def polled(self) -> None:
        """Wait for the end of the next poll, tripped or not."""
        await self._poller.next_tick()

    async def unless_tripped(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work``, and cancel it if the line trips meanwhile.

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

    async def by_hand(self, action: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Have a person open the line, if the envelope allows it at this moment.

        Until it is done the contact counts as open, with any reading.

        Raises:
            NotOpened: The kernel refuses it; no person was asked.
            JournalFailed: It could not be recorded; no person was asked, and the line trips.
            Tripped: The line has tripped; the question was withdrawn.
        """
        self.check()
        command = await self._writer.open_by_hand(action)
        done = await self.unless_tripped(ask())
        self.check()  # a person may have confirmed it just after a trip
        self._gate.conclude(command)
        return done

    def check(self) -> None:
        """Raise ``Tripped`` if the line has tripped."""
        if self.memory.trip is not None:
            raise Tripped(self.memory.trip)

    async def watch_until_cold(self, broken_off: Callable[[], bool] = lambda: False) -> bool:
        """Go on polling, with trips in force, until everything that heats is cold.

        Args:
            broken_off: Asked at each poll; the watch ends once it is true.

        Returns:
            Whether it is; ``False`` after the longest watch, or as soon as a temperature is not
            heard or its sensor is broken: a watch that sees nothing is none.
        """
        owners = set(map(owner_of, self.cold))
        sensors = [
            row
            for row in self.envelope.trips
            if row.cause is Cause.SENSOR_BREAK and owner_of(row.channel) in owners
        ]
        until_s = self.clock.now_s() + COOL_WATCH_S_MAX
        while self.clock.now_s() < until_s:
            if self.is_cold:
                return True
            if any(not row.low <= self.latest(row.channel) <= row.high for row in sensors):
                return False
            if any(math.isnan(self.latest(each)) for each in self.cold) or broken_off():
                return False
            try:
                async with asyncio.timeout(POLL_S_MAX):
                    await self.polled()
            except TimeoutError:  # the poller has died of an error, and no reading grows stale
                return False
        return False

    @property
    def is_cold(self) -> bool:
        """Whether each temperature that it is cold by was just read below its value."""
        return all(self.latest(channel) < below for channel, below in self.cold.items())

    @property
    def cold_text(self) -> str:
        """The temperatures below which it is cold, in words."""
        units = {name: channel_of(self.instruments, name)[2].unit for name in self.cold}
        return several(
            *(
                Text("cold.below", channel=name, below=below, unit=units[name])
                for name, below in self.cold.items()
            )
        ) or Text("cold.none")

    # ---- making safe

    async def bring_down(self, begin: DownStage = DownStage.HOLD) -> Reached:
        """Bring the line down: hold, stop, abort, trip, each if the one before was not reached."""
        reached = await self.trip_response.bring_down(begin, self._held)
        body = {"stage": reached.stage.value, "passed": list(reached.passed)}
        self.monitor.note("brought_down", body)
        return reached

    async def _held(self) -> None:
        self.holding.end()
        if self.memory.mode is Mode.RUNNING:
            self._mode(Mode.HELD)
        await self._writer.idle()

    def hindrances(self, safe_table: str) -> tuple[str, ...]:
        """Return all hindrances to arming this line as it is, by that safe table."""
        found = [*self.unguarded(), *active_trips(self.memory, self._loop.time())]
        found += left_over(self.memory, self.instruments, safe_table, self._loop.time())
        found += filter(None, [self._room.hindrance(self.memory, self._loop.time())])
        latch = self.guard.latch
        if latch.trip is not None:
            found.append(Text("reset.first", why=latch.trip.detail))
        try:
            latch.probe()
        except OSError as why:
            found.append(Text("latch.unwritten", why=str(why.strerror)))
        return tuple(found)

    def latched(self) -> str:
        """Return the cause of the latch; ``""`` while it is open."""
        trip = self.guard.latch.trip
        return "" if trip is None else trip.detail

    def unguarded(self) -> tuple[str, ...]:
        """Return which links may not energise, and why not (law 10)."""
        found = []
        for port, link in self._links.items():
            why = may_not_energise(link, attended=self._attended)
            if why:
                found.append(Text("link.real", port=port, kind=link.kind, why=str(why)))
        return tuple(found)

    def _mode(self, to: Mode) -> None:
        self.memory.mode = change(self.memory.mode, to)
        self.guard.new_epoch()
        self.monitor.note("mode", {"mode": to.value})

    def _tick(self) -> None:
        self.monitor.tick()
        for text in self._gate.look():
            self.monitor.note("program_over", {"detail": text})
            self.events.on_warning(text)
        self.events.on_tick()
