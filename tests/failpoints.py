"""A growth in which one write fails, or the harness is gone at it; and the restart after it.

The simulated lab, the referee and the guard's stand-in are the fault search's own; the plug
makes the write fail. After it a person mends, looks, is refused while the line
is latched, resets and grows anew, over the same simulated lab and the same state.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from chaos_scenes import FAULTS
from failplug import Died, Failpoint, Plug
from labharness.chaos import world
from labharness.chaos.scenario import Fault, Scenario
from labharness.chaos.world import _World
from labharness.core.clock import Clock, VirtualLoop
from labharness.core.vocabulary import Command, Ending
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.chain import Record
from labharness.journal.reading import read, verify_file
from labharness.lab import BadLabFile, Lab, LabPlan
from labharness.lab.wiring.runs import BadOutput
from labharness.lab.wiring.tasks import RunResult
from labharness.safety.guard import Latch, Source
from labharness.safety.kernel import Mode

MENDED_S = 60.0  # a person comes and mends; then the line is looked at
SEED = 3  # of a room whose whole growth gives one layer: a mixed film fails its own claim
SHORT: Mapping[str, float] = {"temperature_c": 650.0, "dwell_s": 60.0, "argon_sccm": 100.0}


@dataclass(slots=True)
class Failed:
    """What came of it.

    Attributes:
        ends: How the growth was answered, and whether the line was latched then.
        warnings: What its answer warned of.
        wrong: Whatever must not be; empty if all is well.
        growths: How each growth that was asked for was answered.
        timeline: When what happened, in lab time.
    """

    ends: str = ""
    warnings: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    growths: list[str] = field(default_factory=list)
    timeline: tuple[tuple[float, str], ...] = ()


def suffer(plan: LabPlan, point: Failpoint, folder: Path, *, whole: bool) -> Failed:
    """Play a failpoint and the restart after it.

    Args:
        plan: The line.
        point: What fails.
        folder: A folder of its own.
        whole: Grow to the answer after it; else a stop request ends that growth in its purge.
    """
    stops = () if whole else (Fault(kind="stop_request", stage="purge", after_s=5.0, growth=1),)
    faults = (*point.faults, *stops)
    recipe = {} if whole else SHORT
    scenario = Scenario(name="0/0", seed=SEED, recipe=recipe, faults=faults, looks=True)
    with mock.patch.object(world, "VirtualLoop", _MortalLoop):
        there = _Restarted(plan, scenario, folder, point)
        try:
            with there.plug.in_place():
                there.play()
        finally:
            there.close()
        verdict = there.verdict()
    if verdict.violation is not None:
        there.found.wrong.append(f"referee: {verdict.violation}")
    there.found.timeline = verdict.timeline
    return there.found


class _MortalLoop(VirtualLoop):
    """A loop that is left, not closed, when its process dies."""

    def run_forever(self) -> None:
        with contextlib.suppress(Died):
            super().run_forever()


class _Restarted(_World):
    """A growth that meets its failpoint, and the person who restarts after it."""

    def __init__(self, plan: LabPlan, scenario: Scenario, folder: Path, point: Failpoint) -> None:
        super().__init__(plan, scenario, folder)
        self.found = Failed()
        self.plug = Plug(point, folder, self._die)
        self.plug.on = not point.stage

    def play(self) -> None:
        """Meet the failpoint; mend; look; be refused while it is latched; reset; grow."""
        self._grow(0)
        self.plug.mend()
        if self._halted:
            return
        if not self.plug.fired:
            self.found.wrong.append(f"the failpoint never came: {self.found.growths}")
            return
        ended = self.found.growths[-1] if self.found.growths else "died"
        latched = Latch(self._plan.state_dir / "latch.json").trip is not None
        self.found.ends = f"{ended}{', latched' if latched else ''}"
        self._audit(self._folder / "growth1")
        self._nobody(MENDED_S)
        self._live(self._look_again())
        self._mend()
        if latched:
            self._grow(1)
            if "latched" not in self.found.growths[-1]:
                self.found.wrong.append(f"a latched line was given out: {self.found.growths[-1]}")
        if self._halted:
            return
        if not self._reset():
            self.found.wrong.append("the latch does not open after everything was mended")
            return
        self._growth = 1
        self._grow(2)

    # ---- what the world does, and what is heard of it

    def _grow(self, number: int) -> None:
        try:
            super()._grow(number)
        except (BadOutput, BadLabFile):  # before there was anything to run
            self.found.growths.append("no run")
            self._referee.scene.harness = "gone"

    def _die(self) -> None:
        if self._lab is not None and self._referee.scene.harness == "alive":
            self._kill()
        self._killed = True
        raise Died

    def _survive(self) -> None:
        if self._lab is not None:
            super()._survive()
            return
        self._leave()  # it had no line yet
        self._referee.scene.harness = "gone"
        self._nobody(MENDED_S)

    def _leave(self) -> None:
        super()._leave()
        self.plug.dead = False  # what it held is fenced; the guard's own disk is whole

    def _take(self, lab: Lab) -> None:
        super()._take(lab)
        self.plug.watch(lab)

    def _hear(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "progress" and data["stage"] == self.plug.point.stage and not self._growth:
            self.plug.on = True
        super()._hear(kind, data)

    def _say_how(self, result: RunResult) -> None:
        super()._say_how(result)
        body = result.message.payload.stated()
        why = body.get("error_code") or body.get("reason_code") or ""
        if result.message.type == "event":
            why = body["data"]["final_state"]
            self.found.warnings += body["data"].get("warnings", [])
        phase = body.get("error_details", {}).get("phase", "")
        latched = " (latched)" if "latched" in body.get("reason_message", "") else ""
        said = f"{result.message.type} {why} {phase}".strip()
        self.found.growths.append(f"{said}{latched}")
        self.found.warnings += body.get("execution_summary", {}).get("warnings", [])
        answer = result.folder / "answer.json"
        if answer.exists() and result.message.message_id not in answer.read_text("utf-8"):
            self.found.wrong.append("the answer on disk is another one")

    def _note(self, text: str) -> None:
        super()._note(text)
        if text.startswith("no run: "):
            self.found.growths.append("no run")

    # ---- what must be so after it

    def _audit(self, folder: Path) -> None:
        """Hold the journal against what was let out: one chain, and no command missing from it."""
        path = folder / "journal.sqlite"
        kept: dict[int, Record] = {}
        try:
            report = verify_file(path)
            if not report.ok:
                self.found.wrong.append(f"record {report.first_bad_seq} is bad: {report.reason}")
            kept = {each.seq: each for each in read(path)}
        except JournalFailed as why:
            if self.plug.point.write != "journal open" and path.exists():
                self.found.wrong.append(str(why))
        for seq, channel in self.plug.commanded.items():
            intent = kept.get(seq)
            if intent is None or intent.kind != "intent" or intent.body["channel"] != channel:
                self.found.wrong.append(f"{channel} was commanded, and record {seq} is {intent}")
        self.found.wrong += self.plug.wrong

    async def _look_again(self) -> None:
        """Start a fresh harness over the simulated lab: it reads what is so, and sets nothing."""
        folder = self._folder / "look"
        folder.mkdir()
        with SqliteJournal(folder / "journal.sqlite") as journal:
            lab = Lab(
                self._plan,
                clock=Clock(self._loop),
                chance=self._chance,
                journal=journal,
                sim_lab=self._sim_lab,
            )
            lab.guard.core.log = []
            try:
                await lab.line.open()
                await lab.line.next_tick()
                told = [bool(lab.line.latest(f"box.{name}")) for name in FAULTS.contacts]
                if told != [bool(each) for each in self._sim_lab.plant.parts["relays"].coils]:
                    self.found.wrong.append(f"the relays read {told}, and are otherwise")
                if lab.line.memory.mode is not Mode.DISARMED:
                    self.found.wrong.append(f"a fresh line is {lab.line.memory.mode}")
                on = Command("box.furnace_contactor", 1.0, "")
                if (await lab.line.perform(on)).ending is not Ending.REFUSED:
                    self.found.wrong.append("a fresh line was commanded before its start")
                latch = Latch(self._plan.state_dir / "latch.json")
                if lab.guard.core.latched is not (latch.trip is not None):
                    self.found.wrong.append("guard and file differ about the latch")
            finally:
                await lab.line.close()
            if {each.source for each in lab.guard.core.log} != {Source.READ}:
                self.found.wrong.append("a fresh harness wrote to the line")
