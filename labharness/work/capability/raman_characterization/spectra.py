"""Stored Raman spectra as a task brings them: from its inputs, or from an artifact of a run."""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Surroundings
from labharness.work.capability.stored import artifact_of_caller

SPECTRA_MAX: Final = 400
POINTS_MAX: Final = 8_192
"""Of one spectrum; a camera has 1,024 to 2,048 columns."""
BYTES_MAX: Final = 64 * 1024 * 1024
BESIDE: Final = ("x_um", "y_um", "exposure_s")
"""Fields of a spectrum that may be left out."""


class BadSpectra(LabError, ValueError, code="bad_spectra"):
    """Spectra that cannot be judged; the message says which and why."""


def spectrum_fault(spectra: Sequence[Any]) -> str:
    """Return what is wrong with the first bad spectrum; ``""`` where all can be read."""
    if not 0 < len(spectra) <= SPECTRA_MAX:
        return Text("spectra.count", count=len(spectra), most=SPECTRA_MAX)
    for number, each in enumerate(spectra):
        axis, counts = each.get("raman_shift"), each.get("intensity", each.get("counts"))
        if not (isinstance(axis, list) and isinstance(counts, list)):
            return Text("spectra.fields", number=number)
        if not len(axis) == len(counts) <= POINTS_MAX:
            return Text(
                "spectra.lengths",
                number=number,
                axis=len(axis),
                counts=len(counts),
                most=POINTS_MAX,
            )
        beside = [each[name] for name in BESIDE if name in each]
        if not all(_finite(value) for value in (*axis, *counts, *beside)):
            return Text("spectra.numbers", number=number)
        if each.get("exposure_s", 1.0) <= 0:  # intensities are divided by it
            return Text("spectra.exposure", number=number)
        if any(above <= below for below, above in pairwise(axis)):
            return Text("spectra.order", number=number)
    return ""


def _finite(value: object) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]  # a number
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
