"""One request from its arrival to its answer: screen, plan, weigh, approve, run, answer.

The file reads from top to bottom like a request. Decisions are made by admission, the capability
and the kernel. The desk owns their order, and leaves the line in its safe state before it answers,
after every ending. A line that has to cool is watched after the answer (``cooling``). A task that
needs no line goes the same way on a `NullLine`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, Clock, failure_of
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link import LinkLost
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import Artifacts
from labharness.line import HoldTooLong, Line, NoReply, NotArmed, Tripped
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.kernel import Mode
from labharness.work.admission.approval import Approved, NotApproved
from labharness.work.admission.confidential import is_confidential
from labharness.work.capability import Answer, NoAnswer, Surroundings, needs_no_line
from labharness.work.desk.accepting import accept, as_accepted
from labharness.work.desk.admitting import Admitting, Weighed, must_begin
from labharness.work.desk.checkpoint import Checkpoints, readings_of
from labharness.work.desk.closing import Closing, as_asked, summary, unfit
from labharness.work.desk.cooling import Cooled, Cooling
from labharness.work.desk.energised import scope
from labharness.work.desk.facts import Approvers, LabFacts
from labharness.work.desk.making_safe import MakingSafe
from labharness.work.desk.operations import LineOperations
from labharness.work.desk.progress_reporter import ProgressReporter
from labharness.work.desk.redaction import ACCEPTED, RECOVERED
from labharness.work.desk.resuming import NotResumable, Resumption, look_up
from labharness.work.desk.rules_record import plan_record
from labharness.work.desk.session import Session
from labharness.work.plan import Executor, FailureKind, Operator, StepFailed, StepRecord, Verb

LOG = logging.getLogger(__name__)

UNFIT = Text("advice.outputs")
HOLD_ANSWER_S = 2.0  # a request for a hold is answered after this time, held or not yet


class Desk:
    """Takes one submission to its answer.

    Args:
        facts: The lab.
        line: Its line, not opened yet; a `NullLine` for a task that needs none.
        operator: The person who does manual steps.
        approvers: The persons who decide where no standing approval covers a plan.
        around: Facts for the verbs of a task that needs no line.
        journal: The run's journal.
        artifacts: The store of its files.
        tell: Called with every event as it happens.
        earlier: The journal of the run to go on from, for a submission that does so.
        accepted: Keeps the one message with the session's token, for its caller alone.
        told: The acceptance that the caller got on receipt, where it got one (decision 40).

    Attributes:
        session: Its session.
        watches: Whether the line is watched after the answer, until it is cold.
        cooled: The end of that watch.
    """

    def __init__(
        self,
        *,
        facts: LabFacts,
        line: Line,
        operator: Operator,
        approvers: Approvers,
        around: Surroundings,
        clock: Clock,
        chance: Chance,
        journal: SqliteJournal,
        session_id: str,
        artifacts: Artifacts,
        tell: Callable[[str, Mapping[str, Any]], None],
        earlier: Path | None = None,
        accepted: Callable[[HcpMessage], None] = lambda message: None,
        told: HcpMessage | None = None,
    ) -> None:
        self._facts = facts
        self._line = line
        self._operator = operator
        self._approvers = approvers
        self._around = around
        self._clock = clock
        self._chance = chance
        self._journal = journal
        self.session = Session(session_id, journal, clock, chance.uuid4, tell)
        self._reporter = ProgressReporter(self.session, journal, line, clock.now_s)
        self._checkpoints = Checkpoints(self.session, journal, line, facts, clock)
        self._closing = Closing(
            self.session, journal, artifacts, facts, clock, chance, self._checkpoints
        )
        self._executor: Executor | None = None
        self._earlier = earlier
        self._told = told
        self._accept = partial(
            accept, facts=facts, clock=clock, chance=chance, keep=accepted, told=told
        )
        self._resumption: Resumption | None = None
        self._running: asyncio.Task[HcpMessage] | None = None
        self._abort_reason = ""
        self._silence: TimeoutError | None = None
        self._executing = False
        self._making_safe = MakingSafe(line, facts.safe_procedure)
        self._cooling = Cooling(line, self._making_safe, tell)
        self._safe_at_s: float | None = None
        self.watches = False
        self.cooled: Cooled | None = None
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
        self._line.events.on_warning = self._reporter.warned
        if is_confidential(payload):
            self.session.confide(encrypted=self._journal.key is not None)
        try:
            message = await self._ended(submit, payload)
            answered(message)
            if self.watches:
                self.cooled = await self._cooling.watch()
            return message
        finally:
            await self._line.close()

    async def _ended(self, submit: HcpMessage, payload: TaskSubmit) -> HcpMessage:
        try:
            return await self._taken(submit, payload)
        except Exception as why:
            if isinstance(why, JournalFailed) and self.session.state == "PENDING":
                raise  # nothing was sent, and no message can be kept
            return await self._broken(submit, why)

    async def _taken(self, submit: HcpMessage, payload: TaskSubmit) -> HcpMessage:
        """Take a task in, and carry it out, reject it or abort it."""
        self.session.event(
            "session_created", {"state": "PENDING", "risk_level": None, "session_token": None}
        )
        if self._told is not None:
            self.session.become("RUNNING", ACCEPTED)
        self.session.metadata["source_message_id"] = submit.message_id
        submitted = {
            "message_id": self._chance.uuid4(),
            "metadata": {"source_message_id": submit.message_id},
            "payload": payload.model_dump(by_alias=True, exclude_unset=True),
        }
        self._journal.append("submitted", submitted, self._clock.now_s())
        for warning in self._facts.warnings:
            self.session.event("warning", {"code": "unverified", "message": warning, "details": {}})
        try:
            weighed = await self._admit(payload)
            if isinstance(weighed, Rejected):
                return self._rejected(submit, weighed)
            return await self._carry_out(submit, weighed)
        except asyncio.CancelledError:
            if self._abort_reason:
                return await self._aborted(submit)
            failure = self._silence or failure_of(self._clock.loop)
            if failure is None:
                raise
            return await self._broken(submit, failure)

    # ---- before anything physical

    async def _admit(self, payload: TaskSubmit) -> Weighed | Rejected:
        """Weigh, read the line, fly the plan, and find its approval; no channel is set."""
        admitting = Admitting(facts=self._facts, line=self._line, utc=self._clock.utc)
        weighed = as_accepted(admitting.weigh(payload), self._told)
        if isinstance(weighed, Rejected):
            return await admitting.advise(payload, weighed)
        self.session.warn_of_ignored(weighed.admitted.screened.ignored)
        body = plan_record(weighed.planned, self._facts, self._line.envelope)
        self._journal.append("planned", body, self._clock.now_s())
        if payload.resume_from is not None:
            looked = await asyncio.to_thread(
                look_up, payload, self._earlier, weighed.planned.instructions, self._facts
            )
            if isinstance(looked, Rejected):
                return looked
            self._resumption = looked
            self._journal.append("resumed", looked.to_json(), self._clock.now_s())
        try:
            await self._line.open()
            must_begin(self._line, weighed, self._facts.safe_procedure)
        except (LinkLost, NoReply, NotArmed) as why:
            return Rejected(
                "resource_unavailable",
                Text("line.unusable", why=str(why)),
                weighed.admitted.risk.level,
                Text("advice.which_instrument", lab=self._facts.lab_option),
            )
        if self._resumption is not None:
            try:
                self._resumption.compare(readings_of(self._line))
            except NotResumable as why:
                return Rejected("resource_unavailable", str(why), weighed.admitted.risk.level)
        readings = {channel: self._line.latest(channel) for channel in self._line.memory.tracks}
        flown = await admitting.predict(weighed, readings)
        if isinstance(flown, Rejected):
            return await admitting.advise(payload, flown)
        weighed, prediction = flown
        if prediction is not None:
            self._journal.append("prediction", prediction.to_json(), self._clock.now_s())
            self._reporter.expect(prediction)
        self._reporter.of_line("awaiting_approval", Text("approval.looking"))
        approved: Approved | NotApproved | Rejected | None
        approved = admitting.approve(weighed, payload.caller_id)
        if isinstance(approved, NotApproved):
            request = admitting.request(
                payload, weighed, prediction, approved, session_id=self.session.session_id
            )
            self._reporter.of_line("awaiting_approval", Text("approval.waiting"))
            approved = await self._approvers.decide(request)
        if isinstance(approved, Rejected):
            return await admitting.advise(payload, approved)
        if (later := admitting.again(weighed, prediction)) is not None:
            return later
        if approved is not None:
            self._journal.append("approved", approved.to_json(), self._clock.now_s())
        return weighed

    # ---- the run

    async def _carry_out(self, submit: HcpMessage, weighed: Weighed) -> HcpMessage:
        """Accept the task, run its plan, leave the line safe, and answer."""
        self._closing.capability = weighed.capability
        body = self._accept(self.session, submit.message_id, weighed)
        self._journal.append("task_accepted", body, self._clock.now_s())
        if not self._facts.has_line:  # no poll commits it soon, and its caller hears of it now
            self._journal.commit()
        self.session.tell("task_accepted", body)
        resumption = self._resumption
        if self._told is None:
            self.session.become("RUNNING", ACCEPTED if resumption is None else RECOVERED)
        planned, started_s = weighed.planned, self._clock.now_s()
        commands = weighed.commands
        done: tuple[StepRecord, ...] = ()
        if resumption is not None:
            done, left = resumption.done(started_s), resumption.remaining()
            commands = tuple(command for step, command in weighed.stated if step in left)
        self._reporter.begin(planned.instructions, planned.duration_s, len(done))
        self._checkpoints.begin(planned.instructions)
        operations = LineOperations(
            self._line,
            self._operator,
            lambda: self.session.authorises(self._clock.utc()),
            self.session.beyond,
            self._reporter.ticked,
            self._reporter.asked,
            self._reporter.confirmed,
            scope(commands, self._facts.sources),
            self._reporter.measured,
        )
        self._executor = executor = Executor(
            planned.instructions,
            operations,
            self._verbs(weighed),
            self._reporter.stepped,
            self._checkpoints.make,
            done,
        )
        ended = await self._execute(executor, weighed.admitted.screened.max_duration_s)
        if self.session.state == "PAUSED":  # ruling 10b: it goes on in order to end
            self.session.become("RUNNING", Text("hold.ended", why=str(ended)))
        run_s = await self._leave_safe(ended) - started_s
        if self._line.memory.trip is not None:
            # a step that ends by a trip may state another reason
            ended = Tripped(self._line.memory.trip)
        return self._answered(weighed, executor.records(), ended, run_s)

    def _verbs(self, weighed: Weighed) -> Mapping[str, Verb]:
        capability, inputs = weighed.capability, weighed.admitted.screened.submission.inputs
        if needs_no_line(capability):
            return capability.bound(inputs, self._around)
        return capability.verbs

    async def _execute(self, executor: Executor, max_duration_s: float) -> Exception | None:
        """Arm, run the plan, and return the exception that ended it; ``None`` for a good end."""
        try:
            async with asyncio.timeout(max_duration_s):
                self._reporter.of_line("arming", Text("arming.table"))
                await self._line.arm(self._facts.safe_procedure)
                if self._resumption is not None:
                    await self._line.next_tick()
                    self._resumption.compare(readings_of(self._line))
                    await self._checkpoints.make(executor.records()[: self._resumption.count])
                self._line.start()
                self._executing = True
                await executor.run()
        except (StepFailed, Tripped, NotArmed, NoReply, HoldTooLong, TimeoutError) as why:
            return why
        except asyncio.CancelledError:
            raise
        except JournalFailed as why:  # in the record of a step; the line sees its own records fail
            self._line.monitor.lose_journal(str(why))
            return why
        except Exception as why:  # noqa: BLE001 - the line is made safe, and the failure is reported as ours
            return why
        finally:
            self._executing = False
        return None

    async def _leave_safe(self, ended: BaseException | None) -> float:
        """Bring the line to its safe state after any ending; return when that was reached.

        A line that may be hot goes on being polled, with trips in force; any other is closed.
        """
        line = self._line
        if not self._facts.has_line:
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

    def _answered(
        self,
        weighed: Weighed,
        records: Sequence[StepRecord],
        ended: Exception | None,
        run_s: float,
    ) -> HcpMessage:
        """Return the results of a run, or why there are none."""
        screened = weighed.admitted.screened
        constraints = {
            "confidence_threshold": screened.confidence_threshold,
            "intent": screened.submission.intent,
        }
        first = 0 if self._resumption is None else self._resumption.count
        done = summary(self._line, records[first:], run_s, self._checkpoints.made)
        if self._resumption is not None:
            done["resumed_from"] = self._resumption.asked.model_dump()
        if ended is not None:
            return self._closing.failed(ended, records, None, done)
        try:
            answer = as_asked(screened.submission, weighed.capability.answer(records, constraints))
        except Exception as why:  # noqa: BLE001 - the line is safe; the failure is reported as ours
            return self._closing.failed(why, records, None, done)
        if isinstance(answer, Answer) and (wrong := unfit(screened.submission, answer.outputs)):
            answer = NoAnswer(wrong, answer.outputs, answer.artifacts, UNFIT)
        self._closing.keep(answer.artifacts)
        if isinstance(answer, Answer):
            return self._closing.completed(answer, done)
        failed = StepFailed("answer", "analysis", answer.reason, FailureKind.EXECUTION)
        return self._closing.failed(failed, records, answer, done)

    # ---- other ends

    def _rejected(self, submit: HcpMessage, rejected: Rejected) -> HcpMessage:
        if self._told is None:
            self.session.become("REJECTED", rejected.reason_code)
            return self._closing.rejected(submit.message_id, rejected)
        # rules have changed since it was accepted on receipt
        return self._closing.withdrawn(rejected, summary(self._line, (), 0.0, 0))

    async def _aborted(self, submit: HcpMessage) -> HcpMessage:
        reason = self._abort_reason
        if self.session.state == "PENDING":
            return self._rejected(submit, Rejected("aborted", reason))
        self.session.become("ABORTING", reason)
        await self._leave_safe(asyncio.CancelledError(reason))
        self.session.become("ABORTED", reason)
        unsafe = self._making_safe.unverified()
        return self._closing.aborted(reason, unsafe, self._records())

    async def _broken(self, submit: HcpMessage, failure: BaseException) -> HcpMessage:
        """End a session because of a failure in this program, with the line made safe."""
        if self.session.state == "PENDING":
            shown = None if self.session.confidential else failure  # it may quote an input
            LOG.error("the task is rejected by an error of the harness", exc_info=shown)
            why = Text("failure.internal", what=repr(failure))
            return self._rejected(submit, Rejected("resource_unavailable", why))
        await self._close_safe(failure)
        if self.session.state == "ABORTING":
            self.session.become("ABORTED", self._abort_reason)
            left = Text("failure.internal", what=repr(failure))
            unsafe = [*self._making_safe.unverified(), left]
            return self._closing.aborted(self._abort_reason, unsafe, self._records())
        if self.session.state == "PAUSED":
            self.session.become("RUNNING", Text("hold.failed"))
        done = summary(self._line, self._records(), 0.0, self._checkpoints.made)
        return self._closing.failed(failure, self._records(), None, done)

    def _records(self) -> Sequence[StepRecord]:
        """Return the record of each step so far."""
        return () if self._executor is None else self._executor.records()

    async def _close_safe(self, failure: BaseException) -> None:
        """Leave the line safe after a failure in this program, in the shortest way if need be."""
        try:
            if self._safe_at_s is not None:
                return
            if self._line.memory.mode is not Mode.DISARMED:
                await self._leave_safe(failure)
                return
        except Exception:
            LOG.exception("the line is closed by an error of the harness")
        self.watches = False
        await self._line.close()

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
        if self._line.holding.on:
            return self._line.holding.said()
        return Text("hold.soon", doing=self._reporter.doing)

    async def _hold(self, reason: str) -> None:
        try:
            while self._executing and not await self._line.hold(self._holdable):
                await self._line.next_tick()
            if self._executing:
                self.session.become("PAUSED", reason)
            else:
                self._reporter.warned(Text("hold.too_late"))
        except (Tripped, NotArmed) as why:
            self._reporter.warned(Text("hold.not", why=str(why)))
        finally:
            self._holding = None

    def _holdable(self) -> bool:
        step = self._reporter.step
        return step is not None and step.holdable

    async def resume(self, reason: str) -> None:
        """Go on after a hold, or withdraw one that still waits for its step.

        Raises:
            NotArmed: Nothing is held.
            Tripped: The line has tripped.
        """
        if self._holding is not None:
            self._holding.cancel()
            return
        self._line.check()
        if self.session.state != "PAUSED" or not self._executing:
            raise NotArmed(Text("hold.not_held", state=self.session.state))
        self.session.become("RUNNING", reason)
        self._line.start()

    def about(self) -> Mapping[str, Any]:
        """Return the session's properties and the step, for the control socket."""
        return {
            **self.session.properties(),
            "step": self._cooling.said if self.watches else self._reporter.doing,
            "left_s": self._reporter.left_s,
            "asked_step": self._reporter.asked_step,
        }
