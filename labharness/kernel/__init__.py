"""The safety kernel: decides whether a command may reach an instrument. Pure and synchronous."""

from labharness.kernel.conditions import Bound, Condition, EnvelopeInvalid, LeakTight, PurgedOf
from labharness.kernel.envelope import Envelope
from labharness.kernel.memory import Memory, Track
from labharness.kernel.modes import IllegalMode, Mode, Role, change
from labharness.kernel.purge import Backfill, LeakCheck, Purge
from labharness.kernel.rows import Interlock, Limit, Plausible, Procedure, Step, TripRow, Watch
from labharness.kernel.rules import (
    adopt,
    begin,
    conclude,
    expect,
    judge,
    judge_program,
    lost,
    observe,
    tick,
)

# fmt: off
__all__ = [  # names are read as a paragraph
    "Backfill", "Bound", "Condition", "Envelope", "EnvelopeInvalid", "IllegalMode", "Interlock",
    "LeakCheck", "LeakTight", "Limit", "Memory", "Mode", "Plausible", "Procedure", "Purge",
    "PurgedOf", "Role", "Step", "Track", "TripRow", "Watch", "adopt", "begin", "change", "conclude",
    "expect", "judge", "judge_program", "lost", "observe", "tick",
]
# fmt: on
