"""Raman characterisation of a film from stored spectra: layers, with shares and confidence.

It needs no line: the spectra come with the task, or are the artifact of an earlier run of the same
caller. They are judged as those of a growth are.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety
from labharness.work.capability import (
    Answer,
    CannotDo,
    LineFacts,
    NoAnswer,
    Planned,
    Settings,
    Surroundings,
)
from labharness.work.capability.channels import number
from labharness.work.capability.cvd.answer import raman_analysis, why_not
from labharness.work.capability.cvd.settings import CalibrationRow
from labharness.work.capability.cvd.verdict import distribution, judge, sees_film
from labharness.work.capability.raman_characterization.spectra import (
    POINTS_MAX,
    SPECTRA_MAX,
    BadSpectra,
    spectra_of,
    spectrum_fault,
)
from labharness.work.capability.steps import Steps
from labharness.work.plan import FailureKind, InstructionKind, RunningStep, StepRecord, Verb

__all__ = ["CAPABILITY", "RamanCharacterization", "RamanSettings"]

SPECTRUM_S = 0.05
"""Usual time (s) to judge one spectrum."""

READ_S_MAX = 30.0
JUDGE_S_MAX = 300.0

NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": POINTS_MAX}

DECLARATION = Declaration(
    name="raman-characterization",
    version="1.0.0",
    description="Judge the layers of an MoS2 film from stored Raman spectra",
    input_schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "spectra": {
                "type": "array",
                "minItems": 1,
                "maxItems": SPECTRA_MAX,
                "items": {
                    "type": "object",
                    "required": ["raman_shift", "intensity"],
                    "additionalProperties": False,
                    "properties": {
                        "raman_shift": {**NUMBERS, "description": "cm^-1, ascending"},
                        "intensity": {**NUMBERS, "description": "Counts"},
                        "x_um": number("Place, um"),
                        "y_um": number("Place, um"),
                        "exposure_s": number("Exposure, s", exclusiveMinimum=0),
                    },
                },
            },
            "spectra_uri": {
                "type": "string",
                "maxLength": 2_000,
                "description": "hcp:// address of raw_spectrum of an earlier run",
            },
            "dark_counts": number("Counts of the camera without light; 0 if left out", minimum=0),
        },
    },
    output_schema={
        "type": "object",
        "properties": {
            "peak_distance": number("A1g-E2g peak distance in cm^-1"),
            "layer_count": {"type": "integer", "minimum": 1, "maximum": 6},
            "confidence": number("Probability that film.headline is right", minimum=0, maximum=1),
            "film": {"type": "object"},
            "raman_analysis": {"type": "object"},
        },
    },
    safety=Safety(
        risk_ceiling="R1",
        requires_human_approval=False,
        involves_physical_resources=False,
        side_effects="none",
    ),
    constraints=DeclaredConstraints(max_duration="PT30M", concurrent_limit=2),
    references=("spectra_uri",),
)


class RamanSettings(Settings):
    """The table ``[capability.raman-characterization]``.

    Attributes:
        a1g_si: Calibration of A1g over silicon of the microscope that takes the spectra; without it
            the ratio counts as a broad prior.
    """

    a1g_si: CalibrationRow | None = None

    def reference(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the known ratios of the microscope."""
        return {} if self.a1g_si is None else {"a1g_si": self.a1g_si.told()}


class RamanCharacterization:
    """The capability ``raman-characterization``."""

    declaration = DECLARATION
    settings = RamanSettings
    formats: tuple[str, ...] = ()
    verbs: Mapping[str, Verb] = {}

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return nothing: no value of a lab file prevents every task."""
        yield from ()

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return nothing: other spectra are another task."""
        yield from ()

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
        reference = settings.reference() if isinstance(settings, RamanSettings) else {}
        try:
            return await asyncio.to_thread(judged, self._spots, self._dark_counts, reference)
        except ValueError as why:
            raise step.failed(Text("raman.unjudged", why=str(why)), FailureKind.INPUT) from None


def judged(
    spots: Sequence[dict[str, Any]],
    dark_counts: float,
    reference: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return which spectra have film, and the verdict on those.

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
    return {"survey": survey, "verdict": judge(film, (), dark_counts, reference)}


CAPABILITY = RamanCharacterization()
