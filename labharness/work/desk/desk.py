"""One request from its arrival to its answer: screen, plan, weigh, approve, run, answer.

The file reads from top to bottom like a request. Decisions are made by admission, the capability
and the kernel. The desk owns their order, and leaves the line in its safe state before it answers,
after every ending. A line that has to cool is watched after the answer (``cooling``). A task that
needs no line goes the same way on a `NullLine`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, failure_of
from labharness.core.vocabulary import Command
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.link import LinkLost
from labharness.journal import JournalFailed
from labharness.journal.artifacts import Artifacts
from labharness.line import Line, NoReply, NotArmed, Tripped
from labharness.line.effects import idle_steps
from labharness.line.hindrances import begins
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.kernel import Mode
from labharness.work.admission.approval import Approved, NotApproved
from labharness.work.admission.confidential import is_confidential
from labharness.work.capability import Surroundings, needs_no_line
from labharness.work.desk.admitting import Admitting, Weighed, accept, as_accepted
from labharness.work.desk.checkpoint import Checkpoints, readings_of
from labharness.work.desk.closing import Closing
from labharness.work.desk.energised import scope
from labharness.work.desk.facts import Approvers, LabFacts
from labharness.work.desk.making_safe import Cooled, Cooling, MakingSafe
from labharness.work.desk.operations import LineOperations
from labharness.work.desk.progress_reporter import ProgressReporter
from labharness.work.desk.redaction import ACCEPTED, RECOVERED
from labharness.work.desk.resuming import NotResumable, Resumption, look_up
from labharness.work.desk.rules_record import plan_record
from labharness.work.desk.session import Session
from labharness.work.plan import Executor, Operator, StepRecord
from labharness.work.plan.set_runner import SetRunner

LOG = logging.getLogger(__name__)

HOLD_ANSWER_S = 2.0  # a request for a hold is answered after this time, held or not yet


def must_begin(line: Line, commands: Sequence[tuple[str, Command]], table: str) -> None:
    """Refuse a plan that cannot begin from what stands in the instruments of an opened line.

    Args:
        line: The line; arming will bring it to its safe table and ``prepare``.
        commands: Those of the plan, each with its step.
        table: Its safe table.

    Raises:
        NotArmed: Names each hindrance, and each step that would do nothing.
    """

    def rests(channel: str) -> float:
        rows = (rule.row for rule in line.memory.guarding.get(channel, ()))
        return min((row.above for row in rows if row.on_loss), default=0.0)

    if not line.instruments:
        return
    first = begins(line.memory, line.instruments, table)
    idle = idle_steps(commands, first, line.instruments, line.latest, rests)
    if found := (*line.hindrances(table), *idle):
        raise NotArmed(several(*found))


@dataclass(kw_only=True, eq=False)
class Desk:
    """Takes one submission to its answer.

    Attributes:
        facts: The lab.
        line: Its line, not opened yet; a `NullLine` for a task that needs none.
        operator: The person who does manual steps.
        approvers: The persons who decide where no standing approval covers a plan.
        around: Facts for the verbs of a task that needs no line.
        chance: Of ids and of the token.
        session: Its session.
        artifacts: The store of the files of the run.
        earlier: The journal of the run to go on from, for a submission that does so.
        accepted: Keeps the one message with the session's token, for its caller alone.
        told: The acceptance that the caller got on receipt, where it got one (decision 40).
        watches: Whether the line is watched after the answer, until it is cold.
        cooled: The end of that watch.
    """

    facts: LabFacts
    line: Line
    operator: Operator
    approvers: Approvers
    around: Surroundings
    chance: Chance
    session: Session
    artifacts: Artifacts
    earlier: Path | None = None
    accepted: Callable[[HcpMessage], None] = lambda message: None
    told: HcpMessage | None = None
    watches: bool = field(default=False, init=False)
    cooled: Cooled | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        session, line, facts = self.session, self.line, self.facts
        self._clock = session.clock
        self._reporter = ProgressReporter(session, line)
        self._checkpoints = Checkpoints(session, line, facts)
        self._closing = Closing(
            session, line, self.artifacts, facts, self.chance, self._checkpoints
        )
        self._making_safe = MakingSafe(line, facts.safe_procedure)
        self._cooling = Cooling(line, self._making_safe, session.tell)
        self._executor: Executor | SetRunner | None = None
        self._resumption: Resumption | None = None
        self._running: asyncio.Task[HcpMessage] | None = None
        self._abort_reason = ""
        self._silence: TimeoutError | None = None
        self._executing = False
        self._safe_at_s: float | None = None
        self._holding: asyncio.Task[None] | None = None

    async def run(
        self,
        submit: HcpMessage,
        payload: TaskSubmit,
        answered: Callable[[HcpMessage], None] = lambda message: None,
    ) -> HcpMessage:
        """Take a ``task_submit`` to its terminal message, and a hot line from there to a cold one.

        Args:
            submit: The message.
            payload: Its payload.
            answered: Called with the terminal message once the line is in its safe state, or it
                is reported that it is not; a line that has to cool is watched after that.
        """
        self._running = asyncio.current_task()
        self.line.events.on_warning = self._reporter.warned
        self.session.metadata["source_message_id"] = submit.message_id
        try:
            try:
                message = await self._taken(payload)
            except Exception as why:
                if isinstance(why, JournalFailed) and self.session.state == "PENDING":
                    raise  # nothing was sent, and no message can be kept
                message = await self._broken(why)
            answered(message)
            if self.watches:
                self.cooled = await self._cooling.watch()
            return message
        finally:
            await self.line.close()

    async def _taken(self, payload: TaskSubmit) -> HcpMessage:
        """Take a task in, and carry it out, reject it or abort it."""
        try:
            weighed = await self._admit(payload)
            if isinstance(weighed, Weighed):
                return await self._carry_out(weighed)
            return self._rejected(weighed)
        except asyncio.CancelledError:
            if self._abort_reason:
                return await self._aborted()
            failure = self._silence or failure_of(self._clock.loop)
            if failure is None:
                raise
            return await self._broken(failure)

    def _begin(self, payload: TaskSubmit) -> None:
        """Begin the session: record its task, and tell of it."""
        if is_confidential(payload):
            self.session.confide(encrypted=self.session.journal.key is not None)
        created = {"state": "PENDING", "risk_level": None, "session_token": None}
        self.session.event("session_created", created)
        if self.told is not None:
            self.session.become("RUNNING", ACCEPTED)
        submitted = {
            "message_id": self.chance.uuid4(),
            "metadata": dict(self.session.metadata),
            "payload": payload.stated(),
        }
        self.session.record("submitted", submitted)
        for warning in self.facts.warnings:
            self.session.event("warning", {"code": "unverified", "message": warning, "details": {}})

    # ---- before anything physical

    async def _admit(self, payload: TaskSubmit) -> Weighed | Rejected:
        """Begin, weigh, read the line, fly the plan, find its approval; no channel is set."""
        self._begin(payload)
        admitting = Admitting(
            facts=self.facts, envelope=self.line.envelope, utc=self._clock.utc, line=self.line
        )
        weighed = as_accepted(admitting.weigh(payload), self.told)
        if isinstance(weighed, Rejected):
            return await admitting.advise(payload, weighed)
        self.session.warn_of_ignored(weighed.screened.ignored)
        reading = weighed.screened.reading
        if reading is not None and (warnings := [*reading.warnings()]):
            self.session.record("intent_read", asdict(reading))
            for code, text in warnings:
                self.session.event("warning", {"code": code, "message": text, "details": {}})
        self.session.record("planned", plan_record(weighed.planned, self.facts, self.line.envelope))
        if (unfit := await self._unfit(payload, weighed)) is not None:
            return unfit
        readings = {channel: self.line.latest(channel) for channel in self.line.memory.tracks}
        flown = await admitting.predict(weighed, readings)
        if isinstance(flown, Rejected):
            return await admitting.advise(payload, flown)
        weighed, prediction = flown
        if prediction is not None:
            self.session.record("prediction", prediction.to_json())
            self._reporter.expect(prediction)
        self._reporter.of_line("awaiting_approval", Text("approval.looking"))
        approved: Approved | NotApproved | Rejected | None
        approved = admitting.approve(weighed, payload.caller_id)
        if isinstance(approved, NotApproved):
            request = admitting.request(
                payload, weighed, prediction, approved, session_id=self.session.session_id
            )
            self._reporter.of_line("awaiting_approval", Text("approval.waiting"))
            approved = await self.approvers.decide(request)
        if isinstance(approved, Rejected):
            return await admitting.advise(payload, approved)
        if (later := admitting.again(weighed, prediction)) is not None:
            return later
        if approved is not None:
            self.session.record("approved", approved.to_json())
        return weighed

    async def _unfit(self, payload: TaskSubmit, weighed: Weighed) -> Rejected | None:
        """Open the line, and return why the task cannot begin as it is, or go on from there."""
        if payload.resume_from is not None:
            if weighed.actions is not None:
                way_out = Text("resume.whole")
                return Rejected("invalid_input", Text("resume.set"), suggestion=way_out)
            looked = await asyncio.to_thread(
                look_up, payload, self.earlier, weighed.planned.instructions, self.facts
            )
            if isinstance(looked, Rejected):
                return looked
            self._resumption = looked
            self.session.record("resumed", looked.to_json())
        try:
            await self.line.open()
            must_begin(self.line, weighed.stated, self.facts.safe_procedure)
            if self._resumption is not None:
                self._resumption.compare(readings_of(self.line))
        except (LinkLost, NoReply, NotArmed) as why:
            text = Text("line.unusable", why=str(why))
            way_out = Text("advice.which_instrument", lab=self.facts.lab_option)
            return Rejected("resource_unavailable", text, weighed.risk.level, way_out)
        except NotResumable as why:
            return Rejected("resource_unavailable", str(why), weighed.risk.level)
        return None

    # ---- the run

    async def _carry_out(self, weighed: Weighed) -> HcpMessage:
        """Accept the task, run its plan, leave the line safe, and answer."""
        self._closing.capability = weighed.capability
        self._accept(weighed)
        started_s, resumption = self._clock.now_s(), self._resumption
        commands = weighed.commands
        done: tuple[StepRecord, ...] = ()
        if resumption is not None:
            done, left = resumption.done(started_s), resumption.remaining()
            commands = tuple(command for step, command in weighed.stated if step in left)
        instructions = weighed.planned.instructions
        self._reporter.begin(instructions, weighed.planned.duration_s, len(done))
        self._checkpoints.plan_digest = instructions.digest()
        capability, verbs = weighed.capability, weighed.capability.verbs
        if needs_no_line(capability):
            verbs = capability.bound(weighed.screened.submission.inputs, self.around)
        unweighed = scope(commands, self.facts.sources)
        operations = LineOperations(
            self.line, self.operator, self.session, self._reporter, unweighed
        )
        told, made, actions = self._reporter.stepped, self._checkpoints.make, weighed.actions
        self._executor = executor = (
            Executor(instructions, operations, verbs, told, made, done)
            if actions is None
            else SetRunner(instructions, operations, verbs, actions, told)
        )
        ended = await self._execute(executor, weighed.screened.max_duration_s)
        if self.session.state == "PAUSED":  # ruling 10b: it goes on in order to end
            self.session.become("RUNNING", Text("hold.ended", why=str(ended)))
        run_s = await self._leave_safe(ended) - started_s
        if self.line.memory.trip is not None:
            # a step that ends by a trip may state another reason
            ended = Tripped(self.line.memory.trip)
        records = executor.records()
        summary = self._closing.summary(records[len(done) :], run_s)
        if resumption is not None:
            summary["resumed_from"] = resumption.asked.model_dump()
        return self._closing.answered(weighed, records, ended, summary)

    def _accept(self, weighed: Weighed) -> None:
        """Accept the task: its session gets a token, and its caller is told."""
        body = accept(self.session, weighed, self.facts, self.chance, self.accepted, self.told)
        self.session.record("task_accepted", body)
        if not self.facts.has_line:  # no poll commits it soon, and its caller hears of it now
            self.session.journal.commit()
        self.session.tell("task_accepted", body)
        if self.told is None:
            self.session.become("RUNNING", ACCEPTED if self._resumption is None else RECOVERED)

    async def _execute(
        self, executor: Executor | SetRunner, max_duration_s: float
    ) -> Exception | None:
        """Arm, run the plan, and return the exception that ended it; ``None`` for a good end."""
        try:
            async with asyncio.timeout(max_duration_s):
                self._reporter.of_line("arming", Text("arming.table"))
                await self.line.arm(self.facts.safe_procedure)
                if self._resumption is not None:
                    await self.line.next_tick()
                    self._resumption.compare(readings_of(self.line))
                    await self._checkpoints.make(executor.records()[: self._resumption.count])
                self.line.start()
                self._executing = True
                await executor.run()
        except Exception as why:  # noqa: BLE001 - the line is made safe, and the failure is reported
            if isinstance(why, JournalFailed):  # of a step; the line sees its own records fail
                self.line.monitor.lose_journal(str(why))
            return why
        finally:
            self._executing = False
        return None

    async def _leave_safe(self, ended: BaseException | None) -> float:
        """Bring the line to its safe state after any ending; return when that was reached.

        A line that may be hot goes on being polled, with trips in force; any other is closed.
        """
        line = self.line
        if not self.facts.has_line:
            self._safe_at_s = self._clock.now_s()
            return self._safe_at_s
        await self._making_safe.wait()
        if line.memory.trip is not None:
            trip = line.memory.trip
            data = {"code": trip.cause.value, "message": trip.detail, "recoverable": False}
            self.session.event("error", data)
        if ended is None and line.memory.trip is None and self._making_safe.done:
            line.disarm()
        else:
            self._reporter.of_line("cooling_under_watch", self._cooling.said, 100)
            self.watches = True
        self._safe_at_s = self._clock.now_s()
        if self.watches:
            await self._closing.prepare(self._records())
        else:
            await line.close()
        return self._safe_at_s

    # ---- other ends

    def _rejected(self, rejected: Rejected) -> HcpMessage:
        if self.told is not None:  # rules have changed since it was accepted on receipt
            return self._closing.withdrawn(rejected)
        self.session.become("REJECTED", rejected.reason_code)
        return self._closing.rejected(rejected)

    async def _aborted(self, *failures: str) -> HcpMessage:
        """End an aborted session with the line safe; failures on the way are told with it."""
        reason = self._abort_reason
        if self.session.state == "PENDING":
            return self._rejected(Rejected("aborted", reason))
        if self.session.state != "ABORTING":
            self.session.become("ABORTING", reason)
            await self._leave_safe(asyncio.CancelledError(reason))
        self.session.become("ABORTED", reason)
        unsafe = [*self._making_safe.unverified(), *failures]
        return self._closing.aborted(reason, unsafe, self._records())

    async def _broken(self, failure: BaseException) -> HcpMessage:
        """End a session because of a failure in this program, with the line made safe."""
        internal = Text("failure.internal", what=repr(failure))
        if self.session.state == "PENDING":
            shown = None if self.session.confidential else failure  # it may quote an input
            LOG.error("the task is rejected by an error of the harness", exc_info=shown)
            return self._rejected(Rejected("resource_unavailable", internal))
        await self._close_safe(failure)
        if self.session.state == "ABORTING":
            return await self._aborted(internal)
        if self.session.state == "PAUSED":
            self.session.become("RUNNING", Text("hold.failed"))
        summary = self._closing.summary(self._records(), 0.0)
        return self._closing.failed(failure, self._records(), None, summary)

    def _records(self) -> Sequence[StepRecord]:
        """Return the record of each step so far."""
        return () if self._executor is None else self._executor.records()

    async def _close_safe(self, failure: BaseException) -> None:
        """Leave the line safe after a failure in this program, in the shortest way if need be."""
        try:
            if self._safe_at_s is not None:
                return
            if self.line.memory.mode is not Mode.DISARMED:
                await self._leave_safe(failure)
                return
        except Exception:
            LOG.exception("the line is closed by an error of the harness")
        self.watches = False
        await self.line.close()

    # ---- requests of persons while it runs

    def abort(self, reason: str) -> None:
        """Abort the run; ``run`` then answers with ``session_closed``.

        After the line was left safe it has no effect: what was found is answered, and watched.
        """
        if self._running is not None and not self._ends():
            self._abort_reason = reason
            self._running.cancel()

    def time_out(self, reason: str) -> None:
        """Make the line safe as by an abort; the task has failed by a time-out, with the reason."""
        if self._running is not None and not self._ends():
            self._silence = TimeoutError(reason)
            self._running.cancel()

    def _ends(self) -> bool:
        asked = self._abort_reason or self._silence
        return bool(asked) or self._safe_at_s is not None or self.session.closed

    def break_off(self, reason: str) -> None:
        """End the watch after the answer; a line that is not cold is latched."""
        self._cooling.break_off(reason)

    async def hold(self, reason: str) -> str:
        """Let no further command through until ``resume``; ruling 11 calls it PAUSED.

        A step that cannot stand still (gas runs into a shut tube) comes to its end first.

        Returns:
            A sentence: the line is held now, or after which step it will be.

        Raises:
            NotArmed: No plan runs.
        """
        if not self._executing or self.session.state != "RUNNING" or self._holding is not None:
            raise NotArmed(Text("hold.nothing"))
        self._holding = self._clock.loop.create_task(self._hold(reason))
        await asyncio.wait({self._holding}, timeout=HOLD_ANSWER_S)
        if self.line.holding.on:
            return self.line.holding.said()
        return Text("hold.soon", doing=self._reporter.doing)

    async def _hold(self, reason: str) -> None:
        try:
            while self._executing and not await self.line.hold(lambda: self._reporter.holdable):
                await self.line.next_tick()
            if self._executing:
                self.session.become("PAUSED", reason)
            else:
                self._reporter.warned(Text("hold.too_late"))
        except (Tripped, NotArmed) as why:
            self._reporter.warned(Text("hold.not", why=str(why)))
        finally:
            self._holding = None

    async def resume(self, reason: str) -> None:
        """Go on after a hold, or withdraw one that still waits for its step.

        Raises:
            NotArmed: Nothing is held.
            Tripped: The line has tripped.
        """
        if self._holding is not None:
            self._holding.cancel()
            return
        self.line.check()
        if self.session.state != "PAUSED" or not self._executing:
            raise NotArmed(Text("hold.not_held", state=self.session.state))
        self.session.become("RUNNING", reason)
        self.line.start()

    def about(self) -> Mapping[str, Any]:
        """Return the session's properties and the step, for the control socket."""
        return {
            **self.session.properties(),
            "step": self._cooling.said if self.watches else self._reporter.doing,
            "left_s": self._reporter.left_s,
            "asked_step": self._reporter.asked_step,
        }
