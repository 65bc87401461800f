"""The only home of time, ids, chance and entropy.

Each name is imported at its first use: the guard process runs without asyncio.
"""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.core.clock.chance import Chance
    from labharness.core.clock.loops import (
        Deadlock,
        PacedLoop,
        VirtualLoop,
        begin,
        failure_of,
        finish,
        poster,
        run,
    )
    from labharness.core.clock.process import (
        monotonic_ns,
        pause,
        steady_s,
        utc_text,
        wall_clock_utc,
    )
    from labharness.core.clock.times import VIRTUAL_EPOCH, Clock

__getattr__ = on_demand(__name__, "process", "chance", "loops", "times")
