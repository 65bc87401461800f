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
from labharness.guard import LoopGuard, NotPermitted, SafeFrame
from labharness.journal import Journal
from labharness.kernel import (
    Envelope,
    Memory,
    Mode,
    begin,
    change,
    conclude,
    judge,
    observe,
    tick,
)
from labharness.line.parts import (
    BoundScan,
    Instrument,
    bind,
    channel_of,
    prepare_commands,
    query_of,
)
from labharness.line.poll import Poller
from labharness.line.procedures import StepState, Verification
from labharness.link import Link
from labharness.vocabulary import (
    BadReply,
    Cause,
    Command,
    DeviceFault,
    Ending,
    Outcome,
    Refused,
    Request,
    Trip,
)

__all__ = ["Line", "NoReply", "NotArmed", "Tripped"]

T = TypeVar("T")

TICK_S = 1.0  # poll period of the line; the kernel's clock hand
READ_BACK_S = 0.25  # pause between two looks at a channel that is still settling
READ_TRIES = 2
VERIFY_TRIES_MAX = 10


class NoReply(ConnectionError):
    """An instrument did not answer, or not in form."""


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
    ) -> None:
        self.envelope = envelope
        self.instruments = {each.name: each for each in instruments}
        self.guard = guard
        self.journal = journal
        self.clock = clock
        self.memory = Memory(envelope)
        self.identities: dict[str, Identity] = {}
        self.verifications: list[Verification] = []
        self.trips: list[Trip] = []
        self.warnings: list[str] = []
        self.on_warning: Callable[[str], None] = self.warnings.append
        self.commands_performed = 0
        self._links = dict(links)
        self._writer = asyncio.Lock()
        self._loop = clock.loop
        self._verifying: asyncio.Task[None] | None = None
        self._warned: set[str] = set()
        self._changes = 0
        streams = {
            (each.name, scan.name): journal.stream(f"{each.name}.{scan.name}", scan.channels)
            for each in instruments
            for scan in each.driver.scans()
        }
        scans = [scan for each in instruments for scan in bind(each, self.memory, streams, TICK_S)]
        self._scan_of = {channel: scan for scan in scans for channel in scan.channels}
        self._poller = Poller(self._loop, guard, scans, TICK_S, self._take, self._tick)
        guard.on_safe_frame = self._safe_frame_sent

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
        standing = (*self.unguarded(), *self.standing_trips())
        if standing:
            raise NotArmed("; ".join(standing))
        if self.guard.latch.trip is not None:
            raise NotArmed(f"latched since {self.guard.latch.trip.detail}: reset it first")
        self.guard.core.arm()
        self._mode(Mode.ARMING)
        self._record("armed", {"safe_table": safe_table})
        frames = list(self.guard.core.procedures[safe_table])
        self.guard.repeat(frames)
        verification = await self._verify(safe_table, self._loop.time())
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
        if self.memory.mode is not Mode.TRIPPED:
            self._mode(Mode.DISARMED)
        self.guard.core.disarm()
        self._record("disarmed", {})

    async def close(self) -> None:
        """Stop polling and close the roads, after a procedure that is still being verified."""
        if self._verifying is not None:
            await self._verifying
        self._poller.stop()
        self.guard.close()

    # ---- what the plan uses

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command: judged, journaled, sent under permit, read back.

        Raises:
            Tripped: The line trips before the command is through; what was sent is in the journal.
        """
        async with self._writer:
            asked = {"channel": command.channel, "value": command.value, "unit": command.unit}
            intent = self._record("intent", asked)
            await self.journal.durable(intent)
            outcome = await self._send(command)
            self._record(
                "outcome",
                {
                    "intent": intent,
                    "ending": outcome.ending.value,
                    "read_back": outcome.read_back,
                    "detail": outcome.detail,
                },
            )
            self.commands_performed += 1
            return outcome

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
                reply = await self._ask(scan.port, scan.scan.request)
                self._take(scan, scan.scan.decode(reply))
            except (BadReply, DeviceFault, NoReply) as error:
                why = str(error)
                continue
            return self.memory.tracks[channel].value
        raise NoReply(f"{channel}: {why}")

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
                return query.decode(await self._ask(owner.port, query.request))
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

    def trip(self, trip: Trip) -> None:
        """Run a procedure now: bytes, then latch, then record, then verification.

        A trip of a more severe cause than the one in force runs its procedure too; any other is
        recorded and changes nothing.
        """
        if self.memory.mode is Mode.DISARMED:
            return
        standing = self.memory.trip
        if standing is not None and standing.cause.rank <= trip.cause.rank:
            return
        self.guard.trip(trip)
        self.memory.mode = Mode.TRIPPED
        self.memory.trip = trip
        self.trips.append(trip)
        self._record(
            "trip",
            {
                "cause": trip.cause.value,
                "procedure": trip.procedure,
                "channel": trip.channel,
                "value": trip.value,
                "detail": trip.detail,
                "latch_error": self.guard.latch.write_error,
            },
        )
        self._poller.wake()
        if self._verifying is None or self._verifying.done():
            self._verifying = self._loop.create_task(self._verify_trips(), name="verify")

    def stop_request(self, procedure: str, why: str) -> None:
        """Trip because a person asked. It is a stop *request*: software carries it out."""
        now = self._loop.time()
        self.trip(Trip(Cause.STOP_REQUEST, procedure, "operator", None, now, why))

    async def make_safe(self, procedure: str) -> Verification:
        """Bring the line to a procedure's state without tripping: the end of every run."""
        self.guard.core.new_epoch()
        self._record("make_safe", {"procedure": procedure})
        self.guard.repeat(list(self.guard.core.procedures[procedure]))
        return await self._verify(procedure, self._loop.time())

    async def verified(self) -> None:
        """Wait until the procedure in force is verified, or reported as not."""
        if self._verifying is not None:
            await self._verifying

    def unguarded(self) -> tuple[str, ...]:
        """Say which roads may not energise: a real one takes the guard process (law 10)."""
        return tuple(
            f"port {port} is a real link ({link.kind}), and energising on it takes the guard "
            "process, which this version does not have"
            for port, link in self._links.items()
            if link.kind != "loopback"
        )

    def standing_trips(self) -> tuple[str, ...]:
        """Say which trip conditions hold by the latest readings."""
        found = []
        for row in self.envelope.trips:
            value = self.latest(row.channel)
            if row.procedure and value == value and not row.low <= value <= row.high:
                found.append(f"{row.name}: {row.channel} is {value:g} {row.unit}")
        return tuple(found)

    # ---- inside

    def _mode(self, to: Mode) -> None:
        self.memory.mode = change(self.memory.mode, to)
        self.guard.core.new_epoch()
        self._record("mode", {"mode": to.value})

    def _record(self, kind: str, body: Mapping[str, object]) -> int:
        return self.journal.append(kind, body, self._loop.time())

    def _take(self, scan: BoundScan, values: tuple[float, ...]) -> None:
        now = self._loop.time()
        trips = observe(self.memory, scan.tracks, values, now)
        self.journal.sample(scan.stream, now, values)
        if self.memory.changes != self._changes:
            self._changes = self.memory.changes
            self.guard.core.new_epoch()
        if trips:
            self._answer(trips)

    def _tick(self) -> None:
        trips = tick(self.memory, self._loop.time())
        if trips:
            self._answer(trips)

    def _answer(self, trips: Sequence[Trip]) -> None:
        for trip in trips:
            if not trip.procedure and trip.detail.split(":")[0] not in self._warned:
                self._warned.add(trip.detail.split(":")[0])
                self._record("warning", {"detail": trip.detail})
                self.on_warning(trip.detail)
        severe = [trip for trip in trips if trip.procedure]
        if severe:
            self.trip(min(severe, key=lambda trip: trip.cause.rank))

    async def _port(self, port: str) -> None:
        given = self._loop.create_future()
        self.guard.when_free(port, lambda: given.set_result(None))
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():
                self.guard.release(port)
            raise

    async def _ask(self, port: str, request: Request) -> bytes:
        await self._port(port)
        try:
            return await self._exchange(port, request, None)
        finally:
            self.guard.release(port)

    async def _exchange(self, port: str, request: Request, command: Command | None) -> bytes:
        permit = None
        ended: asyncio.Future[tuple[bytes | None, str]] = self._loop.create_future()

        def done(reply: bytes | None, error: str) -> None:
            if not ended.done():
                ended.set_result((reply, error))

        try:
            if command is not None:
                permit = self.guard.core.permit(port, request.frame, self._loop.time())
            self.guard.exchange(port, request, permit, done)
        except NotPermitted as why:
            raise NoReply(str(why)) from None
        reply, error = await ended
        if reply is None:
            raise NoReply(error)
        return reply

    async def _send(self, command: Command) -> Outcome:
        verdict = judge(command, self.memory, self._loop.time())
        if isinstance(verdict, Refused):
            return Outcome(command, Ending.REFUSED, None, verdict.reason)
        instrument, channel, _ = channel_of(self.instruments, command.channel)
        try:
            exchange = instrument.driver.encode(channel, command.value)
            request = next(exchange)
        except ValueError as why:
            return Outcome(command, Ending.REFUSED, None, str(why))
        await self._port(instrument.port)
        sent = False
        try:
            while True:
                if not self.guard.ready(instrument.port):
                    self.guard.release(instrument.port)
                    await self._port(instrument.port)
                # from here to the frame's hand-over there is no await: the verdict still holds
                verdict = judge(command, self.memory, self._loop.time())
                if isinstance(verdict, Refused):
                    ending = Ending.UNKNOWN if sent else Ending.REFUSED
                    return Outcome(command, ending, None, verdict.reason)
                begin(self.memory, command)
                sent = True
                reply = await self._exchange(instrument.port, request, command)
                request = exchange.send(reply)
        except StopIteration:
            trouble = ""
        except DeviceFault as why:
            trouble = str(why)
        except (BadReply, NoReply) as why:
            trouble = f"no proof that it arrived ({why})"
        finally:
            self.guard.release(instrument.port)
        return await self._read_back(command, trouble)

    async def _read_back(self, command: Command, trouble: str) -> Outcome:
        instrument, _, spec = channel_of(self.instruments, command.channel)
        if spec.readback is None:
            ending = Ending.FAILED if trouble else Ending.UNCONFIRMED
            if not trouble:
                conclude(self.memory, command)
            return Outcome(command, ending, None, trouble or "nothing can show it")
        shown_by = f"{instrument.name}.{spec.readback}"
        until_s = self._loop.time() + spec.settle_s
        while True:
            try:
                found = await self.read(shown_by)
            except NoReply as why:
                return Outcome(command, Ending.UNKNOWN, None, f"{trouble}; {why}".strip("; "))
            if abs(found - command.value) <= spec.resolution:
                conclude(self.memory, command)
                return Outcome(command, Ending.CONFIRMED, found, trouble)
            if self._loop.time() >= until_s:
                what = f"{shown_by} reads {found:g} {spec.unit}, asked {command.value:g}"
                return Outcome(command, Ending.MISMATCH, found, f"{trouble}; {what}".strip("; "))
            await asyncio.sleep(READ_BACK_S)

    def _safe_frame_sent(self, frame: SafeFrame, error: str) -> None:
        body = {"channel": frame.channel, "value": frame.value, "error": error}
        self._record("safe_frame", body)

    async def _verify_trips(self) -> None:
        done: set[str] = set()
        while self.memory.trip is not None and self.memory.trip.procedure not in done:
            procedure = self.memory.trip.procedure
            done.add(procedure)
            self.verifications.append(await self._verify(procedure, self.memory.trip.at_s))
        await self.journal.durable(self._record("tripped", {"procedures": sorted(done)}))

    async def _verify(self, name: str, since_s: float) -> Verification:
        procedure = self.envelope.procedures[name]
        frames = self.guard.core.procedures[name]
        found: dict[int, tuple[float | None, StepState]] = {}
        for attempt in range(VERIFY_TRIES_MAX):
            open_steps = [
                number
                for number in range(len(procedure.steps))
                if found.get(number, (None, StepState.UNKNOWN))[1] is not StepState.VERIFIED
            ]
            late = self._loop.time() - since_s > procedure.verify_s_max
            if not open_steps or (late and attempt):
                break
            if attempt:
                self.guard.repeat([frame for frame in frames if frame.step in open_steps])
                await asyncio.sleep(READ_BACK_S)
            looks = [self._look(procedure.steps[number].channel) for number in open_steps]
            for number, seen in zip(open_steps, await asyncio.gather(*looks), strict=True):
                wanted = procedure.steps[number]
                spec = channel_of(self.instruments, wanted.channel)[2]
                if seen is None:
                    found[number] = (None, StepState.UNKNOWN)
                elif abs(seen - wanted.value) <= spec.resolution:
                    found[number] = (seen, StepState.VERIFIED)
                else:
                    found[number] = (seen, StepState.MISMATCH)
        steps = tuple(
            (step.channel, step.value, *found[number])
            for number, step in enumerate(procedure.steps)
            if not (step.optional and found[number][1] is not StepState.VERIFIED)
        )
        verification = Verification(name, steps, self._loop.time() - since_s)
        self._record(
            "verified",
            {
                "procedure": name,
                "complete": verification.complete,
                "steps": [list(s) for s in steps],
            },
        )
        return verification

    async def _look(self, channel: str) -> float | None:
        instrument, _, spec = channel_of(self.instruments, channel)
        if spec.readback is None:
            return None
        try:
            return await self.read(f"{instrument.name}.{spec.readback}")
        except NoReply:
            return None
