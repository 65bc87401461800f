"""Preparing instruments: when the line is armed, and again when a lost link is back.

An instrument that restarted has lost its watchdog and its modes, and answers polls all the same.
Until its ``prepare`` is confirmed no other command passes on that port, and what is not confirmed
in time trips, on a line that is held too: it is prepared if it is let go in time. A procedure does
not wait for this, and a port that it was sent over is left as it is: nothing else is set there.

A command is judged by the last readings. One that is older than ``prepare`` shows a mode or a
watchdog that is not so any more, and a sound command would be refused, or an unsound one allowed.
So at the end of an arming everything polled is read once more.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text, several
from labharness.journal import JournalFailed
from labharness.line.events import Events
from labharness.line.exchanges import NoReply
from labharness.line.gate import Gate
from labharness.line.instrument import Instrument, prepare_commands
from labharness.safety.kernel import Mode, adopt, expect

FULL_POLL_S_MAX = 5.0
"""Lab time (s) for reading everything once: ``lab check`` allows a poll of 1 s on each port, twice
where replies are lost, beside the poll that is under way."""

RETURN_S_MAX = 30.0  # from a loss to everything prepared again; a stage may move for as long
LOSSES_MAX = 5  # of one link, while the line is armed: a sixth says that it does not hold
ASK_AGAIN_S = 0.25  # an instrument that restarts takes its time

SERVED = frozenset({Mode.HELD, Mode.RUNNING})  # arming looks for itself, and nothing else is set


@dataclass(eq=False, kw_only=True)
class Reconnecting:
    """Prepares the instruments of a line, and those of a port again whose link was lost.

    Attributes:
        gate: Keeps other commands from the port; it has the memory and the instruments.
        identify: Identifies one instrument; raises ``NoReply``.
        carry_out: Carries out one command.
        note: Records a fact if it can; it must not raise.
        trip: Trips because of a port, with a reason.
        events: Report a warning.
    """

    gate: Gate
    identify: Callable[[str], Awaitable[object]]
    carry_out: Callable[[Command], Awaitable[Outcome]]
    note: Callable[[str, Mapping[str, object]], None]
    trip: Callable[[str, str], None]
    events: Events

    def __post_init__(self) -> None:
        self.memory, self.instruments = self.gate.memory, self.gate.instruments
        self._losses: dict[str, int] = {}  # of each port since the line was armed
        self._left: set[str] = set()  # ports that a safe state was sent to since their loss
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def lost(self, port: str, why: str) -> None:
        """Take the loss of a link; its permits are void already."""
        self.gate.unprepared[port] = None
        self._losses[port] = self._losses.get(port, 0) + 1
        self._left.discard(port)
        self.note("link_lost", {"port": port, "why": why})
        for instrument in self._behind(port):  # what restarted there has lost them
            for command in prepare_commands(instrument, self.memory.envelope):
                if command.channel in self.memory.envelope.limits:
                    expect(self.memory, command.channel, math.nan)
        if self.memory.mode in SERVED:
            self._begin(port)

    async def prepare(
        self,
        perform: Callable[[Command], Awaitable[Outcome]],
        polled: Sequence[str],
        read_all: Callable[[Sequence[str], float], Awaitable[Mapping[str, float]]],
    ) -> str:
        """Carry out every ``prepare`` of the lab file in order, and then read each polled channel.

        A reading here counts as the setting of a channel without one.

        Args:
            perform: Carries out one command as anybody's: on a line that has tripped it raises.
            polled: Every channel that the line polls.
            read_all: Measures channels now, each for so long at most; returns those that answered.

        Returns:
            The hindrance to arming the line; ``""`` for none.
        """
        for instrument in self.instruments.values():
            for command in prepare_commands(instrument, self.memory.envelope):
                outcome = await perform(command)
                if outcome.ending is not Ending.CONFIRMED:
                    return _not_prepared(outcome)
        answered = await read_all(polled, FULL_POLL_S_MAX)
        watched = [each for each in polled if each in self.memory.envelope.watches]
        silent = tuple(each for each in watched if each not in answered)
        adopt(self.memory, answered)
        if not silent:
            return ""
        return Text("prepare.unread", within_s=FULL_POLL_S_MAX, channels=silent)

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command, once the instruments on its port are prepared again.

        Raises:
            JournalFailed: The intent could not be recorded; no byte was sent, and the line trips.
        """
        await self.settled(command.channel)
        return await self.carry_out(command)

    async def settled(self, channel: str) -> None:
        """Wait while the port of a channel is being prepared again; a held line refuses at once."""
        instrument = self.instruments.get(split_channel(channel)[0])
        task = None if instrument is None else self._tasks.get(instrument.port)
        if task is not None and not task.done() and self.memory.mode is not Mode.HELD:
            await asyncio.wait((task,))

    async def meet(self) -> None:
        """Identify the instruments behind lost links, before the line is armed.

        Raises:
            NoReply: An instrument is silent, or answers as another.
        """
        self.close()
        self._losses = dict.fromkeys(self.gate.unprepared, 0)
        for port in tuple(self._losses):
            for instrument in self._behind(port):
                await self.identify(instrument.name)
            if not self._losses[port]:
                self._back(port)

    def leave(self) -> None:
        """Prepare nothing behind the links lost so far: the line is made safe, and verified.

        A link that is lost after this is prepared or trips as ever: it may undo the safe state.
        """
        self._left = set(self.gate.unprepared)

    def serve(self) -> None:
        """Prepare the remaining ports, because the line goes on."""
        self._left.clear()
        for port in self.gate.unprepared:
            self._begin(port)

    def missing(self) -> tuple[str, ...]:
        """Return the ports whose link was lost since the line was last armed or prepared again."""
        return tuple(self.gate.unprepared)

    def close(self) -> None:
        """Prepare nothing any more."""
        for task in self._tasks.values():
            task.cancel()

    def _begin(self, port: str) -> None:
        task = self._tasks.get(port)
        if task is None or task.done():
            loop = asyncio.get_running_loop()
            self._tasks[port] = loop.create_task(self._serve(port), name=f"prepare {port} again")

    async def _serve(self, port: str) -> None:
        wrong: str = Text("link.not_back", within_s=RETURN_S_MAX)
        try:
            async with asyncio.timeout(RETURN_S_MAX):
                wrong = await self._prepare(port)
        except TimeoutError:
            if self.memory.mode is Mode.HELD:
                wrong = several(wrong, Text("link.held"))
        except JournalFailed as why:
            wrong = str(why)
        finally:  # the instruments behind that link are not known after any error here
            if wrong and port not in self._left and self.memory.mode in SERVED:
                self.trip(port, Text("link.lost", port=port, why=wrong))

    async def _prepare(self, port: str) -> str:
        """Prepare all behind a port until no loss has come between; return the error."""
        while True:
            losses = self._losses[port]
            if losses > LOSSES_MAX:
                return Text("link.losses", count=losses)
            await self._ask(port)
            wrong = await self._perform_all(port, losses)
            if losses == self._losses[port]:
                if not wrong:
                    self._back(port)
                return wrong

    async def _ask(self, port: str) -> None:
        for instrument in self._behind(port):
            while True:  # its caller bounds it in time
                try:
                    await self.identify(instrument.name)
                except NoReply:
                    await asyncio.sleep(ASK_AGAIN_S)
                else:
                    break

    async def _perform_all(self, port: str, losses: int) -> str:
        for instrument in self._behind(port):
            for command in prepare_commands(instrument, self.memory.envelope):
                wrong = await self._set(port, command, losses)
                if wrong:
                    return wrong
        return ""

    async def _set(self, port: str, command: Command, losses: int) -> str:
        """Set one value, once the line is not held any more; return the error."""
        while True:
            await self._let_go(port)
            if losses != self._losses[port]:
                return Text("link.again")
            if port in self._left:
                return Text("link.left")
            self.gate.unprepared[port] = command
            outcome = await self.carry_out(command)
            if outcome.ending is Ending.CONFIRMED:
                return ""
            if outcome.ending is not Ending.REFUSED or self.memory.mode is not Mode.HELD:
                return _not_prepared(outcome)

    async def _let_go(self, port: str) -> None:
        """Wait while the line is held; its caller bounds it in time."""
        told = False
        while self.memory.mode is Mode.HELD and port not in self._left:
            if not told:
                what = Text("link.not_prepared", port=port)
                self.events.on_warning(Text("link.resume", what=what, within_s=RETURN_S_MAX))
                told = True
            await asyncio.sleep(ASK_AGAIN_S)

    def _back(self, port: str) -> None:
        del self.gate.unprepared[port]
        self.note("link_back", {"port": port})

    def _behind(self, port: str) -> list[Instrument]:
        return [each for each in self.instruments.values() if each.port == port]


def _not_prepared(outcome: Outcome) -> Text:
    command = outcome.command
    what = Text("step.to", channel=command.channel, value=command.value)
    return Text("prepare.ended", what=what, ending=outcome.ending, why=outcome.detail)
