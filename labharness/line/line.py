"""The shell around kernel and guard for one line: open, arm, perform, hold, bring down.

It takes no safety decision: the kernel judges, the guard lets bytes out. What it adds is order:
one writer, the intent on disk before the first byte, the verdict and the first frame without a
pause between them, and the port held until the read-back is folded into memory.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from labharness.core.clock import Clock
from labharness.core.vocabulary import Command, Outcome, Trip
from labharness.instruments.driver import Identity
from labharness.instruments.link import Link
from labharness.journal import Journal, JournalFailed
from labharness.line.active_causes import active_trips
from labharness.line.command import Writer
from labharness.line.ended import NotArmed, Tripped
from labharness.line.energising import may_not_energise
from labharness.line.escalation import DownStage, Reached, bring_down
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.gate import Gate
from labharness.line.holding import Hold
from labharness.line.latched import latch_lost
from labharness.line.monitor import Monitor
from labharness.line.opening import Openings
from labharness.line.parts import Instrument, bind
from labharness.line.poll import Poller
from labharness.line.preparing import prepare
from labharness.line.procedures import Verification
from labharness.line.reader import Reader
from labharness.line.reconnecting import Reconnecting
from labharness.line.room import Room
from labharness.line.trip_response import TripResponse
from labharness.line.upload import Programs
from labharness.safety.guard import Guard
from labharness.safety.kernel import Envelope, Memory, Mode, change, expect

__all__ = ["Line", "NotArmed", "Tripped"]

T = TypeVar("T")

TICK_S = 1.0  # poll period of the line; the kernel's clock hand


class Line:
    """One line of instruments behind its gate.

    Args:
        envelope: Its rules.
        instruments: What stands on it.
        guard: The only way to the ports.
        links: The links, to open and close.
        journal: Where facts go.
        clock: Lab time.
        tick_s: Poll period; another one than the usual is for predictions.
        attended: Whether a person is there.
        room: The room, against which the envelope's pressures were made absolute.
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
    ) -> None:
        self.envelope = envelope
        self.instruments = {each.name: each for each in instruments}
        self.guard = guard
        self.journal = journal
        self.clock = clock
        self.memory = Memory(envelope)
        self.identities: dict[str, Identity] = {}
        self.warnings: list[str] = []
        self.on_warning: Callable[[str], None] = self.warnings.append
        self.on_abnormal: Callable[[Trip], None] = lambda trip: None  # after its bytes have left
        self.on_tick: Callable[[], None] = lambda: None
        self.on_close: Callable[[], Awaitable[None]] = _nothing
        self._links = dict(links)
        self._attended = attended
        self._room = room
        self._loop = clock.loop
        self.holding = Hold(clock.now_s)
        streams = {
            (each.name, scan.name): journal.stream(f"{each.name}.{scan.name}", scan.channels)
            for each in instruments
            for scan in each.driver.scans()
        }
        scans = [scan for each in instruments for scan in bind(each, self.memory, streams, tick_s)]
        monitor = self.monitor = Monitor(
            memory=self.memory,
            guard=guard,
            journal=journal,
            loop=self._loop,
            trip=lambda trip: self.trip_response.trip(trip),
            warn=lambda text: self.on_warning(text),
            told=lambda warning: self.on_abnormal(warning),
        )
        self._poller = Poller(
            self._loop, guard, scans, tick_s, monitor.take, self._tick, monitor.heartbeat
        )
        exchanges = Exchanges(guard, self._loop)
        self._reader = Reader(
            memory=self.memory,
            instruments=self.instruments,
            scans={channel: scan for scan in scans for channel in scan.channels},
            exchanges=exchanges,
            loop=self._loop,
            take=monitor.take,
            note=monitor.note,
        )
        self._gate = Gate(self.memory, self.instruments, self._loop.time)
        self._gate.on_over = self._program_over
        self._writer = Writer(
            gate=self._gate,
            instruments=self.instruments,
            exchanges=exchanges,
            journal=journal,
            now_s=self._loop.time,
            read=self.read,
        )
        self._openings = Openings(self._gate, self._writer, journal, self._loop.time)
        self.programs = Programs(
            gate=self._gate,
            instruments=self.instruments,
            writer=self._writer,
            exchanges=exchanges,
            journal=journal,
            now_s=self._loop.time,
            perform=self.perform,
            lost=monitor.lose_journal,
        )
        self.trip_response = TripResponse(
            memory=self.memory,
            guard=guard,
            instruments=self.instruments,
            loop=self._loop,
            note=monitor.note,
            read=self.read_all,
            wake=self._poller.wake,
        )
        self.trip_response.on_tripped = lambda trip: self.on_abnormal(trip)
        self.trip_response.on_late = lambda text: self.on_warning(text)
        self._reconnecting = Reconnecting(
            memory=self.memory,
            instruments=self.instruments,
            gate=self._gate,
            identify=self.identify,
            perform=self._perform,
            note=monitor.note,
            warn=lambda text: self.on_warning(text),
            trip=monitor.lose_link,
        )
        guard.on_offline_log = lambda entries: monitor.keep("guard_log", entries)
        guard.on_link_lost = self._reconnecting.lost

    # ---- opening and closing

    async def open(self) -> None:
        """Open the links, ask every instrument who it is, and begin to poll. Nothing is written.

        Raises:
            LinkLost: A link does not open.
            NoReply: An instrument is silent, or answers as another.
            Tripped: It was tripped by hand meanwhile.
        """
        for link in self._links.values():
            await link.open()
        for instrument in self.instruments.values():
            await self.identify(instrument.name)
        self.check()  # or what was never read yet would trip it once more, as silent
        await self.listen()

    async def listen(self) -> None:
        """Begin to poll, whoever answers, and wait for the end of the first poll."""
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
            wrong = instrument.wrong_in(identity)
            if not wrong:
                self.identities[name] = identity
                said = {"model": identity.model, "firmware": identity.firmware}
                self.monitor.record("identified", {"instrument": name, **said})
                return identity
        raise NoReply(f"{name} ({instrument.kind}): {wrong}")

    async def arm(self, safe_table: str) -> None:
        """Bring the line to its safe state, prepare its instruments, read them all, and hold.

        Args:
            safe_table: The procedure whose state every run begins from.

        Raises:
            NotArmed: Latched, a trip condition stands, or an instrument does not take its state.
            Tripped: It was tripped by hand before it was armed.
        """
        if hindrances := self.hindrances():
            raise NotArmed("; ".join(hindrances))
        try:
            await self._reconnecting.meet()
        except NoReply as why:
            raise NotArmed(str(why)) from None
        self.check()
        try:
            await self.guard.arm()
        except OSError as why:
            raise NotArmed(f"the guard does not arm: {why.strerror or why}") from None
        self.check()
        self._mode(Mode.ARMING)
        self.monitor.record("armed", {"safe_table": safe_table})
        verification = await self.trip_response.make_safe(safe_table)
        missing = verification.unverified()
        if missing:
            self.disarm()
            raise NotArmed(f"the safe table does not hold: {'; '.join(missing)}")
        wrong = await prepare(
            instruments=self.instruments.values(),
            memory=self.memory,
            polled=self._reader.polled,
            perform=self.perform,
            read_all=self.read_all,
        )
        if wrong:
            self.disarm()
            raise NotArmed(wrong)
        if lost := self._reconnecting.missing():
            self.disarm()
            raise NotArmed(f"a link was lost meanwhile: {', '.join(lost)}")
        self._mode(Mode.HELD)

    def start(self) -> None:
        """Let commands through: HELD becomes RUNNING."""
        self.holding.end()
        self.trip_response.let_go()
        self._mode(Mode.RUNNING)
        self._reconnecting.serve()

    async def hold(self, may: Callable[[], bool] = lambda: True) -> bool:
        """Let no further command through: RUNNING becomes HELD, after the one on its way.

        What is set stays set; polls and trips go on.

        Args:
            may: Asked once no command is on its way; where it says no, nothing changes.

        Returns:
            Whether the line is held.

        Raises:
            NotArmed: The line is not running.
        """

        def held() -> bool:
            if self.memory.mode is not Mode.RUNNING:
                raise NotArmed(f"the line is {self.memory.mode}, and only a running line is held")
            if not may():
                return False
            self.holding.begin()
            self._mode(Mode.HELD)
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
        """Let nothing more be set, by whomever, and bring the line to a procedure's safe state.

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
        """Make the line read-only again. What it was set to stays; make it safe first."""
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
            await self.on_close()

    # ---- what the plan uses

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command: judged, journaled, sent under permit, read back.

        Where the link was lost it waits until the instruments there are prepared again.

        Raises:
            JournalFailed: The intent could not be recorded; no byte was sent, and the line trips.
        """
        await self._reconnecting.settled(command.channel)
        return await self._perform(command)

    async def _perform(self, command: Command) -> Outcome:
        try:
            return await self._writer.perform(command)
        except JournalFailed as why:
            self.monitor.lose_journal(str(why))
            raise

    async def read(self, channel: str, *, patient: bool = False) -> float:
        """Measure one channel; waits and raises as ``Reader.read`` does."""
        return await self._reader.read(channel, patient=patient)

    async def read_all(self, channels: Sequence[str], within_s: float) -> dict[str, float]:
        """Measure channels now, each for so long at most; give those that answered."""
        return await self._reader.read_all(channels, within_s)

    async def query(self, instrument: str, name: str) -> object:
        """Ask for what is no number; raises as ``Reader.query`` does."""
        return await self._reader.query(instrument, name)

    def latest(self, channel: str) -> float:
        """Return the last reading of a channel; NaN if it is stale or was never read."""
        track = self.memory.tracks.get(channel)
        if track is None or not track.fresh(self._loop.time()):
            return float("nan")
        return track.value

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
        """Await ``work``, and return it up when the line trips meanwhile.

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

        Until it is done the contact counts as open, whatever it reads.

        Raises:
            NotOpened: The kernel refuses it; nobody was asked.
            JournalFailed: It could not be recorded; nobody was asked, and the line trips.
            Tripped: The line has tripped; whoever was asked is asked no more.
        """
        self.check()
        try:
            command = await self._openings.begin(action)
        except JournalFailed as why:
            self.monitor.lose_journal(str(why))
            raise
        done = await self.unless_tripped(ask())
        self._gate.conclude(command)
        return done

    def check(self) -> None:
        """Raise ``Tripped`` if the line has tripped."""
        if self.memory.trip is not None:
            raise Tripped(self.memory.trip)

    # ---- making safe

    async def bring_down(self, begin: DownStage = DownStage.HOLD) -> Reached:
        """Bring the line down: hold, stop, abort, trip, each if the one before was not reached."""
        reached = await bring_down(
            begin=begin,
            envelope=self.envelope,
            trip_response=self.trip_response,
            held=self._held,
            now_s=self._loop.time,
        )
        body = {"stage": reached.stage.value, "passed": list(reached.passed)}
        self.monitor.note("brought_down", body)
        return reached

    async def _held(self) -> None:
        self.holding.end()
        if self.memory.mode is Mode.RUNNING:
            self._mode(Mode.HELD)
        await self._writer.idle()

    def hindrances(self) -> tuple[str, ...]:
        """Say all that stands in the way of arming this line as it is."""
        found = [*self.unguarded(), *active_trips(self.memory, self._loop.time())]
        found += filter(None, [self._room.hindrance(self.memory, self._loop.time())])
        latch = self.guard.latch
        if latch.trip is not None:
            found.append(f"latched since {latch.trip.detail}: reset it first")
        try:
            latch.probe()
        except OSError as why:
            found.append(f"a latch could not be written: {why.strerror}")
        return tuple(found)

    def unguarded(self) -> tuple[str, ...]:
        """Return which links may not energise, and why not (law 10)."""
        found = []
        for port, link in self._links.items():
            why = may_not_energise(link, attended=self._attended)
            if why:
                found.append(f"port {port} is a real link ({link.kind}), and {why}")
        return tuple(found)

    def _mode(self, to: Mode) -> None:
        self.memory.mode = change(self.memory.mode, to)
        self.guard.new_epoch()
        self.monitor.note("mode", {"mode": to.value})

    def _tick(self) -> None:
        self.monitor.tick()
        self._gate.look()
        self.on_tick()

    def _program_over(self, text: str) -> None:
        self.monitor.note("program_over", {"detail": text})
        self.on_warning(text)


async def _nothing() -> None:
    """Wait for nothing."""
