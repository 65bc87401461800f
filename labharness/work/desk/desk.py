"""One request from its arrival to its answer: screen, plan, weigh, approve, run, answer.

Glue: every decision is admission's, the capability's or the kernel's. What the desk owns is the
order of things, and that whatever happens the line ends in its safe state before anybody is
answered.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from labharness.core.clock import Chance, Clock, failure_of, utc_text
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link import LinkLost
from labharness.journal.artifacts import Artifacts
from labharness.journal.store import JournalFailed, SqliteJournal
from labharness.line import (
    HoldTooLong,
    Line,
    NoReply,
    NotArmed,
    Tripped,
    latch_lost,
)
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import Approved, NotApproved
from labharness.work.admission.audit import Screened
from labharness.work.admission.schemas import output_fault
from labharness.work.admission.token import issue
from labharness.work.capability import Answer, NoAnswer, Planned, log_of
from labharness.work.desk.admitting import Admitting, Weighed
from labharness.work.desk.closing import Closing, summary
from labharness.work.desk.energised import scope
from labharness.work.desk.facts import ApprovalRequest, Approvers, LabFacts
from labharness.work.desk.operations import LineOperations
from labharness.work.desk.progress_reporter import ProgressReporter
from labharness.work.desk.rules_record import rules_record
from labharness.work.desk.session import Session
from labharness.work.plan import (
    Executor,
    FailureKind,
    Operator,
    Prediction,
    StepFailed,
)

__all__ = ["ABORT_S_MAX", "Desk"]

ABORT_S_MAX = 300.0  # the abort_timeout we promise: heat off, reactive gases closed, inert open
UNFIT = Text("advice.outputs")
HOLD_ANSWER_S = 2.0  # who asks for a hold is told so soon, held or not yet


class Desk:
    """Takes one submission through.

    Args:
        facts: The lab.
        line: Its line, not opened yet.
        operator: Who does manual steps.
        approvers: Who is asked where no standing approval covers a plan.
        clock: Time.
        chance: Ids and entropy.
        journal: The run's journal.
        artifacts: Where its files go.
        tell: Shown every event as it happens.
    """

    def __init__(
        self,
        *,
        facts: LabFacts,
        line: Line,
        operator: Operator,
        approvers: Approvers,
        clock: Clock,
        chance: Chance,
        journal: SqliteJournal,
        session_id: str,
        artifacts: Artifacts,
        tell: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._facts = facts
        self._line = line
        self._operator = operator
        self._approvers = approvers
        self._clock = clock
        self._chance = chance
        self._journal = journal
        self.session = Session(session_id, journal, clock.now_s, tell)
        self._reporter = ProgressReporter(self.session, journal, line, clock.now_s)
        self._closing = Closing(self.session, journal, artifacts, facts, clock, chance)
        self._running: asyncio.Task[HcpMessage] | None = None
        self._abort_reason = ""
        self._unverified: list[str] = []
        self._executing = False
        self._left_safe = False
        self._holding: asyncio.Task[None] | None = None

    def abort(self, reason: str) -> None:
        """Ask for the run to be aborted; ``run`` then answers with ``session_closed``.

        It changes nothing once the line was left safe: what the run has found is answered.
        """
        over = self._left_safe or self.session.closed
        if self._running is not None and not self._abort_reason and not over:
            self._abort_reason = reason
            self._running.cancel()

    async def hold(self, reason: str) -> str:
        """Let no further command through until ``resume``; ruling 11 calls it PAUSED.

        A step that cannot stand still (gas running into a shut tube) comes to its end first.

        Returns:
            When the line is held: now, or after which step.

        Raises:
            NotArmed: Nothing runs that could be held.
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
        """Return what runs, for who asks at the control socket."""
        return {
            "session_id": self.session.session_id,
            "state": self.session.state,
            "step": self._reporter.doing,
            "left_s": self._reporter.left_s,
        }

    async def run(self, submit: HcpMessage, payload: TaskSubmit) -> HcpMessage:
        """Take a ``task_submit`` through to its terminal message.

        The line is in its safe state, or reported as not, before this returns.
        """
        self._running = asyncio.current_task()
        self._line.events.on_warning = self._reporter.warned
        self.session.event(
            "session_created", {"state": "PENDING", "risk_level": None, "session_token": None}
        )
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
            failure = failure_of(self._clock.loop)
            if failure is None:
                raise
            return await self._broken(submit, failure)
        finally:
            await self._line.close()

    # ---- before anything physical

    async def _admit(self, payload: TaskSubmit) -> Weighed | Rejected:
        """Weigh, read the line, fly the plan, and find its approval; nothing is written."""
        admitting = Admitting(facts=self._facts, line=self._line, clock=self._clock)
        weighed = admitting.weigh(payload)
        if isinstance(weighed, Rejected):
            return await admitting.advise(payload, weighed)
        self._keep_plan(weighed.planned)
        try:
            await self._line.open()
            if self._line.hindrances():
                raise NotArmed("; ".join(self._line.hindrances()))
        except (LinkLost, NoReply, NotArmed) as why:
            return Rejected(
                "resource_unavailable",
                Text("line.unusable", why=str(why)),
                weighed.admitted.risk.level,
                Text("advice.which_instrument", lab=self._facts.lab_option),
            )
        readings = {channel: self._line.latest(channel) for channel in self._line.memory.tracks}
        flown = await admitting.predict(weighed, readings)
        if isinstance(flown, Rejected):
            return await admitting.advise(payload, flown)
        weighed, prediction = flown
        if prediction is not None:
            self._journal.append("prediction", prediction.to_json(), self._clock.now_s())
            self._reporter.expect(prediction)
        self._reporter.progress("awaiting_approval", 0, Text("approval.looking"))
        approved: Approved | NotApproved | Rejected | None
        approved = admitting.approve(weighed, payload.caller_id)
        if isinstance(approved, NotApproved):
            request = self._request(payload, weighed, prediction, approved)
            self._reporter.progress("awaiting_approval", 0, Text("approval.waiting"))
            approved = await self._approvers.decide(request)
        if isinstance(approved, Rejected):
            return await admitting.advise(payload, approved)
        if approved is not None:
            body = {"by": list(approved.by), "reason": approved.reason}
            self._journal.append("approved", body, self._clock.now_s())
        return weighed

    def _request(
        self,
        payload: TaskSubmit,
        weighed: Weighed,
        prediction: Prediction | None,
        refused: NotApproved,
    ) -> ApprovalRequest:
        risk, planned = weighed.admitted.risk, weighed.planned
        return ApprovalRequest(
            session_id=self.session.session_id,
            requester=payload.caller_id,
            capability=weighed.admitted.screened.declaration.name,
            risk_level=risk.level,
            risk_reasons=tuple(risk.reasons),
            intent=payload.intent,
            inputs=payload.inputs,
            instructions=planned.instructions.to_json(),
            duration_s=planned.duration_s if prediction is None else prediction.duration_s,
            prediction=None if prediction is None else prediction.to_json(),
            envelope_digest=self._facts.envelope_digest,
            lab_digest=self._facts.lab_digest,
            why=refused.reason,
            expired=refused.expired,
            edited=refused.edited,
            hazards=weighed.hazards,
        )

    def _keep_plan(self, planned: Planned) -> None:
        body = {
            "digest": planned.instructions.digest(),
            "instructions": planned.instructions.to_json(),
            "recipe": dict(planned.recipe),
            "duration_s": planned.duration_s,
            "lab_digest": self._facts.lab_digest,
            "envelope_digest": self._facts.envelope_digest,
            "rules": rules_record(self._line.envelope, self._facts.watched),
        }
        self._journal.append("planned", body, self._clock.now_s())

    # ---- the run

    async def _carry_out(self, submit: HcpMessage, weighed: Weighed) -> HcpMessage:
        admitted, planned, capability = weighed.admitted, weighed.planned, weighed.capability
        self._closing.log = log_of(capability)
        screened = admitted.screened
        token, self.session.token = issue(
            self._chance.entropy,
            session_id=self.session.session_id,
            running_at=self._clock.utc(),
            max_duration_s=screened.max_duration_s,
            risk_level=admitted.risk.level,
            data_classification=screened.data_classification,
            constraints=self._facts.safety_envelope,
        )
        self._accepted(submit, weighed, token)
        self.session.become("RUNNING", "accepted")
        started_s = self._clock.now_s()
        self._reporter.begin(planned.instructions, planned.duration_s)
        operations = LineOperations(
            self._line,
            self._operator,
            lambda: self.session.authorises(self._clock.utc()),
            self._reporter.ticked,
            self._reporter.asked,
            scope(weighed.commands, self._facts.sources),
        )
        executor = Executor(
            planned.instructions, operations, capability.verbs, observer=self._reporter.stepped
        )
        constraints = {
            "confidence_threshold": screened.confidence_threshold,
            "intent": screened.submission.intent,
        }
        ended = await self._execute(executor, screened.max_duration_s)
        if self.session.state == "PAUSED":  # ruling 10b: it goes on in order to end
            self.session.become("RUNNING", Text("hold.ended", why=str(ended)))
        await self._leave_safe(ended)
        await self._line.close()
        if self._line.memory.trip is not None:
            ended = Tripped(self._line.memory.trip)  # whatever a trip makes a step say
        answer: Answer | NoAnswer | None = None
        if ended is None:
            try:
                answer = capability.answer(executor.records(), constraints)
            except Exception as why:  # noqa: BLE001 - the line is safe; the failure is reported as ours
                ended = why
        run_s = self._clock.now_s() - started_s
        summary_ = summary(self._line, executor.records(), run_s)
        if isinstance(answer, Answer):
            wrong = self._unfit(screened, answer.outputs)
            if not wrong:
                self._closing.keep(answer.artifacts)
                return self._closing.completed(answer, summary_)
            answer = NoAnswer(wrong, answer.outputs, answer.artifacts, UNFIT)
        if isinstance(answer, NoAnswer):
            self._closing.keep(answer.artifacts)
            ended = StepFailed("answer", "analysis", answer.reason, FailureKind.EXECUTION)
        if ended is None:
            raise RuntimeError("a run ended neither well nor badly")
        no_answer = answer if isinstance(answer, NoAnswer) else None
        return self._closing.failed(ended, executor.records(), no_answer, summary_)

    async def _execute(self, executor: Executor, max_duration_s: float) -> Exception | None:
        """Run the plan; return the exception that ended it, ``None`` for a good end."""
        try:
            async with asyncio.timeout(max_duration_s):
                self._reporter.progress("arming", 0, Text("arming.table"))
                await self._line.arm(self._facts.safe_procedure)
                self._line.start()
                self._executing = True
                await executor.run()
        except (StepFailed, Tripped, NotArmed, NoReply, HoldTooLong, TimeoutError) as why:
            return why
        except asyncio.CancelledError:
            raise
        except JournalFailed as why:  # of a step that was told, not of the line's own records
            self._line.monitor.lose_journal(str(why))
            return why
        except Exception as why:  # noqa: BLE001 - the line is made safe, and it is reported as ours
            return why
        finally:
            self._executing = False
        return None

    async def _leave_safe(self, ended: BaseException | None) -> None:
        """Bring the line to its safe state, whatever ended the run, and say how that went."""
        line = self._line
        verification = await line.settle(self._facts.safe_procedure)
        if line.memory.trip is not None:
            self.session.event(
                "error",
                {
                    "code": line.memory.trip.cause.value,
                    "message": line.memory.trip.detail,
                    "recoverable": False,
                },
            )
        for step in verification.unverified():
            self._reporter.warned(Text("pair", what=verification.procedure, why=step))
        if lost := await latch_lost(line.guard, line.clock):
            self._reporter.warned(lost)
        if ended is not None or line.memory.trip is not None:
            self._reporter.progress("cooling_under_watch", 100, Text("cooling.watch"))
            await line.watch_until_cold()
        if line.memory.trip is not None:  # of the watch, or verified in it
            await line.trip_response.verified()
            verification = line.trip_response.verifications[-1]
        steps = verification.unverified()
        self._unverified = [Text("pair", what=verification.procedure, why=each) for each in steps]
        if lost := await latch_lost(
            line.guard, line.clock
        ):  # the disk may have been mended while the line cooled
            self._unverified.append(lost)
        line.disarm()
        self._left_safe = True

    async def _aborted(self, submit: HcpMessage) -> HcpMessage:
        reason = self._abort_reason
        if self.session.state == "PENDING":
            return self._rejected(submit, Rejected("aborted", reason))
        self.session.become("ABORTING", reason)
        await self._leave_safe(asyncio.CancelledError(reason))
        await self._line.close()
        self.session.become("ABORTED", reason)
        return self._closing.aborted(reason, self._unverified)

    async def _broken(self, submit: HcpMessage, failure: BaseException) -> HcpMessage:
        """End a session because something of ours broke; the line is made safe all the same."""
        if self.session.state == "PENDING":
            why = Text("failure.internal", what=repr(failure))
            return self._rejected(submit, Rejected("resource_unavailable", why))
        await self._line.close()
        if self.session.state == "PAUSED":
            self.session.become("RUNNING", Text("hold.failed"))
        done = summary(self._line, (), 0.0)
        return self._closing.failed(failure, (), None, done)

    # ---- telling

    def _accepted(self, submit: HcpMessage, weighed: Weighed, token: str) -> None:
        admitted, screened = weighed.admitted, weighed.admitted.screened
        message = answers.task_accepted(
            message_id=self._chance.uuid4(),
            timestamp=utc_text(self._clock.utc()),
            session_id=self.session.session_id,
            in_reply_to=submit.message_id,
            session_token=token,
            risk_level=admitted.risk.level,
            data_classification=screened.data_classification,
            safety_envelope=self._facts.safety_envelope,
            max_duration=format_duration(screened.max_duration_s),
            abort_timeout=format_duration(ABORT_S_MAX),
        )
        body = message.payload.model_dump(by_alias=True, exclude_unset=True)
        body["session_token"] = None  # it goes to the caller and nowhere else
        body["risk_reasons"] = list(admitted.risk.reasons)
        body["hazard_categories"] = list(weighed.hazards)
        self._journal.append("task_accepted", body, self._clock.now_s())
        self.session.tell("task_accepted", body)

    def _rejected(self, submit: HcpMessage, rejected: Rejected) -> HcpMessage:
        self.session.become("REJECTED", rejected.reason_code)
        return self._closing.rejected(submit.message_id, rejected)

    def _unfit(self, screened: Screened, outputs: Mapping[str, Any]) -> str:
        submission = screened.submission
        missing = [name for name in submission.required_fields if name not in outputs]
        if missing:
            return Text("outputs.lack", fields=", ".join(missing))
        if submission.output_schema is not None:
            fault = output_fault(submission.output_schema, outputs)
            if fault is not None:
                return Text("outputs.unfit", where=fault[0], why=fault[1])
        return ""
