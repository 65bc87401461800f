"""A road that was lost and is back: who stands behind it is prepared again, before all else.

An instrument that restarted has lost its watchdog and its modes, and answers polls all the same.
Until its ``prepare`` is confirmed no other command passes on that port, and what is not confirmed
in time trips. A procedure asks nobody, here as everywhere.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from labharness.journal import JournalFailed
from labharness.kernel import Memory, Mode
from labharness.line.exchanges import NoReply
from labharness.line.parts import Instrument, prepare_commands
from labharness.line.programs import Gate
from labharness.vocabulary import Command, Ending, Outcome
from labharness.vocabulary.channels import split_channel

__all__ = ["LOSSES_MAX", "RETURN_S_MAX", "Reconnecting"]

RETURN_S_MAX = 30.0  # from a loss to everything prepared again; a stage may move for as long
LOSSES_MAX = 5  # of one road, while the line is armed: a sixth says that it does not hold
ASK_AGAIN_S = 0.25  # an instrument that restarts takes its time

SERVED = frozenset({Mode.HELD, Mode.RUNNING})  # arming looks for itself, and nothing else is set


class Reconnecting:
    """Prepares the instruments of a port again whose road was lost.

    Args:
        memory: The kernel's, whose mode it reads.
        instruments: Those of the line.
        gate: Keeps other commands from the port.
        identify: Asks one instrument who it is; raises ``NoReply``.
        perform: Carries out one command.
        note: Records a fact if it can; it must not raise.
        trip: Trips because of a port, and says why.
    """

    def __init__(
        self,
        *,
        memory: Memory,
        instruments: Mapping[str, Instrument],
        gate: Gate,
        identify: Callable[[str], Awaitable[object]],
        perform: Callable[[Command], Awaitable[Outcome]],
        note: Callable[[str, Mapping[str, object]], None],
        trip: Callable[[str, str], None],
    ) -> None:
        self._memory = memory
        self._instruments = instruments
        self._gate = gate
        self._identify = identify
        self._perform = perform
        self._note = note
        self._trip = trip
        self._losses: dict[str, int] = {}  # of each port since the line was armed
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def lost(self, port: str, why: str) -> None:
        """Take the loss of a road; what was permitted on it is void already."""
        self._gate.unprepared[port] = None
        self._losses[port] = self._losses.get(port, 0) + 1
        self._note("road_lost", {"port": port, "why": why})
        task = self._tasks.get(port)
        if self._memory.mode in SERVED and (task is None or task.done()):
            loop = asyncio.get_running_loop()
            self._tasks[port] = loop.create_task(self._serve(port), name=f"prepare {port} again")

    async def settled(self, channel: str) -> None:
        """Wait while the port of a channel is being prepared again."""
        instrument = self._instruments.get(split_channel(channel)[0])
        task = None if instrument is None else self._tasks.get(instrument.port)
        if task is not None and not task.done():
            await asyncio.wait((task,))

    async def meet(self) -> None:
        """Before the line is armed, ask whoever stands behind a road that was lost who it is.

        Raises:
            NoReply: An instrument is silent, or answers as another.
        """
        self.close()
        self._losses = dict.fromkeys(self._gate.unprepared, 0)
        for port in tuple(self._losses):
            for instrument in self._behind(port):
                await self._identify(instrument.name)
            if not self._losses[port]:
                self._back(port)

    def missing(self) -> tuple[str, ...]:
        """Name the ports whose road was lost since the line was last armed or prepared again."""
        return tuple(self._gate.unprepared)

    def close(self) -> None:
        """Prepare nothing any more."""
        for task in self._tasks.values():
            task.cancel()

    async def _serve(self, port: str) -> None:
        wrong = f"its instruments were not prepared again within {RETURN_S_MAX:g} s"
        try:
            async with asyncio.timeout(RETURN_S_MAX):
                wrong = await self._prepare(port)
        except TimeoutError:
            pass
        except JournalFailed as why:
            wrong = str(why)
        finally:  # whatever broke here: nobody knows what stands behind that road
            if wrong and self._memory.mode in SERVED:
                self._trip(port, f"the road of port {port} was lost, and {wrong}")

    async def _prepare(self, port: str) -> str:
        """Prepare all behind a port until no loss has come between; give what is wrong."""
        while True:
            losses = self._losses[port]
            if losses > LOSSES_MAX:
                return f"it was lost {losses} times"
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
                    await self._identify(instrument.name)
                except NoReply:
                    await asyncio.sleep(ASK_AGAIN_S)
                else:
                    break

    async def _perform_all(self, port: str, losses: int) -> str:
        for instrument in self._behind(port):
            for command in prepare_commands(instrument, self._memory.envelope):
                if losses != self._losses[port]:
                    return "it was lost again"
                self._gate.unprepared[port] = command
                outcome = await self._perform(command)
                if outcome.ending is not Ending.CONFIRMED:
                    what = f"{command.channel} = {command.value:g}"
                    return f"prepare {what} {outcome.ending}: {outcome.detail}"
        return ""

    def _back(self, port: str) -> None:
        del self._gate.unprepared[port]
        self._note("road_back", {"port": port})

    def _behind(self, port: str) -> list[Instrument]:
        return [each for each in self._instruments.values() if each.port == port]
