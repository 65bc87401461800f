"""Run one task on one lab: everything wired, from the message to the answer in its folder."""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, Clock, pause, utc_text, wall_clock_utc
from labharness.core.clock import run as run_on
from labharness.core.files.durable import write_durably
from labharness.core.files.named import open_own
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link.conversation import is_served
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import Artifacts
from labharness.journal.chain import ENCRYPTED
from labharness.journal.encryption import RunKey, in_use
from labharness.lab.config.approvers import approvers_of
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import LOCK_NAME, LineBusy, LineLock
from labharness.lab.wiring.alarms import line_alarms, somebody_knows
from labharness.lab.wiring.approvals import VALID_S, ApprovalFolder, Persons
from labharness.lab.wiring.control import served
from labharness.lab.wiring.lab import Lab
from labharness.lab.wiring.operators import RemoteOperator
from labharness.lab.wiring.preflight import flights
from labharness.lab.wiring.referring import referred, surroundings_of
from labharness.lab.wiring.runs import (
    BadOutput,
    fresh_folder,
    make_folder,
    make_loop,
    no_log,
    open_journal,
    run_key,
    run_log,
    seed_of,
    storable,
    stored,
)
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness.line import Line, LineAlarms
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.guard import LatchUnreadable
from labharness.safety.guard.latch import LatchedElsewhere
from labharness.work.admission.approval import StandingApproval
from labharness.work.admission.confidential import is_confidential
from labharness.work.capability import Settings
from labharness.work.desk.by_hand import ByHand
from labharness.work.desk.desk import Desk
from labharness.work.desk.facts import Approvers, LabFacts, facts_without_line
from labharness.work.desk.folder import ANSWER_NAME, ARTIFACTS_NAME, JOURNAL_NAME, SUBMIT_NAME
from labharness.work.desk.making_safe import Cooled
from labharness.work.desk.null_line import Absent, NullLine
from labharness.work.desk.session import Session
from labharness.work.plan import Operator

LOG = logging.getLogger(__name__)
LINE_LOOK_S = 0.2  # between two tries to have the line
WAIT = "Wait for the other run, or see what the message names"


def lab_facts_without_line(plan: LabPlan) -> LabFacts:
    """Return the facts of a lab for tasks that need no line; its ``capabilities`` are those.

    Raises:
        BadLabFile: The lab's callers or approvals cannot be honoured.
    """
    return facts_without_line(lab_facts_of(plan))


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    Attributes:
        message: The terminal message.
        folder: Holds it, the journal and the artifacts.
        journal_head: The journal's head.
        watches: Whether the line is watched after the answer, until it is cold.
        cooled: The end of that watch, once it is over.
    """

    message: HcpMessage
    folder: Path
    journal_head: str
    watches: bool = False
    cooled: Cooled | None = None


@dataclass(eq=False)
class TaskRun:
    """One task on one lab.

    Attributes:
        plan: The lab's files, read.
        submit: The submission message.
        payload: Its payload.
        speed: ``None`` for virtual time, else how many times real time.
        seed: Of a simulated run and its ids; ``None`` takes the default for the plant, and fresh
            ids. A lab with real links draws entropy.
        out: The folder of the run; ``None`` makes ``runs/<time>-<session>``.
        operator: The operator of manual steps on a lab whose file names a person.
        approval_wait_s: World time to wait for persons to approve; ``None`` takes the default: a
            day, and where world time is virtual, and passes without them, not at all.
        tell: Called with every event.
        answered: Called with the result once its answer is in the folder, before the line is
            watched until it is cold; it must not wait.
        prepare: Called with the lab before anything is opened; tests inject faults through it.
        sim_lab: The simulated lab, where it was there before this task and outlives it.
        approvals: Standing approvals beside those that the lab file names.
        log_level: The level of the run's log (`run_log`).
        session_id: Of the run, where it was minted on receipt; ``""`` mints one here.
        earlier: The folder of the run to go on from.
        accepted: Keeps the message that carries the session's token, for its caller alone.
        waits: Another run has the line as fast as it goes: it is waited for.
        by_calendar: World time is the calendar's at every speed: the lab is up (ruling 46).
        without_line: The facts of the lab without its line (`lab_facts_without_line`), for a task
            that needs none: it runs in real time, and takes no lock.
        on_receipt: The acceptance that the caller got on receipt, where it got one.
    """

    plan: LabPlan
    submit: HcpMessage
    payload: TaskSubmit
    _: KW_ONLY
    speed: float | None = 1.0
    seed: int | None = None
    out: Path | None
    operator: Operator | None = None
    approval_wait_s: float | None = None
    tell: Callable[[str, Mapping[str, Any]], None] = lambda kind, data: None
    answered: Callable[[RunResult], None] = lambda result: None
    prepare: Callable[[Lab], None] = lambda lab: None
    sim_lab: SimulatedLab | None = None
    approvals: tuple[StandingApproval, ...] = ()
    log_level: str = "warning"
    session_id: str = ""
    earlier: Path | None = None
    accepted: Callable[[HcpMessage], None] = lambda message: None
    waits: bool = False
    by_calendar: bool = False
    without_line: LabFacts | None = None
    on_receipt: HcpMessage | None = None

    def __post_init__(self) -> None:
        self.payload = storable(self.plan, self.payload)
        self.submit = replace(self.submit, payload=self.payload)
        seeded = self.without_line is None and not self.plan.real_ports
        self._ids = Chance(self.seed if seeded else None)  # ruling 26: fresh, unless seeded
        if self.without_line is None:
            self.seed = seed_of(self.plan, self.seed)
        else:
            self.seed, self.speed = None, 1.0
        self._chance = Chance(self.seed)
        self.session_id = self.session_id or self._ids.uuid4()
        self.folder = self.out or fresh_folder(self.session_id)
        self._key: RunKey | None = None
        self._result: RunResult | None = None
        self._desk: Desk | None = None
        self._hands: ByHand | None = None
        self._alarms: LineAlarms | None = None
        self._abort_reason = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    def execute(self) -> RunResult:
        """Run to the terminal message, write it beside the journal, and watch a hot line cool.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
            BadOutput: The output folder cannot take the run.
            BadKey: It is confidential, and the lab's key cannot be used; nothing was sent.
        """
        loop = make_loop(self.speed, self.plan)
        try:
            work = self.work(loop)
        except BaseException:
            loop.close()
            raise
        if self.without_line is not None:  # others may run in this process
            return self._run(work, loop)
        log = run_log(self.folder, self.log_level, loop)
        with no_log() if self.confidential else log:
            return self._run(work, loop)

    def _run(
        self, work: Coroutine[Any, Any, RunResult], loop: asyncio.AbstractEventLoop
    ) -> RunResult:
        """Run it; an error inside labharness becomes an answer."""
        try:
            return run_on(work, loop)
        except (BadLabFile, BadOutput):
            raise
        except Exception as why:  # the line was made safe; a traceback is for the log alone
            shown = None if self.confidential else why
            LOG.error("the task ended by an error of the harness", exc_info=shown)
            if self._result is not None:  # it was answered, and an answer stands
                return self._result
            message = answers.task_failed(
                message_id=self._ids.uuid4(),
                timestamp=utc_text(wall_clock_utc()),
                session_id=self.session_id,
                error_code="internal_error",
                error_message=type(why).__name__ + ("" if self.confidential else f": {why}"),
            )
            return RunResult(message, self.folder, "")

    def work(self, loop: asyncio.AbstractEventLoop) -> Coroutine[Any, Any, RunResult]:
        """Return the whole of the task as a coroutine, for a caller that runs the loop.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
            BadOutput: The output folder cannot take the run.
        """
        facts = self.without_line or self._facts_of_line()
        self._try_state_dir()
        make_folder(self.folder)
        self._loop = loop
        if facts.has_line and self.plan.file.has_a_plant:
            facts = replace(facts, predict=flights(self.plan, loop))
        try:
            self._key = run_key(self.folder, self.plan, self.payload)
            (self.folder / SUBMIT_NAME).write_bytes(stored(self._key, SUBMIT_NAME, self.submit))
        except OSError as why:
            with suppress(OSError):  # half of it would block the next try
                (self.folder / SUBMIT_NAME).unlink()
            folder = str(self.folder)
            raise BadOutput(
                "output.submit", folder=folder, name=SUBMIT_NAME, why=why.strerror
            ) from None
        return self._main(facts, loop)

    def _facts_of_line(self) -> LabFacts:
        """Return the facts of the lab for this task, whose inputs are loaded from where they stand.

        Raises:
            BadLabFile: The lab's files cannot be honoured.
        """
        self.plan.must_hold()
        facts = lab_facts_of(self.plan)
        anew = facts.begins_anew and self.sim_lab is None
        facts = replace(facts, approvals=facts.approvals + self.approvals, begins_anew=anew)
        if self.earlier is not None and anew:
            raise BadLabFile("resume.plant")
        found = referred(self.plan, self.payload, self.folder.resolve().parent)
        if isinstance(found, Rejected):
            facts = replace(facts, refused=found)
        else:
            self.payload = found
        return facts

    def _try_state_dir(self) -> None:
        """See that a latch could be kept before anything is left in the run's folder."""
        try:
            self.plan.make_state_dir()
            if self.without_line is None:
                os.close(open_own(self.plan.state_dir / LOCK_NAME, os.O_RDWR))
        except OSError as why:
            text = Text("state_dir.shut", folder=str(self.plan.state_dir), why=why.strerror)
            raise BadLabFile(text) from None

    @property
    def confidential(self) -> bool:
        """Whether nothing of its task may be written in clear."""
        return is_confidential(self.payload)

    def abort(self, reason: str) -> None:
        """Ask for an abort, from a signal handler or another thread; too early counts too."""
        self._abort_reason = self._abort_reason or reason
        self._soon(self._pass_on_abort)

    def _soon(self, work: Callable[..., None], *given: object) -> None:
        """Do something in the run's loop, from any thread; one that is over needs nothing."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *given)

    def time_out(self) -> None:
        """End a run that was silent for longer than the lab allows, from another thread."""
        if self._desk is not None:
            bound_s = self.plan.file.lab.inactivity_s
            self._soon(self._desk.time_out, Text("session.silent", bound_s=bound_s))

    def ask(self, asked: Mapping[str, Any]) -> "Future[dict[str, Any]] | None":
        """Ask as at the control socket, from another thread; ``None`` where no line is driven.

        Virtual time has no socket, and this way is open at every speed.
        """
        if self._hands is None or self._loop is None or self._loop.is_closed():
            return None
        return asyncio.run_coroutine_threadsafe(self._hands.answer(asked), self._loop)

    def stop(self, reason: str) -> str:
        """Abort the run or, once it is answered, break off the watch until the line is cold.

        Returns:
            A text that says which of both.
        """
        if self._result is None or not self._result.watches:
            self.abort(reason)
            return Text("cli.stopping")
        self._soon(self._break_off, reason)
        return Text("cli.breaking_off")

    def warn(self, code: str) -> None:
        """Write a warning for the caller into the session, from any thread."""
        self._soon(self._pass_on_warning, code)

    def _pass_on_warning(self, code: str) -> None:
        if self._desk is not None and not self._desk.session.closed:
            said = {"code": code, "message": Text("hcp.token_refused"), "details": {}}
            self._desk.session.event("warning", said)

    def _break_off(self, reason: str) -> None:
        if self._desk is not None:
            self._desk.break_off(reason)
        if self._alarms is not None:
            self._alarms.give_up()

    def _pass_on_abort(self) -> None:
        if self._desk is not None and self._abort_reason:
            self._desk.abort(self._abort_reason)
        if self._alarms is not None and self._abort_reason:
            self._alarms.give_up()

    async def _main(self, facts: LabFacts, loop: asyncio.AbstractEventLoop) -> RunResult:
        clock = Clock(loop, by_calendar=self.by_calendar)
        with in_use(self._key):
            journal = self._open_journal(facts, clock)
            self.tell("begun", {})
            try:
                message = await self._answer(facts, clock, journal)
                if self._result is None:
                    self._give(message, journal)
                if self._alarms is not None:
                    await somebody_knows(self._alarms, clock, self._warn)
            finally:
                with suppress(JournalFailed):
                    journal.close()
            self._result = self._found(message, journal)
            return self._result

    def _open_journal(self, facts: LabFacts, clock: Clock) -> SqliteJournal:
        ambient = {"ambient_torr": self.plan.file.lab.ambient_torr}
        run = {
            "session_id": self.session_id,
            "seed": self.seed,
            "epoch": utc_text(clock.utc_of(0.0)),
            **({**ambient, **self._settings(facts).recorded()} if facts.has_line else {}),
            **({} if self._key is None else {ENCRYPTED: self._key.data_class}),
        }
        speed = clock.speed if facts.has_line else None
        try:
            journal = open_journal(self.plan, self.folder, clock, run, speed=speed, key=self._key)
            journal.commit()
        except JournalFailed as why:
            raise BadOutput("output.no_journal", why=str(why)) from None
        return journal

    def _give(self, message: HcpMessage, journal: SqliteJournal) -> None:
        """Keep the answer, then give it; a caller that fails on it ends no watch."""
        with suppress(JournalFailed):  # the desk has reported it already
            journal.flush()
        self._keep(message)
        self._result = result = self._found(message, journal)
        try:
            self.answered(result)
        except Exception:
            LOG.exception("the answer is in its folder, and could not be passed on")

    def _found(self, message: HcpMessage, journal: SqliteJournal) -> RunResult:
        desk, head = self._desk, journal.head.hash
        if desk is None:
            return RunResult(message, self.folder, head)
        return RunResult(message, self.folder, head, desk.watches, desk.cooled)

    def _keep(self, message: HcpMessage) -> None:
        try:
            write_durably(self.folder / ANSWER_NAME, stored(self._key, ANSWER_NAME, message))
        except OSError as why:  # the asking side is answered all the same
            where, reason = str(self.folder / ANSWER_NAME), why.strerror or str(why)
            self._warn(Text("file.unwritable", path=where, why=reason))

    def _settings(self, facts: LabFacts) -> Settings:
        stated = facts.line_facts.get(self.payload.capability)
        return Settings() if stated is None else stated.settings

    async def _answer(self, facts: LabFacts, clock: Clock, journal: SqliteJournal) -> HcpMessage:
        try:
            if facts.has_line:
                return await self._answer_on_line(facts, clock, journal)
            desk = self._desk_at(NullLine(clock), Absent(), Absent(), facts, clock, journal)
            return await self._answer_of(desk, clock, journal)
        except JournalFailed as why:  # before it was accepted: nothing was begun, and nothing sent
            raise BadOutput("output.journal", why=str(why)) from None

    async def _answer_on_line(
        self, facts: LabFacts, clock: Clock, journal: SqliteJournal
    ) -> HcpMessage:
        try:
            self.plan.make_state_dir()
            lock = self._line_lock()
        except OSError as why:
            text = Text("state_dir.shut", folder=str(self.plan.state_dir), why=why.strerror)
            raise BadLabFile(text) from None
        except LineBusy as why:
            looks = why.owner is not None and why.owner.does
            return self._busy(clock, str(why), "Run it again then" if looks else WAIT)
        try:
            with lock:
                lab = Lab(
                    self.plan,
                    clock=clock,
                    chance=self._chance,
                    journal=journal,
                    operator=self.operator,
                    sim_lab=self.sim_lab,
                )
                self._alarms = line_alarms(lab)
                self.prepare(lab)
                asked = lab.operator
                persons = self._persons(clock, journal)
                desk = self._desk_at(lab.line, asked, persons, facts, clock, journal)
                step_done = asked.done if isinstance(asked, RemoteOperator) else None
                hands = self._hands = ByHand(lab.line, desk, step_done)
                home = self.plan.state_dir
                async with served(home, hands.answer, clock, self._warn, hands.lose_door):
                    return await self._answer_of(desk, clock, journal)
        except LatchUnreadable as why:
            there = isinstance(why, LatchedElsewhere)  # its text says how to reset it
            then = "Reset it there first" if there else f"Then: {self.plan.reset_command}"
            return self._busy(clock, str(why), then)

    def _desk_at(
        self,
        line: Line,
        operator: Operator,
        approvers: Approvers,
        facts: LabFacts,
        clock: Clock,
        journal: SqliteJournal,
    ) -> Desk:
        """Return the desk of this task at a line."""
        runs, settings = self.folder.resolve().parent, self._settings(facts)
        self._desk = Desk(
            facts=facts,
            line=line,
            operator=operator,
            approvers=approvers,
            around=surroundings_of(self.plan, self.payload, runs, settings),
            chance=self._ids,
            session=Session(self.session_id, journal, clock, self._ids.uuid4, self.tell),
            artifacts=Artifacts(self.folder / ARTIFACTS_NAME, self.session_id, self._key),
            earlier=None if self.earlier is None else self.earlier / JOURNAL_NAME,
            accepted=self.accepted,
            told=self.on_receipt,
        )
        return self._desk

    async def _answer_of(self, desk: Desk, clock: Clock, journal: SqliteJournal) -> HcpMessage:
        clock.loop.call_soon(self._pass_on_abort)
        return await desk.run(self.submit, self.payload, lambda answer: self._give(answer, journal))

    def _line_lock(self) -> LineLock:
        """Take the line; a run as fast as it goes has it for seconds, and may be waited for.

        Nothing is open yet, and virtual time has not begun to pass.

        Raises:
            LineBusy: Another process has it, and is not waited for.
        """
        told = False
        while True:
            try:
                return self.plan.lock(self.folder)
            except LineBusy as why:
                runs = why.owner is not None and not why.owner.does
                waits = self.waits and runs and not self._abort_reason
                if not waits or is_served(self.plan.state_dir):
                    raise
                if not told:
                    self._warn(Text("run.waits", owner=str(why.owner)))
                    told = True
                pause(LINE_LOOK_S)

    def _warn(self, text: str) -> None:
        self.tell("warning", {"message": text})

    def _persons(self, clock: Clock, journal: SqliteJournal) -> Persons:
        wait_s = self.approval_wait_s
        if wait_s is None:
            wait_s = VALID_S if clock.by_calendar else 0.0

        def asked(name: str) -> None:
            if wait_s:
                with suppress(JournalFailed):  # that it waits is seen at once by all who follow it
                    journal.commit()
                self.tell("approval_asked", {"id": name, "wait_s": wait_s})

        folder = ApprovalFolder(
            self.plan.state_dir,
            approvers=approvers_of(self.plan),
            key=self._key,
            runs=self.folder.resolve().parent,
        )
        return Persons(
            folder,
            clock,
            wait_s,
            asked,
            lab_option=self.plan.option,
            sign_again=self.plan.sign_again,
        )

    def _busy(self, clock: Clock, why: str, suggestion: str) -> HcpMessage:
        rejected = Rejected("resource_unavailable", why, suggestion=suggestion)
        return answers.task_rejected(
            message_id=self._ids.uuid4(),
            timestamp=utc_text(clock.utc()),
            in_reply_to=self.submit.message_id,
            rejected=rejected,
        )
