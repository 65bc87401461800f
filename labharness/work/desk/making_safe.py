"""Making a line safe within a promised time: the answer names the steps that are not verified then.

The work is never cancelled: a procedure that is sent goes on being verified, sent again and brought
down further while the answer is given. Only the wait for it is bounded.
"""

import asyncio

from labharness.core.vocabulary.texts import Text
from labharness.line import Line, latch_lost
from labharness.line.procedures import StepState, Verification

ABORT_S_MAX = 300.0  # the promised abort_timeout: heat off, reactive gases closed, inert open
FILES_S = 20.0  # of it, kept for the files of the answer
SAFE_S_MAX = ABORT_S_MAX - FILES_S  # lab time for the safe state, from the trip or the abort on


class MakingSafe:
    """Brings a line to its safe state once, however often it is asked for.

    Args:
        line: The line.
        procedure: Its safe procedure; a line that has tripped runs the one of its trip.
    """

    def __init__(self, line: Line, procedure: str) -> None:
        self._line = line
        self._procedure = procedure
        self._work: asyncio.Task[None] | None = None
        self._until_s = 0.0
        self._settled: Verification | None = None
        self._before = 0
        self._lost = ""

    @property
    def done(self) -> bool:
        """Whether nothing of it is under way any more."""
        return self._work is not None and self._work.done()

    async def wait(self) -> None:
        """Make the line safe, and wait for it until the promised time.

        A wait that is cancelled and begun again goes on with what is under way.

        Raises:
            Exception: An error of labharness itself; asked for again, it is begun anew.
        """
        now_s = self._line.clock.now_s()
        if not self._until_s:
            trip = self._line.memory.trip
            self._until_s = (now_s if trip is None else trip.at_s) + SAFE_S_MAX
        if self._work is None or (self._work.done() and self._settled is None):
            self._work = self._line.clock.loop.create_task(self._settle(), name="make safe")
        left_s = max(0.0, self._until_s - now_s)
        await asyncio.wait((self._work,), timeout=left_s)
        if self._work.done():
            self._work.result()

    async def ended(self) -> None:
        """Wait for its end, however long that takes; raises as ``wait`` does."""
        if self._work is not None:
            await asyncio.wait((self._work,))
            self._work.result()

    async def _settle(self) -> None:
        self._before = len(self._line.trip_response.verifications)
        settled = await self._line.settle(self._procedure)
        for step in settled.unverified():
            self._line.events.on_warning(Text("pair", what=settled.procedure, why=step))
        if await self.latch_lost():
            self._line.events.on_warning(self._lost)
        self._settled = settled

    async def latch_lost(self) -> str:
        """Look at the latch again: the disk may be mended meanwhile; return its error."""
        self._lost = await latch_lost(self._line.guard, self._line.clock)
        return self._lost

    def unverified(self) -> list[str]:
        """Return texts for what is not verified at this moment, a lost latch among it."""
        if not self._line.instruments:
            return []
        last = self._last()
        found: list[str] = [
            Text("pair", what=last.procedure, why=each) for each in last.unverified()
        ]
        if self._settled is None and not found:  # shown to hold, its effects not yet
            late = Text("safe.under_way", within_s=SAFE_S_MAX)
            found.append(Text("pair", what=last.procedure, why=late))
        if self._lost:
            found.append(self._lost)
        return found

    def _last(self) -> Verification:
        """Return the newest verification of the procedure in force; without one none is known."""
        trip, found = self._line.memory.trip, self._line.trip_response.verifications
        if trip is None and self._settled is not None:  # measurements may contradict it later
            return [self._settled, *found[self._before :]][-1]
        name = self._procedure if trip is None else trip.procedure
        if trip is not None and found and found[-1].procedure == name:
            return found[-1]
        steps = self._line.envelope.procedures[self._line.memory.procedure(name)].steps
        unknown = tuple(
            (each.channel, each.value, None, StepState.UNKNOWN)
            for each in steps
            if not each.optional
        )
        return Verification(name, unknown, 0.0)
