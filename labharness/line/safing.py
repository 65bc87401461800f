"""Making a line safe: the trip in force, its procedure on the wire, and what is known of it after.

The order is law 2's: bytes first, then the latch, then the record. From the cause to the last byte
of the first wave nothing here waits, and nothing that fails here (a full disk, a journal that is
gone) keeps a byte back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from labharness.guard import LoopGuard, SafeFrame
from labharness.kernel import Memory, Mode
from labharness.line.exchanges import NoReply
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
        read: Measures a channel.
        wake: Lets everybody who waits for the line look at it now.
    """

    def __init__(
        self,
        *,
        memory: Memory,
        guard: LoopGuard,
        instruments: Mapping[str, Instrument],
        loop: asyncio.AbstractEventLoop,
        note: Callable[[str, Mapping[str, object]], None],
        read: Callable[[str], Awaitable[float]],
        wake: Callable[[], None],
    ) -> None:
        self.trips: list[Trip] = []
        self.verifications: list[Verification] = []
        self._memory = memory
        self._guard = guard
        self._instruments = instruments
        self._loop = loop
        self._note = note
        self._read = read
        self._wake = wake
        self._verifying: asyncio.Task[None] | None = None
        guard.on_safe_frame = self._frame_sent

    def trip(self, trip: Trip) -> None:
        """Run a procedure now.

        A trip of a more severe cause than the one in force runs its procedure too; any other
        changes nothing.
        """
        memory = self._memory
        if memory.mode is Mode.DISARMED:
            return
        standing = memory.trip
        if standing is not None and standing.cause.rank <= trip.cause.rank:
            return
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
        self._guard.core.new_epoch()
        self._guard.repeat(list(self._guard.core.procedures[procedure]))
        self._note("make_safe", {"procedure": procedure})
        return await self._verify(procedure, self._loop.time())

    async def verified(self) -> None:
        """Wait until the procedure in force is verified, or reported as not."""
        if self._verifying is not None:
            await self._verifying

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
        frames = self._guard.core.procedures[name]
        found: dict[int, tuple[float | None, StepState]] = {}
        for attempt in range(TRIES_MAX):
            open_steps = [
                number
                for number in range(len(procedure.steps))
                if number not in found or found[number][1] is not StepState.VERIFIED
            ]
            late = self._loop.time() - since_s > procedure.verify_s_max
            if not open_steps or (late and attempt):
                break
            if attempt:
                self._guard.repeat([frame for frame in frames if frame.step in open_steps])
                await asyncio.sleep(LOOK_S)
            looks = [self._look(procedure.steps[number].channel) for number in open_steps]
            for number, seen in zip(open_steps, await asyncio.gather(*looks), strict=True):
                wanted = procedure.steps[number]
                spec = channel_of(self._instruments, wanted.channel)[2]
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
        body = {"procedure": name, "complete": verification.complete}
        self._note("verified", {**body, "steps": [list(step) for step in steps]})
        return verification

    async def _look(self, channel: str) -> float | None:
        instrument, _, spec = channel_of(self._instruments, channel)
        if spec.readback is None:
            return None
        try:
            return await self._read(f"{instrument.name}.{spec.readback}")
        except NoReply:
            return None
        except Exception as why:  # noqa: BLE001 - a look that breaks is an unknown, noted as such
            self._note("look_failed", {"channel": channel, "error": repr(why)})
            return None
