"""From the steps of a measured film to its outputs: flat fields, their evidence, the spectra.

The spectra of a run that came to no end, in the form of those of an answer.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.texts import Text
from labharness.work.capability import (
    Answer,
    ArtifactContent,
    NoAnswer,
    PartialResults,
    QueryResult,
)
from labharness.work.capability.raman_verbs import DARK, GLOW, MAP, SURVEY
from labharness.work.capability.raman_verdict import distribution, raman_shift
from labharness.work.plan import StepRecord

SIX_OR_MORE = 6
AXIS = "Raman shift in cm-1 as the instrument states it; counts as the camera gave them"


def film_answer(records: Sequence[StepRecord], threshold: float) -> Answer | NoAnswer:
    """Return the answer of the steps of `add_look`, or why there is none.

    Args:
        records: State and result of each instruction of the run.
        threshold: Least confidence that the caller accepts.
    """
    results = {each.instruction.instruction_id: each.result for each in records if each.result}
    found, analysis = results.get("survey"), results.get("analysis")
    if found is None or analysis is None:
        return NoAnswer(Text("answer.too_early"), {})
    verdict, spots = analysis["verdict"], analysis["spots"]
    glow = results.get("photoluminescence") or {"spectra": []}
    spectra = _file(
        "raw_spectrum",
        laser_nm=found["laser_nm"],
        dark_counts=found["dark_counts"],
        raman=analysis["spots"],
        photoluminescence=glow["spectra"],
    )
    answer = judged_answer(found, verdict, threshold, spots, (spectra,))
    if isinstance(answer, NoAnswer):
        return answer
    warnings = [note for note in verdict["notes"] if note.code != "note.six"]
    if verdict["layer_count"] == SIX_OR_MORE:
        warnings.append(Text("answer.six"))
    return replace(answer, warnings=tuple(warnings))


def judged_answer(
    found: Mapping[str, Any],
    verdict: Mapping[str, Any],
    threshold: float,
    spots: Sequence[Mapping[str, Any]] = (),
    artifacts: tuple[ArtifactContent, ...] = (),
) -> Answer | NoAnswer:
    """Return the answer that a verdict makes, or why it makes none.

    Args:
        found: The survey: ``places``, and ``film`` with those that have film.
        verdict: As `judge` gives it.
        threshold: Least confidence that the caller accepts.
        spots: The spectra, of which the clearest one is an output.
        artifacts: Come with either.
    """
    film = distribution(found, verdict)
    analysis = raman_analysis(found, verdict)
    reason, way_out = why_not(found, verdict, film, threshold)
    if reason:
        seen = {"film": film, "raman_analysis": analysis}
        return NoAnswer(reason, seen, artifacts, way_out)
    outputs = {
        "peak_distance": round(verdict["peak_distance_cm1"], 3),
        "layer_count": verdict["layer_count"],
        "confidence": verdict["confidence"],
        "film": film,
        **(_clearest(spots, verdict) if spots else {}),
        "raman_analysis": analysis,
    }
    return Answer(outputs, artifacts, tuple(verdict["notes"]), film["headline"])


def _clearest(spots: Sequence[Mapping[str, Any]], verdict: Mapping[str, Any]) -> dict[str, Any]:
    best = spots[verdict["best_spot"]]
    offset_cm1 = verdict["spots"][verdict["best_spot"]]["silicon_offset_cm1"] or 0.0
    shift = [round(value + offset_cm1, 3) for value in best["raman_shift"]]
    return {"spectrum_data": {"raman_shift": shift, "intensity": list(best["counts"])}}


def why_not(
    found: Mapping[str, Any], verdict: Mapping[str, Any], film: Mapping[str, Any], threshold: float
) -> tuple[str, str]:
    """Return why there is no answer, and a suggestion; both empty if there is one."""
    if not found["film"]:
        return Text("answer.no_film", places=found["places"]), Text("advice.more_film")
    spots = len(verdict["spots"])
    if verdict["layer_count"] is None:
        return Text("answer.undetermined", spots=spots, reasons=tuple(verdict["reasons"])), (
            Text("advice.calibrate" if verdict["claim"] is not None else "advice.spectra")
        )
    if verdict["confidence"] < threshold:
        sure = share_text(verdict["confidence"])
        reason = Text(
            "answer.unsure",
            confidence=sure,
            layers=verdict["layer_count"],
            threshold=threshold,
            spots=spots,
            headline=film["headline"],
        )
        return reason, Text("advice.evener" if film["claim"] == "mixed" else "advice.calibrate")
    return "", ""


def raman_analysis(found: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict in full, with what was surveyed: ``places``, ``film``."""
    best = verdict["best_spot"]
    row = None if best is None else verdict["spots"][best]
    return {
        **{name: value for name, value in verdict.items() if name != "covered_spots"},
        "calibration_offset_cm1": None if row is None else row["silicon_offset_cm1"],
        "covered_fraction": len(found["film"]) / found["places"],
        "places_surveyed": found["places"],
        "places_with_film": len(found["film"]),
    }


def spectra_so_far(
    records: Sequence[StepRecord], measured: Sequence[QueryResult]
) -> PartialResults:
    """Return the number of spectra of each kind, and the spectra.

    Args:
        records: State and result of each instruction.
        measured: Every result of a query, as the journal holds it.
    """
    spectra = [each for each in measured if each.about.get("of") in (DARK, SURVEY, MAP, GLOW)]
    if not spectra:
        return PartialResults({})
    kinds = [each.about["of"] for each in spectra]
    counted = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    surveys = (each.instruction for each in records if each.instruction.action == "survey")
    laser_nm = float(next(surveys).parameters["laser_nm"])
    dark = [each.value[1] for each in spectra if each.about["of"] == DARK]

    def raman(kind: str) -> list[dict[str, Any]]:
        return [
            {
                **_place(each),
                "raman_shift": raman_shift(laser_nm, each.value[0]),
                "counts": each.value[1],
            }
            for each in _last_at_each_place(spectra, kind)
        ]

    kept = _file(
        "partial_raw_spectrum",
        laser_nm=laser_nm,
        dark_counts=median(dark[0]) if dark else 0.0,
        raman=raman(MAP) or raman(SURVEY),
        survey=raman(SURVEY),
        photoluminescence=[
            {**_place(each), "wavelength_nm": each.value[0], "counts": each.value[1]}
            for each in _last_at_each_place(spectra, GLOW)
        ],
    )
    return PartialResults({"spectra": counted}, (kept,))


def _file(name: str, **content: object) -> ArtifactContent:
    content["axis"] = AXIS
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return ArtifactContent(name, "application/json", text.encode())


def _last_at_each_place(spectra: Sequence[QueryResult], kind: str) -> Iterable[QueryResult]:
    """Return the spectra of a kind, without those that were too bright and taken once more."""
    return {
        (each.about["x_um"], each.about["y_um"]): each
        for each in spectra
        if each.about["of"] == kind
    }.values()


def _place(spectrum: QueryResult) -> Mapping[str, Any]:
    return {name: spectrum.about[name] for name in ("x_um", "y_um", "exposure_s")}
