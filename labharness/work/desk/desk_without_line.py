"""Takes one task that needs no line from its submission to its answer.

It is screened, weighed, accepted, recorded and answered like any other (`desk`), by the same parts.
There is nothing to arm, to fly before, to make safe or to watch, so none of that is here.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, Clock, utc_text
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import Artifacts
from labharness.journal.chain import canonical
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskAccepted, TaskSubmit
from labharness.protocols.hcp.terms import RISK_LEVELS, Rejected
from labharness.work.admission.approval import NotApproved
from labharness.work.admission.confidential import in_clear, is_confidential, withheld
from labharness.work.capability import (
    Answer,
    ArtifactContent,
    NoAnswer,
    Surroundings,
    needs_no_line,
)
from labharness.work.desk.accepting import accept
from labharness.work.desk.admission_without_line import LineWithoutChannels
from labharness.work.desk.admitting import Admitting, Weighed
from labharness.work.desk.closing import SUFFIXES, as_asked, error_of, record_body, unfit
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.folder import ARTIFACTS_NAME, SUBMIT_NAME
from labharness.work.desk.referred import FAILURE, failure, references, remarks, results
from labharness.work.desk.rules_record import plan_record
from labharness.work.desk.session import Session
from labharness.work.plan import (
    Executor,
    Progress,
    Status,
    StepFailed,
    StepRecord,
    Verb,
)

LOG = logging.getLogger(__name__)

TICK_S = 1.0


class OperationsWithoutLine:
    """The ``plan.Operations`` of a task without a line: only its time passes."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s

    async def perform(self, command: Command) -> Outcome:
        """Refuse the command."""
        return Outcome(command, Ending.REFUSED, detail=Text("no_line.perform"))

    async def read(self, channel: str) -> float:
        """Raise ``ConnectionError``: there is no instrument."""
        raise ConnectionError(Text("no_line.perform"))

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        """Raise ``ConnectionError``: there is no instrument."""
        raise ConnectionError(Text("no_line.perform"))

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        """Raise ``PermissionError``: no step is done by hand."""
        raise PermissionError(Text("no_line.perform"))

    async def next_tick(self) -> None:
        """Wait a second."""
        await asyncio.sleep(TICK_S)

    def latest(self, channel: str) -> float:
        """Return NaN."""
        return float("nan")

    def volumes_purged(self, contaminant: str) -> float:
        """Return that nothing was purged."""
        return 0.0

    def held_s(self) -> float:
        """Return that nothing was held."""
        return 0.0


class DeskWithoutLine:
    """Takes one submission that needs no line to its answer.

    Args:
        facts: The lab, as `facts_without_line` returns it.
        lab_folder: Where the lab file is.
        runs: Where the folders of the runs are.
        clock: Of the run.
        chance: Of its ids.
        journal: The run's journal.
        artifacts: The store of its files.
        session_id: Its session.
        tell: Called with every event as it happens.
        accepted: Keeps the one message with the session's token, for its caller alone.
        told: The acceptance that the caller got on receipt, where it got one.

    Attributes:
        session: Its session.
    """

    def __init__(
        self,
        *,
        facts: LabFacts,
        lab_folder: Path,
        runs: Path,
        clock: Clock,
        chance: Chance,
        journal: SqliteJournal,
        artifacts: Artifacts,
        session_id: str,
        tell: Callable[[str, Mapping[str, Any]], None],
        accepted: Callable[[HcpMessage], None],
        told: HcpMessage | None = None,
    ) -> None:
        self._facts = facts
        self._lab_folder = lab_folder
        self._runs = runs
        self._clock = clock
        self._chance = chance
        self._journal = journal
        self._artifacts = artifacts
        self.session = Session(session_id, journal, clock, chance.uuid4, tell)
        self._executor: Executor | None = None
        self._running: asyncio.Task[HcpMessage] | None = None
        self._abort_reason = ""
        self._told = told
        self._confidential = False
        self._accept = partial(
            accept, facts=facts, clock=clock, chance=chance, keep=accepted, told=told
        )

    async def run(self, submit: HcpMessage, payload: TaskSubmit) -> HcpMessage:
        """Take a ``task_submit`` to its terminal message.

        Raises:
            JournalFailed: The journal failed before the task was accepted: nothing was begun.
        """
        self._running = asyncio.current_task()
        self._confidential = is_confidential(payload)
        try:
            return await self._taken(submit, payload)
        except asyncio.CancelledError:
            if not self._abort_reason:
                raise
            return self._aborted(submit)
        except Exception as why:
            if self.session.state != "PENDING":
                return self._failed(*error_of(why), "", None)
            if isinstance(why, JournalFailed):
                raise
            shown = None if self._confidential else why  # a traceback may quote an input
            LOG.error("the task is rejected by an error of the harness", exc_info=shown)
            text = Text("failure.internal", what=type(why).__name__)
            return self._rejected(submit, Rejected("resource_unavailable", text))

    def abort(self, reason: str) -> None:
        """Abort the run; ``run`` then answers with ``session_closed``."""
        if self._running is not None and not self._abort_reason and not self.session.closed:
            self._abort_reason = Text("data.aborted") if self._confidential else reason
            self._running.cancel()

    async def _taken(self, submit: HcpMessage, payload: TaskSubmit) -> HcpMessage:
        self.session.event(
            "session_created", {"state": "PENDING", "risk_level": None, "session_token": None}
        )
        if self._told is not None:
            self.session.become("RUNNING", "accepted")
        hidden = self._confidential and self._journal.key is None
        kept = withheld(payload) if hidden else payload
        submitted = {
            "message_id": self._chance.uuid4(),
            "metadata": {"source_message_id": submit.message_id},
            "payload": kept.model_dump(by_alias=True, exclude_unset=True),
        }
        self._journal.append("submitted", submitted, self._clock.now_s())
        admitting = Admitting(facts=self._facts, line=LineWithoutChannels(), utc=self._clock.utc)
        weighed = self._still(admitting.weigh(payload))
        if isinstance(weighed, Rejected):
            return self._rejected(submit, weighed)
        self.session.warn_of_ignored(weighed.admitted.screened.ignored)
        if payload.resume_from is not None:
            return self._rejected(submit, Rejected("invalid_input", Text("resume.unknown")))
        body = plan_record(weighed.planned, self._facts, None)
        self._journal.append("planned", body, self._clock.now_s())
        approved = admitting.approve(weighed, payload.caller_id)
        if isinstance(
            approved, NotApproved
        ):  # from R3 on, which no task without a line may ask for yet
            rejected = Rejected("approval_expired", approved.reason, weighed.admitted.risk.level)
            return self._rejected(submit, rejected)
        return await self._carry_out(submit, payload, weighed)

    def _still(self, weighed: Weighed | Rejected) -> Weighed | Rejected:
        """Return the task as weighed now, or why it is more than what was accepted on receipt."""
        told = getattr(self._told, "payload", None)
        if isinstance(weighed, Rejected) or not isinstance(told, TaskAccepted):
            return weighed
        risk = weighed.admitted.risk
        if RISK_LEVELS.index(risk.level) <= RISK_LEVELS.index(told.risk_level):
            return weighed
        reasons = Text("parts", parts=risk.reasons)
        agreed = told.risk_level
        text = Text("policy.later", level=risk.level, reasons=reasons, agreed=agreed)
        return Rejected("risk_too_high", text, risk.level)

    # ---- the run

    async def _carry_out(
        self, submit: HcpMessage, payload: TaskSubmit, weighed: Weighed
    ) -> HcpMessage:
        body = self._accept(self.session, submit.message_id, weighed)
        self._journal.append("task_accepted", body, self._clock.now_s())
        self._journal.commit()  # a caller is told of nothing that a power cut would undo
        self.session.tell("task_accepted", body)
        if self._told is None:
            self.session.become("RUNNING", "accepted")
        started_s = self._clock.now_s()
        screened = weighed.admitted.screened
        self._executor = executor = Executor(
            weighed.planned.instructions,
            OperationsWithoutLine(self._clock.now_s),
            self._verbs(payload, weighed),
            self._stepped,
        )
        try:
            async with asyncio.timeout(screened.max_duration_s):
                await executor.run()
        except (StepFailed, TimeoutError) as why:
            return self._failed(*error_of(why), _phase(why), None, started_s)
        constraints = {
            "confidence_threshold": screened.confidence_threshold,
            "intent": payload.intent,
        }
        answer = weighed.capability.answer(executor.records(), constraints)
        asked = as_asked(weighed.admitted.screened.submission, answer)
        return self._answered(weighed, asked, started_s)

    def _verbs(self, payload: TaskSubmit, weighed: Weighed) -> Mapping[str, Verb]:
        screened = weighed.admitted.screened
        around = Surroundings(
            settings=self._facts.line_facts[screened.declaration.name].settings,
            lab_folder=self._lab_folder,
            runs=self._runs,
            artifacts=ARTIFACTS_NAME,
            submit=SUBMIT_NAME,
            caller_id=payload.caller_id,
            data_classification=screened.data_classification,
        )
        capability = weighed.capability
        return capability.bound(payload.inputs, around) if needs_no_line(capability) else {}

    def _stepped(self, progress: Progress) -> None:
        """Record the begin or end of a step, and report its begin; those who follow see it."""
        step = {"instruction": progress.instruction_id, "status": progress.status.value}
        self._journal.append("step", step, self._clock.now_s())
        if progress.status is Status.RUNNING:
            percent = round(100.0 * (progress.index - 1) / progress.total, 1)
            data = {
                "stage": progress.stage,
                "percent": percent,
                "message": progress.description,
            }
            self.session.event("progress", data)
            self._journal.commit()

    # ---- its ends

    def _answered(
        self, weighed: Weighed, answer: Answer | NoAnswer, started_s: float
    ) -> HcpMessage:
        if isinstance(answer, Answer):
            wrong = unfit(weighed.admitted.screened.submission, answer.outputs)
            if wrong:
                answer = NoAnswer(wrong, answer.outputs, answer.artifacts, Text("advice.outputs"))
        self._keep(answer.artifacts)
        if isinstance(answer, NoAnswer):
            return self._failed("execution_error", answer.reason, "analysis", answer, started_s)
        summary, outputs = self._summary(started_s), answer.outputs
        if self._confidential:
            outputs = references(outputs, self._kept(results(outputs)))
            self._kept(remarks(answer.finding, answer.warnings))
        else:
            summary["warnings"] += answer.warnings
            if answer.finding:
                summary["finding"] = answer.finding
        message = answers.task_completed(
            message_id=self._chance.uuid4(),
            timestamp=self._timestamp(),
            session_id=self.session.session_id,
            outputs=outputs,
            artifacts=self._listed(),
            execution_summary=summary,
        )
        return self._last(message, "COMPLETED", Text("session.delivered"))

    def _failed(
        self, code: str, why: str, phase: str, answer: NoAnswer | None, started_s: float = 0.0
    ) -> HcpMessage:
        started = [each for each in self._records() if each.started_s is not None]
        suggestion = (answer.suggestion or None) if answer is not None else None
        partial = {} if answer is None else dict(answer.partial_outputs)
        if self._confidential:
            self._kept(failure(why, answer))
            partial = partial and references(partial, self._kept(results(partial)))
            why, suggestion = Text("data.failed", name=FAILURE), None
        message = answers.task_failed(
            message_id=self._chance.uuid4(),
            timestamp=self._timestamp(),
            session_id=self.session.session_id,
            error_code=code,
            error_message=why,
            suggestion=suggestion,
            error_details={
                "phase": phase or (started[-1].instruction.stage if started else "accepted"),
                "step": len(started),
                "last_checkpoint": None,
                "recoverable": False,
            },
            partial_outputs=partial,
            artifacts=self._listed(),
            execution_summary=self._summary(started_s),
        )
        return self._last(message, "FAILED", code)

    def _rejected(self, submit: HcpMessage, rejected: Rejected) -> HcpMessage:
        if self._confidential:
            self._keep_reason(rejected)
            rejected = in_clear(rejected)
        if self._told is not None:  # rules have changed since it was accepted on receipt
            return self._failed("resource_unavailable", rejected.reason_message, "accepted", None)
        message = answers.task_rejected(
            message_id=self._chance.uuid4(),
            timestamp=self._timestamp(),
            in_reply_to=submit.message_id,
            rejected=rejected,
        )
        return self._last(message, "REJECTED", rejected.reason_code)

    def _aborted(self, submit: HcpMessage) -> HcpMessage:
        reason = self._abort_reason
        if self.session.state == "PENDING":
            return self._rejected(submit, Rejected("aborted", reason))
        self.session.become("ABORTING", reason)
        self.session.become("ABORTED", reason)
        message = answers.event(
            message_id=self._chance.uuid4(),
            timestamp=self._timestamp(),
            session_id=self.session.session_id,
            event_type="session_closed",
            sequence=self.session.sequence,
            data={"final_state": "ABORTED", "reason": reason},
        )
        return self._record(message)

    def _last(self, message: HcpMessage, state: str, reason: str) -> HcpMessage:
        """End the session with a message that the journal can hold; any other raises before."""
        canonical(record_body(message))
        self.session.become(state, reason)
        return self._record(message)

    def _record(self, message: HcpMessage) -> HcpMessage:
        # its state's event was told since it was made, and time never goes back
        message = replace(message, timestamp=self._timestamp())
        try:
            self._journal.append("terminal", record_body(message), self._clock.now_s())
            self._journal.commit()
        except JournalFailed as why:
            self.session.tell("warning", {"code": "journal_lost", "message": str(why)})
        return message

    def _keep_reason(self, rejected: Rejected) -> None:
        """Keep the reason of a confidential task's rejection, which is read with the key alone."""
        if self._journal.key is not None:
            told = {"reason": rejected.reason_message, "suggestion": rejected.suggestion}
            self._journal.append("withheld", told, self._clock.now_s())

    def _keep(self, found: Sequence[ArtifactContent]) -> None:
        for each in found:
            self._kept(each)

    def _kept(self, found: ArtifactContent) -> str:
        """Keep a file; return its address."""
        name = f"{found.name}.{SUFFIXES[found.media_type]}"
        return self._artifacts.put(found.name, name, found.media_type, found.content).uri

    def _listed(self) -> list[Mapping[str, Any]]:
        told = ("name", "type", "uri", "size_bytes", "checksum")
        return [{name: getattr(each, name) for name in told} for each in self._artifacts.list()]

    def _summary(self, started_s: float) -> dict[str, Any]:
        done = sum(each.status is Status.COMPLETED for each in self._records())
        return {
            "duration": format_duration(max(0.0, self._clock.now_s() - started_s)),
            "steps_executed": done,
            "checkpoints_created": 0,
            "risk_events": [],
            "warnings": [],
        }

    def _records(self) -> Sequence[StepRecord]:
        return () if self._executor is None else self._executor.records()

    def _timestamp(self) -> str:
        return utc_text(self._clock.utc())


def _phase(ended: BaseException) -> str:
    return ended.stage if isinstance(ended, StepFailed) else ""
