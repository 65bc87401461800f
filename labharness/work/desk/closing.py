"""The end of a session: artifacts, summary, and the one terminal message."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from labharness.core.clock import Chance, Clock, utc_text
from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text, texts_in
from labharness.journal import JournalFailed
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
    QueryResult,
)
from labharness.work.desk.admitting import Weighed
from labharness.work.desk.checkpoint import Checkpoints
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.process_log import process_log
from labharness.work.desk.redaction import FAILURE, bare, failure, references, remarks, results
from labharness.work.desk.results import results as measured_results
from labharness.work.desk.resuming import way_on
from labharness.work.desk.session import Session
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

LIMITS: Final = ("bound", "confirmed", "allowed_s")
"""Parameters of a trip's text that are the limit which its value has passed."""

TOLD: Final = ("name", "type", "uri", "size_bytes", "checksum")
"""Of an artifact, in messages."""


def risk_events(trips: Sequence[Trip], clock: Clock) -> list[dict[str, Any]]:
    """Return the trips of a run, in their order; `limit` is ``None`` where the cause has none."""
    return [
        {
            "code": each.cause.value,
            "channel": each.channel,
            "value": each.value,
            "limit": _limit_of(each.detail),
            "at": utc_text(clock.utc_of(each.at_s)),
            "text": Text("trip.event", cause=each.cause.value, why=each.detail),
        }
        for each in trips
    ]


def _limit_of(detail: str) -> float | None:
    for text in texts_in(detail):
        for name in LIMITS:
            found = text.params.get(name)
            if isinstance(found, int | float):
                return float(found)
    return None


def so_far(capability: Capability, records: Sequence[StepRecord], journal: Path) -> PartialResults:
    """Return the results so far, as the capability makes them.

    Without a function of the capability for it, or when that one breaks, the measured values
    are one artifact as they are.

    Args:
        capability: The capability of the run.
        records: The record of each step.
        journal: The run's journal, committed.

    Raises:
        JournalFailed: The journal cannot be read.
    """
    measured = tuple(measured_results(journal))
    made = getattr(capability, "so_far", None)
    if made is not None:
        try:
            found: PartialResults = made(records, measured)
            canonical(found.outputs)
        except Exception:  # the task fails for another reason, which its answer must give
            LOG.exception("the capability made no partial results")
        else:
            return found
    return _as_they_are(measured)


def _as_they_are(measured: Sequence[QueryResult]) -> PartialResults:
    if not measured:
        return PartialResults({})
    text = json.dumps({"measured": [asdict(each) for each in measured]})
    names = [f"{each.instrument}.{each.query}" for each in measured]
    outputs: Mapping[str, Any] = {"measured": dict(Counter(names))}
    return PartialResults(
        outputs, (ArtifactContent("partial_measured", "application/json", text.encode()),)
    )


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


@dataclass(eq=False)
class Closing:
    """Makes the terminal message of one session, and stores the files that it refers to.

    Attributes:
        session, line, artifacts, facts, chance, checkpoints: Of the run.
        capability: The capability that serves the task; ``None`` before one was found.
    """

    session: Session
    line: Line
    artifacts: Artifacts
    facts: LabFacts
    chance: Chance
    checkpoints: Checkpoints
    capability: Capability | None = None
    _table: tuple[bytes, int] | None = None
    _partial: PartialResults | None = None
    _way_on: ResumeFrom | None = None

    @property
    def log(self) -> str:
        """The name of the process log, as the capability states it."""
        return str(getattr(self.capability, "log", PROCESS_LOG))

    def summary(self, records: Sequence[StepRecord], run_s: float) -> dict[str, Any]:
        """Return the execution summary of a run."""
        line = self.line
        trips = line.trip_response.trips if line.instruments else ()
        return {
            "duration": format_duration(run_s),
            "steps_executed": sum(record.status is Status.COMPLETED for record in records),
            "checkpoints_created": self.checkpoints.made,
            "risk_events": risk_events(trips, line.clock),
            "warnings": list(line.events.warnings),
        }

    def keep(self, found: Sequence[ArtifactContent]) -> None:
        """Store the artifacts of an answer."""
        for each in found:
            try:
                self._put(each)
            except OSError as why:
                text = Text("pair", what=file_of(each), why=why.strerror)
                said = {"code": "artifact_lost", "message": text, "details": {}}
                self.session.event("warning", said)

    def _put(self, found: ArtifactContent) -> str:
        """Store a file; return its address. Raises ``OSError``."""
        name = file_of(found)
        return self.artifacts.put(found.name, name, found.media_type, found.content).uri

    def rejected(self, rejected: Rejected) -> HcpMessage:
        """Return the rejection of a task, with its suggestion.

        Of a confidential one the key alone reads the reason, where it may quote an input.
        """
        clear, asked = self._clear(rejected), self.session.metadata["source_message_id"]
        message = answers.task_rejected(**self._head(), in_reply_to=asked, rejected=clear)
        return self._record(message)

    def withdrawn(self, rejected: Rejected) -> HcpMessage:
        """Return the failure of a task that is rejected after its acceptance on receipt."""
        why = self._clear(rejected).reason_message
        return self.failed(Withdrawn(why), (), None, self.summary((), 0.0))

    def answered(
        self,
        weighed: Weighed,
        records: Sequence[StepRecord],
        ended: Exception | None,
        summary: dict[str, Any],
    ) -> HcpMessage:
        """Return the results of a run whose line is safe, or why there are none.

        Args:
            weighed: The task.
            records: The record of each step.
            ended: The exception that ended the run; ``None`` for a good end.
            summary: Of the run.
        """
        if ended is not None:
            return self.failed(ended, records, None, summary)
        submission = weighed.screened.submission
        constraints = {
            "confidence_threshold": weighed.screened.confidence_threshold,
            "intent": submission.intent,
        }
        try:
            answer = as_asked(submission, weighed.capability.answer(records, constraints))
        except Exception as why:  # noqa: BLE001 - the line is safe; the failure is reported as ours
            return self.failed(why, records, None, summary)
        if isinstance(answer, Answer) and (wrong := unfit(submission, answer.outputs)):
            answer = NoAnswer(wrong, answer.outputs, answer.artifacts, Text("advice.outputs"))
        self.keep(answer.artifacts)
        if isinstance(answer, Answer):
            return self.completed(answer, summary)
        failed = StepFailed("answer", "analysis", answer.reason, FailureKind.EXECUTION)
        return self.failed(failed, records, answer, summary)

    def completed(self, answer: Answer, summary: dict[str, Any]) -> HcpMessage:
        """Return the results."""
        self._keep_logs(f"{self.log}_csv", f"{self.log}.csv")
        outputs, summary["warnings"] = answer.outputs, [*summary["warnings"], *answer.warnings]
        if self.session.confidential:
            outputs = references(outputs, self._put(results(outputs)))
            summary = self._bare(answer.finding, summary)
        elif answer.finding:
            summary["finding"] = answer.finding
        message = answers.task_completed(
            **self._head(),
            session_id=self.session.session_id,
            outputs=outputs,
            artifacts=listed(self.artifacts),
            execution_summary=summary,
        )
        return self._last(message, "COMPLETED", Text("session.delivered"))

    def failed(
        self,
        ended: BaseException,
        records: Sequence[StepRecord],
        answer: NoAnswer | None,
        summary: dict[str, Any],
    ) -> HcpMessage:
        """Return the failure of a run, with its partial results."""
        code, why = error_of(ended)
        started = [record for record in records if record.started_s is not None]
        has_line = self.facts.has_line
        if answer is not None and not has_line:  # on a line it is told with its step
            why = answer.reason
        rows = self._keep_partial_logs()
        partial = self._so_far(records) if answer is None else dict(answer.partial_outputs)
        if has_line:
            partial.setdefault(self.log, {"entries_before_failure": rows})
        if self.session.confidential:
            self.keep([failure(why, answer)])
            partial, summary = self._referred(partial), self._bare("", summary)
            why, answer = Text("data.failed", name=FAILURE), None
        way_out = "" if answer is None else answer.suggestion
        if has_line:
            way_out = suggestion(ended, answer, self.facts.lab_option)
        clock, journal = self.session.clock, self.session.journal
        if (behind_s := clock.behind_s) > BEHIND_S_MAX:
            slower = Text("advice.slower", speed=clock.speed, behind_s=behind_s)
            way_out = Text("sentences", parts=(slower, way_out))
        with suppress(JournalFailed):
            journal.commit()
        again = self._way_on or way_on(journal.path, self.facts)
        if again is not None:
            last, session = again.checkpoint_id, again.session_id
            on = Text("advice.resume", session=session, checkpoint=last)
            way_out = Text("sentences", parts=(way_out, on))
        first = "arming" if has_line else "accepted"
        message = answers.task_failed(
            **self._head(),
            session_id=self.session.session_id,
            error_code=code,
            error_message=why,
            suggestion=way_out or None,
            error_details={
                "phase": started[-1].instruction.stage if started else first,
                "step": len(started),
                "last_checkpoint": self.checkpoints.last,
                "recoverable": again is not None,
            },
            partial_outputs=partial,
            artifacts=listed(self.artifacts),
            execution_summary=summary,
        )
        return self._last(message, "FAILED", code)

    def aborted(
        self, reason: str, unverified: Sequence[str], records: Sequence[StepRecord]
    ) -> HcpMessage:
        """Close an aborted session; there is no ``task_failed`` for it.

        Steps of its safe state that could not be verified are named under ``warnings``, and its
        measurements under ``artifacts``.
        """
        if self.session.confidential:
            reason = Text("data.aborted")
        self._keep_partial_logs()
        logs = listed(self.artifacts)
        self._so_far(records)
        files = listed(self.artifacts)
        data: dict[str, Any] = {"final_state": "ABORTED", "reason": reason}
        if unverified:
            data["warnings"] = list(unverified)
        if files != logs:
            data["artifacts"] = files
        return self._record(
            answers.event(
                **self._head(),
                session_id=self.session.session_id,
                event_type="session_closed",
                sequence=self.session.sequence,
                data=data,
            )
        )

    def _referred(self, partial: Mapping[str, Any]) -> dict[str, Any]:
        """Return where partial outputs stand; none where the disk does not take them."""
        try:
            return dict(references(partial, self._put(results(partial))))
        except OSError as why:
            self._lost("artifact_lost", why)
            return {}

    def _bare(self, finding: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what a summary says of a confidential task, and return the rest of it."""
        self.keep([remarks(finding, said["warnings"], said["risk_events"])])
        return bare(said)

    def _clear(self, rejected: Rejected) -> Rejected:
        """Return a rejection as everybody may know it, and keep what the key alone reads of it."""
        if not self.session.confidential:
            return rejected
        if self.session.journal.key is not None:
            told = {"reason": rejected.reason_message, "suggestion": rejected.suggestion}
            with suppress(JournalFailed):  # the record of the rejection meets the same
                self.session.record("withheld", told)
        return in_clear(rejected)

    def _so_far(self, records: Sequence[StepRecord]) -> dict[str, Any]:
        """Store the files of all that was measured, and return the outputs that it makes."""
        if self.capability is None:
            return {}
        try:
            if self._partial is None:
                self.session.journal.commit()
                self._partial = so_far(self.capability, records, self.session.journal.path)
            found = self._partial
        except JournalFailed as why:
            self._lost("journal_lost", why)
            return {}
        self.keep(found.artifacts)
        return dict(found.outputs)

    def _keep_partial_logs(self) -> int:
        return self._keep_logs(f"partial_{self.log}", f"{self.log}_partial.csv")

    async def prepare(self, records: Sequence[StepRecord]) -> None:
        """Make the files of a run that came to no end, up to now, beside a line that is polled.

        It takes seconds, so it is done in a thread. A failure is reported at the second try.
        """
        journal = self.session.journal
        with suppress(JournalFailed, OSError):
            journal.flush()
            journal.commit()
            self._table = await asyncio.to_thread(process_log, journal.path, self.facts.watched)
            if self.capability is not None:
                made = asyncio.to_thread(so_far, self.capability, records, journal.path)
                self._partial = await made
            self._way_on = await asyncio.to_thread(way_on, journal.path, self.facts)

    def _keep_logs(self, name: str, filename: str) -> int:
        """Store the process log of a line; return its rows, 0 when the journal is lost."""
        if not self.facts.has_line:
            return 0
        try:
            if self._table is None:
                self.session.journal.flush()
                self._table = process_log(self.session.journal.path, self.facts.watched)
            table, rows = self._table
            self.artifacts.put(name, filename, "text/csv", table)
        except (JournalFailed, OSError) as why:
            self._lost("journal_lost", why)
            return 0
        return rows

    def _lost(self, code: str, why: Exception) -> None:
        self.session.tell("warning", {"code": code, "message": str(why)})

    def _last(self, message: HcpMessage, state: str, reason: str) -> HcpMessage:
        """End the session with a message that the journal can hold; any other raises before."""
        canonical(record_body(message))
        self.session.become(state, reason)
        return self._record(message)

    def _record(self, message: HcpMessage) -> HcpMessage:
        # its state's event may have been told since it was made, and time never goes back
        clock = self.session.clock
        message = replace(message, timestamp=utc_text(clock.utc()), unknown=clock.metadata())
        try:
            self.session.record("terminal", record_body(message))
            self.session.journal.commit()
        except JournalFailed as why:
            self._lost("journal_lost", why)
        return message

    def _head(self) -> dict[str, str]:
        """Return the id of a message, and the time at which it is made."""
        now = utc_text(self.session.clock.utc())
        return {"message_id": self.chance.uuid4(), "timestamp": now}


def listed(artifacts: Artifacts) -> list[Mapping[str, Any]]:
    """Return the artifacts of a run as its messages name them."""
    return [{name: getattr(each, name) for name in TOLD} for each in artifacts.list()]


def file_of(found: ArtifactContent) -> str:
    """Return the name of the file of an artifact."""
    return f"{found.name}.{SUFFIXES[found.media_type]}"


def record_body(message: HcpMessage) -> dict[str, Any]:
    """Return the record of a terminal message."""
    return {
        "type": message.type,
        "message_id": message.message_id,
        "timestamp": message.timestamp,
        "payload": message.payload.stated(),
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
