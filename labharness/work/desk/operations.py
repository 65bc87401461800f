"""Carries out a plan's operations on a line and by its operator, within the session's token."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from labharness.core.errors import LabError
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text
from labharness.line import Line
from labharness.work.plan import Operator


class OutOfScope(LabError, RuntimeError, code="out_of_scope"):
    """An operation that the session's token does not cover."""


class LineOperations:
    """The ``plan.Operations`` of a line and its operator.

    Args:
        line: The line, behind its gate.
        operator: The person who does manual steps.
        authorised: Returns whether the session's token is in force.
        beyond: Returns why the token does not cover an instrument; ``""`` if it does.
        ticked: Called after every poll.
        asked: Called with the text of a manual step and facts on it, before it is done.
        confirmed: Called with the name of the person who has done it.
        unweighed: Returns why a command was not weighed and approved; ``""`` if it was.
        keep: Keeps the result of a query: instrument, query, facts on it, and the value.

    Attributes:
        latest, volumes_purged, now_s, held_s: The line's own methods.
    """

    def __init__(
        self,
        line: Line,
        operator: Operator,
        authorised: Callable[[], bool],
        beyond: Callable[[str], str],
        ticked: Callable[[], None],
        asked: Callable[[str, Mapping[str, object]], None],
        confirmed: Callable[[str], None],
        unweighed: Callable[[Command], str],
        keep: Callable[[str, str, Mapping[str, object], object], Awaitable[None]],
    ) -> None:
        self._line = line
        self._operator = operator
        self._authorised = authorised
        self._beyond = beyond
        self._ticked = ticked
        self._asked = asked
        self._confirmed = confirmed
        self._unweighed = unweighed
        self._keep = keep
        self.latest = line.latest
        self.volumes_purged = line.volumes_purged
        self.now_s = line.clock.now_s
        self.held_s = line.holding.total_s

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command under the session's token.

        One that adds energy and was not weighed, or that the token does not cover, is refused here,
        before the gate is asked.
        It waits while the line is held, except when the plan is being stopped and only tidies up.

        Raises:
            Tripped: The line has tripped.
            TimeoutError: The token has expired with the task's ``max_duration``.
        """
        self._line.check()
        why = self._unweighed(command) or self._beyond(owner_of(command.channel))
        if why:
            return Outcome(command, Ending.REFUSED, detail=why)
        task = asyncio.current_task()
        while True:
            stopping = task is not None and task.cancelling() > 0
            if not stopping:
                await self._line.released()
            if not self._authorised():
                raise TimeoutError(Text("token.void"))
            outcome = await self._line.perform(command)
            self._line.check()
            # a hold may have come while it waited for its turn: no byte left, so it may go later
            if stopping or outcome.ending is not Ending.REFUSED or not self._line.holding.on:
                return outcome

    async def read(self, channel: str) -> float:
        """Measure one channel now; raises ``OutOfScope`` where the token does not cover it."""
        self._line.check()
        self._covers(owner_of(channel))
        return await self._line.read(channel)

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        """Ask an instrument for a value that is not a number, and keep the result at once.

        Raises:
            JournalFailed: The result cannot be kept.
            OutOfScope: The token does not cover the instrument.
        """
        self._line.check()
        self._covers(instrument)
        value = await self._line.query(instrument, name)
        await self._keep(instrument, name, about or {}, value)
        return value

    def _covers(self, instrument: str) -> None:
        if why := self._beyond(instrument):
            raise OutOfScope(why)

    async def next_tick(self) -> None:
        """Wait for the next poll."""
        await self._line.next_tick()
        self._line.holding.check()
        self._ticked()

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Have a manual step done that the envelope allows; a trip meanwhile ends it."""

        async def ask() -> str:
            self._asked(text, details)
            by = await self._operator.confirm(action, text, details)
            self._confirmed(by)
            return by

        await self._line.released()
        return await self._line.by_hand(action, ask)
