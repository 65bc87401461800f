"""The spectra of a run that came to no end, in the form of those of an answer."""

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from labharness.work.capability import ArtifactContent, PartialResults, QueryResult
from labharness.work.capability.raman_answer import AXIS
from labharness.work.capability.raman_verbs import DARK, GLOW, MAP, SURVEY
from labharness.work.capability.raman_verdict import raman_shift
from labharness.work.plan import StepRecord


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
    laser_nm = next(
        each.instruction.parameters["laser_nm"]
        for each in records
        if each.instruction.action == "survey"
    )
    return PartialResults({"spectra": counted}, (_artifact(spectra, float(laser_nm)),))


def _artifact(spectra: Sequence[QueryResult], laser_nm: float) -> ArtifactContent:
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

    content = {
        "laser_nm": laser_nm,
        "dark_counts": median(dark[0]) if dark else 0.0,
        "axis": AXIS,
        "raman": raman(MAP) or raman(SURVEY),
        "survey": raman(SURVEY),
        "photoluminescence": [
            {**_place(each), "wavelength_nm": each.value[0], "counts": each.value[1]}
            for each in _last_at_each_place(spectra, GLOW)
        ],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return ArtifactContent("partial_raw_spectrum", "application/json", text.encode())


def _last_at_each_place(spectra: Sequence[QueryResult], kind: str) -> Iterable[QueryResult]:
    """Return the spectra of a kind, without those that were too bright and taken once more."""
    return {
        (each.about["x_um"], each.about["y_um"]): each
        for each in spectra
        if each.about["of"] == kind
    }.values()


def _place(spectrum: QueryResult) -> Mapping[str, Any]:
    return {name: spectrum.about[name] for name in ("x_um", "y_um", "exposure_s")}
