"""The interface through which a plan's instructions reach a line."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from labharness.core.vocabulary import Command, Outcome


class Operator(Protocol):
    """A person who does the steps that no instrument does."""

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Do a step by hand; return the name of the person who confirms it.

        A plan asks through the line. ``PermissionError`` means that the envelope refuses the step,
        and that no person was asked.
        """


class Operations(Operator, Protocol):
    """A line and the people around it, as a plan sees them."""

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command; it is judged before a byte leaves."""

    async def refusals(self, commands: Sequence[Command]) -> tuple[str, ...]:
        """Judge commands as if each were the first; return why it is refused, or ``""``.

        Nothing is sent. It waits while the line is held.
        """

    async def read(self, channel: str) -> float:
        """Measure one channel now; raises ``ConnectionError`` when the instrument is silent."""

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        """Ask for a value that is not a number, a spectrum; ``ConnectionError`` when silent.

        Args:
            instrument: Its name.
            name: The driver's name for the query.
            about: Facts to be kept with the result: its place, its exposure.
        """

    def latest(self, channel: str) -> float:
        """Return the last polled reading; NaN when it is stale or was never read."""

    def volumes_purged(self, contaminant: str) -> float:
        """Return the tube volumes of measured inert flow since the contaminant was last present."""

    def check(self) -> None:
        """Raise when the line has tripped."""

    async def next_tick(self) -> None:
        """Wait for the end of the next poll, about 1 s; raises when the line has tripped."""

    def now_s(self) -> float:
        """Return the lab time in seconds."""

    def held_s(self) -> float:
        """Return the lab time for which the line has been held: no deadline counts it."""
