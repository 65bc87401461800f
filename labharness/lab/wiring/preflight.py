"""Pre-flight: a plan run on the nominal simulated plant, behind the same gate, before it is real.

Everything is the line's own code: drivers, wire faces, guard, kernel and procedures. Three things
differ. The plant is nominal (no scatter, no noise, never the run's seed). The polls are coarser,
and staleness with them, but none so coarse that its instrument's own watchdog would act. Steps that
set nothing (the leak check's slope, all that looks at the sample) are not run; they take the time
they are expected to, and no less than they state.

`forecast` predicts a task for `labharness plan`: nothing is submitted, and no port is opened.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from labharness.core.clock import Chance, Clock, VirtualLoop, run, wall_clock_utc
from labharness.core.vocabulary import Command, Outcome
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text
from labharness.journal import SqliteJournal
from labharness.journal.null_journal import NullJournal
from labharness.lab.config.comm_loss import hardware, if_killed, what_stays
from labharness.lab.config.consistency import channels_of
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan, read_lab
from labharness.lab.wiring.coarse_polls import PROCESS_CHANNELS, coarse_polls
from labharness.lab.wiring.lab import Lab
from labharness.lab.wiring.operators import TerminalOperator
from labharness.lab.wiring.referring import referred
from labharness.lab.wiring.runs import SIMULATED_SEED
from labharness.line import NoReply, NotArmed, Tripped
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import Approved, NotApproved
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.energised import least_duration_s
from labharness.work.desk.facts import facts_for
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.plan import (
    PHYSICAL_VERBS,
    Executor,
    Instruction,
    InstructionKind,
    InstructionSet,
    PredictedStep,
    PredictedViolation,
    Prediction,
    RunningStep,
    Status,
    Stays,
    StepFailed,
    StepRecord,
    Verb,
)
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.branches import FLIGHTS_MAX, unflown, ways_of
from labharness.work.plan.prediction import joined
from labharness.work.plan.set_runner import SetRunner

TRAJECTORY_POINTS_MAX = 400  # of one channel; enough for a page, little enough for a record
EXPECT = "expect"
SETS_NOTHING = frozenset({"rate_of_rise"})
ANYTHING = ActionSchema(InstructionKind.QUERY, {})


def flights(
    plan: LabPlan, loop: asyncio.AbstractEventLoop
) -> Callable[[InstructionSet, Mapping[str, float]], Awaitable[Prediction]]:
    """Fly plans inline in virtual time, and in a worker process where time is real."""

    async def fly(instructions: InstructionSet, readings: Mapping[str, float]) -> Prediction:
        if isinstance(loop, VirtualLoop):
            return predict_in_thread(plan, instructions, readings)
        worker = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        try:
            return await loop.run_in_executor(
                worker, _from_file, plan.path, instructions, dict(readings)
            )
        finally:  # a safe procedure meanwhile does not wait for the end of a flight
            worker.shutdown(wait=False, cancel_futures=True)

    return fly


def predict_in_thread(
    lab: LabPlan, instructions: InstructionSet, readings: Mapping[str, float]
) -> Prediction:
    """Predict while a loop is running in this thread: the loop stands until it is done."""
    with ThreadPoolExecutor(1, "preflight") as thread:
        return thread.submit(predict, lab, instructions, readings).result()


def _from_file(
    path: Path, instructions: InstructionSet, readings: Mapping[str, float]
) -> Prediction:
    """Predict in a worker process, which reads the lab's files for itself."""
    return predict(read_lab(path), instructions, readings)


def predict(
    lab: LabPlan, instructions: InstructionSet, readings: Mapping[str, float]
) -> Prediction:
    """Run a plan on the nominal plant of a lab; of a set each way that it may go, up to a bound.

    Args:
        lab: The lab's files; a lab without a simulated plant cannot be predicted.
        instructions: The plan.
        readings: The line's read-back state, from which the plant begins.
    """
    ways = islice(ways_of(instructions), FLIGHTS_MAX)
    flown = [_flown(lab, each, readings) for each in ways]
    return joined(flown, unflown(instructions, flown))


def _flown(lab: LabPlan, instructions: InstructionSet, readings: Mapping[str, float]) -> Prediction:
    coarse, tick_s, look_s = coarse_polls(lab, instructions)
    with TemporaryDirectory(prefix="labharness-preflight-") as folder:
        nominal = replace(coarse, state_dir=Path(folder))
        flight = _Flight(nominal, instructions, readings, tick_s, look_s)
        return run(flight.fly(), flight.loop)


_Killed = tuple[tuple[str, ...], tuple[Stays, ...]]  # `if_killed` and `what_stays`


@dataclass(eq=False)
class _Flight:
    """One plan on one nominal plant.

    Attributes:
        check, read, latest, volumes_purged, now_s, held_s: The line's own methods.
    """

    plan: LabPlan
    instructions: InstructionSet
    readings: Mapping[str, float]
    tick_s: float
    look_s: float

    def __post_init__(self) -> None:
        self.loop = VirtualLoop()
        self._points: dict[str, list[tuple[float, float]]] = {}
        self._start_s = 0.0
        self._killed: dict[str, _Killed] = {}
        self._killed_before: tuple[tuple[tuple[str, float], ...], _Killed | None] = (), None

    async def fly(self) -> Prediction:
        """Fly it."""
        lab = self._lab = Lab(
            self.plan,
            clock=Clock(self.loop),
            chance=Chance(0),  # nothing nominal is drawn; never the run's seed
            journal=NullJournal(),
            tick_s=self.tick_s,
            nominal=True,
        )
        line = self._line = lab.line
        self.check, self.read, self.latest = line.check, line.read, line.latest
        self.volumes_purged = line.volumes_purged
        self.now_s, self.held_s = line.clock.now_s, line.holding.total_s
        if lab.simulated is not None:
            lab.simulated.plant.begin_at(self.readings)
        watched = self.plan.envelope.watches
        units = {
            channel: spec.unit
            for channel, spec in channels_of(self.plan.instruments).items()
            if channel.partition(".")[2] in PROCESS_CHANNELS and channel in watched
        }
        self._points = {channel: [] for channel in units}
        plan = self.instructions
        steps = replace(plan, instructions=tuple(map(_physical, plan.instructions)))
        verbs = {action: self._verb(action) for action in (EXPECT, *PHYSICAL_VERBS)}
        executor: Executor | SetRunner
        if steps.is_plain():
            executor = Executor(steps, self, verbs)
        else:  # its parameters are filled in already
            executor = SetRunner(steps, self, verbs, dict.fromkeys(verbs, ANYTHING))
        violation = None
        try:
            await line.open()
            await line.arm(self.plan.safe_procedure)
            line.start()
            self._start_s = self.loop.time()
            self._keep_points()
            await executor.run()
        except (Tripped, StepFailed, NotArmed, NoReply) as why:
            violation = self._violation(executor, why)
        records = executor.records()
        await line.trip_response.verified()
        if line.memory.trip is None:
            line.disarm()
        await line.close()
        return Prediction(
            duration_s=self.loop.time() - self._start_s,
            steps=tuple(self._step(each) for each in records if each.started_s is not None),
            trajectory={channel: _thinned(points) for channel, points in self._points.items()},
            units=units,
            highest={
                channel: max(value for _, value in points)
                for channel, points in self._points.items()
                if points
            },
            gas_used_cm3={
                owner_of(channel): _volume_cm3(points)
                for channel, points in self._points.items()
                if channel.endswith(".flow")
            },
            violation=violation,
            hardware=hardware(self.plan),
        )

    # ---- requests of the plan to a line (plan.Operations)

    async def perform(self, command: Command) -> Outcome:
        """Carry out one command on the nominal line."""
        self._line.check()
        outcome = await self._line.perform(command)
        self._line.check()
        return outcome

    async def refusals(self, commands: Sequence[Command]) -> tuple[str, ...]:
        """Judge commands as if each were the first; return why it is refused, or ``""``."""
        return tuple(map(self._line.refusal, commands))

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        """Ask an instrument."""
        return await self._line.query(instrument, name)

    async def next_tick(self) -> None:
        """Wait for the next poll of the tube; what a watchdog adds between shows nothing."""
        await self._line.next_tick()
        look_ticks = round(self.look_s / self.tick_s)
        while round((self.loop.time() - self._start_s) / self.tick_s) % look_ticks:
            await self._line.next_tick()  # a trip ends it
        self._keep_points()

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Have the simulated operator do a manual step."""
        return await self._line.by_hand(
            action, lambda: self._lab.operator.confirm(action, text, details)
        )

    # ---- inside

    def _verb(self, action: str) -> Verb:
        expects = action == EXPECT or action in SETS_NOTHING
        verb = self._expect if expects else PHYSICAL_VERBS[action]

        async def watched(step: RunningStep) -> Mapping[str, object]:
            result = await verb(step)
            self._killed[step.instruction.instruction_id] = self._killed_now()
            return result

        return watched

    def _killed_now(self) -> _Killed:
        """Return what follows a death now; asked again where a reading has changed."""
        read: dict[str, float] = {}

        def latest(channel: str) -> float:
            read[channel] = value = self._line.latest(channel)
            return value

        before, known = self._killed_before
        if known is None or any(self._line.latest(each) != value for each, value in before):
            known = if_killed(self.plan, latest), what_stays(self.plan, latest)
            self._killed_before = tuple(read.items()), known
        return known

    async def _expect(self, step: RunningStep) -> Mapping[str, object]:
        """Let a step that is not run take its expected time."""
        until_s = self.loop.time() + step.instruction.expected_s
        while self.loop.time() < until_s:
            await self.next_tick()
        return {}

    def _keep_points(self) -> None:
        at_s = self.loop.time() - self._start_s
        for channel, points in self._points.items():
            value = self._line.latest(channel)
            if value == value and (not points or points[-1][0] < at_s):
                points.append((at_s, value))

    def _step(self, record: StepRecord) -> PredictedStep:
        started_s = (record.started_s or 0.0) - self._start_s
        ended_s = started_s if record.ended_s is None else record.ended_s - self._start_s
        killed, stays = self._killed.get(record.instruction.instruction_id, ((), ()))
        return PredictedStep(
            instruction_id=record.instruction.instruction_id,
            stage=record.instruction.stage,
            started_s=started_s,
            ended_s=ended_s,
            if_killed=killed,
            stays=stays,
        )

    def _violation(self, executor: Executor | SetRunner, why: Exception) -> PredictedViolation:
        failed = [r for r in executor.records() if r.status in (Status.FAILED, Status.TIMEOUT)]
        where = failed[0].instruction if failed else None
        trip = why.trip if isinstance(why, Tripped) else None
        return PredictedViolation(
            instruction_id=where.instruction_id if where else "arming",
            stage=where.stage if where else "arming",
            channel=trip.channel if trip else _channel(where),
            predicted=trip.value if trip else None,
            detail=trip.detail if trip else str(why),
        )


def _physical(instruction: Instruction) -> Instruction:
    """Keep a step that sets or waits; let any other only take its time."""
    if instruction.action in PHYSICAL_VERBS and instruction.action not in SETS_NOTHING:
        return instruction
    lasts_s = max(instruction.expected_s, least_duration_s((instruction,)))
    return replace(instruction, action=EXPECT, parameters={}, expected_s=lasts_s)


def _channel(instruction: Instruction | None) -> str:
    if instruction is None:
        return ""
    named = instruction.parameters.get("channel") or instruction.parameters.get("setpoint") or ""
    return str(named)


def _thinned(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    every = max(1, math.ceil(len(points) / TRAJECTORY_POINTS_MAX))
    return tuple((round(at_s, 1), round(value, 3)) for at_s, value in points[::every])


def _volume_cm3(points: Sequence[tuple[float, float]]) -> float:
    total = 0.0
    for (before_s, flow), (after_s, _) in pairwise(points):
        total += max(flow, 0.0) / 60.0 * (after_s - before_s)
    return round(total, 1)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of a task.

    Attributes:
        asks: Why it would wait for a person's approval; ``""`` where it would not.
        risk_level: The level that admission gave it.
        risk_reasons: Why.
        approved: The standing approval; ``""`` where there is none, or none is needed.
        unknown: The facts that could not be read; ``""`` for none.
        warnings: Inputs that its words state and that were left open, and words that were not read.
    """

    prediction: Prediction
    asks: str
    risk_level: str
    risk_reasons: tuple[str, ...]
    approved: str
    unknown: str
    warnings: tuple[str, ...] = ()


def forecast(plan: LabPlan, payload: TaskSubmit, runs: Path = Path("runs")) -> Forecast | Rejected:
    """Return the forecast of a task, or the reason that it would be rejected.

    A task that needs no line is not flown: it takes as long as its plan says.

    Args:
        plan: The lab's files.
        payload: The submission.
        runs: The folders of the runs, whose artifacts it may name.

    Raises:
        BadLabFile: The lab has no simulated plant to fly on.
        LatchUnreadable: The line counts as latched.
    """
    found = referred(plan, payload, runs.absolute())
    if isinstance(found, Rejected):
        return found
    payload = found
    facts = facts_for(lab_facts_of(plan), payload)
    if not facts.has_line:
        admitting = Admitting(facts=facts, envelope=plan.envelope, utc=wall_clock_utc)
        return asyncio.run(_foreseen(admitting, payload))
    if not plan.file.has_a_plant:
        raise BadLabFile("forecast.no_plant", path=str(plan.path))
    loop = VirtualLoop()
    facts = replace(facts, predict=flights(plan, loop))
    unknown = _hidden(plan)
    has_state = not unknown and plan.state_dir.is_dir()

    async def main(folder: Path) -> Forecast | Rejected:
        clock = Clock(loop)
        with SqliteJournal(folder / JOURNAL_NAME) as journal:
            lab = Lab(
                plan if has_state else replace(plan, state_dir=folder),  # a flight makes none
                clock=clock,
                chance=Chance(SIMULATED_SEED),
                journal=journal,
                operator=TerminalOperator(lambda prompt: ""),
            )
            admitting = Admitting(
                facts=facts, envelope=lab.line.envelope, utc=wall_clock_utc, line=lab.line
            )
            return await _foreseen(admitting, payload, unknown)

    with TemporaryDirectory() as folder:
        return run(main(Path(folder)), loop)


def instructions_of(plan: LabPlan, payload: TaskSubmit) -> InstructionSet | Rejected:
    """Return the plan of a task, or the reason that it would be rejected; nothing is flown."""
    found = referred(plan, payload, Path("runs").absolute())
    if isinstance(found, Rejected):
        return found
    facts = facts_for(lab_facts_of(plan), found)
    admitting = Admitting(facts=facts, envelope=plan.envelope, utc=wall_clock_utc)
    weighed = admitting.weigh(found)
    return weighed if isinstance(weighed, Rejected) else weighed.planned.instructions


async def _foreseen(
    admitting: Admitting, payload: TaskSubmit, unknown: str = ""
) -> Forecast | Rejected:
    weighed = admitting.weigh(payload)
    if isinstance(weighed, Rejected):
        return await admitting.advise(payload, weighed)
    flown = await admitting.predict(weighed, {})
    if isinstance(flown, Rejected):
        return await admitting.advise(payload, flown)
    weighed, found = flown
    approved, reading = admitting.approve(weighed, payload.caller_id), weighed.screened.reading
    if found is None:
        took_s = weighed.planned.duration_s
        found = Prediction(duration_s=took_s, steps=(), trajectory={}, units={}, gas_used_cm3={})
    return Forecast(
        found,
        asks=approved.reason if isinstance(approved, NotApproved) else "",
        risk_level=weighed.risk.level,
        risk_reasons=tuple(weighed.risk.reasons),
        approved=", ".join(approved.by) if isinstance(approved, Approved) else "",
        unknown=unknown,
        warnings=() if reading is None else tuple(text for _, text in reading.warnings()),
    )


def _hidden(plan: LabPlan) -> str:
    """Return why the latch cannot be seen, such as by an account that may not enter its folder."""
    try:
        (plan.state_dir / "latch.json").exists()
    except OSError as why:
        return Text("forecast.hidden", folder=str(plan.state_dir), why=why.strerror)
    return ""
