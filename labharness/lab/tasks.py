"""Running one task on one lab: everything wired, from the message to the answer in its folder."""

import asyncio
import os
import platform
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from labharness.admission.approval import (
    Approved,
    BadApproval,
    NotApproved,
    StandingApproval,
    public_key_of,
    read_approval,
)
from labharness.admission.audit import Rejected
from labharness.admission.callers import BadCallers, read_callers
from labharness.capability import LineFacts
from labharness.clock import (
    VIRTUAL_EPOCH,
    Chance,
    Clock,
    PacedLoop,
    VirtualLoop,
    utc_text,
    wall_clock_utc,
)
from labharness.clock import run as run_on
from labharness.desk import Admitting, ByHand, Desk, HouseFacts
from labharness.guard import LatchUnreadable
from labharness.guard.latch import write_durably
from labharness.hcp import answers
from labharness.hcp.codec import Message, encode
from labharness.hcp.messages import TaskSubmit
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import Artifacts
from labharness.lab.alarms import line_alarms
from labharness.lab.approvals import VALID_S, ApprovalFolder, Persons
from labharness.lab.control import served
from labharness.lab.files import BadLabFile, read_text
from labharness.lab.kinds import capabilities, shipped_file
from labharness.lab.lab import SAFE_TABLE, Lab, LabPlan
from labharness.lab.lock import LOCK_NAME, LineBusy, LineLock
from labharness.lab.operators import Operator, TerminalOperator
from labharness.lab.simulated import SimulatedLab
from labharness.plan import InstructionSet, Prediction

__all__ = [
    "BadOutput",
    "Forecast",
    "RunResult",
    "TaskRun",
    "forecast",
    "fresh_folder",
    "house_facts",
    "make_loop",
    "repository_key",
]

JOURNAL_NAME = "journal.sqlite"
REPOSITORY_KEY = "labs/repository.key"
SIMULATED_SEED = 1  # what a simulated run takes when nobody names a seed: the example is repeatable


class BadOutput(ValueError):
    """The output folder cannot take a run."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run left behind."""

    message: Message
    folder: Path
    journal_head: str


def repository_key() -> bytes:
    """Give the private key of the repository.

    It is no secret: an approval signed with it is honoured only while every link of the lab is a
    loopback.
    """
    return bytes.fromhex(shipped_file(REPOSITORY_KEY).read_text("utf-8").strip())


def house_facts(plan: LabPlan) -> HouseFacts:
    """Gather what the desk is told of a lab, save how plans are flown: that takes a loop.

    Raises:
        BadLabFile: The callers file or an approval cannot be honoured.
    """
    file = plan.file
    approvals: list[StandingApproval] = []
    try:
        offered = capabilities()
        callers = read_callers(read_text(plan.beside(file.lab.callers)))
        for path in file.lab.approvals:
            if plan.beside(path).exists():
                approvals.append(read_approval(read_text(plan.beside(path))))
    except (BadCallers, BadApproval, LookupError) as why:
        raise BadLabFile(f"{plan.path.parent}: {why}") from None
    specs = {
        f"{each.name}.{channel}": spec
        for each in plan.instruments
        for channel, spec in each.driver.channels.items()
    }
    return HouseFacts(
        lab_digest=plan.lab_digest,
        envelope_digest=plan.envelope_digest,
        link_kinds=plan.links,
        attended=file.lab.attended == "always",
        shared=file.lab.shared,
        safeguards_missing=plan.hazards.missing,
        on_comm_loss={channel: spec.on_comm_loss for channel, spec in specs.items()},
        callers=callers,
        capabilities=offered,
        approvals=tuple(approvals),
        approval_key=public_key_of(repository_key()),
        safety_envelope=plan.safety_envelope,
        line_facts=LineFacts(
            limits={
                channel: (limit.low, limit.high, limit.unit)
                for channel, limit in plan.envelope.limits.items()
            },
            tube_volume_cm3=file.tube.volume_cm3,
            laser_nm=file.raman.laser_nm,
            a1g_si_monolayer=file.raman.a1g_si_monolayer,
            raman_source=file.raman.source,
            growth=file.growth,
        ),
        safe_procedure=SAFE_TABLE,
        watched={channel: specs[channel].unit for channel in plan.envelope.watches},
        warnings=plan.warnings(),
        lab_option=plan.option,
    )


def _flights(
    plan: LabPlan, loop: asyncio.AbstractEventLoop
) -> Callable[[InstructionSet, Mapping[str, float]], Awaitable[Prediction]]:
    """Fly plans inline in virtual time, and in a worker process where time is real."""

    async def predict(instructions: InstructionSet, readings: Mapping[str, float]) -> Prediction:
        from labharness.lab import preflight

        if isinstance(loop, VirtualLoop):
            return preflight.predict_in_thread(plan, instructions, readings)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worker:
            return await loop.run_in_executor(
                worker, preflight.predict_from_file, plan.path, instructions, dict(readings)
            )

    return predict


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a task would do.

    Attributes:
        asks: Why it would wait for a person's approval; ``""`` where it would not.
        risk_level: What admission weighed it at.
        approved: Who approved it beforehand; ``""`` where nobody has, or need.
    """

    prediction: Prediction
    asks: str
    risk_level: str
    approved: str


def forecast(plan: LabPlan, payload: TaskSubmit) -> Forecast | Rejected:
    """Say what a task would do, or why it would be rejected; nothing is opened or submitted.

    Raises:
        BadLabFile: The lab has no simulated plant to fly on.
    """
    if not plan.file.has_a_plant:
        raise BadLabFile(f"{plan.path}: without a [plant] nothing can be predicted")
    loop = VirtualLoop()
    facts = replace(house_facts(plan), predict=_flights(plan, loop))

    async def main(folder: Path) -> Forecast | Rejected:
        clock = Clock(loop)
        with SqliteJournal(folder / JOURNAL_NAME) as journal:
            lab = Lab(
                plan,
                clock=clock,
                chance=Chance(SIMULATED_SEED),
                journal=journal,
                operator=TerminalOperator(lambda prompt: ""),
            )
            admitting = Admitting(facts=facts, line=lab.line, clock=clock)
            weighed = admitting.weigh(payload)
            if isinstance(weighed, Rejected):
                return await admitting.advise(payload, weighed)
            found = await admitting.predict(weighed, {})
            if isinstance(found, Rejected):
                return await admitting.advise(payload, found)
            if found is None:
                raise BadLabFile(f"{plan.path}: nothing can be predicted")
            approved = admitting.approve(weighed, payload.caller_id)
            return Forecast(
                found,
                asks=approved.reason if isinstance(approved, NotApproved) else "",
                risk_level=weighed.admitted.risk.level,
                approved=", ".join(approved.by) if isinstance(approved, Approved) else "",
            )

    with TemporaryDirectory() as folder:
        return run_on(main(Path(folder)), loop)


def make_loop(speed: float | None, plan: LabPlan) -> asyncio.AbstractEventLoop:
    """Make the loop of a run: ``None`` is as fast as it goes, a number is that many times real.

    Raises:
        BadLabFile: Real instruments cannot run faster than real time.
    """
    if speed == 1.0:
        return PacedLoop(1.0)
    real = [row.name for row in plan.file.port if row.link != "loopback"]
    if real:
        raise BadLabFile(
            f"port {real[0]!r} leads to a real instrument, which runs at --speed real only"
        )
    return VirtualLoop() if speed is None else PacedLoop(speed)


class TaskRun:
    """One task on one lab.

    Args:
        plan: The lab's files, read.
        submit: The message.
        payload: Its payload.
        speed: ``None`` for virtual time, else how many times real time.
        seed: Of a simulated run; ``None`` takes the default. A lab with real links draws entropy.
        out: The folder to fill; ``None`` makes ``runs/<time>-<session>``.
        operator: Who does manual steps on a lab whose file names a person.
        approval_wait_s: World time to wait for persons to approve; ``None`` takes the default: a
            day, and in virtual time, which passes without them, not at all.
        tell: Shown every event.
        prepare: Called with the lab before anything is opened; tests inject faults through it.
        room: The simulated room, where it was there before this task and outlives it.
        approvals: Standing approvals beside those that the lab file names.
    """

    def __init__(
        self,
        plan: LabPlan,
        submit: Message,
        payload: TaskSubmit,
        *,
        speed: float | None,
        seed: int | None,
        out: Path | None,
        operator: Operator | None = None,
        approval_wait_s: float | None = None,
        tell: Callable[[str, Mapping[str, Any]], None] = lambda kind, data: None,
        prepare: Callable[[Lab], None] = lambda lab: None,
        room: SimulatedLab | None = None,
        approvals: tuple[StandingApproval, ...] = (),
    ) -> None:
        self._plan = plan
        self._submit = submit
        self._payload = payload
        simulated = all(link == "loopback" for link in plan.links)
        self.seed = (SIMULATED_SEED if seed is None else seed) if simulated else None
        self._chance = Chance(self.seed)
        self.session_id = self._chance.uuid4()
        self._speed = speed
        self._operator = operator
        self._approval_wait_s = approval_wait_s
        self._tell = tell
        self._prepare = prepare
        self._room = room
        self._approvals = approvals
        self._desk: Desk | None = None
        self._abort_reason = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self.folder = out if out is not None else fresh_folder(self.session_id)

    def execute(self) -> RunResult:
        """Run to the terminal message and write it beside the journal.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
            BadOutput: The output folder cannot take the run.
        """
        loop = make_loop(self._speed, self._plan)
        try:
            work = self.work(loop)
        except BaseException:
            loop.close()
            raise
        try:
            return run_on(work, loop)
        except (BadLabFile, BadOutput):
            raise
        except Exception as why:  # noqa: BLE001 - the line was made safe; no traceback reaches a user
            message = answers.task_failed(
                message_id=self._chance.uuid4(),
                timestamp=answers.timestamp_of(wall_clock_utc()),
                session_id=self.session_id,
                error_code="internal_error",
                error_message=f"{type(why).__name__}: {why}",
            )
            return RunResult(message, self.folder, "")

    def work(self, loop: asyncio.AbstractEventLoop) -> Coroutine[Any, Any, RunResult]:
        """Give the whole of the task as a coroutine, for whoever runs the loop.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
            BadOutput: The output folder cannot take the run.
        """
        for finding in self._plan.check():
            raise BadLabFile(f"{self._plan.path}: {finding.where} {finding.what}")
        facts = house_facts(self._plan)
        facts = replace(facts, approvals=facts.approvals + self._approvals)
        self._try_state_dir()
        _make_folder(self.folder)
        self._loop = loop
        if self._plan.file.has_a_plant:
            facts = replace(facts, predict=_flights(self._plan, loop))
        try:
            (self.folder / "submit.json").write_bytes(encode(self._submit) + b"\n")
        except OSError as why:
            raise BadOutput(f"output folder {self.folder}: submit.json: {why.strerror}") from None
        return self._main(facts, loop)

    def _try_state_dir(self) -> None:
        """See that a latch could be kept before anything is left in the run's folder."""
        try:
            self._plan.make_state_dir()
            (self._plan.state_dir / LOCK_NAME).open("ab").close()
        except OSError as why:
            raise BadLabFile(f"state directory {self._plan.state_dir}: {why.strerror}") from None

    def abort(self, reason: str) -> None:
        """Ask for an abort, from a signal handler or another thread; too early counts too."""
        self._abort_reason = self._abort_reason or reason
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pass_on_abort)

    def _pass_on_abort(self) -> None:
        if self._desk is not None and self._abort_reason:
            self._desk.abort(self._abort_reason)

    async def _main(self, facts: HouseFacts, loop: asyncio.AbstractEventLoop) -> RunResult:
        clock = Clock(loop)
        run = {
            "session_id": self.session_id,
            "seed": self.seed,
            "lab_digest": self._plan.lab_digest,
            "envelope_digest": self._plan.envelope_digest,
            "epoch": utc_text(VIRTUAL_EPOCH) if clock.virtual else utc_text(clock.utc()),
        }
        about = {
            "pid": os.getpid(),
            "lab_file": str(self._plan.path),
            "labharness": version("labharness"),
            "python": platform.python_version(),
            "system": platform.platform(),
        }
        try:
            journal = SqliteJournal(self.folder / JOURNAL_NAME, run=run, about=about)
            journal.commit()
        except JournalFailed as why:
            raise BadOutput(f"the output folder cannot take a journal: {why}") from None
        try:
            message = await self._answer(facts, clock, journal)
        finally:
            with suppress(JournalFailed):  # the desk has said so already
                journal.close()
        head = journal.head.hash
        try:
            write_durably(self.folder / "answer.json", encode(message).decode() + "\n")
        except OSError as why:  # who asked is answered all the same
            self._warn(f"{self.folder / 'answer.json'} cannot be written: {why.strerror or why}")
        return RunResult(message, self.folder, head)

    async def _answer(self, facts: HouseFacts, clock: Clock, journal: SqliteJournal) -> Message:
        try:
            self._plan.make_state_dir()
            lock = LineLock(self._plan.state_dir, self._plan.owner(self.folder))
        except OSError as why:
            raise BadLabFile(f"state directory {self._plan.state_dir}: {why.strerror}") from None
        except LineBusy as why:
            return self._busy(clock, str(why))
        try:
            with lock:
                lab = Lab(
                    self._plan,
                    clock=clock,
                    chance=self._chance,
                    journal=journal,
                    operator=self._operator,
                    room=self._room,
                )
                line_alarms(lab)
                self._prepare(lab)
                self._desk = Desk(
                    facts=facts,
                    line=lab.line,
                    operator=lab.operator,
                    approvers=self._persons(clock),
                    clock=clock,
                    chance=self._chance,
                    journal=journal,
                    session_id=self.session_id,
                    artifacts=Artifacts(self.folder / "artifacts", self.session_id),
                    tell=self._tell,
                )
                clock.loop.call_soon(self._pass_on_abort)
                hands = ByHand(lab.line, self._desk)
                async with served(self._plan.state_dir, hands.answer, clock, self._warn):
                    return await self._desk.run(self._submit, self._payload)
        except LatchUnreadable as why:
            return self._busy(clock, str(why))
        except JournalFailed as why:  # before the line was opened: nothing was sent
            raise BadOutput(f"the run's journal cannot be written: {why}") from None

    def _warn(self, text: str) -> None:
        self._tell("warning", {"message": text})

    def _persons(self, clock: Clock) -> Persons:
        wait_s = self._approval_wait_s
        if wait_s is None:
            wait_s = 0.0 if clock.virtual else VALID_S

        def asked(name: str) -> None:
            if wait_s:
                self._tell("approval_asked", {"id": name, "wait_s": wait_s})

        folder = ApprovalFolder(self._plan.state_dir)
        return Persons(
            folder,
            clock,
            wait_s,
            asked,
            lab_option=self._plan.option,
            sign_again=self._plan.sign_again,
        )

    def _busy(self, clock: Clock, why: str) -> Message:
        rejected = Rejected(
            "resource_unavailable",
            why,
            suggestion="Wait for the other run, or see what the message names",
        )
        return answers.task_rejected(
            message_id=self._chance.uuid4(),
            timestamp=answers.timestamp_of(clock.utc()),
            in_reply_to=self._submit.message_id,
            rejected=rejected,
        )


def fresh_folder(session_id: str) -> Path:
    """Name a folder for a run after the hour and its session."""
    moment = wall_clock_utc().strftime("%Y%m%dT%H%M%S%f")[:-3]
    return Path("runs") / f"{moment}-{session_id[:8]}"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / JOURNAL_NAME).exists():
            raise BadOutput(f"{folder} holds a run already; name a fresh folder")
        (folder / "artifacts").mkdir(exist_ok=True)
    except OSError as why:
        raise BadOutput(f"output folder {folder}: {why.strerror}") from None
