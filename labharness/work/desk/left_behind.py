"""The results of a run whose program was killed, as far as its journal holds them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from labharness.core.vocabulary.durations import format_duration
from labharness.journal.artifacts import ArtifactRefused, Artifacts
from labharness.journal.chain import Record
from labharness.journal.reading import read, run_header
from labharness.protocols.hcp.messages import ResumeFrom, TaskSubmit
from labharness.work.admission.confidential import is_confidential
from labharness.work.capability import PROCESS_LOG
from labharness.work.desk.checkpoint import checkpoints
from labharness.work.desk.closing import file_of, listed, so_far
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.folder import ARTIFACTS_NAME, JOURNAL_NAME
from labharness.work.desk.process_log import process_log
from labharness.work.desk.resuming import way_on
from labharness.work.plan import Instruction, Status, StepRecord

TOLD: Final = ("submitted", "planned", "event", "step", "trip")
OF_A_TRIP: Final = {"code": "cause", "channel": "channel", "value": "value", "text": "detail"}


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """The results of such a run, as its end tells them to its caller.

    Attributes:
        outputs: Its partial outputs.
        artifacts: The references of its files, as messages have them.
        summary: Of what it did until then.
        way_on: The checkpoint from which the same submission would be let on now, if any.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Sequence[Mapping[str, Any]] = ()
    summary: Mapping[str, Any] | None = None
    way_on: ResumeFrom | None = None


def left_behind(folder: Path, facts: LabFacts) -> LeftBehind:
    """Write the artifacts of a killed run into its folder; return its results and summary.

    A confidential one has its summary alone, which quotes nothing.

    Args:
        folder: Of the run, which no program writes any more.
        facts: The lab as it is now.

    Raises:
        JournalFailed: The journal cannot be read.
        OSError: A file cannot be written.
    """
    journal = folder / JOURNAL_NAME
    records = [each for each in read(journal) if each.kind in TOLD]
    kept = {each.kind: each.body for each in records}
    if "submitted" not in kept:
        return LeftBehind()
    payload, summary = TaskSubmit.model_validate(kept["submitted"]["payload"]), _summary(records)
    if is_confidential(payload):
        return LeftBehind(summary={**summary, "warnings": [], "risk_events": []})
    capability = facts.capabilities.get(payload.capability)
    log = str(getattr(capability, "log", PROCESS_LOG))
    table, rows = process_log(journal, facts.watched)
    files = [(f"partial_{log}", f"{log}_partial.csv", "text/csv", table)]
    outputs: dict[str, Any] = {log: {"entries_before_failure": rows}}
    if capability is not None:
        found = so_far(capability, _steps(journal, records), journal)
        outputs |= found.outputs
        files += [
            (each.name, file_of(each), each.media_type, each.content) for each in found.artifacts
        ]
    artifacts = Artifacts(folder / ARTIFACTS_NAME, str(run_header(journal)["session_id"]))
    for each in files:
        with suppress(ArtifactRefused):  # the run had begun to make it itself: that one stays
            artifacts.put(*each)
    return LeftBehind(outputs, listed(artifacts), summary, way_on(journal, facts))


def _steps(journal: Path, records: Sequence[Record]) -> list[StepRecord]:
    """Return the record of each step of the plan; results are those that a checkpoint holds."""
    planned: Sequence[Mapping[str, Any]] = ()
    said: dict[str, dict[str, Any]] = {}
    for each in records:
        if each.kind == "planned":
            planned = each.body["instructions"]["instructions"]
        elif each.kind == "step":
            step, status = said.setdefault(each.body["instruction"], {}), each.body["status"]
            step |= {"status": status}
            step |= {"started_s" if status == Status.RUNNING else "ended_s": each.at_s}
    for point in checkpoints(journal):
        said |= {step["instruction"]: dict(step) for step in point.steps}
    return [_step(each, said.get(each["instructionId"], {})) for each in planned]


def _step(told: Mapping[str, Any], said: Mapping[str, Any]) -> StepRecord:
    about = told["metadata"]
    instruction = Instruction(
        instruction_id=told["instructionId"],
        action=told["action"],
        parameters=told["parameters"],
        dependencies=tuple(told["dependencies"]),
        timeout_s=told["timeout"],
        stage=about["stage"],
        description=about["description"],
    )
    status = Status(said.get("status", Status.SKIPPED))
    status = Status.FAILED if status is Status.RUNNING else status
    times = said.get("started_s"), said.get("ended_s")
    return StepRecord(instruction, status, *times, said.get("result"))


def _summary(records: Sequence[Record]) -> dict[str, Any]:
    events = [each for each in records if each.kind == "event"]
    begun = [each.at_s for each in events if each.body["data"].get("to_state") == "RUNNING"]
    kinds = [each.body["event_type"] for each in events]
    run_s = records[-1].at_s - begun[0] if begun else 0.0
    steps = [each.body["status"] for each in records if each.kind == "step"]
    return {
        "duration": format_duration(run_s),
        "steps_executed": steps.count(Status.COMPLETED),
        "checkpoints_created": kinds.count("checkpoint_created"),
        "risk_events": [
            {name: each.body[of] for name, of in OF_A_TRIP.items()}
            for each in records
            if each.kind == "trip"
        ],
        "warnings": [
            each.body["data"]["message"] for each in events if each.body["event_type"] == "warning"
        ],
    }
