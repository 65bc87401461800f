"""Resuming: a new attempt that goes on after a checkpoint of an earlier run, or why it may not."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from labharness.core.vocabulary.texts import CodedError, Text, several
from labharness.journal import JournalFailed
from labharness.journal.reading import read, run_header, verify_file
from labharness.protocols.hcp.messages import ResumeFrom, TaskSubmit
from labharness.protocols.hcp.terms import DATA_CLASSES, ReasonCode, Rejected
from labharness.work.admission.audit import UNDECLARED
from labharness.work.admission.confidential import declared_class
from labharness.work.desk.checkpoint import Checkpoint, checkpoints, heated_since
from labharness.work.desk.facts import LabFacts
from labharness.work.plan import InstructionSet, ResumePoint, Status, StepRecord

OF_THE_TASK: Final = ("submitted", "planned")
"""Records of a journal that say what was asked for, and what was made of it."""


class NotResumable(CodedError, RuntimeError, code="not_resumable"):
    """The line is no longer as the checkpoint needs it; the message names each difference."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """An earlier run and the checkpoint to go on from.

    Attributes:
        head: Hash of the last record of the earlier run's journal.
        instructions: The plan of both runs.
    """

    asked: ResumeFrom
    checkpoint: Checkpoint
    head: str
    instructions: InstructionSet

    @property
    def count(self) -> int:
        """The number of instructions that the earlier run completed."""
        return len(self.checkpoint.steps)

    @property
    def point(self) -> ResumePoint:
        """The bounds that the plan states for this checkpoint."""
        return self.instructions.instructions[self.count - 1].checkpoint or ResumePoint(
            description=self.checkpoint.description
        )

    def remaining(self) -> frozenset[str]:
        """Return the instructions that this run carries out."""
        later = self.instructions.instructions[self.count :]
        return frozenset((*self.point.again, *(each.instruction_id for each in later)))

    def done(self, now_s: float) -> tuple[StepRecord, ...]:
        """Return the records of the earlier run, as if the checkpoint had been made now."""
        shift_s = now_s - self.checkpoint.at_s

        def moved(at_s: float | None) -> float | None:
            return None if at_s is None else at_s + shift_s

        pairs = zip(self.instructions.instructions, self.checkpoint.steps, strict=False)
        return tuple(
            StepRecord(
                instruction,
                Status(step["status"]),
                moved(step["started_s"]),
                moved(step["ended_s"]),
                step["result"],
            )
            for instruction, step in pairs
        )

    def compare(self, readings: Mapping[str, float]) -> None:
        """Raise `NotResumable` if the line is not as the checkpoint needs it."""
        wrong = [
            Text(
                "resume.differs",
                channel=channel,
                now=readings.get(channel),
                then=self.checkpoint.readings.get(channel),
                allowed=_allowed(*self.point.holds[channel]),
            )
            for channel in self.point.missed(readings)
        ]
        if wrong:
            name = self.asked.checkpoint_id
            raise NotResumable("resume.changed", name=name, why=several(*wrong))

    def to_json(self) -> dict[str, Any]:
        """Return the reference to the earlier run, with the head of its journal."""
        return {**self.asked.model_dump(), "head": self.head}


def _allowed(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        code, value = ("at_most", high) if low is None else ("at_least", low)
        return Text(code, value=value)
    return Text("resume.between", low=low, high=high)


def look_up(
    payload: TaskSubmit, journal: Path | None, instructions: InstructionSet, facts: LabFacts
) -> Resumption | Rejected:
    """Find the checkpoint that a submission names, or return why it may not be gone on from.

    Args:
        payload: The submission.
        journal: Of the earlier run; ``None`` if it is not known.
        instructions: The plan for this submission.
        facts: The lab as it is now.
    """
    found = _found(payload, journal, instructions.digest(), facts)
    return found if isinstance(found, Rejected) else Resumption(*found, instructions)


def way_on(journal: Path, facts: LabFacts) -> ResumeFrom | None:
    """Return the checkpoint from which the same submission may go on; ``None`` for no such one.

    It is tried on the lab as it is now, so that no caller is told of a checkpoint that is refused.

    Args:
        journal: Of the run, committed.
        facts: The lab as it is now.
    """
    try:
        kept = {each.kind: each.body for each in read(journal) if each.kind in OF_THE_TASK}
        newest = [each.checkpoint_id for each in checkpoints(journal)][-1]
        session = str(run_header(journal)["session_id"])
        asked = ResumeFrom(session_id=session, checkpoint_id=newest)
        again = TaskSubmit.model_validate({**kept["submitted"]["payload"], "resume_from": asked})
        found = _found(again, journal, str(kept["planned"]["digest"]), facts)
    except (JournalFailed, LookupError, TypeError, ValueError):
        return None
    return None if isinstance(found, Rejected) else asked


def _found(
    payload: TaskSubmit, journal: Path | None, plan_digest: str, facts: LabFacts
) -> tuple[ResumeFrom, Checkpoint, str] | Rejected:
    """Return the checkpoint that a submission names, with its name and its journal's head."""
    asked = payload.resume_from
    if asked is None or journal is None:
        return _refused("invalid_input", Text("resume.unknown"))
    if facts.begins_anew:
        return _refused("invalid_input", Text("resume.plant"))
    try:
        report = verify_file(journal)
        if not report.ok:
            return _refused("resource_unavailable", Text("resume.damaged", why=report.reason))
        if (wrong := _other_task(payload, journal, asked)) is not None:
            return wrong
        known = {each.checkpoint_id: each for each in checkpoints(journal)}
        found = known.get(asked.checkpoint_id)
        if found is None:
            listed = ", ".join(known) or "-"
            text = Text("resume.no_checkpoint", name=asked.checkpoint_id, listed=listed)
            return _refused("invalid_input", text)
        newest = max(known.values(), key=lambda each: each.record)
        if found is not newest:  # the sample has gone on, maybe to another place
            text = Text("resume.superseded", newest=newest.checkpoint_id)
            return _refused("invalid_input", text)
        if (wrong := _not_covered(found, plan_digest, facts)) is not None:
            return wrong
        if heated_since(journal, found.record, facts.sources):
            return _refused("safety_violation", Text("resume.heated", name=found.checkpoint_id))
        return asked, found, report.head.hash
    except (JournalFailed, LookupError, TypeError, ValueError) as why:
        return _refused("resource_unavailable", Text("resume.damaged", why=str(why)))


def _other_task(payload: TaskSubmit, journal: Path, asked: ResumeFrom) -> Rejected | None:
    """Compare a submission with that of the earlier run."""
    session = run_header(journal).get("session_id")
    if session != asked.session_id:
        return _refused("invalid_input", Text("resume.session", asked=asked.session_id))
    records = [each for each in read(journal) if each.kind in ("submitted", "terminal")]
    before: Mapping[str, Any] = next(
        (each.body["payload"] for each in records if each.kind == "submitted"), {}
    )
    if before.get("caller_id") != payload.caller_id:
        return _refused("forbidden", Text("resume.foreign"))
    if _class_of(before) > DATA_CLASSES.index(declared_class(payload) or UNDECLARED):
        return _refused("forbidden", Text("resume.class"))
    if any(before.get(name) != getattr(payload, name) for name in ("capability", "inputs")):
        return _refused("invalid_input", Text("resume.inputs"))
    if any(each.body.get("type") == "task_completed" for each in records):
        return _refused("invalid_input", Text("resume.completed"))
    return None


def _class_of(before: Mapping[str, Any]) -> int:
    """Return the place of an earlier run's data class: its results come into the new one."""
    constraints = before.get("constraints") or {}
    return DATA_CLASSES.index(constraints.get("data_classification") or UNDECLARED)


def _not_covered(found: Checkpoint, plan_digest: str, facts: LabFacts) -> Rejected | None:
    """Return why the agreement to the earlier run does not cover this one, if so."""
    if not found.resumable:
        text = Text("resume.not_at_rest", name=found.checkpoint_id)
        return _refused("resource_unavailable", text)
    digests = {
        "lab": (found.lab_digest, facts.lab_digest),
        "envelope": (found.envelope_digest, facts.envelope_digest),
        "plan": (found.plan_digest, plan_digest),
    }
    for what, (then, now) in digests.items():
        if then != now:
            return _refused("approval_expired", Text("resume.other", what=what))
    return None


def _refused(code: ReasonCode, why: str) -> Rejected:
    return Rejected(code, why, suggestion=Text("resume.whole"))
