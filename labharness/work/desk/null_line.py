"""The line of a task that needs none: it has no channel and no operator.

There is nothing to lock, to latch, to arm, to fly before, to make safe or to watch until it is
cold. A desk takes a task to its answer on it as on any other line (decision 32).
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NoReturn, TypeVar

from labharness.core.clock import Clock
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.core.vocabulary.texts import Text
from labharness.line import Line
from labharness.line.events import Events
from labharness.line.trip_response import Hold
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.kernel import Envelope, Memory, Purge
from labharness.work.admission.approval import ApprovalRequest, Approved

T = TypeVar("T")

TICK_S: Final = 1.0

NO_CHANNEL: Final = Envelope(
    line="",
    limits={},
    interlocks=(),
    watches={},
    trips=(),
    procedures={},
    purge=Purge(volume_cm3=1.0, inert={}, present={}, outside=""),
    procedure_of={},
)


class NullLine(Line):
    """A line without instruments: it is opened, armed and left safe by doing nothing.

    Args:
        clock: Of the run.
    """

    def __init__(self, clock: Clock) -> None:
        self.envelope = NO_CHANNEL
        self.instruments = {}
        self.clock = clock
        self.events = Events()
        self.memory = Memory(NO_CHANNEL)
        self.holding = Hold(clock.now_s)

    async def open(self) -> None:
        """Open no link."""

    async def arm(self, safe_table: str) -> None:
        """Arm nothing."""

    def start(self) -> None:
        """Start nothing."""

    async def close(self) -> None:
        """Close no link."""

    async def next_tick(self) -> None:
        """Wait a second: only time passes."""
        await asyncio.sleep(TICK_S)

    async def perform(self, command: Command) -> Outcome:
        """Refuse the command."""
        return Outcome(command, Ending.REFUSED, detail=Text("no_line.perform"))

    async def read(self, channel: str, *, patient: bool = False) -> NoReturn:
        """Raise ``ConnectionError``: there is no instrument."""
        raise ConnectionError(Text("no_line.perform"))

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> NoReturn:
        """Raise ``ConnectionError``: there is no instrument."""
        raise ConnectionError(Text("no_line.perform"))

    async def by_hand(self, action: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> NoReturn:
        """Raise ``PermissionError``: no step is done by hand."""
        raise PermissionError(Text("no_line.perform"))

    def latest(self, channel: str) -> float:
        """Return NaN."""
        return float("nan")

    def latched(self) -> str:
        """Return that there is nothing to latch."""
        return ""

    def unguarded(self) -> tuple[str, ...]:
        """Return no link."""
        return ()


class Absent:
    """Stands for the operator and the approvers of a null line: no person is asked."""

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> NoReturn:
        """Raise ``PermissionError``: no step is done by hand."""
        raise PermissionError(Text("no_line.perform"))

    async def decide(self, request: ApprovalRequest) -> Approved | Rejected:
        """Reject: from R3 on, which no task without a line may ask for yet."""
        return Rejected("approval_expired", request.why, request.risk_level)
