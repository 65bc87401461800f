"""The JSON that ``labharness analyse --json`` prints about one file."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labharness.analysis.analysed import Analysed
    from labharness.analysis.photoluminescence import PlBand

LINE = ("position_cm1", "position_sigma_cm1", "fwhm_cm1")


def json_text(value: object) -> str:
    """Return JSON in which a character that steers a terminal is written by its number."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(map(_plain, text.split("\n")))


def _plain(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def entry(shown: "Analysed") -> dict[str, Any]:
    """Return all that was found."""
    found = shown.found
    verdict = found.verdict
    return {
        "file": shown.name,
        "format": shown.recording.format,
        "spectra": len(found.spectra),
        "laser_nm": shown.recording.laser_nm,
        "material": found.material,
        "materials": list(found.materials),
        "material_probability": found.probability or None,
        "beside": list(found.beside),
        "unexplained": [
            {"position_cm1": line.position_cm1, "fwhm_cm1": line.fwhm_cm1}
            for line in found.open_lines
        ],
        "layer_count": None if found.reasons or verdict is None else verdict.layer_count,
        # without a count there is no confidence in it
        "confidence": None
        if found.reasons or verdict is None or verdict.layer_count is None
        else verdict.confidence,
        "claim": None
        if verdict is None or verdict.claim is None
        else {"kind": verdict.claim.kind, "headline": verdict.claim.headline},
        "shares": {
            str(name): {"share": each.mean, "low": each.low, "high": each.high}
            for name, each in (verdict.shares if verdict is not None else {}).items()
        },
        "posterior": None if verdict is None else _by_name(verdict.posterior),
        "credible_set": None if verdict is None else list(verdict.credible_set),
        "peak_distance_cm1": None if verdict is None else verdict.peak_distance_cm1,
        "peak_distance_sigma_cm1": None if verdict is None else verdict.peak_distance_sigma_cm1,
        "evidence": []
        if verdict is None
        else [
            {
                "name": term.name,
                "measured": term.measured,
                "unit": term.unit,
                "log_likelihood": _by_name(term.log_likelihood),
                "systematic_error": term.systematic,
            }
            for term in verdict.evidence
        ],
        "reasons": list(found.reasons),
        "notes": [*found.notes, *shown.notes],
        "silicon": [
            None if line is None else {name: getattr(line, name) for name in LINE}
            for line in found.silicon
        ],
        "axis_moved_by_cm1": found.offset_cm1,
        "peaks": _peaks(shown),
        "photoluminescence": [_band(each) for each in shown.bands],
    }


def _peaks(shown: "Analysed") -> list[dict[str, Any]]:
    from labharness.analysis.measured import PeakTable

    table = PeakTable()
    shown.add_to(table)
    return [{name: row[name] for name in row if name != "file"} for row in table.rows()]


def _band(band: "PlBand") -> dict[str, Any]:
    found: dict[str, Any] = {"stands_out": band.stands_out}
    if band.stands_out:
        found |= {
            "position_nm": band.position_nm,
            "sigma_position_nm": band.position_sigma_nm,
            "energy_ev": band.energy_ev,
            "fwhm_nm": band.fwhm_nm,
            "sigma_fwhm_nm": band.fwhm_sigma_nm,
            "height_counts": band.height_counts,
            "sigma_height_counts": band.height_sigma_counts,
            "area_counts_nm": band.area_counts_nm,
            "sigma_area_counts_nm": band.area_sigma_counts_nm,
        }
    return found


def _by_name(values: Mapping[int, float]) -> dict[str, float]:
    return {str(name): value for name, value in values.items()}
