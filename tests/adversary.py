"""A walk by hand, played on armed lines in virtual time before the referee of the fault search.

What is refused is refused, and the walk goes on; what harms ends it. A trip ends it too, unless a
reset comes later in it. Whoever drives dies, stands still and is reset as in that search's world.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from labharness.chaos.referee import RefereeViolation
from labharness.chaos.scenario import Fault, Scenario
from labharness.chaos.world import _World
from labharness.core.clock import Clock, begin, failure_of
from labharness.core.vocabulary import Command, Ending
from labharness.instruments.link import LinkLost
from labharness.journal import SqliteJournal
from labharness.journal.null_journal import NullJournal
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import idle_line
from labharness.line import NoReply, NotArmed, Tripped
from labharness.line.command import NotOpened
from labharness.safety.guard import Latch
from labharness.safety.kernel import Mode
from labharness.work.desk.by_hand import ByHand, Nobody
from labharness.work.desk.folder import JOURNAL_NAME
from rig import SAFE_TABLE
from walks import Step

AFTER_TRIP_S = 30.0  # the referee keeps looking, at what the procedure leaves
AFTER_END_S = 15.0
MEND_S = 20.0  # what was decided on a lie is done by then: the referee's ``ACTED_S``
NOBODY_S_MAX = 600.0  # of a wait while nobody drives
LOADING = {"moo3_mass_mg": 10.0, "sulfur_mass_mg": 300.0, "substrate": "SiO2/Si", "sample_id": "A"}
SET_WORD_OF_2400 = 2  # register of its target setpoint, in tenths of a degree
SUDDEN = ("kill", "pause")

_Work = Callable[[Lab], Coroutine[Any, Any, Any]]


@dataclass
class Walked:
    """How a walk ended.

    Attributes:
        violation: What was wrong; ``None`` for nothing.
        trip: The last trip, in words.
        told: What was done, and what became of it, in lab time.
        demands: Seconds for which a hardware safeguard had to answer, by rule.
        endings: How many commands ended how, and how often a harness was killed, reset and armed.
        lab_s: Lab time that was simulated.
    """

    violation: RefereeViolation | None = None
    trip: str = ""
    told: list[tuple[float, str]] = field(default_factory=list)
    demands: dict[str, float] = field(default_factory=dict)
    endings: dict[str, int] = field(default_factory=dict)
    lab_s: float = 0.0

    def __str__(self) -> str:
        lines = [f"{at_s:8.1f} s  {text}" for at_s, text in self.told]
        return "\n".join([*lines, f"trip: {self.trip or 'none'}", f"violation: {self.violation}"])


def play_walk(plan: LabPlan, walk: Sequence[Step], folder: Path, seed: int = 1) -> Walked:
    """Play a walk in virtual time, in a folder of its own.

    Args:
        plan: The line; it must be simulated throughout.
        walk: What the person does.
        folder: For its journals and its latch.
        seed: Of the simulated lab.
    """
    folder.mkdir(parents=True)
    walker = _Walker(plan, walk, folder, seed)
    try:
        walker.play()
    finally:
        walker.close()
    return walker.walked()


class _Walker(_World):
    """Persons at a line, one harness of theirs after the other, and the referee."""

    def __init__(self, plan: LabPlan, walk: Sequence[Step], folder: Path, seed: int) -> None:
        super().__init__(plan, Scenario(name=f"by hand/{seed}", seed=seed), folder)
        self._walk = deque(walk)
        self._sittings = 0
        self._faults = 0
        self._endings: dict[str, int] = {}
        self._trip = ""
        self._alone = False
        self._opened: asyncio.Task[None] | None = None
        self._beside: list[asyncio.Task[None]] = []
        self._until: dict[str, Callable[[], bool]] = {
            "purged": lambda: self._line.volumes_purged("air") >= 5.05,
            "flushed": lambda: self._line.volumes_purged("hydrogen") >= 5.05,
            "evacuated": lambda: self._line.latest("gauge.pressure") <= 0.1,
            "filled": lambda: self._line.latest("gauge.pressure") >= 745,
            "cold": lambda: (
                max(self._line.latest(f"{name}.temperature") for name in ("furnace", "sulfur")) < 80
            ),
            "shut": lambda: self._opened is None or self._opened.done(),
        }

    def play(self) -> None:
        """Play it: a harness drives until it has tripped, died, or done all; then another may."""
        self._sit()
        while not self._halted and (self._killed or self._goes_on()):
            self._sit()

    def walked(self) -> Walked:
        """Sum up."""
        return Walked(
            violation=self._referee.violation,
            trip=self._trip,
            told=sorted(self._timeline, key=lambda each: each[0]),
            demands=self._referee.demands,
            endings=self._endings,
            lab_s=self._loop.time(),
        )

    # ---- one harness

    def _sit(self) -> None:
        """Drive the line with a harness of its own, in the state that the one before has left."""
        self._sittings += 1
        self._folder = self._plan.state_dir.parent / f"sitting{self._sittings}"
        self._folder.mkdir()
        self._killed, self._pause_s, self._lab = False, 0.0, None
        self._referee.begin_growth()
        ended = begin(self._drive(), self._loop)
        ended.add_done_callback(self._wake)
        while not ended.done() and not self._halted:
            self._loop.run_forever()
            if self._killed:
                self._count("killed")
                self._survive()
                return
            if self._pause_s and not ended.done():
                self._count("paused")
                self._stand_still()
        if self._halted:
            return
        broken = failure_of(self._loop) or (None if ended.cancelled() else ended.exception())
        if broken is not None:
            self._find("the harness broke", f"{type(broken).__name__}: {broken}")
            return
        self._referee.scene.harness = "gone"
        self._lab = None
        self._leave()
        self._nobody(AFTER_END_S)

    async def _drive(self) -> None:
        run = {"seed": self._chance.seed, "lab_digest": self._plan.lab_digest}
        with SqliteJournal(self._folder / JOURNAL_NAME, run=run) as journal:
            lab = Lab(
                self._plan,
                clock=Clock(self._loop),
                chance=self._chance,
                journal=journal,
                sim_lab=self._sim_lab,
            )
            self._line = lab.line
            lab.line.events.on_warning = lambda text: None
            self._take(lab)
            try:
                self._begin_sudden()
                if await self._armed():
                    await self._follow()
            finally:
                await self._end(lab)

    async def _armed(self) -> bool:
        """Arm the line; one that must be latched is given to nobody."""
        try:
            await self._line.open()
            await self._line.arm(SAFE_TABLE)
            self._line.start()
        except (LinkLost, NoReply, NotArmed, Tripped) as why:
            self._count("not armed")
            self._note(f"  not armed: {why}")
            return False
        self._count("armed")
        if self._referee.scene.latched and not self._tripped():
            self._find("armed though it must be latched", "before a reset")
        return True

    async def _follow(self) -> None:
        """Do what the walk says, up to the reset that takes the line from this harness."""
        while self._walk:
            if self._tripped() and not self._resets():
                self._walk.clear()
                break
            if self._walk[0].act == "reset" and self._tripped():
                return
            await self._do(self._walk.popleft())
        await self._wait(AFTER_TRIP_S)

    async def _end(self, lab: Lab) -> None:
        trip = lab.line.memory.trip
        self._trip = self._trip if trip is None else trip.detail
        for each in self._beside:
            each.cancel()
        self._beside.clear()
        if lab is self._lab:  # a dead one shuts nothing
            self._tripped()
            self._shut_tube()
        await lab.line.close()

    def _tripped(self) -> bool:
        if self._line.memory.trip is None:
            return False
        self._referee.scene.latched = True
        return True

    def _resets(self) -> bool:
        return any(step.act == "reset" for step in self._walk)

    async def _wait(self, for_s: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let polls pass; a trip ends it."""
        tripped = self._tripped()
        end_s = self._loop.time() + for_s
        while not until() and self._loop.time() < end_s:
            await self._line.polled()
            if self._tripped() and not tripped:
                return

    def _say(self, step: Step) -> None:
        if step.fault is None:  # that is told once it comes
            self._note(str(step))

    def _count(self, ending: str) -> None:
        self._endings[ending] = self._endings.get(ending, 0) + 1

    # ---- the steps

    async def _do(self, step: Step) -> None:
        if step.act in ("wait", "until") and self._tripped():
            return  # nobody waits for a line that has tripped: it is reset while it is hot
        self._say(step)
        if step.act == "set":
            await self._set(step.name, step.value)
        elif step.act == "wait":
            await self._wait(step.value)
        elif step.act == "until":
            await self._wait(step.value, self._until[step.name])
        elif step.act == "open":
            await self._open(step.name, step.value)
        elif step.act == "reset":
            self._note("  not reset: somebody drives the line")
        else:
            breaks = step.fault is not None and step.fault.kind not in SUDDEN
            if (breaks or step.act in ("keys", "mend")) and self._tripped():
                await self._wait(MEND_S)  # for it mends what is broken
            self._happen(step)

    def _happen(self, step: Step) -> None:
        """Let happen what takes nobody who drives, or not the one who does."""
        if step.act == "keys":
            self._press(step.name, step.value)
        elif step.act == "mend":
            self._mend()
        elif step.act == "safe":
            self._ask_safe(step.value)
        elif step.fault is not None:
            self._break(step.fault)

    def _begin_sudden(self) -> None:
        """Let what is sudden and comes next begin before the line is armed."""
        latched = self._latched()  # then this harness does not stay: what is typed finds nobody
        while self._walk and _is_sudden(self._walk[0], typed=not latched):
            step = self._walk.popleft()
            self._say(step)
            self._happen(step)

    async def _set(self, channel: str, value: float) -> None:
        unit = self._plan.envelope.limits[channel].unit
        try:
            outcome = await self._line.perform(Command(channel, value, unit))
        except (NotArmed, NoReply, Tripped) as why:
            self._note(f"  {why}")
            return
        self._count(outcome.ending.value)
        if outcome.ending is not Ending.CONFIRMED:
            self._note(f"  {outcome.ending.value}: {outcome.detail}")

    async def _open(self, action: str, for_s: float) -> None:
        """Have the tube opened; whoever stays at the terminal may go on meanwhile."""
        if self._sim_lab.plant.in_hand is not None:
            return

        async def ask() -> None:
            self._sim_lab.operate(action, LOADING)
            await asyncio.sleep(for_s)

        async def opened() -> None:
            try:
                await self._line.by_hand(action, ask)
                self._count("opened")
            except (NotOpened, Tripped) as why:
                self._count("not opened")
                self._note(f"  not opened: {why}")
            self._shut_tube()

        self._opened = self._loop.create_task(opened())
        self._beside.append(self._opened)
        await self._wait(1.0)

    def _shut_tube(self) -> None:
        plant = self._sim_lab.plant
        if plant.in_hand is not None:
            self._sim_lab.finish(plant.in_hand)

    def _ask_safe(self, after_s: float) -> None:
        """Have somebody at a second terminal type ``safe`` amid what is done at the first."""
        line, scene = self._line, self._referee.scene
        hands = ByHand(line, Nobody())

        async def typed() -> None:
            await asyncio.sleep(after_s)
            if line.memory.mode is not Mode.DISARMED:
                scene.latched = scene.stopped = True
            self._count("safe")
            said = await hands.answer({"do": "safe", "by": "Ben", "reason": "it smells"})
            self._note(f"  safe: {said}")

        self._beside.append(self._loop.create_task(typed()))

    def _press(self, name: str, value: float) -> None:
        """Type a setpoint at an instrument's own keys: also something that goes wrong."""
        self._mend()
        self._alone = True
        face: Any = self._sim_lab.faces[name]
        if name == "furnace":
            face.write_registers(6, SET_WORD_OF_2400, [round(10 * value)])
        else:
            face.answer(f"{face.unit}S{value:g}")

    def _break(self, fault: Fault) -> None:
        """Let one thing break, after another that is broken is whole again."""
        if fault.kind not in SUDDEN:
            self._mend()
            if self._alone:
                return  # what was typed, or dropped by a dip, outlasts what made it so
            self._alone = fault.kind == "power_dip"
            self._look_for_leaks()
        self._faults += 1
        self._sim_lab.env.process(self._suffer(self._faults, fault))
        self._sim_lab.env.sync()

    def _look_for_leaks(self) -> None:
        """Tell the referee whether a leak would be seen: an open tube has ended its leak check."""
        scene = self._referee.scene
        kept = scene.harness, scene.stopped
        self._referee.begin_growth()
        scene.harness, scene.stopped = kept
        tight = self._lab is not None and self._lab.line.memory.proofs.leak.tight
        stage = "purge" if tight else "leak_check"
        self._referee.masking.stage_begins(stage, self._referee.now_s)

    def _mend(self) -> None:
        if self._active:
            super()._mend()

    # ---- between two harnesses

    def _goes_on(self) -> bool:
        """Do what comes while nobody drives; return whether somebody then wants to."""
        while self._walk and not self._halted:
            step = self._walk.popleft()
            if step.act in ("set", "open"):
                continue
            self._say(step)
            if step.act == "reset":
                self._reset_by_a_person(mended=step.name == "mended")
                return True
            if step.act in ("wait", "until"):
                self._nobody(min(step.value, NOBODY_S_MAX))
                if not self._latched():
                    return True
            elif step.act == "safe":
                self._make_safe()
            else:
                self._happen(step)
        return False

    def _make_safe(self) -> None:
        """Have somebody type ``safe`` at a line that nobody drives."""

        def with_lab(plan: LabPlan, work: _Work, **options: Any) -> Any:
            done = self._live(self._with_lab(work, **options))
            if self._halted:
                raise _Over
            return done

        with mock.patch.object(idle_line, "_with_lab", with_lab), suppress(_Over):
            done = idle_line.make_safe(self._plan, "Ben", "it smells")
            self._count("safe, and nobody drove")
            self._note(f"  safe: {done}")

    async def _with_lab(self, work: _Work, latch: Callable[[Path], Latch] = Latch) -> Any:
        """Do what ``care`` does with a lab of its own, in this simulated lab."""
        lab = Lab(
            self._plan,
            clock=Clock(self._loop),
            chance=self._chance,
            journal=NullJournal(),
            sim_lab=self._sim_lab,
            latch=latch,
        )
        try:
            return await work(lab)
        finally:
            await lab.line.close()

    def _reset_by_a_person(self, *, mended: bool) -> None:
        if mended:
            self._mend()
        broken = [fault for fault, _ in self._active]
        if not self._reset():
            self._count("not reset")
            return
        self._count("reset")
        self._alone = False
        self._look_for_leaks()
        for fault in broken:  # it is as it was, and a harness that knows nothing begins to look
            self._referee.masking.begins(fault, self._referee.now_s)


def _is_sudden(step: Step, *, typed: bool) -> bool:
    if step.act == "safe":
        return typed
    return step.fault is not None and step.fault.kind in SUDDEN


class _Over(Exception):
    """The referee has called something meanwhile."""
