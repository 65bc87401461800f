"""Holding a line, and bringing it down by stages: hold, stop, abort, trip.

The stages are data; one that misses its time is passed. The first that is reached ends the way;
the last one latches, so that an unverified line takes a named person to start again. A trip that
comes meanwhile ends the way at once: its procedure is in force, and no stage is sent over it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text
from labharness.line.procedures import Verification
from labharness.line.trip_response import TripResponse
from labharness.safety.kernel import Envelope

HOLD_S_MAX = 3600.0  # a hold is a pause to think in; after it the run ends and is made safe
IN_FLIGHT_S_MAX = 5.0  # a command is read back within its settling time, at most 2 s, twice


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
        minutes = HOLD_S_MAX / 60
        return Text("hold.held", minutes=minutes)

    def total_s(self) -> float:
        """Return the lab time for which the line has been held so far."""
        return self._ended_s + self._this_s()

    def check(self) -> None:
        """Raise ``HoldTooLong`` if the hold has lasted for longer than is allowed."""
        if self._this_s() > HOLD_S_MAX:
            raise HoldTooLong(Text("hold.too_long", most_s=HOLD_S_MAX))

    def _this_s(self) -> float:
        return 0.0 if self._since_s is None else self._now_s() - self._since_s


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


async def bring_down(
    *,
    begin: DownStage,
    envelope: Envelope,
    trip_response: TripResponse,
    held: Callable[[], Awaitable[None]],
    now_s: Callable[[], float],
) -> Reached:
    """Bring a line down from a stage on.

    Args:
        begin: The first stage to try.
        envelope: The rules, with the procedures.
        trip_response: Runs and verifies procedures.
        held: Stops commands, and returns when none is in flight.
        now_s: Lab time.
    """
    passed: list[str] = []
    stages = [
        each
        for each in ESCALATION
        if list(DownStage).index(each[0]) >= list(DownStage).index(begin)
    ]
    for stage, cause in stages:
        if trip_response.in_force is not None:  # no stage may undo its procedure
            break
        if cause is None:
            try:
                async with asyncio.timeout(IN_FLIGHT_S_MAX):
                    await held()
            except TimeoutError:
                passed.append(Text("down.in_flight", stage=stage, within_s=IN_FLIGHT_S_MAX))
                continue
            return Reached(stage, ())
        procedure = envelope.procedure_of[cause]
        if stage is DownStage.TRIP:
            why = Text("down.unverified", passed=tuple(passed))
            trip_response.trip(Trip(Cause.STOP_REQUEST, procedure, "line", None, now_s(), why))
            break
        missing = _missing(await trip_response.make_safe(procedure))
        if trip_response.in_force is not None:
            passed.append(Text("down.tripped", stage=stage))
        elif not missing:
            return Reached(stage, tuple(passed))
        else:
            passed.append(Text("down.missing", stage=stage, missing=missing))
    await trip_response.verified()
    return Reached(DownStage.TRIP, tuple(passed))


def _missing(verification: Verification) -> str:
    return "; ".join(verification.unverified())
