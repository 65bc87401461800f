"""The response to a trip: its procedure is sent, verified, and sent again until it holds.

The order is law 2's: bytes first, then the latch, then the record. From the cause to the last byte
of the first wave nothing here waits, and nothing that fails here (a full disk, a journal that is
gone) delays a byte. While a trip stands, its procedure and no other is sent, again and again,
until every step of it was seen in one look or the line closes.

Holding a line, and bringing it down by stages: hold, stop, abort, trip. The stages are data; one
that misses its time is passed. The first that is reached ends the way; the last one latches, so
that an unverified line takes a named person to start again. A trip that comes meanwhile ends the
way at once: its procedure is in force, and no stage is sent over it.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from labharness.core.clock import Clock
from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed
from labharness.line.effects import Effects
from labharness.line.events import Events
from labharness.line.instrument import Instrument, channel_of
from labharness.line.procedures import StepState, Verification
from labharness.safety.guard import Guard, SafeFrame, not_tried
from labharness.safety.kernel import Memory, Mode, expect

LATCH_S_MAX = 15.0
"""Real time (s) that a latch may wait for the disk: a guard keeps it for 10 s behind its bytes."""

LATCH_LOOK_S = 0.1
LOOK_S = 0.25  # pause between sending a step again and looking at it
TRIES_MAX = 10  # of one step, within the procedure's own time
IN_FLIGHT_S_MAX = 5.0  # a command is read back within its settling time, at most 2 s, twice
AGAIN_S = 5.0  # between two tries of steps still open after that time, while the line is ours

Found = dict[int, tuple[float | None, StepState]]


class Tripped(LabError, RuntimeError, code="tripped"):
    """The line has tripped; nothing but reading and making safe is left."""

    def __init__(self, trip: Trip) -> None:
        super().__init__(trip.detail)
        self.trip = trip


class DownStage(StrEnum):
    """The stages of bringing a line down; each is worse than the one before."""

    HOLD = "hold"  # no command is let through; what is set stays set
    STOP = "stop"  # the stop request's safe state, verified
    ABORT = "abort"  # the gas leak's safe state, verified: flammable gas first
    TRIP = "trip"  # that state again, every permit void, latched


ESCALATION: tuple[tuple[DownStage, Cause | None], ...] = (
    # the procedure of this cause; its own ``verify_s_max`` is the stage's deadline
    (DownStage.HOLD, None),
    (DownStage.STOP, Cause.STOP_REQUEST),
    (DownStage.ABORT, Cause.GAS_LEAK),
    (DownStage.TRIP, Cause.GAS_LEAK),
)


@dataclass(frozen=True, slots=True)
class Reached:
    """The stage at which the way down ended, and the text of each stage that was passed."""

    stage: DownStage
    passed: tuple[str, ...]


@dataclass(eq=False, kw_only=True)
class TripResponse:
    """Runs procedures and verifies them.

    Attributes:
        memory: The kernel's memory; it sets the mode and the trip there.
        guard: The only way to the ports.
        instruments: The instruments of the line.
        note: Records a fact if it can; it must not raise.
        read: Measures channels now, each for so long at most; those that answer are in its result.
        wake: Wakes all users that wait for the line.
        events: Report each trip after its bytes, latch and record, even if a graver one stands
            and it changed nothing; each verification; and, as a warning, each step that was
            verified only after the procedure's own time.
        trips: Each trip that was in force, the last one still.
        verifications: The verification of each trip, and later ones of the last.
    """

    memory: Memory
    guard: Guard
    instruments: Mapping[str, Instrument]
    loop: asyncio.AbstractEventLoop
    note: Callable[[str, Mapping[str, object]], None]
    read: Callable[[Sequence[str], float], Awaitable[Mapping[str, float]]]
    wake: Callable[[], None]
    events: Events

    def __post_init__(self) -> None:
        self.trips: list[Trip] = []
        self.verifications: list[Verification] = []
        self._verifying: asyncio.Task[None] | None = None
        self._since_s: float | None = None  # from when on what is in force is to be verified anew
        self._sent = ""  # the procedure that was sent last
        self._wave = 0  # grows with each that is another than the one before
        self._again: asyncio.TimerHandle | None = None
        self._slow = False
        self._ends: set[tuple[str, bool]] = set()  # frames of the slow tries that are recorded
        self._shown: set[str] = set()  # steps of the trip in force that are told as verified
        self._open: set[str] = set()  # and those that the last look did not show
        self._closed = False
        self._effects = Effects(self.instruments, self.read, self.loop.time)
        self._told: Verification  # that is looked at, with what contradicts it
        self._dark: asyncio.Task[None] | None = None
        self._cooling: asyncio.Task[None] | None = None
        self.guard.on_safe_frame = self._frame_sent
        self.guard.on_trip = self.events.on_trip = self.trip

    def trip(self, trip: Trip, *, disarmed: bool = False) -> None:
        """Run a procedure now, and then report it: for the line, the guard, a stop or a person.

        A trip of a more severe cause than the one in force runs its procedure too; any other
        changes nothing.

        Args:
            trip: The trip.
            disarmed: Whether it also trips a line that is not armed: one about to be armed.
        """
        if self.memory.mode is Mode.DISARMED and not disarmed:
            return
        in_force = self.memory.trip
        if trip.cause.overrules(None if in_force is None else in_force.cause):
            self._run(trip)
        self.events.on_abnormal(trip)

    def _run(self, trip: Trip) -> None:
        memory = self.memory
        procedure = memory.procedure(trip.procedure)
        trip = replace(trip, procedure=procedure)
        self.guard.trip(trip)
        memory.mode = Mode.TRIPPED
        memory.trip = trip
        self._count(procedure)
        self.trips.append(trip)
        self.note(
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
        self.wake()
        self._begin(trip.at_s)

    def repeat(self) -> None:
        """Send the whole procedure in force once more, and verify it again, on request.

        It changes nothing where no trip stands.
        """
        trip = self.memory.trip
        if trip is None or self._closed:
            return
        self.guard.repeat(list(self.guard.procedures[trip.procedure]))
        self.note("make_safe", {"procedure": trip.procedure})
        self._begin(self.loop.time())

    async def make_safe(self, procedure: str) -> Verification:
        """Bring the line to a procedure's state without tripping.

        While a trip stands, its own procedure is repeated instead: nothing may undo it. Of a line
        that was found latched, the latch takes the procedure: a guard that comes back begins with
        what ran last.
        """
        if self.memory.trip is not None:
            self.repeat()
            await self.verified()
            return self.verifications[-1]
        procedure = self.memory.procedure(procedure)
        latched = self.guard.latch.trip
        if latched is None:
            self.guard.new_epoch()
            self.guard.repeat(list(self.guard.procedures[procedure]))
        else:
            self.guard.trip(replace(latched, procedure=procedure))
        self._count(procedure)
        self.note("make_safe", {"procedure": procedure})
        wave = self._wave
        verification = await self._verify(procedure, self.loop.time())
        if self._wave != wave:
            return verification
        self._look_at_effect(verification)
        if self._dark is not None:
            await asyncio.wait((self._dark,))
        return self._told if self._wave == wave else verification

    def let_go(self) -> None:
        """Stop looking at the effects of a procedure: commands are let through from now on."""
        self._look_at_effect(None)

    async def verified(self) -> None:
        """Wait until the procedure in force is verified, or reported as not, with its effects.

        The wait may be cancelled; the verification goes on.
        """
        if self._verifying is not None:
            await asyncio.shield(self._verifying)
        if self._dark is not None:
            await asyncio.wait((self._dark,))

    @property
    def cooling_known(self) -> bool:
        """Whether the last look at temperatures has ended; a line that was never safe has none."""
        return self._cooling is None or self._cooling.done()

    async def hot(self, procedure: str) -> tuple[str, ...]:
        """Return the temperatures that may still rise, which is known only later."""
        return await self._effects.hot(self.memory.envelope.procedures[procedure].steps)

    async def bring_down(self, begin: DownStage, held: Callable[[], Awaitable[None]]) -> Reached:
        """Bring the line down from a stage on.

        Args:
            begin: The first stage to try.
            held: Stops commands, and returns when none is in flight.
        """
        passed: list[str] = []
        for stage, cause in ESCALATION[list(DownStage).index(begin) :]:
            if self.memory.trip is not None:  # no stage may undo its procedure
                break
            if cause is None:
                try:
                    async with asyncio.timeout(IN_FLIGHT_S_MAX):
                        await held()
                except TimeoutError:
                    passed.append(Text("down.in_flight", stage=stage, within_s=IN_FLIGHT_S_MAX))
                    continue
                return Reached(stage, ())
            procedure = self.memory.envelope.procedure_of[cause]
            if stage is DownStage.TRIP:
                why, now_s = Text("down.unverified", passed=tuple(passed)), self.loop.time()
                self.trip(Trip(Cause.STOP_REQUEST, procedure, "line", None, now_s, why))
                break
            missing = "; ".join((await self.make_safe(procedure)).unverified())
            if self.memory.trip is not None:
                passed.append(Text("down.tripped", stage=stage))
            elif not missing:
                return Reached(stage, tuple(passed))
            else:
                passed.append(Text("down.missing", stage=stage, missing=missing))
        await self.verified()
        return Reached(DownStage.TRIP, tuple(passed))

    def close(self) -> None:
        """Try no more: the links are closed next."""
        self._closed = True
        self.let_go()
        if self._again is not None:
            self._again.cancel()

    def _frame_sent(self, frame: SafeFrame, error: str) -> None:
        if self._slow:  # for hours, perhaps: each end of a step's frame is recorded once
            end = (frame.channel, not error)
            if end in self._ends:
                return
            self._ends.add(end)
        body = {"channel": frame.channel, "value": frame.value, "error": error}
        self.note("safe_frame", body)

    def _count(self, procedure: str) -> None:
        """Count the procedure that is sent: readings before another one show nothing after it."""
        for step in self.memory.envelope.procedures[procedure].steps:
            expect(self.memory, step.channel, math.nan)  # till it is verified
        if procedure != self._sent:
            self._sent = procedure
            self._wave += 1

    def _begin(self, since_s: float) -> None:
        """Verify the procedure in force from the start, even if a verification is under way."""
        self._since_s = since_s
        self._slow = False
        self._ends.clear()
        if self._again is not None:
            self._again.cancel()
        if self._verifying is None or self._verifying.done():
            self._verifying = self.loop.create_task(self._verify_in_force(), name="verify")

    async def _verify_in_force(self) -> None:
        """Verify each trip by itself: a procedure that comes back was sent anew."""
        while self._since_s is not None and self.memory.trip is not None:
            since_s, self._since_s = self._since_s, None
            verification = await self._verify(self.memory.trip.procedure, since_s)
            self.verifications.append(verification)
            self._shown, self._open = _parted(verification)
            self._look_at_effect(verification)
        if self._open and not self._closed:
            self._again = self.loop.call_later(AGAIN_S, self._insist)

    def _insist(self) -> None:
        self._verifying = self.loop.create_task(self._try_again(), name="verify again")

    async def _try_again(self) -> None:
        """Repeat the open steps, and look: a bus that was cut may be whole again."""
        trip = self.memory.trip
        if trip is not None:
            self._slow = True
            frames = self.guard.procedures[trip.procedure]
            self.guard.repeat(tails(frames, self._open))
            await asyncio.sleep(LOOK_S)
            found = await self._states(trip.procedure, AGAIN_S)
            if self._since_s is None:  # or another was sent, or this one whole, and it begins anew
                self._take_late(self._said(trip.procedure, found, trip.at_s))
        await self._verify_in_force()

    def _take_late(self, verification: Verification) -> None:
        """Take a late look; record and report the steps that it shows for the first time."""
        shown, self._open = _parted(verification)
        new = shown - self._shown
        self._shown |= new
        if self._open and not new:
            return
        self.verifications.append(verification)
        self._tell(verification)
        what = Text("verified.all") if verification.complete else Text("items", parts=sorted(new))
        text = Text("verified.steps_late", procedure=verification.procedure, what=what)
        with suppress(JournalFailed):  # a listener may write to the journal; the line goes on
            self.events.on_warning(Text("verified.late", what=text, after_s=verification.within_s))
        self._look_at_effect(verification)

    def _look_at_effect(self, verification: Verification | None) -> None:
        """Look at the effects of a fully verified procedure; another procedure ends the look."""
        for each in (self._dark, self._cooling):
            if each is not None:
                each.cancel()
        self._dark = self._cooling = None
        if verification is None:
            return
        self._told = verification
        if verification.complete and not self._closed:
            steps = self.memory.envelope.procedures[verification.procedure].steps
            make = self.loop.create_task
            self._dark = make(self._see(verification, self._effects.dark(steps)), name="dark")
            self._cooling = make(self._see(verification, self._effects.cooling(steps)), name="cool")

    async def _see(self, verified: Verification, look: Awaitable[tuple[str, ...]]) -> None:
        """Record and report the contradictions to a verification, beside the earlier ones."""
        wave, since_s = self._wave, self.loop.time() - verified.within_s
        found = await look
        if not found or self._wave != wave:
            return
        contradicted = (*self._told.contradicted, *found)
        within_s = self.loop.time() - since_s
        told = self._told = replace(verified, within_s=within_s, contradicted=contradicted)
        self.verifications.append(told)
        self._tell(told)
        for each in found:
            with suppress(JournalFailed):  # a listener may write to the journal; the line goes on
                self.events.on_warning(
                    Text("verified.contradicted", procedure=verified.procedure, why=each)
                )

    async def _verify(self, name: str, since_s: float) -> Verification:
        """Look at all steps and repeat the open ones, within the procedure's own time.

        If another procedure was sent meanwhile, nothing is known of this one.
        """
        wave, frames = self._wave, self.guard.procedures[name]
        wanted = self.memory.envelope.procedures[name].steps
        until_s = since_s + self.memory.envelope.procedures[name].verify_s_max
        found = await self._states(name, until_s - self.loop.time())
        for _ in range(TRIES_MAX - 1):
            open_steps = [each for each, seen in found.items() if seen[1] is not StepState.VERIFIED]
            late = self.loop.time() + 2 * LOOK_S >= until_s  # no time for another look
            if not open_steps or late or self._wave != wave:
                break
            self.guard.repeat(tails(frames, {wanted[step].channel for step in open_steps}))
            await asyncio.sleep(LOOK_S)
            found = await self._states(name, until_s - self.loop.time())
        if self._wave != wave:
            found = dict.fromkeys(found, (None, StepState.UNKNOWN))
        verification = self._said(name, found, since_s)
        self._tell(verification, overruled=self._wave != wave)
        return verification

    def _said(self, name: str, found: Found, since_s: float) -> Verification:
        steps = tuple(
            (step.channel, step.value, *found[number])
            for number, step in enumerate(self.memory.envelope.procedures[name].steps)
            if not (step.optional and found[number][1] is not StepState.VERIFIED)
        )
        return Verification(name, steps, self.loop.time() - since_s)

    def _tell(self, verification: Verification, *, overruled: bool = False) -> None:
        body: dict[str, object] = {
            "procedure": verification.procedure,
            "complete": verification.complete,
        }
        if verification.contradicted:
            body["contradicted"] = list(verification.contradicted)
        self.note("verified", {**body, "steps": [list(step) for step in verification.steps]})
        if not overruled:  # what has taken its place is told of
            for channel, wanted, _, state in verification.steps:
                if state is StepState.VERIFIED:
                    expect(self.memory, channel, wanted)
            self.events.on_verified(verification)

    async def _states(self, name: str, within_s: float) -> Found:
        """Read every step back in one look: the line is safe with all of them at once."""
        steps = self.memory.envelope.procedures[name].steps
        seen = await self._look([each.channel for each in steps], max(within_s, LOOK_S))
        found: Found = {}
        for number, wanted in enumerate(steps):
            spec = channel_of(self.instruments, wanted.channel)[2]
            value = seen.get(wanted.channel)
            if value is None:
                found[number] = (None, StepState.UNKNOWN)
            elif abs(value - wanted.value) <= spec.resolution:
                found[number] = (value, StepState.VERIFIED)
            else:
                found[number] = (value, StepState.MISMATCH)
        return found

    async def _look(self, channels: Sequence[str], within_s: float) -> dict[str, float]:
        """Read channels back, all ports at once and each only for so long."""
        shown_by: dict[str, str] = {}
        for channel in channels:
            instrument, _, spec = channel_of(self.instruments, channel)
            if spec.readback is not None:
                shown_by[channel] = f"{instrument.name}.{spec.readback}"
        seen = await self.read(tuple(shown_by.values()), within_s)
        return {channel: seen[name] for channel, name in shown_by.items() if name in seen}


def tails(frames: Sequence[SafeFrame], channels: Collection[str]) -> list[SafeFrame]:
    """Return each port's frames from the first open one on: an order may need the one before it."""
    begun: set[str] = set()
    again = []
    for frame in frames:
        if frame.port in begun or frame.channel in channels:
            begun.add(frame.port)
            again.append(frame)
    return again


def _parted(verification: Verification) -> tuple[set[str], set[str]]:
    """Return the channels of the steps that are verified, and of those that are not."""
    shown = {channel for channel, *_, state in verification.steps if state is StepState.VERIFIED}
    return shown, {channel for channel, *_ in verification.steps} - shown


async def latch_lost(guard: Guard, clock: Clock) -> str:
    """Wait until the latch is on the disk or has failed; return the error, ``""`` for none."""
    latch = guard.latch
    for _ in range(round(LATCH_S_MAX * (clock.speed or 1.0) / LATCH_LOOK_S)):
        if latch.saved() or not not_tried(latch.write_error):
            break
        await asyncio.sleep(LATCH_LOOK_S)
    return latch.write_error and Text("latch.unsaved", why=latch.write_error)


HOLD_S_MAX = 3600.0  # a hold is a pause to think in; after it the run ends and is made safe


class HoldTooLong(LabError, RuntimeError, code="hold_too_long"):
    """The line was held for longer than is allowed."""


class Hold:
    """The clock of a line's holds.

    Args:
        now_s: Lab time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._ended_s = 0.0
        self._since_s: float | None = None

    @property
    def on(self) -> bool:
        """Whether the line is held."""
        return self._since_s is not None

    def begin(self) -> None:
        """The line is held from now on."""
        self._since_s = self._now_s()

    def end(self) -> None:
        """The line is let go."""
        self._ended_s = self.total_s()
        self._since_s = None

    def said(self) -> str:
        """Return the text that the line is held, and when the hold ends by itself."""
        return Text("hold.held", minutes=HOLD_S_MAX / 60)

    def total_s(self) -> float:
        """Return the lab time for which the line has been held so far."""
        return self._ended_s + self._this_s()

    def check(self) -> None:
        """Raise ``HoldTooLong`` if the hold has lasted for longer than is allowed."""
        if self._this_s() > HOLD_S_MAX:
            raise HoldTooLong(Text("hold.too_long", most_s=HOLD_S_MAX))

    def _this_s(self) -> float:
        return 0.0 if self._since_s is None else self._now_s() - self._since_s
