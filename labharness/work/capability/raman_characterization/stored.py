"""Raman characterisation from stored spectra: those of the task, or of an earlier run."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import (
    Answer,
    CannotDo,
    LineFacts,
    NoAnswer,
    Planned,
    Surroundings,
)
from labharness.work.capability.form_without_line import WithoutLine
from labharness.work.capability.raman_answer import raman_analysis, why_not
from labharness.work.capability.raman_characterization.declaration import (
    BY_STORED_SPECTRA,
    MEASURE,
    origin_of,
)
from labharness.work.capability.raman_characterization.settings import RamanSettings
from labharness.work.capability.raman_characterization.spectra import (
    BadSpectra,
    spectra_of,
    spectrum_fault,
)
from labharness.work.capability.raman_verdict import distribution, judge, sees_film
from labharness.work.capability.referred_inputs import refers
from labharness.work.capability.steps import Steps
from labharness.work.plan import FailureKind, InstructionKind, RunningStep, StepRecord, Verb

SPECTRUM_S = 0.05
"""Usual time (s) to judge one spectrum."""

READ_S_MAX = 30.0
JUDGE_S_MAX = 300.0


class StoredSpectra(WithoutLine):
    """The form without a line: the spectra are judged as those of a map are."""

    declaration = BY_STORED_SPECTRA
    settings = RamanSettings

    def takes(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether a task with these inputs is one of this form."""
        return MEASURE not in inputs and not refers(inputs)

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Return the two steps of a task: get the spectra, and judge them."""
        if ("spectra" in inputs) is ("spectra_uri" in inputs):
            return CannotDo("invalid_input", Text("spectra.one_of"), Text("spectra.give_one"))
        fault = spectrum_fault(inputs["spectra"]) if "spectra" in inputs else ""
        if fault:
            return CannotDo("invalid_input", fault, Text("spectra.mend"))
        steps = Steps(slack=1.0, spare_s=0.0, switch_s=0.0)
        steps.stage = "spectra"
        what = Text("spectra.get")
        steps.add("get", "get", what, {}, timeout_s=READ_S_MAX, kind=InstructionKind.QUERY)
        steps.stage = "analysis"
        steps.add(
            "judge",
            "judge",
            Text("spectra.judge"),
            {},
            expected_s=1.0 + SPECTRUM_S * len(inputs.get("spectra", ())),
            timeout_s=JUDGE_S_MAX,
            kind=InstructionKind.ANALYSIS,
        )
        return steps.planned({})

    def bound(self, inputs: Mapping[str, Any], around: Surroundings) -> Mapping[str, Verb]:
        """Return the verbs of one task."""
        task = _Task(inputs, around)
        return {"get": task.get, "judge": task.judge}

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Return the layers of the film, or why they are not known."""
        result = records[-1].result
        if result is None:
            return NoAnswer(Text("spectra.nothing"), {})
        found, verdict = result["survey"], result["verdict"]
        film = distribution(found, verdict)
        partial = {"film": film, "raman_analysis": raman_analysis(found, verdict)}
        threshold = float(constraints.get("confidence_threshold") or 0.0)
        reason, way_out = why_not(found, verdict, film, threshold)
        if reason:
            return NoAnswer(reason, partial, (), way_out)
        outputs = {
            "peak_distance": round(verdict["peak_distance_cm1"], 3),
            "layer_count": verdict["layer_count"],
            "confidence": verdict["confidence"],
            **partial,
        }
        return Answer(outputs, (), tuple(verdict["notes"]), film["headline"])


class _Task:
    """The spectra of one task, between its two steps; the records describe them."""

    def __init__(self, inputs: Mapping[str, Any], around: Surroundings) -> None:
        self._inputs = inputs
        self._around = around
        self._spots: list[Any] = []
        self._dark_counts = 0.0

    async def get(self, step: RunningStep) -> Mapping[str, Any]:
        """Get the spectra."""
        try:
            self._spots, self._dark_counts = await asyncio.to_thread(
                spectra_of, self._inputs, self._around
            )
        except BadSpectra as why:
            raise step.failed(str(why), FailureKind.INPUT) from None
        return {"spectra": len(self._spots), "dark_counts": self._dark_counts}

    async def judge(self, step: RunningStep) -> Mapping[str, Any]:
        """Judge them, in a thread: it takes seconds."""
        settings = self._around.settings
        reference = None
        if isinstance(settings, RamanSettings) and "spectra_uri" in self._inputs:
            reference = settings.reference()
        try:
            return await asyncio.to_thread(
                judged, self._spots, self._dark_counts, reference, origin_of(self._inputs)
            )
        except ValueError as why:
            raise step.failed(Text("raman.unjudged", why=str(why)), FailureKind.INPUT) from None


def judged(
    spots: Sequence[dict[str, Any]],
    dark_counts: float,
    reference: Mapping[str, Mapping[str, Any]] | None,
    origin: str,
) -> dict[str, Any]:
    """Return which spectra have film, and the verdict on those.

    Only spectra of an earlier run of this lab are of its microscope, whose ``reference`` counts.

    Raises:
        ValueError: A spectrum does not hold the lines.
    """
    film = [
        each
        for each in spots
        if sees_film(each["raman_shift"], [value - dark_counts for value in each["counts"]])
        is not None
    ]
    survey = {"places": len(spots), "film": [{"x_um": each["x_um"]} for each in film]}
    return {"survey": survey, "verdict": judge(film, (), dark_counts, reference, 0.0, origin)}
