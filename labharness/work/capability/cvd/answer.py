"""From the record of a run to its outputs: the flat fields, their evidence, and the growth log."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Answer, ArtifactContent, NoAnswer
from labharness.work.capability.cvd.intent import met
from labharness.work.capability.cvd.verdict import distribution
from labharness.work.plan import StepRecord

__all__ = ["AXIS", "compose", "growth_log", "raman_analysis", "why_not"]

SIX_OR_MORE = 6
AXIS = "Raman shift in cm-1 as the instrument states it; counts as the camera gave them"

MORE_FILM = Text("advice.more_film")
CALIBRATE = Text("advice.calibrate")
EVENER = Text("advice.evener")
LOOK_AT_SPECTRA = Text("advice.spectra")
"""Suggestions, one for each reason to have no answer."""


def compose(records: Sequence[StepRecord], threshold: float, intent: str = "") -> Answer | NoAnswer:
    """Return the answer of a run, or why it has none.

    Args:
        records: State and result of each instruction.
        threshold: Least confidence that the caller accepts.
        intent: The caller's words.
    """
    results = {each.instruction.instruction_id: each.result for each in records if each.result}
    log = growth_log(records)
    found, analysis = results.get("survey"), results.get("analysis")
    if found is None or analysis is None:
        return NoAnswer(Text("answer.too_early"), {"growth_log": log})
    verdict = analysis["verdict"]
    raman = raman_analysis(found, verdict)
    film = distribution(found, verdict)
    spectra = _raw_spectra(analysis, results.get("photoluminescence"), found)
    reason, way_out = why_not(found, verdict, film, threshold)
    if reason:
        partial = {"film": film, "raman_analysis": raman, "growth_log": log}
        return NoAnswer(reason, partial, (spectra,), way_out)
    best = analysis["spots"][verdict["best_spot"]]
    offset_cm1 = verdict["spots"][verdict["best_spot"]]["silicon_offset_cm1"] or 0.0
    outputs = {
        "peak_distance": round(verdict["peak_distance_cm1"], 3),
        "layer_count": verdict["layer_count"],
        "confidence": verdict["confidence"],
        "film": film,
        "spectrum_data": {
            "raman_shift": [round(value + offset_cm1, 3) for value in best["raman_shift"]],
            "intensity": list(best["counts"]),
        },
        "raman_analysis": raman,
        "growth_log": log,
    }
    warnings = [note for note in verdict["notes"] if note.code != "note.six"]
    if verdict["layer_count"] == SIX_OR_MORE:
        warnings.append(Text("answer.six"))
    wish = met(intent, film, verdict["layer_count"])
    outputs["intent"] = wish
    if wish["said"]:
        warnings.append(wish["said"])
    return Answer(outputs, (spectra,), tuple(warnings), film["headline"])


def growth_log(records: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """Return one row for each phase that was begun: its time, its settings and its readings.

    Times are lab time in s from the beginning of the run.
    """
    begun = [each for each in records if each.started_s is not None]
    start_s = begun[0].started_s or 0.0 if begun else 0.0
    rows = []
    for phase, group in groupby(begun, key=lambda each: each.instruction.stage):
        members = list(group)
        first_s = members[0].started_s or 0.0
        last_s = members[-1].ended_s
        rows.append(
            {
                "phase": phase,
                "started_at": round(first_s - start_s, 3),
                "duration_s": None if last_s is None else round(last_s - first_s, 3),
                "status": members[-1].status.value,
                "steps": len(members),
                "setpoints": dict(pair for each in members for pair in _set(each)),
                "measured": dict(pair for each in members for pair in _measured(each)),
            }
        )
    return rows


def _set(record: StepRecord) -> Iterator[tuple[str, float]]:
    if record.result is None:
        return
    if record.instruction.action == "set":
        yield record.result["channel"], record.result["value"]
    elif record.instruction.action == "ramp":
        yield record.instruction.parameters["setpoint"], record.result["to"]


def _measured(record: StepRecord) -> Iterator[tuple[str, Any]]:
    if record.result is None:
        return
    asked = record.instruction.parameters
    match record.instruction.action:
        case "hold":
            yield from record.result["measured"].items()
        case "wait":
            yield asked["channel"], record.result["value"]
        case "ramp":
            yield asked["process"], record.result["reached"]
        case "rate_of_rise":
            yield f"{asked['channel']} rise per minute", record.result["per_minute"]
        case "purge":
            yield f"volumes purged of {asked['contaminant']}", record.result["volumes"]


def why_not(
    found: Mapping[str, Any], verdict: Mapping[str, Any], film: Mapping[str, Any], threshold: float
) -> tuple[str, str]:
    """Return why there is no answer, and a suggestion; both empty if there is one."""
    if not found["film"]:
        return Text("answer.no_film", places=found["places"]), MORE_FILM
    spots = len(verdict["spots"])
    if verdict["layer_count"] is None:
        return Text("answer.undetermined", spots=spots, reasons=tuple(verdict["reasons"])), (
            CALIBRATE if verdict["claim"] is not None else LOOK_AT_SPECTRA
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
        return reason, EVENER if film["claim"] == "mixed" else CALIBRATE
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


def _raw_spectra(
    analysis: Mapping[str, Any], glow: Mapping[str, Any] | None, found: Mapping[str, Any]
) -> ArtifactContent:
    content = {
        "laser_nm": found["laser_nm"],
        "dark_counts": found["dark_counts"],
        "axis": AXIS,
        "raman": analysis["spots"],
        "photoluminescence": [] if glow is None else glow["spectra"],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return ArtifactContent("raw_spectrum", "application/json", text.encode())
