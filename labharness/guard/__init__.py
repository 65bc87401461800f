"""The only way to a port: the core that decides and the shell that moves bytes."""

from labharness.guard.core import (
    Finished,
    GuardCore,
    NotPermitted,
    Permit,
    Port,
    PortState,
    SafeFrame,
    Sent,
    Source,
)
from labharness.guard.latch import Latch, LatchUnreadable
from labharness.guard.shell import LoopGuard, PortBusy

__all__ = [
    "Finished",
    "GuardCore",
    "Latch",
    "LatchUnreadable",
    "LoopGuard",
    "NotPermitted",
    "Permit",
    "Port",
    "PortBusy",
    "PortState",
    "SafeFrame",
    "Sent",
    "Source",
]
