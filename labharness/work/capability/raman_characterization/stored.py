"""Raman characterisation from stored spectra: those of the task, or of an earlier run.

Stored Raman spectra as a task brings them: from its inputs, or from an artifact of a run.

The declaration of ``raman-characterization``: stored spectra, or a map by the line's microscope.
One capability, two forms (`form_of`): what a caller reads is that of the form on the line.
"""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.work.admission.declaration import DeclaredConstraints, Safety
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
from labharness.work.capability.raman_answer import judged_answer
from labharness.work.capability.raman_map import MicroscopeSettings
from labharness.work.capability.raman_verdict import judge, sees_film
from labharness.work.capability.steps import Steps
from labharness.work.capability.stored import artifact_of_caller, refers
from labharness.work.plan import FailureKind, InstructionKind, RunningStep, StepRecord, Verb

BYTES_MAX: Final = 64 * 1024 * 1024
BESIDE: Final = ("x_um", "y_um", "exposure_s")
"""Fields of a spectrum that may be left out."""


class RamanSettings(MicroscopeSettings):
    """The microscope. One without ``laser_nm`` takes no spectra: only stored ones are judged."""


class BadSpectra(LabError, ValueError, code="bad_spectra"):
    """Spectra that cannot be judged; the message says which and why."""


def spectrum_fault(spectra: Sequence[Any]) -> str:
    """Return what is wrong with the first bad spectrum; ``""`` where all can be read."""
    if not 0 < len(spectra) <= SPECTRA_MAX:
        return Text("spectra.count", count=len(spectra), most=SPECTRA_MAX)
    for place, each in enumerate(spectra):
        axis, counts = each.get("raman_shift"), each.get("intensity", each.get("counts"))
        if not (isinstance(axis, list) and isinstance(counts, list)):
            return Text("spectra.fields", number=place)
        if not len(axis) == len(counts) <= POINTS_MAX:
            sizes, most = (len(axis), len(counts)), POINTS_MAX
            return Text("spectra.lengths", number=place, axis=sizes[0], counts=sizes[1], most=most)
        beside = [each[name] for name in BESIDE if name in each]
        if not all(_finite(value) for value in (*axis, *counts, *beside)):
            return Text("spectra.numbers", number=place)
        if each.get("exposure_s", 1.0) <= 0:  # intensities are divided by it
            return Text("spectra.exposure", number=place)
        if any(above <= below for below, above in pairwise(axis)):
            return Text("spectra.order", number=place)
    return ""


def _finite(value: object) -> bool:
    try:
        return (
            not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
        )
    except OverflowError:  # an integer beyond every float
        return False


def spectra_of(inputs: Mapping[str, Any], around: Surroundings) -> tuple[list[Any], float]:
    """Return the spectra of a task as `judge` takes them, and the counts of a dark camera.

    Raises:
        BadSpectra: They are not there, or cannot be judged.
    """
    dark_counts = inputs.get("dark_counts")
    if "spectra" in inputs:
        found = inputs["spectra"]
    else:
        kept = _of_run(inputs["spectra_uri"], around)
        found = kept.get("raman")
        dark_counts = kept.get("dark_counts") if dark_counts is None else dark_counts
    well = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    well = well and _finite(dark_counts or 0.0)
    fault = spectrum_fault(found) if well else Text("spectra.none")
    if fault:
        raise BadSpectra(fault)
    return [_spot(number, each) for number, each in enumerate(found)], float(dark_counts or 0.0)


def _of_run(uri: str, around: Surroundings) -> Mapping[str, Any]:
    artifact = artifact_of_caller(uri, around, "raman-characterization", BYTES_MAX)
    if artifact is None:
        raise BadSpectra(Text("spectra.no_artifact"))
    try:
        found = json.loads(artifact[1])
    except (ValueError, RecursionError):
        raise BadSpectra(Text("spectra.none")) from None
    return found if isinstance(found, dict) else {}


def _spot(number: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return one spectrum with its place; those that state none stand side by side."""
    return {
        "x_um": float(given.get("x_um", number)),
        "y_um": float(given.get("y_um", 0.0)),
        "exposure_s": float(given.get("exposure_s", 1.0)),
        "raman_shift": given["raman_shift"],
        "counts": given.get("intensity", given.get("counts")),
    }


MEASURE: Final = "measure"
"""The input that asks for the microscope."""

ORIGIN: Final = "origin"
"""The input that says how the film was made; the strain that it may have follows from it."""

DECLARATION: Final = declared(__file__)

_SPECTRA: Final = DECLARATION.input_schema["properties"]["spectra"]
SPECTRA_MAX: Final = _SPECTRA["maxItems"]
POINTS_MAX: Final = _SPECTRA["items"]["properties"]["intensity"]["maxItems"]
"""Of one spectrum; a camera has 1,024 to 2,048 columns."""

BY_STORED_SPECTRA = replace(
    DECLARATION,
    output_schema={
        **DECLARATION.output_schema,
        "properties": {
            name: each
            for name, each in DECLARATION.output_schema["properties"].items()
            if name != "spectrum_data"
        },
    },
    safety=Safety(
        risk_ceiling="R1",
        requires_human_approval=False,
        involves_physical_resources=False,
        side_effects="none",
    ),
    constraints=DeclaredConstraints(max_duration="PT30M", concurrent_limit=2),
)


def origin_of(inputs: Mapping[str, Any]) -> str:
    """Return how the film was made, as far as the caller says."""
    return str(inputs.get(ORIGIN, "unknown"))


SPECTRUM_S = 0.05
"""Usual time (s) to judge one spectrum."""

READ_S_MAX = 30.0
JUDGE_S_MAX = 300.0


class StoredSpectra(PlainCapability):
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
        what, kind = Text("spectra.judge"), InstructionKind.ANALYSIS
        some_s = 1.0 + SPECTRUM_S * len(inputs.get("spectra", ()))
        steps.add("judge", "judge", what, {}, expected_s=some_s, timeout_s=JUDGE_S_MAX, kind=kind)
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
        threshold = threshold_of(constraints)
        return judged_answer(result["survey"], result["verdict"], threshold)


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

    def has_film(spot: Mapping[str, Any]) -> bool:
        counts = [value - dark_counts for value in spot["counts"]]
        return sees_film(spot["raman_shift"], counts) is not None

    film = [each for each in spots if has_film(each)]
    survey = {"places": len(spots), "film": [{"x_um": each["x_um"]} for each in film]}
    return {"survey": survey, "verdict": judge(film, (), dark_counts, reference, 0.0, origin)}
