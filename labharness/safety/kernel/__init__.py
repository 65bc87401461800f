"""The safety kernel: decides whether a command may reach an instrument. Pure and synchronous.

Read it in this order. ``conditions``, ``modes`` and ``rows`` are what an envelope says, and
``envelope`` checks that it fits together. ``tracks`` and ``memory`` are what is known of the line.
``judging`` says yes or no to a command, ``observing`` takes in what was read and sent, and
``ticking`` notices what did not happen. ``proofs`` shows that the tube is purged and tight.
"""

from labharness.safety.kernel.conditions import Bound, EnvelopeInvalid
from labharness.safety.kernel.envelope import Envelope
from labharness.safety.kernel.judging import judge, judge_program
from labharness.safety.kernel.memory import Memory
from labharness.safety.kernel.modes import IllegalMode, Mode, Role, change
from labharness.safety.kernel.observing import adopt, begin, conclude, expect, observe
from labharness.safety.kernel.proofs.rows import Backfill, LeakCheck, LeakTight, Purge, PurgedOf
from labharness.safety.kernel.rows import (
    Condition,
    Interlock,
    Limit,
    Plausible,
    Procedure,
    Step,
    TripRow,
    Watch,
)
from labharness.safety.kernel.ticking import lost, tick
from labharness.safety.kernel.tracks import Track

# fmt: off
__all__ = [  # names are read as a paragraph
    "Backfill", "Bound", "Condition", "Envelope", "EnvelopeInvalid", "IllegalMode", "Interlock",
    "LeakCheck", "LeakTight", "Limit", "Memory", "Mode", "Plausible", "Procedure", "Purge",
    "PurgedOf", "Role", "Step", "Track", "TripRow", "Watch", "adopt", "begin", "change", "conclude",
    "expect", "judge", "judge_program", "lost", "observe", "tick",
]
# fmt: on
