"""A walk by hand, played on an armed line in virtual time before the referee of the fault search.

What is refused is refused, and the walk goes on; a trip ends it, and so does what harms.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labharness.chaos import Fault, Violation
from labharness.chaos.inject import inject
from labharness.chaos.referee import Referee
from labharness.clock import Chance, Clock, VirtualLoop
from labharness.clock import run as run_on
from labharness.journal import SqliteJournal
from labharness.lab import Lab, LabPlan
from labharness.lab.reading import SAFE_TABLE
from labharness.lab.simulated import SimulatedLab
from labharness.line import NoReply, NotArmed, Tripped
from labharness.line.opening import NotOpened
from labharness.vocabulary import Command, Ending
from walks import Step

__all__ = ["Walked", "play_walk"]

AFTER_TRIP_S = 30.0  # the referee keeps looking, at what the procedure leaves
AFTER_END_S = 15.0
LOADING = {"moo3_mass_mg": 10.0, "sulfur_mass_mg": 300.0, "substrate": "SiO2/Si", "sample_id": "A"}
SET_WORD_OF_2400 = 2  # register of its target setpoint, in tenths of a degree


@dataclass
class Walked:
    """How a walk ended.

    Attributes:
        violation: What was wrong; ``None`` for nothing.
        trip: The trip that ended it, in words.
        told: What was done, and what became of it, in lab time.
        demands: Seconds for which a hardware safeguard had to answer, by rule.
        endings: How many commands ended how.
        lab_s: Lab time that was simulated.
    """

    violation: Violation | None = None
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
        folder: For its journal and its latch.
        seed: Of the room.
    """
    folder.mkdir(parents=True)
    loop = VirtualLoop()
    walked = Walked()

    async def main() -> None:
        await _Walker(replace(plan, state_dir=folder / "state"), folder, seed, walked).walk(walk)

    run_on(main(), loop)
    walked.lab_s = loop.time()
    return walked


class _Walker:
    """A person at an armed line, and the referee beside the plant."""

    def __init__(self, plan: LabPlan, folder: Path, seed: int, walked: Walked) -> None:
        self._plan = plan
        self._folder = folder
        self._walked = walked
        self._chance = Chance(seed)
        self._clock = Clock(asyncio.get_running_loop())
        self._room = SimulatedLab(plan.file, self._clock, self._chance)
        self._referee = Referee(plan, self._room, self._stop)
        self._over = False
        self._broken: tuple[Fault, Callable[[], None]] | None = None
        self._alone = False
        self._opened: asyncio.Task[None] | None = None
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

    async def walk(self, walk: Sequence[Step]) -> None:
        run = {"seed": self._chance.seed, "lab_digest": self._plan.lab_digest}
        with SqliteJournal(self._folder / "journal.sqlite", run=run) as journal:
            lab = self._lab = Lab(
                self._plan,
                clock=self._clock,
                chance=self._chance,
                journal=journal,
                room=self._room,
            )
            self._line = lab.line
            lab.line.on_warning = lambda text: None
            self._referee.begin_growth()
            try:
                await lab.line.open()
                await lab.line.arm(SAFE_TABLE)
                lab.line.start()
                for step in walk:
                    if self._ended():
                        break
                    await self._do(step)
                await self._wait(AFTER_TRIP_S)
            finally:
                await self._leave()
        self._walked.violation = self._referee.violation
        self._walked.demands = self._referee.demands

    async def _leave(self) -> None:
        trip = self._line.memory.trip
        self._walked.trip = "" if trip is None else trip.detail
        if self._opened is not None:
            self._opened.cancel()
        self._shut()
        await self._line.close()
        self._referee.scene.harness = "gone"
        if not self._over:
            await asyncio.sleep(AFTER_END_S)

    def _stop(self) -> None:
        self._over = True

    def _ended(self) -> bool:
        if self._line.memory.trip is not None:
            self._referee.scene.latched = True
            return True
        return self._over

    async def _wait(self, for_s: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let polls pass; a trip ends it, and so does what the referee calls."""
        tripped = self._ended()
        end_s = self._clock.now_s() + for_s
        while not self._over and not until() and self._clock.now_s() < end_s:
            await self._line.polled()
            if self._ended() and not tripped:
                return

    def _tell(self, text: str) -> None:
        self._walked.told.append((self._clock.now_s(), text))

    def _count(self, ending: str) -> None:
        self._walked.endings[ending] = self._walked.endings.get(ending, 0) + 1

    # ---- the steps

    async def _do(self, step: Step) -> None:
        self._tell(str(step))
        if step.act == "set":
            await self._set(step.name, step.value)
        elif step.act == "wait":
            await self._wait(step.value)
        elif step.act == "until":
            await self._wait(step.value, self._until[step.name])
        elif step.act == "open":
            await self._open(step.name, step.value)
        elif step.act == "keys":
            self._press(step.name, step.value)
        elif step.act == "mend":
            self._mend()
        elif step.fault is not None:
            self._break(step.fault)

    async def _set(self, channel: str, value: float) -> None:
        unit = self._plan.envelope.limits[channel].unit
        try:
            outcome = await self._line.perform(Command(channel, value, unit))
        except (NotArmed, NoReply, Tripped) as why:
            self._tell(f"  {why}")
            return
        self._count(outcome.ending.value)
        if outcome.ending is not Ending.CONFIRMED:
            self._tell(f"  {outcome.ending.value}: {outcome.detail}")

    async def _open(self, action: str, for_s: float) -> None:
        """Have the tube opened; whoever stays at the terminal may go on meanwhile."""
        if self._room.plant.in_hand is not None:
            return

        async def ask() -> None:
            self._room.operate(action, LOADING)
            await asyncio.sleep(for_s)

        async def opened() -> None:
            try:
                await self._line.by_hand(action, ask)
                self._count("opened")
            except (NotOpened, Tripped) as why:
                self._count("not opened")
                self._tell(f"  not opened: {why}")
            self._shut()

        self._opened = asyncio.get_running_loop().create_task(opened())
        await self._wait(1.0)

    def _shut(self) -> None:
        plant = self._room.plant
        if plant.in_hand is not None:
            self._room.finish(plant.in_hand)

    def _press(self, name: str, value: float) -> None:
        """Type a setpoint at an instrument's own keys: also something that goes wrong."""
        self._mend()
        self._alone = True
        face: Any = self._room.faces[name]
        if name == "furnace":
            face.write_registers(6, SET_WORD_OF_2400, [round(10 * value)])
        else:
            face.answer(f"{face.unit}S{value:g}")

    def _break(self, fault: Fault) -> None:
        """Let one thing break, after another that is broken is whole again."""
        self._mend()
        if self._alone:
            return  # what was typed, or dropped by a dip, outlasts what made it so
        self._alone = fault.kind == "power_dip"
        self._referee.begin_growth()  # what has opened the tube has ended its leak check
        self._referee.stage_begins("purge" if self._line.memory.tight else "leak_check")
        self._referee.begins(fault)
        undo = inject(fault, self._room, self._lab, self._chance.stream("fault"))
        self._broken = broken = (fault, undo)

        def over() -> None:
            if self._broken is broken:
                self._mend()

        if fault.lasts_s:
            self._clock.loop.call_later(fault.lasts_s, over)

    def _mend(self) -> None:
        if self._broken is not None:
            fault, undo = self._broken
            self._broken = None
            undo()
            self._referee.ends(fault)
