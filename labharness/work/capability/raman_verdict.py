"""From spectra as plain numbers to a verdict as plain numbers: the way through `analysis`.

`analysis` is imported where it is used: numpy takes longer to load than a plan to make.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labharness.analysis.evidence import Reference
    from labharness.analysis.layers import LayerVerdict, Share, SpotEvidence
    from labharness.analysis.spectrum import Spectrum

from labharness.core.vocabulary.texts import Text

SHIFT_DECIMALS = 3
"""A pixel is some 0.6 cm-1 wide."""

TOLD = (
    *("layer_count", "confidence", "quality", "peak_distance_cm1", "peak_distance_sigma_cm1"),
    *("covered_spots", "spots_of_class"),
)
"""Attributes of a verdict that are told as they are."""


def raman_shift(laser_nm: float, wavelength_nm: Sequence[float]) -> list[float]:
    """Return the Raman shift of each pixel in cm-1, as the instrument states it."""
    from labharness.analysis.spectrum import shift_from_wavelength

    shift: list[float] = (
        shift_from_wavelength(laser_nm, wavelength_nm).round(SHIFT_DECIMALS).tolist()
    )
    return shift


def sees_film(shift_cm1: Sequence[float], counts: Sequence[float]) -> float | None:
    """Return the height of A1g where there is film, None where there is none.

    Raises:
        ValueError: The axis does not hold the lines.
    """
    from labharness.analysis.film import film_signal

    return film_signal(_spectrum(shift_cm1, counts))


def judge(
    spots: Sequence[dict[str, Any]],
    pl_heights_per_s: Sequence[float],
    dark_counts: float,
    reference: Mapping[str, Mapping[str, Any]] | None,
    threshold: float = 0.0,
    origin: str | None = None,
) -> dict[str, Any]:
    """Judge the film by the spectra of all spots.

    Args:
        spots: Spectra with place and exposure; the first ones have photoluminescence too.
        pl_heights_per_s: A exciton in counts a second, for the first spots.
        dark_counts: Counts of the camera without light.
        reference: ``a1g_si`` and ``pl_raman`` of one layer on this microscope, each with ``value``,
            ``uncertainty``, ``date`` and ``on`` where it was calibrated. None where another
            microscope took the spectra: their intensities are not used.
        threshold: Confidence that the caller asks for: the strongest claim that reaches it is made.
        origin: How the film was made, one of `ORIGINS`; None for one that was grown in this run.

    Raises:
        ValueError: A spectrum is not valid, or does not hold the lines.
    """
    from labharness.analysis.evidence import CVD_ROWS, ROWS_BY_ORIGIN
    from labharness.analysis.layers import SpotEvidence, judge_layers, la_over_e
    from labharness.analysis.peaks import bounded, fit_peaks, fit_silicon

    lights = [
        _spectrum(spot["raman_shift"], [value - dark_counts for value in spot["counts"]])
        for spot in spots
    ]
    # One by one: the grating turned between them, and spectra of one fit share one axis.
    fits = [fit_peaks([light])[0] for light in lights]
    silicon = bounded([fit_silicon(light) for light in lights], fits)
    evidence: list[SpotEvidence] = []
    for index, (spot, light, fit) in enumerate(zip(spots, lights, fits, strict=True)):
        ratio = None
        if index < len(pl_heights_per_s) and fit.a.height_counts > 0:
            ratio = pl_heights_per_s[index] * spot["exposure_s"] / fit.a.height_counts
        evidence.append(SpotEvidence(fit, silicon[index], ratio, la_over_e(light, fit)))
    known = None if reference is None else _reference(reference)
    rows = CVD_ROWS if origin is None else ROWS_BY_ORIGIN[origin]
    verdict = judge_layers(evidence, known, rows, threshold)
    best = _best(verdict, evidence)
    return {
        **verdict_told(verdict),
        "spots": [
            _row(spot, seen, layers)
            for spot, seen, layers in zip(spots, evidence, verdict.spot_classes, strict=True)
        ],
        "best_spot": best,
    }


def verdict_told(verdict: "LayerVerdict") -> dict[str, Any]:
    """Return a verdict as JSON has it, without its spots."""
    return {
        **{name: getattr(verdict, name) for name in TOLD},
        "claim": None
        if verdict.claim is None
        else {"kind": verdict.claim.kind, "headline": verdict.claim.headline},
        "shares": {str(name): _told(each) for name, each in verdict.shares.items()},
        "posterior": {str(name): share for name, share in verdict.posterior.items()},
        "credible_set": list(verdict.credible_set),
        "reasons": list(verdict.reasons),
        "notes": list(verdict.notes),
        "evidence": [
            {
                "name": term.name,
                "measured": term.measured,
                "unit": term.unit,
                "log_likelihood": {str(name): one for name, one in term.log_likelihood.items()},
                "systematic_error": term.systematic,
            }
            for term in verdict.evidence
        ],
    }


def distribution(found: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return shares of the surveyed area: layers, bare substrate, and places not judged.

    Args:
        found: The survey: ``places``, and ``film`` with those that have film.
        verdict: As `judge` gives it.

    Returns:
        ``headline``; ``claim``: its kind; ``of_film``: the share of each class in the film that
        could be judged, with the interval that holds it with 90 %; ``of_area``: shares of the
        surveyed area, which add up to 1; ``bare``: the share without film, with its interval.
    """
    from labharness.analysis.layers import share

    places, film = found["places"], len(found["film"])
    spots = [each["layer_count"] for each in verdict["spots"]]
    judged = sum(each is not None for each in spots) / len(spots) if spots else 0.0
    covered = film / places if places else 0.0
    area = {name: covered * judged * each["share"] for name, each in verdict["shares"].items()}
    claim = verdict["claim"]
    headline = Text("film.none") if not film else Text("film.unjudged")
    return {
        "headline": headline if claim is None else claim["headline"],
        "claim": "no_film" if not film else "undetermined" if claim is None else claim["kind"],
        "of_film": dict(verdict["shares"]),
        "of_area": {**area, "bare": 1 - covered, "not_judged": covered * (1 - judged)},
        "bare": _told(share(places - film, places)),
    }


def _told(share: "Share") -> dict[str, float]:
    return {"share": share.mean, "low": share.low, "high": share.high}


def _reference(known: Mapping[str, Mapping[str, Any]]) -> "Reference":
    """Build the reference of the analysis; a missing entry is a prior."""
    from labharness.analysis.evidence import Reference

    fields: dict[str, Any] = {}
    for name, row in known.items():
        fields[f"{name}_monolayer"] = row["value"]
        fields[f"{name}_uncertainty"] = row.get("uncertainty")
        fields[f"{name}_source"] = ", ".join(row[key] for key in ("on", "date") if key in row)
    return Reference(**fields)


def _best(verdict: "LayerVerdict", evidence: Sequence["SpotEvidence"]) -> int | None:
    """Find the clearest spot among those that carry the verdict."""
    judged = [layers for layers in verdict.spot_classes if layers is not None]
    if not judged:
        return None
    wanted = verdict.layer_count or max(set(judged), key=judged.count)
    chosen = [index for index, layers in enumerate(verdict.spot_classes) if layers == wanted]
    return max(chosen, key=lambda index: evidence[index].fit.snr_a)


def _row(spot: dict[str, Any], seen: "SpotEvidence", layers: int | None) -> dict[str, Any]:
    fit, silicon, la = seen.fit, seen.silicon, seen.la_over_e
    offset_cm1 = 0.0 if silicon is None else silicon.offset_cm1
    return {
        **{name: spot[name] for name in ("x_um", "y_um", "exposure_s")},
        "layer_count": layers,
        "peak_distance_cm1": fit.separation_cm1,
        "peak_distance_sigma_cm1": fit.separation_sigma_cm1,
        "e2g_cm1": fit.e.position_cm1 + offset_cm1,
        "e2g_sigma_cm1": fit.e.position_sigma_cm1,
        "e2g_fwhm_cm1": fit.e.fwhm_cm1,
        "a1g_cm1": fit.a.position_cm1 + offset_cm1,
        "a1g_sigma_cm1": fit.a.position_sigma_cm1,
        "a1g_fwhm_cm1": fit.a.fwhm_cm1,
        "a1g_counts": fit.a.height_counts,
        "silicon_offset_cm1": None if silicon is None else silicon.offset_cm1,
        "a1g_over_silicon": None
        if silicon is None
        else fit.a.height_counts / silicon.height_counts,
        "la_over_e": None if la is None else la.ratio,
        "la_over_e_sigma": None if la is None else la.sigma,
        "pl_over_a1g": seen.pl_counts_per_raman,
        "snr": min(fit.snr_e, fit.snr_a),
        "reduced_chi2": fit.reduced_chi2,
        "converged": fit.converged,
    }


def _spectrum(shift_cm1: Sequence[float], counts: Sequence[float]) -> "Spectrum":
    import numpy as np

    from labharness.analysis.spectrum import Spectrum

    return Spectrum(np.asarray(shift_cm1, dtype=float), np.asarray(counts, dtype=float))
