"""The safety kernel: decides whether a command may reach an instrument. Pure and synchronous."""

from labharness.kernel.envelope import (
    AtLeast,
    AtMost,
    Bound,
    Condition,
    Envelope,
    EnvelopeInvalid,
    Interlock,
    Limit,
    Procedure,
    Purge,
    PurgedOf,
    Role,
    Step,
    TripRow,
    Watch,
)
from labharness.kernel.memory import Memory, Track
from labharness.kernel.modes import IllegalMode, Mode, change
from labharness.kernel.rules import begin, conclude, judge, observe, tick

__all__ = [
    "AtLeast",
    "AtMost",
    "Bound",
    "Condition",
    "Envelope",
    "EnvelopeInvalid",
    "IllegalMode",
    "Interlock",
    "Limit",
    "Memory",
    "Mode",
    "Procedure",
    "Purge",
    "PurgedOf",
    "Role",
    "Step",
    "Track",
    "TripRow",
    "Watch",
    "begin",
    "change",
    "conclude",
    "judge",
    "observe",
    "tick",
]
