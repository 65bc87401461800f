"""Making a line safe: the trip in force, its procedure on the wire, and what is known of it after.

The order is law 2's: bytes first, then the latch, then the record. From the cause to the last byte
of the first wave nothing here waits, and nothing that fails here (a full disk, a journal that is
gone) keeps a byte back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from labharness.guard import Guard, SafeFrame
from labharness.kernel import Memory, Mode
from labharness.line.parts import Instrument, channel_of
from labharness.line.procedures import StepState, Verification
from labharness.vocabulary import Trip

__all__ = ["Safing"]

LOOK_S = 0.25  # pause between sending a step again and looking at it
TRIES_MAX = 10  # of one step, within the procedure's own time


class Safing:
    """Runs procedures and verifies them.

    Args:
        memory: The kernel's, whose mode and trip it sets.
        guard: The only way to the ports.
        instruments: Whose channels the steps set.
        note: Records a fact if it can; it must not raise.
        read: Measures channels now, each for so long at most; those that answer are in its result.
        wake: Lets everybody who waits for the line look at it now.
    """

    def __init__(
        self,
        *,
        memory: Memory,
        guard: Guard,
        instruments: Mapping[str, Instrument],
        loop: asyncio.AbstractEventLoop,
        note: Callable[[str, Mapping[str, object]], None],
        read: Callable[[Sequence[str], float], Awaitable[Mapping[str, float]]],
        wake: Callable[[], None],
    ) -> None:
        self.trips: list[Trip] = []
        self.verifications: list[Verification] = []
        self.on_verified: Callable[[Verification], None] = lambda verification: None
        self._memory = memory
        self._guard = guard
        self._instruments = instruments
        self._loop = loop
        self._note = note
        self._read = read
        self._wake = wake
        self._verifying: asyncio.Task[None] | None = None
        guard.on_safe_frame = self._frame_sent
        guard.on_trip = self.trip

    @property
    def tripped(self) -> bool:
        """Whether a trip is in force."""
        return self._memory.trip is not None

    def trip(self, trip: Trip) -> None:
        """Run a procedure now.

        A trip of a more severe cause than the one in force runs its procedure too; any other
        changes nothing.
        """
        memory = self._memory
        if memory.mode is Mode.DISARMED:
            return
        standing = memory.trip
        if not trip.cause.overrules(None if standing is None else standing.cause):
            return
        procedure = memory.procedure(trip.procedure, self._loop.time())
        trip = replace(trip, procedure=procedure)
        self._guard.trip(trip)
        memory.mode = Mode.TRIPPED
        memory.trip = trip
        self.trips.append(trip)
        self._note(
            "trip",
            {
                "cause": trip.cause.value,
                "procedure": trip.procedure,
                "channel": trip.channel,
                "value": trip.value,
                "detail": trip.detail,
                "latch_error": self._guard.latch.write_error,
            },
        )
        self._wake()
        if self._verifying is None or self._verifying.done():
            self._verifying = self._loop.create_task(self._verify_trips(), name="verify")

    async def make_safe(self, procedure: str) -> Verification:
        """Bring the line to a procedure's state without tripping."""
        procedure = self._memory.procedure(procedure, self._loop.time())
        self._guard.new_epoch()
        self._guard.repeat(list(self._guard.procedures[procedure]))
        self._note("make_safe", {"procedure": procedure})
        return await self._verify(procedure, self._loop.time())

    async def verified(self) -> None:
        """Wait until the procedure in force is verified, or reported as not.

        Whoever waits may be cancelled; the verification goes on.
        """
        if self._verifying is not None:
            await asyncio.shield(self._verifying)

    def _frame_sent(self, frame: SafeFrame, error: str) -> None:
        body = {"channel": frame.channel, "value": frame.value, "error": error}
        self._note("safe_frame", body)

    async def _verify_trips(self) -> None:
        done: set[str] = set()
        while self._memory.trip is not None and self._memory.trip.procedure not in done:
            trip = self._memory.trip
            done.add(trip.procedure)
            self.verifications.append(await self._verify(trip.procedure, trip.at_s))

    async def _verify(self, name: str, since_s: float) -> Verification:
        procedure = self._memory.envelope.procedures[name]
        frames = self._guard.procedures[name]
        until_s = since_s + procedure.verify_s_max
        found: dict[int, tuple[float | None, StepState]] = {}
        for attempt in range(TRIES_MAX):
            open_steps = [
                number
                for number in range(len(procedure.steps))
                if number not in found or found[number][1] is not StepState.VERIFIED
            ]
            trip = self._memory.trip
            overruled = trip is not None and trip.procedure != name
            late = self._loop.time() + 2 * LOOK_S >= until_s  # no time for another look
            if not open_steps or (attempt and (overruled or late)):
                break
            if attempt:
                self._guard.repeat([frame for frame in frames if frame.step in open_steps])
                await asyncio.sleep(LOOK_S)
            channels = [procedure.steps[number].channel for number in open_steps]
            seen = await self._look(channels, max(until_s - self._loop.time(), LOOK_S))
            for number in open_steps:
                wanted = procedure.steps[number]
                spec = channel_of(self._instruments, wanted.channel)[2]
                value = seen.get(wanted.channel)
                if value is None:
                    found[number] = (None, StepState.UNKNOWN)
                elif abs(value - wanted.value) <= spec.resolution:
                    found[number] = (value, StepState.VERIFIED)
                else:
                    found[number] = (value, StepState.MISMATCH)
        steps = tuple(
            (step.channel, step.value, *found[number])
            for number, step in enumerate(procedure.steps)
            if not (step.optional and found[number][1] is not StepState.VERIFIED)
        )
        verification = Verification(name, steps, self._loop.time() - since_s)
        body = {"procedure": name, "complete": verification.complete}
        self._note("verified", {**body, "steps": [list(step) for step in steps]})
        self.on_verified(verification)
        return verification

    async def _look(self, channels: Sequence[str], within_s: float) -> dict[str, float]:
        """Read channels back, all ports at once and each only for so long."""
        shown_by: dict[str, str] = {}
        for channel in channels:
            instrument, _, spec = channel_of(self._instruments, channel)
            if spec.readback is not None:
                shown_by[channel] = f"{instrument.name}.{spec.readback}"
        seen = await self._read(tuple(shown_by.values()), within_s)
        return {channel: seen[name] for channel, name in shown_by.items() if name in seen}
