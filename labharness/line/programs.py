"""Programs that instruments run: written under permit, read back block by block, then started.

While it is written the stored program is one that ends at once: its first segment becomes an End
before anything else, and is written last. A person who presses the instrument's own button in
between, or after a kill, starts nothing. A block that reads as it should is not written: it lives
in a memory that wears.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from labharness.core.vocabulary import (
    BadReply,
    Command,
    DeviceFault,
    Ending,
    Outcome,
    Program,
    Refused,
)
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Block, Programmer
from labharness.line.command import Writer
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.gate import Gate
from labharness.line.instrument import Instrument


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


class Programs:
    """Stores and starts programs, in the turn of a line's one writer.

    Args:
        gate: Judges programs, and remembers those that are stored.
        instruments: The instruments of the line.
        writer: The line's writer: it gives the turn and records the upload.
        exchanges: The way to the ports.
        now_s: Lab time.
        perform: Carries out one command.
    """

    def __init__(
        self,
        *,
        gate: Gate,
        instruments: Mapping[str, Instrument],
        writer: Writer,
        exchanges: Exchanges,
        now_s: Callable[[], float],
        perform: Callable[[Command], Awaitable[Outcome]],
    ) -> None:
        self._gate = gate
        self._instruments = instruments
        self._writer = writer
        self._exchanges = exchanges
        self._now_s = now_s
        self._perform = perform

    async def upload(self, name: str, program: Program) -> Uploaded:
        """Store a program in an instrument; it is not started.

        Raises:
            JournalFailed: The intent could not be recorded; no byte was sent, and the line trips.
            LookupError: The instrument runs no programs.
        """
        programmer = programmer_of(self._instruments, name)
        async with self._writer.turn:
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
        programmer = programmer_of(self._instruments, name)
        command = Command(f"{name}.{programmer.status}", programmer.run, "")
        if self._gate.held(name):
            return await self._perform(command)
        stored = self._gate.stored.pop(name, None)
        if stored is not None:
            try:
                differ = await self._differ(name, programmer.blocks(stored[0]))
            except _NotStored as why:
                return Outcome(command, Ending.REFUSED, None, str(why))
            if differ:
                changed = Text("upload.differs", block=differ[0].name)
                return Outcome(command, Ending.REFUSED, None, changed)
            self._gate.stored[name] = (stored[0], self._now_s())
        if not self._gate.chosen(name):
            number = Command(f"{name}.{programmer.number}", programmer.slot, "")
            outcome = await self._perform(number)
            if outcome.ending is not Ending.CONFIRMED:
                return outcome
        return await self._perform(command)

    async def hold(self, name: str) -> Outcome:
        """Hold a program where it is; the heat stays."""
        programmer = programmer_of(self._instruments, name)
        return await self._perform(Command(f"{name}.{programmer.status}", programmer.hold, ""))

    async def reset(self, name: str) -> Outcome:
        """End a program: the controller goes back to its own setpoint."""
        programmer = programmer_of(self._instruments, name)
        return await self._perform(Command(f"{name}.{programmer.status}", programmer.reset, ""))

    async def _recorded(self, name: str, programmer: Programmer, program: Program) -> Uploaded:
        asked = {"instrument": name, **program.written()}
        intent = await self._writer.intend("program", asked)
        self._gate.stored.pop(name, None)
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
            self._writer.ended("program_stored", ended)
        return uploaded

    async def _store(self, name: str, programmer: Programmer, program: Program) -> Uploaded:
        verdict = self._gate.judge_program(name, program)
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
        self._gate.stored[name] = (program, self._now_s())
        return Uploaded(Ending.CONFIRMED, written)

    async def _differ(self, name: str, blocks: tuple[Block, ...]) -> list[Block]:
        """Read every block; return those that are not as they should be."""
        return [each for each in blocks if await self._found(name, each) != each.holds]

    async def _write(self, name: str, program: Program, block: Block) -> None:
        trouble = ""
        instrument = self._instruments[name]
        try:
            async with self._exchanges.lease(instrument.port) as lease:
                await lease.settle()
                # from here to the frame's hand-over there is no await: the verdict still holds
                verdict = self._gate.judge_program(name, program)
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
            return await self._exchanges.query(self._instruments[name].port, block.read)
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
