"""Key findings of a document: what it states, how sure that is, and in which section it stands.

It needs no line and no model. The document is read in a process of its own (`reading`); what is
judged there are sentences (`findings`) with their quantities (`quantities`).
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.work.capability import (
    Answer,
    CannotDo,
    LineFacts,
    NoAnswer,
    Planned,
    Surroundings,
    declared,
    threshold_of,
)
from labharness.work.capability.channels import PlainCapability
from labharness.work.capability.document_analysis.settings import DocumentSettings
from labharness.work.capability.document_analysis.source import (
    Document,
    NotFetched,
    document_of,
    source_fault,
)
from labharness.work.capability.document_analysis.supervised import DocumentUnreadable, read_apart
from labharness.work.capability.steps import Steps
from labharness.work.plan import FailureKind, InstructionKind, RunningStep, StepRecord, Verb

SPARE_S = 5.0
"""Time (s) of a step beside that of its process or its server."""


class DocumentAnalysis(PlainCapability):
    """The capability ``document-analysis``."""

    declaration = declared(__file__)
    settings = DocumentSettings

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Return the two steps of a task: get the document, and read it."""
        settings = facts.settings
        if not isinstance(settings, DocumentSettings):
            raise ValueError(Text("capability.unstated", name=self.declaration.name))
        fault = source_fault(inputs, settings)
        if fault is not None:
            return fault
        most_s = settings.wall_s + SPARE_S
        steps = Steps(slack=1.0, spare_s=0.0, switch_s=0.0)
        steps.stage, kind = "document", InstructionKind.QUERY
        what = Text("document.get")
        steps.add("get", "get", what, {}, expected_s=0.1, timeout_s=most_s, kind=kind)
        steps.stage, kind = "analysis", InstructionKind.ANALYSIS
        what = Text("document.read")
        steps.add("read", "read", what, {}, expected_s=0.8, timeout_s=most_s, kind=kind)
        return steps.planned(
            {"analysis_type": inputs.get("analysis_type", "key_findings_extraction")}
        )

    def bound(self, inputs: Mapping[str, Any], around: Surroundings) -> Mapping[str, Verb]:
        """Return the verbs of one task."""
        task = _Task(inputs, around)
        return {"get": task.get, "read": task.read}

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Return the findings that reach the caller's threshold, those of the highest first."""
        result = records[-1].result
        if result is None:
            return NoAnswer(Text("document.nothing"), {})
        least = threshold_of(constraints)
        found = [each for each in result["findings"] if each["confidence"] >= least]
        found.sort(key=lambda each: -each["confidence"])
        outputs = {
            "findings": found,
            "proposed_task": result["proposed_task"],
            "document": result["document"],
        }
        said = Text("document.found", count=len(found), sections=result["document"]["sections"])
        few = () if found else (Text("document.none", least=least),)
        return Answer(outputs, (), few, said)


class _Task:
    """One document on its way: its bytes stay here, the records of the steps describe them."""

    def __init__(self, inputs: Mapping[str, Any], around: Surroundings) -> None:
        self._inputs = inputs
        self._around = around
        self._document = Document(b"", "")

    async def get(self, step: RunningStep) -> Mapping[str, Any]:
        """Get the bytes of the document."""
        try:
            self._document = await asyncio.to_thread(document_of, self._inputs, self._around)
        except NotFetched as why:
            raise step.failed(str(why), FailureKind.UNAVAILABLE) from None
        except LabError as why:
            raise step.failed(str(why), FailureKind.INPUT) from None
        return self._described()

    def _described(self) -> dict[str, Any]:
        data = self._document.data
        return {
            "media_type": self._document.media_type,
            "size_bytes": len(data),
            "sha256": digest_of(data),
        }

    async def read(self, step: RunningStep) -> Mapping[str, Any]:
        """Read it in a process of its own."""
        # the reader's own process imports this package, and must not bring that of a growth along
        from labharness.work.capability.document_analysis.proposing import proposed_task

        settings = self._around.settings
        if not isinstance(settings, DocumentSettings):
            settings = DocumentSettings()
        document = self._document
        try:
            found = await read_apart(document.data, document.media_type, settings)
        except DocumentUnreadable as why:
            raise step.failed(str(why), FailureKind.INPUT) from None
        except LabError as why:
            raise step.failed(str(why)) from None
        described = {**self._described(), "sections": found["sections"]}
        proposed = proposed_task(
            found["growth"],
            caller_id=self._around.caller_id,
            message_id=Chance(None).uuid4(),
            timestamp=utc_text(wall_clock_utc()),
            source=described["sha256"],
        )
        return {
            "findings": found["findings"],
            "document": described,
            "proposed_task": None if proposed is None else json.loads(proposed),
        }


CAPABILITY = DocumentAnalysis()
