"""Making a line safe within a promised time, and watching it until it is cold.

The answer names the steps that are not verified by then. The work is never cancelled: a procedure
that is sent goes on being verified, sent again and brought down further while the answer is given.
Only the wait for it is bounded.

A line that has to cool is watched after its answer was given; one that is left warm is latched. The
polls, the trips and the lease stay meanwhile. The records after the terminal message are facts of
the line and belong to no session any more.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from labharness.core.clock import failure_of
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text, several
from labharness.line import Line
from labharness.line.hindrances import stop_procedure
from labharness.line.line import COOL_WATCH_S_MAX
from labharness.line.procedures import StepState, Verification
from labharness.line.trip_response import latch_lost

LOG = logging.getLogger(__name__)

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


@dataclass(frozen=True, slots=True)
class Cooled:
    """The end of a watch.

    Attributes:
        warm: Why the line was left warm and latched; empty where it is cold.
        unverified: Texts for what is not verified at its end.
        tripped: The cause of the trip that stands; empty without one.
        watched_s: Lab time.
        below: The temperatures by which it counts as cold, in words.
    """

    warm: str
    unverified: tuple[str, ...]
    tripped: str
    watched_s: float
    below: str

    @property
    def safe(self) -> bool:
        """Whether the line is cold, and each step of its safe state verified."""
        return not self.warm and not self.unverified

    @property
    def text(self) -> str:
        """The end in one sentence."""
        ended = Text("cooled.cold", cold=self.below)
        if self.warm:
            ended = Text("cooled.warm", why=self.warm)
        unverified = [Text("cooled.unverified", what=each) for each in self.unverified]
        latched = [Text("cooled.latched", why=self.tripped)] if self.tripped else []
        return several(ended, *unverified, *latched)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Cooled":
        """Read it out of its record."""
        said = {name: body[name] for name in ("warm", "tripped", "watched_s")}
        return cls(**said, unverified=tuple(body["unverified"]), below=body.get("below", ""))

    def to_json(self) -> dict[str, Any]:
        """Return the body of its record."""
        return {"cold": not self.warm, **asdict(self), "unverified": list(self.unverified)}


@dataclass(eq=False)
class Cooling:
    """The watch over one line.

    Attributes:
        line: A line that is polled still.
        making_safe: Has made it safe, or is about to.
        tell: Called with what is to be read, as ``tell(kind, data)``.
    """

    line: Line
    making_safe: MakingSafe
    tell: Callable[[str, Mapping[str, Any]], None]
    _broken_off: str = field(default="", init=False)

    @property
    def said(self) -> str:
        """Until when it lasts, in one sentence."""
        return Text("cooling.watch", cold=self.line.cold_text)

    def break_off(self, reason: str) -> None:
        """End the watch at the next poll: a line that is not cold then is latched as it is."""
        self._broken_off = self._broken_off or reason

    async def watch(self) -> Cooled:
        """Watch until the line is cold, latch one that is left warm, record the end, disarm."""
        line, since_s = self.line, self.line.clock.now_s()
        line.events.on_warning = self._warned
        self.tell("cooling", {"message": self.said})
        warm = await self._warm()
        if warm:
            self._latch(warm)
        if line.memory.trip is not None:  # it may have come, or been verified, during the watch
            await line.trip_response.verified()
        await self.making_safe.latch_lost()
        cooled = Cooled(
            warm=warm,
            unverified=tuple(self.making_safe.unverified()),
            tripped="" if line.memory.trip is None else line.memory.trip.detail,
            watched_s=line.clock.now_s() - since_s,
            below=line.cold_text,
        )
        line.monitor.note("cooled", cooled.to_json())
        line.disarm()
        self.tell("cooled", {"message": cooled.text})
        return cooled

    async def _warm(self) -> str:
        """Watch; return why the line is left warm, empty where it is cold."""
        try:
            return await self._until_cold()
        except asyncio.CancelledError:
            if (failure := failure_of(self.line.clock.loop)) is None:
                raise
            why: BaseException = failure
        except Exception as broken:  # noqa: BLE001 - the line is latched, and the failure is reported
            why = broken
        LOG.error("the watch over a line that cools has failed", exc_info=why)
        return Text("failure.internal", what=repr(why))

    async def _until_cold(self) -> str:
        await self.making_safe.ended()
        since_s = self.line.clock.now_s()
        if await self.line.watch_until_cold(lambda: bool(self._broken_off)):
            return ""
        if self._broken_off:
            return Text("cooling.broken_off", why=self._broken_off)
        if self.line.clock.now_s() - since_s >= COOL_WATCH_S_MAX:
            return Text("cooling.too_long", hours=COOL_WATCH_S_MAX / 3600)
        return Text("cooling.unheard")

    def _latch(self, warm: str) -> None:
        line = self.line
        if line.memory.trip is not None:
            return
        now_s = line.clock.now_s()
        procedure = stop_procedure(line.memory, line.guard.latch.trip, now_s)
        why = Text("cooled.warm", why=warm)  # on a line that was never armed it changes nothing
        line.trip_response.trip(Trip(Cause.STOP_REQUEST, procedure, "line", None, now_s, why))

    def _warned(self, text: str) -> None:
        """Record and tell a warning of the line; no session takes it any more."""
        self.line.monitor.note("cooling", {"warning": text})
        self.tell("warning", {"message": text})
