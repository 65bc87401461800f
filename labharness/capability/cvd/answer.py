"""From the record of a run to its outputs: the flat fields, their evidence, and the growth log."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from labharness.capability import Answer, Artifact, NoAnswer
from labharness.plan import StepRecord
from labharness.vocabulary import share_text

__all__ = ["compose", "growth_log"]

SIX_OR_MORE = 6


def compose(records: Sequence[StepRecord], threshold: float) -> Answer | NoAnswer:
    """Give the answer of a run, or why it has none.

    Args:
        records: What became of each instruction.
        threshold: Least confidence that the caller accepts.
    """
    results = {each.instruction.instruction_id: each.result for each in records if each.result}
    log = growth_log(records)
    found, analysis = results.get("survey"), results.get("analysis")
    if found is None or analysis is None:
        return NoAnswer("the run ended before its analysis", {"growth_log": log})
    verdict = analysis["verdict"]
    raman = _raman_analysis(found, verdict)
    spectra = _raw_spectra(analysis, results.get("photoluminescence"), found)
    reason = _why_not(found, verdict, threshold)
    if reason:
        return NoAnswer(reason, {"raman_analysis": raman, "growth_log": log}, (spectra,))
    best = analysis["spots"][verdict["best_spot"]]
    offset_cm1 = verdict["spots"][verdict["best_spot"]]["silicon_offset_cm1"] or 0.0
    outputs = {
        "peak_distance": round(verdict["peak_distance_cm1"], 3),
        "layer_count": verdict["layer_count"],
        "confidence": verdict["confidence"],
        "spectrum_data": {
            "raman_shift": [round(value + offset_cm1, 3) for value in best["raman_shift"]],
            "intensity": list(best["counts"]),
        },
        "raman_analysis": raman,
        "growth_log": log,
    }
    warnings = [note for note in verdict["notes"] if note != "6 means six or more"]
    if verdict["layer_count"] == SIX_OR_MORE:
        warnings.append("layer_count 6: 6 or more")
    return Answer(outputs, (spectra,), tuple(warnings))


def growth_log(records: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """Give one row for each phase that was begun: when, how long, what was set and measured.

    Times are lab time in s from the beginning of the run.
    """
    begun = [each for each in records if each.started_s is not None]
    start_s = begun[0].started_s or 0.0 if begun else 0.0
    rows = []
    for phase, group in groupby(begun, key=lambda each: each.instruction.stage):
        members = list(group)
        first_s = members[0].started_s or 0.0
        last_s = members[-1].ended_s
        measured: dict[str, Any] = {}
        setpoints: dict[str, float] = {}
        for each in members:
            measured.update(_measured(each))
            setpoints.update(_set(each))
        rows.append(
            {
                "phase": phase,
                "started_at": round(first_s - start_s, 3),
                "duration_s": None if last_s is None else round(last_s - first_s, 3),
                "status": members[-1].status.value,
                "steps": len(members),
                "setpoints": setpoints,
                "measured": measured,
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


def _why_not(found: Mapping[str, Any], verdict: Mapping[str, Any], threshold: float) -> str:
    if not found["film"]:
        return f"no film at any of {found['places']} surveyed places"
    spots = len(verdict["spots"])
    if verdict["layer_count"] is None:
        return f"the layer count is undetermined after {spots} spots: " + "; ".join(
            verdict["reasons"]
        )
    if verdict["confidence"] < threshold:
        sure = share_text(verdict["confidence"])
        return (
            f"confidence {sure} in {verdict['layer_count']} layers is below "
            f"the threshold {threshold:g} after {spots} spots"
        )
    return ""


def _raman_analysis(found: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    best = verdict["best_spot"]
    row = None if best is None else verdict["spots"][best]
    return {
        "layer_count": verdict["layer_count"],
        "confidence": verdict["confidence"],
        "quality": verdict["quality"],
        "posterior": verdict["posterior"],
        "credible_set": verdict["credible_set"],
        "reasons": verdict["reasons"],
        "notes": verdict["notes"],
        "evidence": verdict["evidence"],
        "peak_distance_cm1": verdict["peak_distance_cm1"],
        "peak_distance_sigma_cm1": verdict["peak_distance_sigma_cm1"],
        "calibration_offset_cm1": None if row is None else row["silicon_offset_cm1"],
        "covered_fraction": len(found["film"]) / found["places"],
        "places_surveyed": found["places"],
        "places_with_film": len(found["film"]),
        "spots_of_class": verdict["spots_of_class"],
        "best_spot": best,
        "spots": verdict["spots"],
    }


def _raw_spectra(
    analysis: Mapping[str, Any], glow: Mapping[str, Any] | None, found: Mapping[str, Any]
) -> Artifact:
    content = {
        "laser_nm": found["laser_nm"],
        "dark_counts": found["dark_counts"],
        "axis": "Raman shift in cm-1 as the instrument states it; counts as the camera gave them",
        "raman": analysis["spots"],
        "photoluminescence": [] if glow is None else glow["spectra"],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Artifact("raw_spectrum", "application/json", text.encode())
