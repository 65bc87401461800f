"""A line driven by hand: armed, set, watched by a person, and made safe at the end.

It passes the same gate as a run: the safe table first, each value judged, journaled and read back,
trips in force. Its end (by time, stop request or trip) leaves the line in its safe state, and a hot
line is watched until it is cold.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, Clock, utc_text
from labharness.core.clock import run as run_on
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.journal import JournalFailed
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import LineBusy, LineLock
from labharness.lab.wiring.alarms import line_alarms, somebody_knows
from labharness.lab.wiring.control import served
from labharness.lab.wiring.lab import Lab
from labharness.lab.wiring.operators import TerminalOperator
from labharness.lab.wiring.runs import BadOutput, make_loop, open_journal, seed_of
from labharness.line import HoldTooLong, Line, LineAlarms, NotArmed, Tripped
from labharness.safety.guard import LatchUnreadable
from labharness.safety.kernel import IllegalMode
from labharness.work.desk.by_hand import ByHand
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.desk.making_safe import Cooling, MakingSafe

NOT_SET = 1  # the exit code of a command that was not carried out


class BrokeOff(CodedError, RuntimeError, code="broke_off"):
    """An error inside labharness; a line that was armed was made safe before the end."""


@dataclass(frozen=True, slots=True)
class Left:
    """The state in which an attended line was left.

    Attributes:
        ended: The cause of the end, in one sentence.
        unverified: Steps of the safe state that could not be verified.
        tripped: The cause of its trip, which has latched it; ``""`` where it has not tripped.
    """

    ended: str
    unverified: tuple[str, ...]
    tripped: str


@dataclass(eq=False)
class Attendance:
    """One person at one line.

    Attributes:
        plan: The lab's files.
        folder: The folder of its journal.
        by: The name of the person.
        speed: Lab seconds a real second; ``None`` for virtual time.
        for_s: Lab time after which it ends by itself; ``None`` until it is stopped.
        tell: Called with warnings and events.
    """

    plan: LabPlan
    folder: Path
    by: str
    speed: float | None
    for_s: float | None
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._ended = self._again = ""
        self._line: Line | None = None
        self._cooling: Cooling | None = None
        self._alarms: LineAlarms | None = None

    def run(
        self, first: Mapping[str, Any], told: Callable[[Mapping[str, Any]], int]
    ) -> tuple[int, Left]:
        """Arm the line, carry out ``first``, stay until the end, and leave the line safe.

        Args:
            first: The values to set, as the control socket takes them.
            told: Called with the answer at once; if it does not return 0, the attendance ends.

        Returns:
            The result of ``told``, and the state in which the line was left.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
            NotArmed: The line cannot be armed as it stands.
            LinkLost: A link does not open.
            NoReply: An instrument is silent, or another one answers.
            LineBusy: Another process owns the line.
            BrokeOff: An error inside labharness.
            BadOutput: The folder holds another journal.
            OSError: State directory or journal folder cannot be written.
        """
        self.plan.must_hold()
        if (self.folder / JOURNAL_NAME).exists():
            raise BadOutput("output.run", folder=str(self.folder))
        self.plan.make_state_dir()
        try:
            with self.plan.lock(self.folder) as lock:
                self.folder.mkdir(parents=True, exist_ok=True)
                loop = self._loop = make_loop(self.speed, self.plan)
                return run_on(self._main(Clock(loop), first, told, lock), loop)
        except (BadLabFile, NotArmed, ConnectionError, OSError, LineBusy, LatchUnreadable) as why:
            if tripped := self._latched():
                raise BrokeOff("attend.ended", why=str(why), latched=tripped) from None
            raise
        except JournalFailed as why:
            folder, latched = str(self.folder), self._latched()
            raise BrokeOff(
                "attend.no_journal", folder=folder, why=str(why), latched=latched
            ) from None
        except Exception as why:  # noqa: BLE001 - no traceback reaches a user
            kind, latched = type(why).__name__, self._latched()
            raise BrokeOff("attend.broke", kind=kind, why=str(why), latched=latched) from None

    def stop(self, reason: str) -> None:
        """End it, from a signal handler; before it has begun it then never begins."""
        self._ended = self._ended or reason
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.abort, reason)

    # ---- requests of the control socket to an owner (desk.Owner)

    def abort(self, reason: str) -> None:
        """End it: the line is made safe; asked for again, it is not watched until it is cold."""
        self._ended = self._ended or reason
        if self._over is not None:
            self._again = reason if self._over.is_set() else ""
            self._over.set()
        if self._again and self._cooling is not None:
            self._cooling.break_off(self._again)
        if self._alarms is not None:
            self._alarms.give_up()

    async def hold(self, reason: str) -> str:
        """Let no further value be set."""
        line = self._driven()
        await line.hold()
        return line.holding.said()

    async def resume(self, reason: str) -> None:
        """Let values be set again; raises ``NotArmed`` where the line is not held."""
        line = self._driven()
        line.check()
        if not line.holding.on:
            raise NotArmed(Text("attend.not_held"))
        line.start()

    def about(self) -> Mapping[str, Any]:
        """Return the name of the person who attends."""
        return {"session_id": None, "state": "BY_HAND", "step": f"attended by {self.by}"}

    def _latched(self) -> str:
        """Return the state of a line that tripped, and the next step."""
        if self._line is None or self._line.memory.trip is None:
            return ""
        found = self._line.trip_response.verifications
        unverified = found[-1].unverified() if found else ("nothing was read back",)
        safe = f"NOT verified: {', '.join(unverified)}" if unverified else "verified"
        reset = self.plan.reset_command
        return (
            f"; it tripped ({self._line.memory.trip.detail}): its safe frames were sent, {safe}, "
            f"and it is latched; when the cause is gone: {reset}"
        )

    def _driven(self) -> Line:
        if self._line is None:
            raise NotArmed(Text("attend.not_open"))
        return self._line

    # ---- inside

    async def _main(
        self,
        clock: Clock,
        first: Mapping[str, Any],
        told: Callable[[Mapping[str, Any]], int],
        lock: LineLock,
    ) -> tuple[int, Left]:
        run = {
            "by_hand": self.by,
            "ambient_torr": self.plan.file.lab.ambient_torr,
            "epoch": utc_text(clock.utc()),
        }
        self._over = asyncio.Event()
        if self._ended:
            self._over.set()
        journal = open_journal(self.plan, self.folder, clock, run, speed=clock.speed)
        try:
            lab = Lab(
                self.plan,
                clock=clock,
                chance=Chance(seed_of(self.plan)),
                journal=journal,
                operator=TerminalOperator(lambda prompt: ""),
            )
            alarms = self._alarms = line_alarms(lab)
            line = self._line = lab.line
            line.events.on_warning = self.tell
            hands = ByHand(line, self)
            try:
                home = self.plan.state_dir
                async with served(home, hands.answer, clock, self.tell, hands.lose_door):
                    code = NOT_SET
                    if await self._armed(line) and not self._over.is_set():
                        code = told(await hands.answer(first))
                    else:
                        self.tell(f"labharness set: {first['channel']} was not set")
                    if code:
                        self._ended = self._ended or "it was not set"
                    else:
                        await self._stay(line)
                    return code, await self._leave(line)
            finally:
                await line.close()
                lock.release()  # a person who comes to help may have the line
                with suppress(JournalFailed):
                    journal.flush()
                await somebody_knows(alarms, clock, self.tell)
        finally:
            with suppress(JournalFailed):  # the line has tripped on it, and says so
                journal.close()

    async def _armed(self, line: Line) -> bool:
        """Arm the line and let values through; return ``False`` where it tripped meanwhile.

        The error of an arming that a trip broke off adds nothing to the trip.
        """
        try:
            await line.open()
            await line.arm(self.plan.safe_procedure)
            line.start()
        except (NotArmed, Tripped, IllegalMode, ConnectionError):
            if line.memory.trip is None:
                raise
            self._ended = self._ended or f"it tripped while it was armed: {line.memory.trip.detail}"
            return False
        return True

    async def _stay(self, line: Line) -> None:
        over = self._over
        if over is None:
            raise RuntimeError("an attendance that never began cannot stay")
        until_s = float("inf") if self.for_s is None else line.clock.now_s() + self.for_s
        self.tell(self._until(line.clock))
        try:
            while not over.is_set() and line.clock.now_s() < until_s:
                await line.next_tick()
                line.holding.check()
        except Tripped as why:
            self._ended = str(why)
        except HoldTooLong as why:
            self._ended = str(why)
            line.monitor.note("warning", {"detail": self._ended})
            self.tell(f"{self._ended}: the line is made safe")
        self._ended = self._ended or f"its {self.for_s:g} s are over"

    def _until(self, clock: Clock) -> str:
        """Return how to end the attendance, for a person who may never have ended one."""
        ends = ["Ctrl-C"]
        if not clock.virtual:  # no other terminal keeps up with it
            ends.append(f"labharness stop{self.plan.option} at another terminal")
        if self.for_s is not None:
            ends.append(f"{self.for_s:g} s")
        last = f" or {ends[-1]}" if len(ends) > 1 else ""
        return f"attended here until {', '.join(ends[:-1] or ends)}{last}; then it is left safe"

    async def _leave(self, line: Line) -> Left:
        if self._over is not None:
            self._over.set()
        making_safe = MakingSafe(line, self.plan.safe_procedure)
        await making_safe.wait()
        self._cooling = Cooling(line, making_safe, lambda _, data: self.tell(data["message"]))
        if self._again:
            self._cooling.break_off(self._again)
        if not line.is_cold:
            self.tell(Text("attend.again"))
        cooled = await self._cooling.watch()
        return Left(self._ended, cooled.unverified, cooled.tripped)
