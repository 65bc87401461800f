"""Carries out a plan's operations on a line and by its operator, within the session's token."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from labharness.core.errors import LabError
from labharness.core.vocabulary import OPERATOR, Command, Ending, Outcome
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text
from labharness.line import Line
from labharness.work.desk.progress_reporter import ProgressReporter
from labharness.work.desk.session import Session
from labharness.work.plan import Operator


class OutOfScope(LabError, RuntimeError, code="out_of_scope"):
    """An operation that the session's token does not cover."""


@dataclass(eq=False)
class LineOperations:
    """The ``plan.Operations`` of a line and its operator.

    Attributes:
        line: The line, behind its gate.
        operator: The person who does manual steps.
        session: The session, whose token must be in force and cover the instrument.
        reporter: Reports polls and manual steps, and keeps results of queries.
        unweighed: Returns why a command was not weighed and approved; ``""`` if it was.
        check, latest, volumes_purged, now_s, held_s: The line's own methods.
    """

    line: Line
    operator: Operator
    session: Session
    reporter: ProgressReporter
    unweighed: Callable[[Command], str]

    def __post_init__(self) -> None:
        self.check = self.line.check
        self.latest = self.line.latest
        self.volumes_purged = self.line.volumes_purged
        self.now_s = self.line.clock.now_s
        self.held_s = self.line.holding.total_s

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command under the session's token.

        One that adds energy and was not weighed, or that the token does not cover, is refused here,
        before the gate is asked.
        It waits while the line is held, except when the plan is being stopped and only tidies up.

        Raises:
            Tripped: The line has tripped.
            TimeoutError: The token has expired with the task's ``max_duration``.
        """
        self.line.check()
        why = self._uncovered(command)
        if why:
            return Outcome(command, Ending.REFUSED, detail=why)
        task = asyncio.current_task()
        while True:
            stopping = task is not None and task.cancelling() > 0
            if not stopping:
                await self.line.released()
            if not self.session.authorises(self.line.clock.utc()):
                raise TimeoutError(Text("token.void"))
            outcome = await self.line.perform(command)
            self.line.check()
            # a hold may have come while it waited for its turn: no byte left, so it may go later
            if stopping or outcome.ending is not Ending.REFUSED or not self.line.holding.on:
                return outcome

    async def refusals(self, commands: Sequence[Command]) -> tuple[str, ...]:
        """Judge commands as if each were the first; return why it is refused, or ``""``.

        Raises:
            Tripped: The line has tripped.
        """
        await self.line.released()
        self.line.check()
        return tuple(self._uncovered(each) or self.line.refusal(each) for each in commands)

    def _uncovered(self, command: Command) -> str:
        """Return why a command was not weighed, or is not covered by the token."""
        owner = owner_of(command.channel)  # what a person does takes no instrument
        beyond = "" if owner == OPERATOR else self.session.beyond(owner)
        return self.unweighed(command) or beyond

    async def read(self, channel: str) -> float:
        """Measure one channel now; raises ``OutOfScope`` where the token does not cover it."""
        self.line.check()
        self._covers(owner_of(channel))
        return await self.line.read(channel)

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        """Ask an instrument for a value that is not a number, and keep the result at once.

        Raises:
            JournalFailed: The result cannot be kept.
            OutOfScope: The token does not cover the instrument.
        """
        self.line.check()
        self._covers(instrument)
        value = await self.line.query(instrument, name)
        await self.reporter.measured(instrument, name, about or {}, value)
        return value

    def _covers(self, instrument: str) -> None:
        if why := self.session.beyond(instrument):
            raise OutOfScope(why)

    async def next_tick(self) -> None:
        """Wait for the next poll."""
        await self.line.next_tick()
        self.line.holding.check()
        self.reporter.ticked()

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Have a manual step done that the envelope allows; a trip meanwhile ends it."""

        async def ask() -> str:
            self.reporter.asked(text, details)
            by = await self.operator.confirm(action, text, details)
            self.reporter.confirmed(by)
            return by

        await self.line.released()
        return await self.line.by_hand(action, ask)
