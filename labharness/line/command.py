"""The one writer of a line: a command is judged, journaled, sent under permit and read back.

The intent is on disk before the first byte; between the verdict and the frame's hand-over there is
no await, so that what was judged still holds; and the next command waits until the read-back of
this one is folded into memory. A person who opens the line by hand takes the same turn.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from labharness.core.errors import LabError
from labharness.core.vocabulary import (
    OPERATOR,
    Command,
    DeviceFault,
    Ending,
    Outcome,
    Refused,
    Request,
)
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.driver import Channel, Exchange
from labharness.journal import Journal, JournalFailed
from labharness.line.effects import Idle
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.gate import Gate
from labharness.line.instrument import Instrument, channel_of

WAITING_MAX = 64  # commands that wait for their turn; a plan has one, a person a few

T = TypeVar("T")
READ_BACK_S = 0.25  # pause between two looks at a channel that is still settling


class NotOpened(LabError, PermissionError, code="not_opened"):
    """The envelope does not let a person open the line by hand; no person was asked."""


class Writer:
    """Performs commands, one at a time.

    Args:
        gate: Judges commands, and remembers those that were sent.
        instruments: The instruments of the line.
        exchanges: The way to the ports.
        journal: Gets intents and outcomes.
        now_s: Lab time.
        read: Measures a channel.
        lost: Called when the journal is lost.
    """

    def __init__(
        self,
        *,
        gate: Gate,
        instruments: Mapping[str, Instrument],
        exchanges: Exchanges,
        journal: Journal,
        now_s: Callable[[], float],
        read: Callable[[str], Awaitable[float]],
        lost: Callable[[str], None],
    ) -> None:
        self._gate = gate
        self._instruments = instruments
        self._exchanges = exchanges
        self._journal = journal
        self._now_s = now_s
        self._read = read
        self._lost = lost
        self._idle = Idle(gate.latest, read)
        self.turn = asyncio.Lock()  # its holder may write
        self._waiting = 0

    async def idle(self) -> None:
        """Return when no command is in flight."""
        async with self.turn:
            pass

    async def between(self, act: Callable[[], T]) -> T:
        """Call a function while no command is on its way."""
        async with self.turn:
            return act()

    async def intend(self, kind: str, body: Mapping[str, object]) -> int:
        """Record an intent, and wait until it is on the disk.

        Raises:
            JournalFailed: It could not be; no byte may be sent, and the line trips.
        """
        try:
            intent = self._journal.append(kind, body, self._now_s())
            await self._journal.durable(intent)
        except JournalFailed as why:
            self._lost(str(why))
            raise
        return intent

    def ended(self, kind: str, body: Mapping[str, object]) -> None:
        """Record an outcome if the journal takes it; if not, the next record trips the line."""
        with suppress(JournalFailed):
            self._journal.append(kind, body, self._now_s())

    async def open_by_hand(self, action: str) -> Command:
        """Allow one opening; its contact counts as open until the command given is concluded.

        Raises:
            NotOpened: The kernel refuses it.
            JournalFailed: It could not be recorded.
        """
        command = Command(f"{OPERATOR}.{action}", 0.0, "")
        async with self.turn:
            verdict = self._gate.judge(command)
            refused = verdict.reason if isinstance(verdict, Refused) else ""
            await self.intend("opening", {"action": action, "refused": refused})
            verdict = self._gate.judge(command)  # the disk took its time
            if isinstance(verdict, Refused):
                raise NotOpened(verdict.reason)
            self._gate.begin(command)
            return command

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command and return its outcome.

        Raises:
            JournalFailed: The intent could not be recorded; no byte was sent.
        """
        if self._waiting >= WAITING_MAX:
            why = Text("command.queue", channel=command.channel, count=WAITING_MAX)
            return Outcome(command, Ending.REFUSED, None, why)
        self._waiting += 1
        try:
            return await self._in_turn(command)
        finally:
            self._waiting -= 1

    async def _in_turn(self, command: Command) -> Outcome:
        async with self.turn:
            value = command.value if math.isfinite(command.value) else str(command.value)
            asked = {"channel": command.channel, "value": value, "unit": command.unit}
            intent = await self.intend("intent", asked)
            outcome = Outcome(command, Ending.UNKNOWN, None, Text("command.given_up"))
            try:
                outcome = await self._send(command)
            finally:
                ended: dict[str, object] = {
                    "intent": intent,
                    "ending": outcome.ending.value,
                    "read_back": outcome.read_back,
                    "detail": outcome.detail,
                }
                if outcome.warning:
                    ended["warning"] = outcome.warning
                self.ended("outcome", ended)
            return outcome

    async def _send(self, command: Command) -> Outcome:
        verdict = self._gate.judge(command)
        if isinstance(verdict, Refused):
            return Outcome(command, Ending.REFUSED, None, verdict.reason)
        try:
            instrument, channel, spec = channel_of(self._instruments, command.channel)
        except LookupError as why:  # a person opens it, and is asked to
            return Outcome(command, Ending.REFUSED, None, str(why))
        exchange = instrument.driver.encode(channel, command.value)
        try:
            first = next(exchange)
            many = len(instrument.driver.write(channel, command.value)) > 1
        except ValueError as why:
            return Outcome(command, Ending.REFUSED, None, str(why))
        fault = unproven = ""
        try:
            refused = await self._exchange(command, instrument.port, exchange, first)
            if refused is not None:
                return refused
        except DeviceFault as why:
            fault = str(why)
        except (ValueError, NoReply) as why:  # BadReply, or a driver that stumbled over a reply
            unproven = Text("command.unproven", why=str(why))
        end = await self._read_back(command, f"{instrument.name}.", spec, fault, unproven, many)
        if end.ending is not Ending.CONFIRMED:
            return end
        return replace(end, warning=await self._idle.why(instrument, channel, command.value))

    async def _exchange(
        self, command: Command, port: str, exchange: Exchange, request: Request
    ) -> Outcome | None:
        """Send every frame of a command; return an outcome only if the kernel refuses one."""
        begun = False
        async with self._exchanges.lease(port) as lease:
            while True:
                await lease.settle()
                # from here to the frame's hand-over there is no await: the verdict still holds
                verdict = self._gate.judge(command)
                if isinstance(verdict, Refused):
                    ending = Ending.UNKNOWN if begun else Ending.REFUSED
                    return Outcome(command, ending, None, verdict.reason)
                self._gate.begin(command)
                begun = True
                reply = await lease.send(request, command=True)
                try:
                    request = exchange.send(reply)
                except StopIteration:
                    return None

    async def _read_back(
        self, command: Command, owner: str, spec: Channel, fault: str, unproven: str, many: bool
    ) -> Outcome:
        trouble = fault or unproven
        if spec.readback is None or (trouble and many):  # a read-back shows the last frame only
            if trouble:
                return Outcome(command, Ending.FAILED if fault else Ending.UNKNOWN, None, trouble)
            self._gate.conclude(command)
            return Outcome(command, Ending.UNCONFIRMED, None, Text("command.unshown"))
        shown_by = owner + spec.readback
        until_s = self._now_s() + spec.settle_s
        while True:
            try:
                found = await self._read(shown_by)
            except NoReply as why:
                return Outcome(command, Ending.UNKNOWN, None, several(trouble, str(why)))
            lost = found == 0 and command.value != 0  # within a step, but 0 may well mean off
            if abs(found - command.value) <= spec.resolution and not lost:
                self._gate.conclude(command)
                return Outcome(command, Ending.CONFIRMED, found, trouble)
            if self._now_s() >= until_s or fault:
                what = Text(
                    "command.mismatch",
                    channel=shown_by,
                    found=found,
                    unit=spec.unit,
                    asked=command.value,
                )
                ending = Ending.FAILED if fault else Ending.MISMATCH
                return Outcome(command, ending, found, several(trouble, what))
            await asyncio.sleep(READ_BACK_S)
