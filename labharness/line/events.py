"""The events of a line for its listeners: trips, warnings, verifications, polls and its end."""

from collections.abc import Awaitable, Callable

from labharness.core.vocabulary import Trip
from labharness.line.procedures import Verification


class Events:
    """One listener for each event. Until one is set, warnings are kept and the rest is dropped.

    Attributes:
        warnings: The warnings for the run's summary.
        on_trip: Runs the procedure of a trip; the line's trip response sets itself here.
        on_abnormal: Called with each trip and each warning, after the bytes of all trips have left.
        on_warning: Called with each text that a person should read.
        on_verified: Called with each verification, unless another procedure has replaced it.
        on_tick: Called at each poll, after the kernel has seen the time.
        on_close: Awaited last, when the line is closed.
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.on_trip: Callable[[Trip], None] = lambda trip: None
        self.on_abnormal: Callable[[Trip], None] = lambda trip: None
        self.on_warning: Callable[[str], None] = self.warnings.append
        self.on_verified: Callable[[Verification], None] = lambda verification: None
        self.on_tick: Callable[[], None] = lambda: None
        self.on_close: Callable[[], Awaitable[None]] = _nothing


async def _nothing() -> None:
    """Wait for nothing."""
