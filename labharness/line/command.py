"""The one writer of a line: a command is judged, journaled, sent under permit and read back.

The intent is on disk before the first byte; between the verdict and the frame's hand-over there is
no await, so that what was judged still holds; and the next command waits until the read-back of
this one is folded into memory. A person who opens the line by hand takes the same turn.

Programs that instruments run: written under permit, read back block by block, then started. While
it is written the stored program is one that ends at once: its first segment becomes an End before
anything else, and is written last. A person who presses the instrument's own button in between, or
after a kill, starts nothing. A block that reads as it should is not written: it lives in a memory
that wears.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from labharness.core.errors import LabError
from labharness.core.vocabulary import (
    OPERATOR,
    BadReply,
    Command,
    DeviceFault,
    Ending,
    Outcome,
    Program,
    Refused,
    Request,
)
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.driver import Block, Channel, Exchange, Programmer
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


@dataclass(eq=False, kw_only=True)
class Writer:
    """Performs commands, one at a time.

    Attributes:
        gate: Judges commands, and remembers those that were sent.
        instruments: The instruments of the line.
        exchanges: The way to the ports.
        journal: Gets intents and outcomes.
        now_s: Lab time.
        read: Measures a channel.
        lost: Called when the journal is lost.
    """

    gate: Gate
    instruments: Mapping[str, Instrument]
    exchanges: Exchanges
    journal: Journal
    now_s: Callable[[], float]
    read: Callable[[str], Awaitable[float]]
    lost: Callable[[str], None]

    def __post_init__(self) -> None:
        self._idle = Idle(self.gate.latest, self.read)
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
            intent = self.journal.append(kind, body, self.now_s())
            await self.journal.durable(intent)
        except JournalFailed as why:
            self.lost(str(why))
            raise
        return intent

    def ended(self, kind: str, body: Mapping[str, object]) -> None:
        """Record an outcome if the journal takes it; if not, the next record trips the line."""
        with suppress(JournalFailed):
            self.journal.append(kind, body, self.now_s())

    async def open_by_hand(self, action: str) -> Command:
        """Allow one opening; its contact counts as open until the command given is concluded.

        Raises:
            NotOpened: The kernel refuses it.
            JournalFailed: It could not be recorded.
        """
        command = Command(f"{OPERATOR}.{action}", 0.0, "")
        async with self.turn:
            verdict = self.gate.judge(command)
            refused = verdict.reason if isinstance(verdict, Refused) else ""
            await self.intend("opening", {"action": action, "refused": refused})
            verdict = self.gate.judge(command)  # the disk took its time
            if isinstance(verdict, Refused):
                raise NotOpened(verdict.reason)
            self.gate.begin(command)
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
        verdict = self.gate.judge(command)
        if isinstance(verdict, Refused):
            return Outcome(command, Ending.REFUSED, None, verdict.reason)
        try:
            instrument, channel, spec = channel_of(self.instruments, command.channel)
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
        async with self.exchanges.lease(port) as lease:
            while True:
                await lease.settle()
                # from here to the frame's hand-over there is no await: the verdict still holds
                verdict = self.gate.judge(command)
                if isinstance(verdict, Refused):
                    ending = Ending.UNKNOWN if begun else Ending.REFUSED
                    return Outcome(command, ending, None, verdict.reason)
                self.gate.begin(command)
                begun = True
                reply = await lease.send(request, command=True)
                try:
                    request = exchange.send(reply)
                except StopIteration:
                    return None

    async def _read_back(
        self, command: Command, owner: str, spec: Channel, fault: str, unproven: str, many: bool
    ) -> Outcome:
        trouble, asked, unit = fault or unproven, command.value, spec.unit
        if spec.readback is None or (trouble and many):  # a read-back shows the last frame only
            if trouble:
                return Outcome(command, Ending.FAILED if fault else Ending.UNKNOWN, None, trouble)
            self.gate.conclude(command)
            return Outcome(command, Ending.UNCONFIRMED, None, Text("command.unshown"))
        shown_by = owner + spec.readback
        until_s = self.now_s() + spec.settle_s
        while True:
            try:
                found = await self.read(shown_by)
            except NoReply as why:
                return Outcome(command, Ending.UNKNOWN, None, several(trouble, str(why)))
            lost = found == 0 and asked != 0  # within a step, but 0 may well mean off
            if abs(found - asked) <= spec.resolution and not lost:
                self.gate.conclude(command)
                return Outcome(command, Ending.CONFIRMED, found, trouble)
            if self.now_s() >= until_s or fault:
                what = Text(
                    "command.mismatch", channel=shown_by, found=found, unit=unit, asked=asked
                )
                ending = Ending.FAILED if fault else Ending.MISMATCH
                return Outcome(command, ending, found, several(trouble, what))
            await asyncio.sleep(READ_BACK_S)


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The outcome of an upload.

    Attributes:
        ending: ``confirmed`` when every block reads as it should; ``refused`` when no byte left.
        written: Blocks that were written.
        detail: The error, in one sentence.
    """

    ending: Ending
    written: int = 0
    detail: str = ""


class _NotStored(Exception):
    """A block is not what it should be."""

    def __init__(self, ending: Ending, why: str) -> None:
        super().__init__(why)
        self.ending = ending


@dataclass(eq=False, kw_only=True)
class Programs:
    """Stores and starts programs, in the turn of a line's one writer.

    Attributes:
        writer: The line's writer: it gives the turn, its gate, and the way to the ports.
        perform: Carries out one command.
    """

    writer: Writer
    perform: Callable[[Command], Awaitable[Outcome]]

    async def upload(self, name: str, program: Program) -> Uploaded:
        """Store a program in an instrument; it is not started.

        Raises:
            JournalFailed: The intent could not be recorded; no byte was sent, and the line trips.
            LookupError: The instrument runs no programs.
        """
        programmer = programmer_of(self.writer.instruments, name)
        async with self.writer.turn:
            uploaded = await self._recorded(name, programmer, program)
        if uploaded.ending in (Ending.CONFIRMED, Ending.REFUSED):
            return uploaded
        reset = await self.reset(name)
        detail = f": {reset.detail}" if reset.detail else ""
        why = Text("upload.reset", why=uploaded.detail, ending=reset.ending, detail=detail)
        return Uploaded(uploaded.ending, uploaded.written, why)

    async def start(self, name: str) -> Outcome:
        """Start the program that was uploaded: read once more, judged, and read back.

        One that is held goes on.

        Raises:
            JournalFailed: As ``upload``.
            LookupError: The instrument runs no programs.
        """
        programmer = programmer_of(self.writer.instruments, name)
        command = Command(f"{name}.{programmer.status}", programmer.run, "")
        if self.writer.gate.held(name):
            return await self.perform(command)
        stored = self.writer.gate.stored.pop(name, None)
        if stored is not None:
            try:
                differ = await self._differ(name, programmer.blocks(stored[0]))
            except _NotStored as why:
                return Outcome(command, Ending.REFUSED, None, str(why))
            if differ:
                changed = Text("upload.differs", block=differ[0].name)
                return Outcome(command, Ending.REFUSED, None, changed)
            self.writer.gate.stored[name] = (stored[0], self.writer.now_s())
        if not self.writer.gate.chosen(name):
            number = Command(f"{name}.{programmer.number}", programmer.slot, "")
            outcome = await self.perform(number)
            if outcome.ending is not Ending.CONFIRMED:
                return outcome
        return await self.perform(command)

    async def hold(self, name: str) -> Outcome:
        """Hold a program where it is; the heat stays."""
        programmer = programmer_of(self.writer.instruments, name)
        return await self.perform(Command(f"{name}.{programmer.status}", programmer.hold, ""))

    async def reset(self, name: str) -> Outcome:
        """End a program: the controller goes back to its own setpoint."""
        programmer = programmer_of(self.writer.instruments, name)
        return await self.perform(Command(f"{name}.{programmer.status}", programmer.reset, ""))

    async def _recorded(self, name: str, programmer: Programmer, program: Program) -> Uploaded:
        asked = {"instrument": name, **program.written()}
        intent = await self.writer.intend("program", asked)
        self.writer.gate.stored.pop(name, None)
        uploaded = Uploaded(Ending.UNKNOWN, 0, Text("command.given_up"))
        try:
            uploaded = await self._store(name, programmer, program)
        finally:
            ended = {
                "intent": intent,
                "ending": uploaded.ending.value,
                "written": uploaded.written,
                "detail": uploaded.detail,
            }
            self.writer.ended("program_stored", ended)
        return uploaded

    async def _store(self, name: str, programmer: Programmer, program: Program) -> Uploaded:
        verdict = self.writer.gate.judge_program(name, program)
        if isinstance(verdict, Refused):
            return Uploaded(Ending.REFUSED, 0, verdict.reason)
        try:
            blocks = programmer.blocks(program)
        except ValueError as why:
            return Uploaded(Ending.REFUSED, 0, str(why))
        written = 0
        try:
            differ = await self._differ(name, blocks)
            if differ:
                rest = [each for each in differ if each is not blocks[-1]]
                for block in (programmer.empty, *rest, blocks[-1]):
                    await self._write(name, program, block)
                    written += 1
        except _NotStored as why:
            return Uploaded(why.ending, written, str(why))
        self.writer.gate.stored[name] = (program, self.writer.now_s())
        return Uploaded(Ending.CONFIRMED, written)

    async def _differ(self, name: str, blocks: tuple[Block, ...]) -> list[Block]:
        """Read every block; return those that are not as they should be."""
        return [each for each in blocks if await self._found(name, each) != each.holds]

    async def _write(self, name: str, program: Program, block: Block) -> None:
        trouble = ""
        instrument = self.writer.instruments[name]
        try:
            async with self.writer.exchanges.lease(instrument.port) as lease:
                await lease.settle()
                # from here to the frame's hand-over there is no await: the verdict still holds
                verdict = self.writer.gate.judge_program(name, program)
                if isinstance(verdict, Refused):
                    raise _NotStored(
                        Ending.UNKNOWN, Text("upload.refused", block=block.name, why=verdict.reason)
                    )
                reply = await lease.send(block.write, command=True)
                instrument.driver.accept(block.name, reply)
        except (BadReply, DeviceFault, NoReply) as why:
            trouble = f" ({why})"
        found = await self._found(name, block)
        if found != block.holds:
            what = Text(
                "upload.mismatch",
                block=block.name,
                found=str(found),
                written=str(block.holds),
                trouble=trouble,
            )
            raise _NotStored(Ending.MISMATCH, what)

    async def _found(self, name: str, block: Block) -> object:
        """Read one block."""
        try:
            return await self.writer.exchanges.query(self.writer.instruments[name].port, block.read)
        except NoReply as why:
            unread = Text("upload.unread", block=block.name, why=str(why))
            raise _NotStored(Ending.UNKNOWN, unread) from None


def programmer_of(instruments: Mapping[str, Instrument], name: str) -> Programmer:
    """Return the programmer of an instrument.

    Raises:
        LookupError: No such instrument, or it runs no programs; says which do.
    """
    able = [each.name for each in instruments.values() if each.driver.programmer is not None]
    instrument = instruments.get(name)
    if instrument is not None and instrument.driver.programmer is not None:
        return instrument.driver.programmer
    known = ", ".join(able) or "none"
    what = (
        Text("upload.no_instrument", instrument=name, hint=did_you_mean(name, list(instruments)))
        if instrument is None
        else Text("upload.no_programs", instrument=name)
    )
    raise LookupError(Text("upload.able", what=what, known=known))
