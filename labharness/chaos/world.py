"""Play one scenario to its end: a simulated lab that lives on while harnesses come and go.

A loop stands for a process: all timers, tasks and callbacks of a harness live on its loop. To kill
a harness is to leave its loop for good; its links, journal and latch are cut off first, so that no
``finally`` block has an effect. To pause it is to run the simulated lab on another loop meanwhile.
The guard survives a harness: a copy of its core runs the safe procedure on the same buses.

The guard that remains when a simulated harness is gone, like the real guard process.

Inject a fault into a simulated lab (plant, wires, the harness's disk), and undo it.
"""

import asyncio
import copy
import errno
import random
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import simpy

from labharness.chaos.referee import Referee, RefereeViolation
from labharness.chaos.scenario import Fault, Scenario, approval, submission
from labharness.chaos.table import HEARTBEAT_S_MAX, FaultTable, Scene, faults_of
from labharness.core.clock import Chance, Clock, VirtualLoop, begin, finish
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.digests import digest_of
from labharness.instruments.link import LoopbackLink
from labharness.journal import JournalFailed, SqliteJournal
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.operate.idle_line import still_active
from labharness.lab.wiring.lab import Lab
from labharness.lab.wiring.runs import BadOutput
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness.lab.wiring.tasks import RunResult, TaskRun
from labharness.safety.guard import GuardCore, Latch
from labharness.safety.guard.shell import LoopGuard
from labharness.work.desk.folder import JOURNAL_NAME

REPEAT_S = 1.0  # as in the guard process
GRID_S = 1e-6  # of the loop's clock: it does not advance for a shorter sleep


@dataclass(eq=False)
class GuardLeft:
    """Make the line of a dead harness safe, and repeat what was not obeyed until it is.

    Attributes:
        sim_lab: The simulated lab.
        scene: The referee's knowledge; ``guarded`` is kept up to date here.
        latch: The file of the latch.
    """

    sim_lab: SimulatedLab
    scene: Scene
    latch: Path
    _owing: LoopGuard | None = None

    @property
    def owes(self) -> bool:
        """Return whether some frame was not obeyed, or its effect not seen, at the last try."""
        return self._owing is not None

    def keep(self, guard: object) -> None:
        """Keep the guard of a finished run, if some of its frames were not obeyed."""
        if isinstance(guard, LoopGuard) and guard.core.latched and guard.duty.left(reading=False):
            guard.core.log = None
            self._owing = guard

    def forget(self) -> None:
        """Drop the open frames: the line was reset, or its harness is back."""
        self._owing = None

    async def alone(self, core: GuardCore, procedure: str, why: str, for_s: float) -> Trip:
        """Run a procedure and verify it."""
        now_s = asyncio.get_running_loop().time()
        trip = Trip(Cause.COMMUNICATION, procedure, "harness", None, now_s, why)
        guard = await self._on_links(core)
        guard.trip(trip)
        await self._see_to_it(guard, for_s)
        return trip

    async def wait(self, for_s: float) -> None:
        """Let time pass, in which a guard with open frames continues."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + for_s
        if self._owing is not None:
            guard = await self._on_links(copy.deepcopy(self._owing.core))
            guard.duty = self._owing.duty
            await self._see_to_it(guard, for_s)
        await asyncio.sleep(max(until_s - loop.time(), 0.0))

    async def _on_links(self, core: GuardCore) -> LoopGuard:
        """Return a guard with new links: the other end of its socket is gone."""
        links = {name: LoopbackLink(bus) for name, bus in self.sim_lab.buses.items()}
        for link in links.values():
            await link.open()
        self.scene.guarded = True
        return LoopGuard(core, links, Latch(self.latch))

    async def _see_to_it(self, guard: LoopGuard, for_s: float) -> None:
        """Repeat each second: send again what was not obeyed, and read back."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + for_s
        while until_s - loop.time() > GRID_S and guard.duty.left(reading=True):
            await asyncio.sleep(min(REPEAT_S, until_s - loop.time()))
            guard.insist(reading=True)
        left = guard.duty.left(reading=True)
        self._owing = guard if left else None
        self.scene.guarded = not left  # from then on it vouches for the line
        guard.close()


Undo = Callable[[], object]


def inject(
    table: FaultTable,
    fault: Fault,
    sim_lab: SimulatedLab,
    lab: Lab | None,
    chance: random.Random,
) -> Undo:
    """Begin a fault; return the function that ends it.

    Args:
        table: The faults of the line.
        fault: The fault; ``kill`` and ``pause`` are handled by ``world``.
        sim_lab: The simulated lab.
        lab: The living harness, for faults of its clock and disk.
        chance: Source of the fault's random values.

    Raises:
        ValueError: The kind of fault is unknown.
    """
    kind, target = fault.kind, fault.target
    plant = sim_lab.plant
    if kind.startswith("sensor_"):
        plant.faults.lie(target, kind.removeprefix("sensor_"), fault.amount, chance)
        lie = plant.faults.sensors[target]

        def honest() -> None:
            if plant.faults.sensors.get(target) is lie:  # another lie may have replaced it
                del plant.faults.sensors[target]

        return honest
    row = table.rows.get(kind)
    if row is not None and row.sets is not None:
        flag = not row.amounts and row.between is None
        now, healthy = (True, False) if flag else (fault.amount, 0.0)
        return _set(plant.faults, row.sets, now, healthy)
    if kind.startswith("reply_"):
        share = f"{kind.removeprefix('reply_')}_share"
        return _set(sim_lab.buses[target].faults, share, fault.amount, 0.0)
    if kind in ("bus_cut", "writes_refused"):
        return _set(sim_lab.buses[target].faults, kind.removeprefix("bus_"), True, False)
    if kind in ("write_lost", "write_refused"):
        return _set(sim_lab.buses[target].faults, kind, int(fault.amount), 0)
    if kind == "contact_stuck":
        number = table.contacts.index(target)
        plant.parts["relays"].stick(number)
        return lambda: plant.faults.stuck.pop(number, None)
    if kind == "flow_drift":
        return _set(plant.parts[target], "drift", fault.amount, 1.0)
    if kind == "power_dip":
        plant.lose_power()
        undone = [_set(bus.faults, "cut", True, False) for bus in sim_lab.buses.values()]
        return lambda: [each() for each in undone]
    if lab is None:
        return lambda: None
    if kind == "clock_jump":
        return _set(lab.clock, "jumped_s", fault.amount, 0.0)
    if kind == "disk_full":
        return _fill_disk(lab)
    raise ValueError(f"no such fault: {kind}")


def _set(owner: object, name: str, value: object, healthy: object) -> Undo:
    setattr(owner, name, value)
    return lambda: setattr(owner, name, healthy)


def _fill_disk(lab: Lab) -> Undo:
    journal: Any = lab.line.journal
    latch: Any = lab.guard.latch
    commit, write = journal.commit, latch.write

    def full_journal() -> None:
        raise JournalFailed("no space left on device")

    def full_latch(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    journal.commit, latch.write = full_journal, full_latch

    def undo() -> None:
        journal.commit, latch.write = commit, write

    return undo


T = TypeVar("T")

WORLD_S_MAX = 120 * 3600.0  # a scenario that is longer hangs
DEAD_S = 60.0  # time without a harness after a run or a kill
SHUT_S = 120.0  # a person shuts the lid that was opened for a run that has ended
OWED_S = 5.0  # a person who has mended a port watches it for this time first
WATCHED_COOLING = "cooling_under_watch"
CALM_S = 900.0  # time of a safe line until its harness is killed as well


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a scenario.

    Attributes:
        scenario: The scenario.
        violation: The broken rule, or ``None``.
        lab_s: Lab time simulated.
        digest: Over the true states and the harness's reports.
        timeline: The events, in lab time.
        demands: Seconds in which a hardware safeguard had to answer, by rule.
        injected: Number of the faults that began; a run may end before one comes.
    """

    scenario: Scenario
    violation: RefereeViolation | None
    lab_s: float
    digest: str
    timeline: tuple[tuple[float, str], ...]
    demands: Mapping[str, float]
    injected: int = 0


def play(plan: LabPlan, scenario: Scenario, folder: Path) -> Verdict:
    """Play one scenario.

    Args:
        plan: The line; all its links must be simulated.
        scenario: The scenario.
        folder: An empty folder, for journals and the latch.
    """
    with closing(_World(plan, scenario, folder)) as world:
        world.play()
    return world.verdict()


class _World:
    """The simulated lab, its present harness, and the referee."""

    def __init__(self, plan: LabPlan, scenario: Scenario, folder: Path) -> None:
        self._scenario = scenario
        self._folder = folder
        self._plan = replace(plan, state_dir=folder / "state")
        self._table = faults_of(plan)
        self._chance = Chance(scenario.seed)
        self._loop = VirtualLoop()
        self._sim_lab = SimulatedLab(plan.file, Clock(self._loop), self._chance)
        self._referee = Referee(self._plan, self._table, self._sim_lab, self._halt)
        self._lab: Lab | None = None
        self._task: TaskRun | None = None
        self._growth = 0
        self._stages: set[str] = set()
        self._injected = 0
        self._active: list[tuple[Fault, Undo]] = []
        self._timeline: list[tuple[float, str]] = []
        self._halted = False
        self._killed = False
        self._pause_s = 0.0
        self._told = sha256()
        self._guard = GuardLeft(
            self._sim_lab, self._referee.scene, self._plan.state_dir / "latch.json"
        )
        self._sim_lab.env.process(self._end_of_the_world())

    # ---- the story

    def play(self) -> None:
        """Play a growth; if it must have latched, a growth that must not begin; then a reset."""
        self._grow(0)
        if self._halted or not self._latched():
            return
        self._grow(1)
        if self._halted or not self._scenario.second_growth:
            return
        self._mend()
        if self._reset():
            self._growth = 1
            self._grow(2)

    def verdict(self) -> Verdict:
        """Return the verdict."""
        told = f"{self._referee.digest}{self._told.hexdigest()}"
        return Verdict(
            scenario=self._scenario,
            violation=self._referee.violation,
            lab_s=self._loop.time(),
            digest=digest_of(told.encode()),
            timeline=tuple(sorted(self._timeline, key=lambda each: each[0])),
            demands=self._referee.demands,
            injected=self._injected,
        )

    def close(self) -> None:
        """Close the loop."""
        finish(self._loop)

    def _latched(self) -> bool:
        latch = Latch(self._plan.state_dir / "latch.json")
        return self._referee.scene.latched or latch.trip is not None

    # ---- one growth

    def _grow(self, number: int) -> None:
        self._stages.clear()
        self._killed, self._pause_s, self._lab = False, 0.0, None
        self._referee.begin_growth()
        self._note(f"growth {number + 1} is asked for")
        message, payload = submission(self._plan, self._table, self._scenario)
        task = TaskRun(
            self._plan,
            message,
            payload,
            speed=None,
            seed=self._scenario.seed + number,
            out=self._folder / f"growth{number + 1}",
            tell=self._hear,
            prepare=self._take,
            sim_lab=self._sim_lab,
            approvals=(approval(self._plan, self._table),),
        )
        self._task = task
        ended = begin(task.work(self._loop), self._loop)
        ended.add_done_callback(self._wake)
        while not ended.done() and not self._halted:
            self._loop.run_forever()
            if self._killed:
                self._survive()
                return
            if self._pause_s and not ended.done():
                self._stand_still()
        if self._halted:
            return
        try:
            self._say_how(ended.result())
        except (BadOutput, asyncio.CancelledError) as why:
            self._note(f"no run: {why}")
        except Exception as why:  # noqa: BLE001 - any error of a harness is a finding
            self._find("the harness broke", f"{type(why).__name__}: {why}")
        self._referee.scene.harness = "gone"
        self._guard.keep(self._lab.guard if self._lab is not None else None)
        self._leave()
        self._nobody(DEAD_S)

    def _say_how(self, result: RunResult) -> None:
        body = result.message.payload.stated()
        why = body.get("error_message") or body.get("reason_message") or ""
        for trip in self._lab.line.trip_response.trips if self._lab else ():
            self._timeline.append((trip.at_s, f"trip: {trip.cause.value}: {trip.detail}"))
        self._note(f"{result.message.type} {body.get('error_code', '')} {why}".strip())
        self._told.update(result.journal_head.encode())
        if body.get("error_code") == "internal_error":
            self._find("the harness broke", why)

    def _take(self, lab: Lab) -> None:
        self._lab = lab

    def _hear(self, kind: str, data: Mapping[str, Any]) -> None:
        """Take a report of the harness; a new stage starts the clocks of its faults."""
        if kind != "progress" or data["stage"] in self._stages or self._killed:
            return
        stage = data["stage"]
        self._stages.add(stage)
        self._note(f"stage {stage}")
        self._referee.masking.stage_begins(stage, self._referee.now_s)
        if stage == WATCHED_COOLING:
            self._sim_lab.env.process(self._lose_patience())
        looks = self._table.looks
        if looks is not None and stage == looks.stage and not self._scenario.looks:
            self._loop.call_later(looks.after_s, self._stop_run)
        for number, fault in enumerate(self._scenario.faults):
            if fault.stage == stage and fault.growth == self._growth:
                self._sim_lab.env.process(self._suffer(number, fault))

    def _suffer(self, number: int, fault: Fault) -> Generator[simpy.Event, object, None]:
        env = self._sim_lab.env
        yield env.seconds(fault.after_s)
        if self._halted:
            return
        self._note(f"fault: {fault}")
        self._injected += self._comes(fault)
        if fault.kind == "kill":
            self._kill()
            return
        if fault.kind == "stop_request":
            self._stop_run()
            return
        if fault.kind == "pause":
            if self._referee.scene.harness == "alive":
                self._pause_s = fault.lasts_s
                self._loop.stop()
            return
        self._referee.masking.begins(fault, self._referee.now_s)
        chance = self._chance.stream(f"fault/{number}")
        undo = inject(self._table, fault, self._sim_lab, self._lab, chance)
        active = (fault, undo)
        self._active.append(active)
        if fault.lasts_s:
            yield env.seconds(fault.lasts_s)
            if active in self._active:
                self._undo(active)
                self._note(f"over: {fault}")

    def _comes(self, fault: Fault) -> bool:
        """Return whether the fault still has a target: a dead harness cannot be killed again."""
        if fault.kind in ("kill", "pause", "stop_request"):
            return self._referee.scene.harness == "alive"
        return self._lab is not None or fault.kind not in ("clock_jump", "disk_full")

    def _stop_run(self) -> None:
        if self._task is not None and self._referee.scene.harness == "alive":
            self._referee.scene.stopped = True
            self._task.abort("stop request (fault search)")

    def _undo(self, active: tuple[Fault, Undo]) -> None:
        fault, undo = active
        self._active.remove(active)
        undo()
        self._referee.masking.ends(fault, self._referee.now_s)

    # ---- a harness that dies

    def _lose_patience(self) -> Generator[simpy.Event, object, None]:
        """Kill a harness that only watches a safe line cool, so that the hours go where risk is."""
        lab = self._lab
        yield self._sim_lab.env.seconds(CALM_S)
        if self._lab is lab and self._referee.scene.harness == "alive":
            self._note("the rest is cooling: the harness is killed")
            self._kill()

    def _kill(self) -> None:
        if self._halted or self._lab is None or self._referee.scene.harness != "alive":
            return
        self._killed = True
        self._referee.scene.harness = "killed"
        for link in self._lab.links.values():
            link.close()
        _fill_disk(self._lab)  # what a dead process writes reaches none
        self._loop.stop()

    def _survive(self) -> None:
        """Go on without the harness: the guard makes the line safe, and then time passes."""
        lab, self._lab = self._lab, None
        if lab is None:
            raise RuntimeError("nobody was killed")
        lab.guard.core.log = None
        core, procedure = copy.deepcopy(lab.guard.core), _procedure_of(lab)
        self._leave()
        if core.armed:
            self._referee.scene.latched = True
            self._live(self._guard.alone(core, procedure, "the harness died", DEAD_S))
            self._note(f"guard: {procedure}")
        self._nobody(DEAD_S)
        self._referee.scene.harness = "gone"

    def _stand_still(self) -> None:
        """Run the simulated lab while the harness stands still and the guard waits."""
        pause_s, self._pause_s = self._pause_s, 0.0
        lab, stopped, scene = self._lab, self._loop, self._referee.scene
        if lab is None or scene.harness != "alive":
            return
        scene.harness = "paused"
        self._loop = self._loop_after(stopped)
        trip = None
        self._live(asyncio.sleep(min(pause_s, HEARTBEAT_S_MAX)))
        if pause_s > HEARTBEAT_S_MAX and lab.guard.core.armed:
            scene.latched = True
            procedure = _procedure_of(lab)
            why, left_s = f"no heartbeat for {HEARTBEAT_S_MAX:g} s", pause_s - HEARTBEAT_S_MAX
            until_s = self._loop.time() + left_s
            trip = self._live(self._guard.alone(lab.guard.core, procedure, why, left_s))
            self._live(asyncio.sleep(until_s - self._loop.time()))
            self._note(f"guard: {procedure}")
        meanwhile, self._loop = self._loop, stopped
        stopped.ticks = meanwhile.ticks
        self._sim_lab.env.move(stopped)
        finish(meanwhile)
        scene.harness, scene.guarded = "alive", False
        self._guard.forget()
        if trip is not None:
            stopped.call_soon(lab.guard.give_up, "the guard has tripped meanwhile")
            stopped.call_soon(lab.line.trip_response.trip, trip)

    # ---- loops as processes

    def _leave(self) -> None:
        """Leave a loop for good; its remaining tasks end without effect."""
        dead = self._loop
        self._loop = self._loop_after(dead)
        finish(dead)

    def _loop_after(self, loop: VirtualLoop) -> VirtualLoop:
        """Return a loop on which the simulated lab lives on from the same moment."""
        after = VirtualLoop()
        after.ticks = loop.ticks
        self._sim_lab.env.move(after)
        return after

    def _nobody(self, for_s: float) -> None:
        """Let time pass without a harness; a person shuts a lid that was opened for one."""
        if self._sim_lab.plant.in_hand is not None:
            self._sim_lab.env.process(self._shut())
            for_s = max(for_s, 2 * SHUT_S)
        self._live(self._guard.wait(for_s))

    def _live(self, work: Coroutine[Any, Any, T]) -> T | None:
        task = self._loop.create_task(work)
        task.add_done_callback(self._wake)
        while not task.done() and not self._halted:
            self._loop.run_forever()
        return task.result() if task.done() else None

    def _wake(self, ended: object) -> None:
        """Return to the story; a task that ends after the last word must not stop the loop."""
        if not self._halted:
            self._loop.stop()

    def _shut(self) -> Generator[simpy.Event, object, None]:
        yield self._sim_lab.env.seconds(SHUT_S)
        plant = self._sim_lab.plant
        if plant.in_hand is not None:
            plant.finish(plant.in_hand)

    def _halt(self) -> None:
        self._halted = True
        self._loop.stop()

    def _end_of_the_world(self) -> Generator[simpy.Event, object, None]:
        yield self._sim_lab.env.seconds(WORLD_S_MAX)
        self._find("the harness hangs", f"not over after {WORLD_S_MAX / 3600:g} h of lab time")

    def _find(self, rule: str, detail: str) -> None:
        if self._referee.violation is None:
            now_s = self._loop.time()
            self._referee.violation = RefereeViolation(rule, now_s, 0.0, 0.0, detail)
        self._halt()

    # ---- mending and resetting

    def _mend(self) -> None:
        for active in list(self._active):
            self._undo(active)
        self._note("everything is mended")
        if self._guard.owes:
            self._live(self._guard.wait(OWED_S))

    def _reset(self) -> bool:
        """Reset the latch as a named person does with ``labharness reset``."""
        latch = Latch(self._plan.state_dir / "latch.json")
        if latch.trip is not None:
            active = self._live(self._look(latch.trip))
            if self._halted or active:
                self._note(f"no reset: {'; '.join(active or ())}")
                return False
            latch.open()
        self._guard.forget()
        self._referee.scene.latched = False
        self._referee.mended()
        self._note("reset by a person")
        return True

    async def _look(self, trip: Trip) -> list[str]:
        folder = self._folder / "reset"
        folder.mkdir(exist_ok=True)
        with SqliteJournal(folder / JOURNAL_NAME) as journal:
            lab = Lab(
                self._plan,
                clock=Clock(self._loop),
                chance=self._chance,
                journal=journal,
                sim_lab=self._sim_lab,
            )
            try:
                return await still_active(lab, trip)
            finally:
                await lab.line.close()

    # ---- telling

    def _note(self, text: str) -> None:
        self._timeline.append((self._loop.time(), text))
        self._told.update(f"{self._loop.time():.6f} {text}\n".encode())


def _procedure_of(lab: Lab) -> str:
    """Return the procedure that a guard begins with once its harness is silent."""
    memory = lab.line.memory
    named = lab.plan.safe_procedure if memory.trip is None else memory.trip.procedure
    return memory.procedure(named)
