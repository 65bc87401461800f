"""The safety kernel: decides whether a command may reach an instrument. Pure and synchronous."""

from labharness.safety.kernel.conditions import (
    Bound,
    Condition,
    EnvelopeInvalid,
    LeakTight,
    PurgedOf,
)
from labharness.safety.kernel.envelope import Envelope
from labharness.safety.kernel.memory import Memory, Track
from labharness.safety.kernel.modes import IllegalMode, Mode, Role, change
from labharness.safety.kernel.purge import Backfill, LeakCheck, Purge
from labharness.safety.kernel.rows import (
    Interlock,
    Limit,
    Plausible,
    Procedure,
    Step,
    TripRow,
    Watch,
)
from labharness.safety.kernel.rules import (
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
