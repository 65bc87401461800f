"""Whether a latch has reached the disk: a guard keeps it behind its bytes, and waits itself."""

import asyncio

from labharness.core.clock import Clock
from labharness.safety.guard import Guard, not_tried

__all__ = ["LATCH_S_MAX", "latch_lost"]

LATCH_S_MAX = 15.0
"""Real time (s) that a latch may wait for the disk: a guard keeps it for 10 s behind its bytes."""

LATCH_LOOK_S = 0.1


async def latch_lost(guard: Guard, clock: Clock) -> str:
    """Wait until the latch is on the disk, or known not to be; say so, ``""`` where it is."""
    latch = guard.latch
    for _ in range(round(LATCH_S_MAX * (clock.speed or 1.0) / LATCH_LOOK_S)):
        if latch.saved() or not not_tried(latch.write_error):
            break
        await asyncio.sleep(LATCH_LOOK_S)
    return latch.write_error and f"the latch could not be saved: {latch.write_error}"
