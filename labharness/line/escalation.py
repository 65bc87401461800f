"""Bringing a line down by stages: hold, stop, abort, trip; a stage that misses its time is passed.

The stages are data. The first that is reached within its time ends the way; the last one latches,
so that a line nobody could verify takes a named person to start again. A trip that comes meanwhile
ends the way at once: its procedure is in force, and no stage is sent over it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from labharness.core.vocabulary import Cause, Trip
from labharness.line.procedures import Verification
from labharness.line.trip_response import TripResponse
from labharness.safety.kernel import Envelope

__all__ = ["ESCALATION", "HOLD_S_MAX", "DownStage", "Reached", "bring_down"]

HOLD_S_MAX = 5.0  # a command in flight is read back within its settling time, at most 2 s, twice


class DownStage(StrEnum):
    """How far a line is brought down; each is worse than the one before."""

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
    """Where the way down ended, and what each stage that was passed left unverified."""

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
        envelope: Whose procedures are run.
        trip_response: Runs and verifies them.
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
        if (
            trip_response.in_force is not None
        ):  # its procedure is sent: no stage of ours may undo that
            break
        if cause is None:
            try:
                async with asyncio.timeout(HOLD_S_MAX):
                    await held()
            except TimeoutError:
                passed.append(f"{stage}: a command was still in flight after {HOLD_S_MAX:g} s")
                continue
            return Reached(stage, ())
        procedure = envelope.procedure_of[cause]
        if stage is DownStage.TRIP:
            why = f"not verified by {'; '.join(passed)}"
            trip_response.trip(Trip(Cause.STOP_REQUEST, procedure, "line", None, now_s(), why))
            break
        missing = _missing(await trip_response.make_safe(procedure))
        if trip_response.in_force is not None:
            passed.append(f"{stage}: a trip came meanwhile")
        elif not missing:
            return Reached(stage, tuple(passed))
        else:
            passed.append(f"{stage}: {missing}")
    await trip_response.verified()
    return Reached(DownStage.TRIP, tuple(passed))


def _missing(verification: Verification) -> str:
    return "; ".join(verification.unverified())
