"""The end of a session: artifacts, summary, and the one terminal message."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from labharness.core.clock import Chance, Clock, utc_text
from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import Artifacts
from labharness.journal.chain import canonical
from labharness.line import HoldTooLong, Line, Tripped
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import ResumeFrom
from labharness.protocols.hcp.terms import Rejected, Submission
from labharness.work.admission.confidential import in_clear
from labharness.work.admission.schemas import closed_to, output_fault
from labharness.work.capability import (
    PROCESS_LOG,
    Answer,
    ArtifactContent,
    Capability,
    NoAnswer,
    PartialResults,
)
from labharness.work.desk.checkpoint import Checkpoints
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.process_log import process_log
from labharness.work.desk.referred import FAILURE, bare, failure, references, remarks, results
from labharness.work.desk.resuming import way_on
from labharness.work.desk.risk_events import risk_events
from labharness.work.desk.session import Session
from labharness.work.desk.so_far import so_far
from labharness.work.plan import FailureKind, Status, StepFailed, StepRecord

LOG = logging.getLogger(__name__)

ERROR_OF = {
    FailureKind.REFUSED: "safety_violation",
    FailureKind.INPUT: "input_error",
    FailureKind.UNAVAILABLE: "resource_unavailable",
}
"""HCP's code of a step that failed; any other failure is an ``execution_error``."""

BEHIND_S_MAX = 0.5  # lab seconds: half the time in which an instrument has to answer

ALL_OUTPUTS = "all_outputs"
"""The artifact of all outputs, where a caller asked for some of them alone."""

SUFFIXES = {"application/json": "json", "text/csv": "csv", "application/jsonl": "jsonl"}


def summary(line: Line, records: Sequence[StepRecord], run_s: float, made: int) -> dict[str, Any]:
    """Return the execution summary of a run."""
    trips = line.trip_response.trips if line.instruments else ()
    return {
        "duration": format_duration(run_s),
        "steps_executed": sum(record.status is Status.COMPLETED for record in records),
        "checkpoints_created": made,
        "risk_events": risk_events(trips, line.clock),
        "warnings": list(line.events.warnings),
    }


def unfit(submission: Submission, outputs: Mapping[str, Any]) -> str:
    """Return why outputs are not those that were asked for; empty where they are."""
    missing = [name for name in submission.required_fields if name not in outputs]
    if missing:
        return Text("outputs.lack", fields=", ".join(missing))
    if submission.output_schema is not None:
        fault = output_fault(submission.output_schema, outputs)
        if fault is not None:
            return Text("outputs.unfit", where=fault[0], why=fault[1])
    return ""


def as_asked(submission: Submission, answer: Answer | NoAnswer) -> Answer | NoAnswer:
    """Return an answer with the outputs alone that a closed schema names (ruling 25).

    All outputs are then in an artifact.
    """
    closed = None if submission.output_schema is None else closed_to(submission.output_schema)
    if closed is None or isinstance(answer, NoAnswer) or set(answer.outputs) <= closed:
        return answer
    whole = ArtifactContent(ALL_OUTPUTS, "application/json", canonical(answer.outputs))
    kept = {name: value for name, value in answer.outputs.items() if name in closed}
    return replace(answer, outputs=kept, artifacts=(*answer.artifacts, whole))


class Withdrawn(LabError, RuntimeError, code="withdrawn"):
    """A task that was accepted on receipt, and may not begin by the rules of its turn."""


class Closing:
    """Makes the terminal message of one session, and stores the files that it refers to.

    Attributes:
        capability: The capability that serves the task; ``None`` before one was found.
    """

    def __init__(
        self,
        session: Session,
        journal: SqliteJournal,
        artifacts: Artifacts,
        facts: LabFacts,
        clock: Clock,
        chance: Chance,
        checkpoints: Checkpoints,
    ) -> None:
        self._session = session
        self._checkpoints = checkpoints
        self._journal = journal
        self._artifacts = artifacts
        self._facts = facts
        self._clock = clock
        self._chance = chance
        self.capability: Capability | None = None
        self._table: tuple[bytes, int] | None = None
        self._partial: PartialResults | None = None
        self._way_on: ResumeFrom | None = None

    @property
    def log(self) -> str:
        """The name of the process log, as the capability states it."""
        return str(getattr(self.capability, "log", PROCESS_LOG))

    def keep(self, found: Sequence[ArtifactContent]) -> None:
        """Store the artifacts of an answer."""
        for each in found:
            try:
                self._put(each)
            except OSError as why:
                text = Text("pair", what=file_of(each), why=why.strerror)
                said = {"code": "artifact_lost", "message": text, "details": {}}
                self._session.event("warning", said)

    def _put(self, found: ArtifactContent) -> str:
        """Store a file; return its address. Raises ``OSError``."""
        name = file_of(found)
        return self._artifacts.put(found.name, name, found.media_type, found.content).uri

    def rejected(self, message_id: str, rejected: Rejected) -> HcpMessage:
        """Return the rejection of a task, with its suggestion.

        Of a confidential one the key alone reads the reason, where it may quote an input.
        """
        return self._record(
            answers.task_rejected(
                message_id=self._chance.uuid4(),
                timestamp=self._timestamp(),
                in_reply_to=message_id,
                rejected=self._clear(rejected),
            )
        )

    def withdrawn(self, rejected: Rejected, summary_: dict[str, Any]) -> HcpMessage:
        """Return the failure of a task that is rejected after its acceptance on receipt."""
        why = self._clear(rejected).reason_message
        return self.failed(Withdrawn(why), (), None, summary_)

    def completed(self, answer: Answer, summary_: dict[str, Any]) -> HcpMessage:
        """Return the results."""
        self._keep_logs(f"{self.log}_csv", f"{self.log}.csv")
        outputs, summary_["warnings"] = answer.outputs, [*summary_["warnings"], *answer.warnings]
        if self._session.confidential:
            outputs = references(outputs, self._put(results(outputs)))
            summary_ = self._bare(answer.finding, summary_)
        elif answer.finding:
            summary_["finding"] = answer.finding
        message = answers.task_completed(
            message_id=self._chance.uuid4(),
            timestamp=self._timestamp(),
            session_id=self._session.session_id,
            outputs=outputs,
            artifacts=self._listed(),
            execution_summary=summary_,
        )
        return self._last(message, "COMPLETED", Text("session.delivered"))

    def failed(
        self,
        ended: BaseException,
        records: Sequence[StepRecord],
        answer: NoAnswer | None,
        summary_: dict[str, Any],
    ) -> HcpMessage:
        """Return the failure of a run, with its partial results."""
        code, why = error_of(ended)
        started = [record for record in records if record.started_s is not None]
        has_line = self._facts.has_line
        if answer is not None and not has_line:  # on a line it is told with its step
            why = answer.reason
        first = "arming" if has_line else "accepted"
        rows = self._keep_partial_logs()
        partial = self._so_far(records) if answer is None else dict(answer.partial_outputs)
        if has_line:
            partial.setdefault(self.log, {"entries_before_failure": rows})
        if self._session.confidential:
            self.keep([failure(why, answer)])
            partial, summary_ = self._referred(partial), self._bare("", summary_)
            why, answer = Text("data.failed", name=FAILURE), None
        way_out = "" if answer is None else answer.suggestion
        if has_line:
            way_out = suggestion(ended, answer, self._facts.lab_option)
        if (behind_s := self._clock.behind_s) > BEHIND_S_MAX:
            slower = Text("advice.slower", speed=self._clock.speed, behind_s=behind_s)
            way_out = Text("sentences", parts=(slower, way_out))
        with suppress(JournalFailed):
            self._journal.commit()
        again = self._way_on or way_on(self._journal.path, self._facts)
        if again is not None:
            last, session = again.checkpoint_id, again.session_id
            on = Text("advice.resume", session=session, checkpoint=last)
            way_out = Text("sentences", parts=(way_out, on))
        message = answers.task_failed(
            message_id=self._chance.uuid4(),
            timestamp=self._timestamp(),
            session_id=self._session.session_id,
            error_code=code,
            error_message=why,
            suggestion=way_out or None,
            error_details={
                "phase": started[-1].instruction.stage if started else first,
                "step": len(started),
                "last_checkpoint": self._checkpoints.last,
                "recoverable": again is not None,
            },
            partial_outputs=partial,
            artifacts=self._listed(),
            execution_summary=summary_,
        )
        return self._last(message, "FAILED", code)

    def aborted(
        self, reason: str, unverified: Sequence[str], records: Sequence[StepRecord]
    ) -> HcpMessage:
        """Close an aborted session; there is no ``task_failed`` for it.

        Steps of its safe state that could not be verified are named under ``warnings``, and its
        measurements under ``artifacts``.
        """
        if self._session.confidential:
            reason = Text("data.aborted")
        self._keep_partial_logs()
        logs = self._listed()
        self._so_far(records)
        measured = self._listed() != logs
        return self._record(
            answers.event(
                message_id=self._chance.uuid4(),
                timestamp=self._timestamp(),
                session_id=self._session.session_id,
                event_type="session_closed",
                sequence=self._session.sequence,
                data={
                    "final_state": "ABORTED",
                    "reason": reason,
                    **({"warnings": list(unverified)} if unverified else {}),
                    **({"artifacts": self._listed()} if measured else {}),
                },
            )
        )

    def _referred(self, partial: Mapping[str, Any]) -> dict[str, Any]:
        """Return where partial outputs stand; none where the disk does not take them."""
        try:
            return dict(references(partial, self._put(results(partial))))
        except OSError as why:
            self._session.tell("warning", {"code": "artifact_lost", "message": str(why)})
            return {}

    def _bare(self, finding: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what a summary says of a confidential task, and return the rest of it."""
        self.keep([remarks(finding, said["warnings"], said["risk_events"])])
        return bare(said)

    def _clear(self, rejected: Rejected) -> Rejected:
        """Return a rejection as everybody may know it, and keep what the key alone reads of it."""
        if not self._session.confidential:
            return rejected
        if self._journal.key is not None:
            told = {"reason": rejected.reason_message, "suggestion": rejected.suggestion}
            with suppress(JournalFailed):  # the record of the rejection meets the same
                self._journal.append("withheld", told, self._clock.now_s())
        return in_clear(rejected)

    def _so_far(self, records: Sequence[StepRecord]) -> dict[str, Any]:
        """Store the files of all that was measured, and return the outputs that it makes."""
        if self.capability is None:
            return {}
        try:
            if self._partial is None:
                self._journal.commit()
                self._partial = so_far(self.capability, records, self._journal.path)
            found = self._partial
        except JournalFailed as why:
            self._session.tell("warning", {"code": "journal_lost", "message": str(why)})
            return {}
        self.keep(found.artifacts)
        return dict(found.outputs)

    def _keep_partial_logs(self) -> int:
        return self._keep_logs(f"partial_{self.log}", f"{self.log}_partial.csv")

    async def prepare(self, records: Sequence[StepRecord]) -> None:
        """Make the files of a run that came to no end, up to now, beside a line that is polled.

        It takes seconds, so it is done in a thread. A failure is reported at the second try.
        """
        with suppress(JournalFailed, OSError):
            self._journal.flush()
            self._journal.commit()
            path = self._journal.path
            self._table = await asyncio.to_thread(process_log, path, self._facts.watched)
            if self.capability is not None:
                self._partial = await asyncio.to_thread(so_far, self.capability, records, path)
            self._way_on = await asyncio.to_thread(way_on, path, self._facts)

    def _keep_logs(self, name: str, filename: str) -> int:
        """Store the process log of a line; return its rows, 0 when the journal is lost."""
        if not self._facts.has_line:
            return 0
        try:
            if self._table is None:
                self._journal.flush()
                self._table = process_log(self._journal.path, self._facts.watched)
            table, rows = self._table
            self._artifacts.put(name, filename, "text/csv", table)
        except (JournalFailed, OSError) as why:
            self._session.tell("warning", {"code": "journal_lost", "message": str(why)})
            return 0
        return rows

    def _listed(self) -> list[Mapping[str, Any]]:
        told = ("name", "type", "uri", "size_bytes", "checksum")
        return [{name: getattr(each, name) for name in told} for each in self._artifacts.list()]

    def _last(self, message: HcpMessage, state: str, reason: str) -> HcpMessage:
        """End the session with a message that the journal can hold; any other raises before."""
        canonical(record_body(message))
        self._session.become(state, reason)
        return self._record(message)

    def _record(self, message: HcpMessage) -> HcpMessage:
        # its state's event may have been told since it was made, and time never goes back
        now, lab_time = self._timestamp(), self._clock.metadata()
        message = replace(message, timestamp=now, unknown=lab_time)
        try:
            self._journal.append("terminal", record_body(message), self._clock.now_s())
            self._journal.commit()
        except JournalFailed as why:
            self._session.tell("warning", {"code": "journal_lost", "message": str(why)})
        return message

    def _timestamp(self) -> str:
        return utc_text(self._clock.utc())


def file_of(found: ArtifactContent) -> str:
    """Return the name of the file of an artifact."""
    return f"{found.name}.{SUFFIXES[found.media_type]}"


def record_body(message: HcpMessage) -> dict[str, Any]:
    """Return the record of a terminal message."""
    return {
        "type": message.type,
        "message_id": message.message_id,
        "timestamp": message.timestamp,
        "payload": message.payload.model_dump(by_alias=True, exclude_unset=True),
        **message.unknown,
    }


def error_of(ended: BaseException) -> tuple[str, str]:
    """Return HCP's error code and one sentence (ruling 7)."""
    if isinstance(ended, Tripped):
        communication = ended.trip.cause is Cause.COMMUNICATION
        return ("execution_error" if communication else "safety_violation"), ended.trip.detail
    if isinstance(ended, StepFailed):
        return ERROR_OF.get(ended.kind, "execution_error"), str(ended)
    if isinstance(ended, Withdrawn):
        return "resource_unavailable", str(ended)
    if isinstance(ended, TimeoutError):
        return "timeout", ended.args[0] if ended.args else Text("session.overtime")
    if isinstance(ended, ConnectionError | RuntimeError):
        return "execution_error", str(ended) or type(ended).__name__
    LOG.error("the task ended by an error of the harness", exc_info=ended)
    return "internal_error", Text("pair", what=type(ended).__name__, why=str(ended))


def suggestion(ended: BaseException, answer: NoAnswer | None, lab_option: str) -> str:
    """Return a suggestion to the caller.

    Args:
        ended: The exception that ended the run.
        answer: Why it has no answer, if it came to its end.
        lab_option: The option of commands for this lab.
    """
    if isinstance(ended, Tripped):
        return Text("advice.reset", lab=lab_option)
    if answer is not None and answer.suggestion:
        return answer.suggestion
    if isinstance(ended, HoldTooLong):
        return Text("advice.hold")
    if isinstance(ended, StepFailed) and ended.kind is FailureKind.REFUSED:
        return Text("advice.step")
    if isinstance(ended, TimeoutError) and not ended.args:
        return Text("advice.duration")
    return Text("advice.connect", lab=lab_option)
