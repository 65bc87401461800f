"""How many layers a sample has, with a confidence that can be checked, or `undetermined`."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from labharness.analysis.evidence import (
    CVD_ROW,
    CVD_ROWS,
    EXFOLIATED_ROW,
    LAYER_CLASSES,
    NANOCRYSTALLINE_ROW,
    EvidenceTerm,
    Reference,
    SeparationRow,
    a1g_si_term,
    pl_raman_term,
    separation_term,
)
from labharness.analysis.material import LaOverE
from labharness.analysis.peaks import PeakFit, SiliconFit, intrinsic_fwhm_cm1

__all__ = ["LayerVerdict", "SpotEvidence", "judge_layers"]

POSTERIOR_MIN = 0.75
"""Below this probability, also after it was lowered for weak lines, no class is reported."""

CREDIBLE_MASS = 0.9

SNR_MIN, SNR_GOOD = 5.0, 10.0
REDUCED_CHI2_GOOD = 2.0
QUALITY_MIN, QUALITY_IMPAIRED_MAX = 0.5, 0.9

SEPARATION_SIGMA_MAX_CM1 = 0.8
SEPARATION_MIN_CM1, SEPARATION_MAX_CM1 = 17.0, 27.5
FWHM_MIN_PIXELS, FWHM_MAX_CM1 = 0.8, 14.0
INSTRUMENT_FWHM_MAX_CM1 = 7.0
PIXEL_MAX_CM1 = 3.0
SILICON_OFFSET_MAX_CM1 = 5.0

DISORDERED_E_FWHM_CM1 = 4.5
DISORDERED_LA_OVER_E = 0.3
"""An E line wider than this without the instrument, or an LA(M) line higher than this share of E,
is nanocrystalline or disordered film."""

PL_RAMAN_FLOOR = 1e-3
"""A photoluminescence below this share of A1g is none; its logarithm would be all noise."""

MEDIAN_WIDENING = math.sqrt(math.pi / 2)
"""A median of many scatters this much more than their mean."""


@dataclass(frozen=True, slots=True)
class SpotEvidence:
    """What was measured at one spot of the sample.

    Attributes:
        fit: The two MoS2 lines.
        silicon: The silicon line of the same spectrum, None when it was not seen.
        pl_counts_per_raman: Height of the A exciton over the height of A1g at equal exposure and
            laser power; None when it was not measured, 0 or less when there is none.
        la_over_e: The LA(M) line at 227 cm⁻¹, which only disorder makes visible, against E; None
            when the spectrum does not hold it.

    Raises:
        ValueError: When a ratio is NaN or infinite.
    """

    fit: PeakFit
    silicon: SiliconFit | None
    pl_counts_per_raman: float | None
    la_over_e: LaOverE | None = None

    def __post_init__(self) -> None:
        la = None if self.la_over_e is None else self.la_over_e.ratio
        for name, value in (("pl_counts_per_raman", self.pl_counts_per_raman), ("la_over_e", la)):
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} must be finite or None, got {value}")


@dataclass(frozen=True, slots=True)
class LayerVerdict:
    """The layer count of a sample and everything it rests on.

    Attributes:
        layer_count: 1–5, 6 for six or more, None for undetermined.
        confidence: Posterior of the most likely class times ``quality``, also when undetermined;
            0 when no spot could be judged.
        posterior: Probability of each class; flat when no spot could be judged.
        credible_set: The fewest classes that together reach 0.9.
        reasons: Why the count is undetermined; empty otherwise.
        notes: What a reader must know of a count that stands.
        evidence: The terms of the one posterior, each with its systematic error.
        quality: 1 for clean fits, 0.5–0.9 for weak or badly fitting lines.
        peak_distance_cm1: Median A1g − E2g separation of the spots of the most common class.
        peak_distance_sigma_cm1: Its error from noise and from scatter between those spots.
        spot_classes: Most likely class of each spot, in the order given; None where the spot
            could not be judged.
        covered_spots: Spots where the A1g line stands out of the noise.
        spots_of_class: Spots of the most common class, which carry the verdict.
    """

    layer_count: int | None
    confidence: float
    posterior: Mapping[int, float]
    credible_set: tuple[int, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    evidence: tuple[EvidenceTerm, ...]
    quality: float
    peak_distance_cm1: float | None
    peak_distance_sigma_cm1: float | None
    spot_classes: tuple[int | None, ...]
    covered_spots: int
    spots_of_class: int


def judge_layers(
    spots: Sequence[SpotEvidence],
    reference: Reference | None,
    rows: Sequence[SeparationRow] = CVD_ROWS,
) -> LayerVerdict:
    """Say how many layers the sample has.

    Strain, doping, oxide and calibration are common to all spots of a sample, so spots are never
    multiplied as if independent: each spot is given its most likely class, and the medians over
    the spots of the most common class make one posterior. Terms multiply, because their
    systematic errors differ. The prior is flat. A separation alone reaches 0.94 for one layer,
    however many spots and however little noise; a higher confidence needs A1g/Si or PL/Raman.

    Args:
        spots: What was measured.
        reference: Ratios of this instrument on this substrate. Without one A1g/Si and PL/Raman
            are no evidence: both depend on oxide, optics and polarisation.
        rows: Ways in which the film may have been made, each as likely; disordered film has rows
            of its own.
    """
    objections = [_objections(spot) for spot in spots]
    opinions = [
        None if objection else _posterior(_terms([spot], reference, rows))
        for spot, objection in zip(spots, objections, strict=True)
    ]
    spot_classes = tuple(_most_likely(opinion) if opinion else None for opinion in opinions)
    covered = sum(spot.fit.snr_a >= SNR_MIN for spot in spots)
    complaints = _count_objections(objections)
    judged = [opinion for opinion in opinions if opinion]
    if not judged:
        flat = dict.fromkeys(LAYER_CLASSES, 1 / len(LAYER_CLASSES))
        return LayerVerdict(
            layer_count=None,
            confidence=0.0,
            posterior=flat,
            credible_set=LAYER_CLASSES,
            reasons=complaints or ("no spot was measured",),
            notes=(),
            evidence=(),
            quality=0.0,
            peak_distance_cm1=None,
            peak_distance_sigma_cm1=None,
            spot_classes=spot_classes,
            covered_spots=covered,
            spots_of_class=0,
        )

    votes = Counter(name for name in spot_classes if name is not None)
    # Equal votes go to the class the spots are surer of.
    common = max(votes, key=lambda name: (votes[name], sum(opinion[name] for opinion in judged)))
    cluster = [spot for spot, name in zip(spots, spot_classes, strict=True) if name == common]
    evidence = _terms(cluster, reference, rows)
    posterior = _posterior(evidence)
    best = _most_likely(posterior)
    reasons = []
    if posterior[best] < POSTERIOR_MIN:
        reasons.append(
            f"the most likely count, {_name(best)}, has a probability of {posterior[best]:.2f}; "
            f"{POSTERIOR_MIN:g} is needed"
        )
    if best != common:
        reasons.append(
            f"most spots look like {_name(common)}, their medians like {_name(best)} layers"
        )
    if len(evidence) == 1 and LAYER_CLASSES[0] < best < LAYER_CLASSES[-1]:
        reasons.append(
            "a separation alone tells one layer and bulk, never two to five: "
            "a strained monolayer looks like a relaxed bilayer"
        )
    quality = _quality(cluster)
    if posterior[best] >= POSTERIOR_MIN > posterior[best] * quality:
        reasons.append(
            f"weak or badly fitting lines lower the confidence in {_name(best)} to "
            f"{posterior[best] * quality:.2f}; {POSTERIOR_MIN:g} is needed"
        )
    distance, sigma = _median_separation(cluster)
    return LayerVerdict(
        layer_count=None if reasons else best,
        confidence=posterior[best] * quality,
        posterior=posterior,
        credible_set=_credible_set(posterior),
        reasons=tuple(reasons),
        notes=(*complaints, *_notes(cluster, len(judged), common)),
        evidence=evidence,
        quality=quality,
        peak_distance_cm1=distance,
        peak_distance_sigma_cm1=sigma,
        spot_classes=spot_classes,
        covered_spots=covered,
        spots_of_class=len(cluster),
    )


def _objections(spot: SpotEvidence) -> tuple[str, ...]:
    """Say why a spot cannot be judged; empty when it can."""
    fit, silicon = spot.fit, spot.silicon
    widths = (fit.e_fwhm_cm1, fit.a_fwhm_cm1)
    rules = (
        (not fit.converged, "fit not converged or at a bound"),
        (min(fit.snr_e, fit.snr_a) < SNR_MIN, f"signal-to-noise of E or A below {SNR_MIN:g}"),
        (
            not _separation_sigma_cm1(fit) <= SEPARATION_SIGMA_MAX_CM1,
            f"error of the separation above {SEPARATION_SIGMA_MAX_CM1:g} cm⁻¹",
        ),
        (
            not SEPARATION_MIN_CM1 <= fit.separation_cm1 <= SEPARATION_MAX_CM1,
            f"separation outside {SEPARATION_MIN_CM1:g}–{SEPARATION_MAX_CM1:g} cm⁻¹",
        ),
        (
            min(widths) < FWHM_MIN_PIXELS * fit.pixel_cm1 or max(widths) > FWHM_MAX_CM1,
            f"line narrower than {FWHM_MIN_PIXELS:g} px or wider than {FWHM_MAX_CM1:g} cm⁻¹",
        ),
        (fit.pixel_cm1 > PIXEL_MAX_CM1, f"pixels wider than {PIXEL_MAX_CM1:g} cm⁻¹"),
        (fit.cosmic_near_line, "cosmic ray on a line"),
        (
            silicon is not None and silicon.instrument_fwhm_cm1 > INSTRUMENT_FWHM_MAX_CM1,
            f"instrument wider than {INSTRUMENT_FWHM_MAX_CM1:g} cm⁻¹",
        ),
        (
            silicon is not None and abs(silicon.offset_cm1) > SILICON_OFFSET_MAX_CM1,
            f"silicon more than {SILICON_OFFSET_MAX_CM1:g} cm⁻¹ from its place",
        ),
    )
    return tuple(text for broken, text in rules if broken)


def _count_objections(objections: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    counts = Counter(text for spot in objections for text in spot)
    return tuple(f"{text} at {count} of {len(objections)} spots" for text, count in counts.items())


def _terms(
    spots: Sequence[SpotEvidence], reference: Reference | None, rows: Sequence[SeparationRow]
) -> tuple[EvidenceTerm, ...]:
    """Turn the medians over ``spots`` into evidence; an absent measurement makes no term."""
    if _is_disordered(spots):
        rows = (EXFOLIATED_ROW, CVD_ROW, NANOCRYSTALLINE_ROW)
    terms = [separation_term(*_median_separation(spots), rows)]
    if reference is None:
        return tuple(terms)
    ratios = [
        (
            spot.fit.a_height_counts / spot.silicon.height_counts,
            math.hypot(
                spot.fit.a_height_sigma_counts / spot.fit.a_height_counts,
                spot.silicon.height_sigma_counts / spot.silicon.height_counts,
            ),
        )
        for spot in spots
        if spot.silicon is not None
    ]
    if ratios:
        ratio, relative_sigma = (_median(column) for column in zip(*ratios, strict=True))
        terms.append(a1g_si_term(ratio, relative_sigma, reference))
    pl = [spot.pl_counts_per_raman for spot in spots if spot.pl_counts_per_raman is not None]
    if pl:
        terms.append(pl_raman_term(max(_median(pl), PL_RAMAN_FLOOR), reference))
    return tuple(terms)


def _is_disordered(spots: Sequence[SpotEvidence]) -> bool:
    shares = [spot.la_over_e.ratio for spot in spots if spot.la_over_e is not None]
    return _median(_intrinsic_e_fwhm_cm1(spot) for spot in spots) > DISORDERED_E_FWHM_CM1 or (
        bool(shares) and _median(shares) > DISORDERED_LA_OVER_E
    )


def _intrinsic_e_fwhm_cm1(spot: SpotEvidence) -> float:
    # Without silicon the instrument's width is unknown; to take off nothing errs towards doubt.
    ruler = spot.silicon is not None and not spot.silicon.is_wider_than_instrument
    instrument = spot.silicon.instrument_fwhm_cm1 if spot.silicon is not None and ruler else 0.0
    return intrinsic_fwhm_cm1(spot.fit.e_fwhm_cm1, instrument)


def _separation_sigma_cm1(fit: PeakFit) -> float:
    """Enlarge the photon error where the lines do not fit (Birge ratio)."""
    return fit.separation_sigma_cm1 * math.sqrt(max(fit.reduced_chi2, 1.0))


def _median_separation(spots: Sequence[SpotEvidence]) -> tuple[float, float]:
    """Return the median separation and its error, from noise or from scatter if that is more."""
    separations = [spot.fit.separation_cm1 for spot in spots]
    middle = _median(separations)
    noise = _median(_separation_sigma_cm1(spot.fit) for spot in spots)
    scatter = 1.4826 * _median(abs(separation - middle) for separation in separations)
    # The median of one or two is their mean.
    widening = MEDIAN_WIDENING if len(spots) > 2 else 1.0
    return middle, widening * max(noise, scatter) / math.sqrt(len(spots))


def _posterior(terms: Sequence[EvidenceTerm]) -> dict[int, float]:
    total = {name: sum(term.log_likelihood[name] for term in terms) for name in LAYER_CLASSES}
    top = max(total.values())
    weight = {name: math.exp(value - top) for name, value in total.items()}
    norm = sum(weight.values())
    return {name: value / norm for name, value in weight.items()}


def _most_likely(posterior: Mapping[int, float]) -> int:
    return max(posterior, key=posterior.__getitem__)


def _credible_set(posterior: Mapping[int, float]) -> tuple[int, ...]:
    chosen: list[int] = []
    mass = 0.0
    for name in sorted(posterior, key=posterior.__getitem__, reverse=True):
        chosen.append(name)
        mass += posterior[name]
        if mass >= CREDIBLE_MASS:
            break
    return tuple(sorted(chosen))


def _quality(spots: Sequence[SpotEvidence]) -> float:
    snr = _median(min(spot.fit.snr_e, spot.fit.snr_a) for spot in spots)
    chi2 = _median(spot.fit.reduced_chi2 for spot in spots)
    if snr >= SNR_GOOD and chi2 < REDUCED_CHI2_GOOD:
        return 1.0
    share = min(max((snr - SNR_MIN) / (SNR_GOOD - SNR_MIN), 0.0), 1.0)
    return QUALITY_MIN + share * (QUALITY_IMPAIRED_MAX - QUALITY_MIN)


def _notes(cluster: Sequence[SpotEvidence], judged: int, common: int) -> tuple[str, ...]:
    uncalibrated = all(spot.silicon is None for spot in cluster)
    remarks = (
        (len(cluster) < judged, f"{len(cluster)} of {judged} judged spots are {_name(common)}"),
        (common == LAYER_CLASSES[-1], "6 means six or more"),
        (uncalibrated, "no silicon line: positions are uncalibrated, A1g/Si is unknown"),
        (
            _is_disordered(cluster),
            "lines of disordered film: three rows of the separation table averaged",
        ),
    )
    return tuple(text for said, text in remarks if said)


def _name(layer_class: int) -> str:
    return "6 or more" if layer_class == LAYER_CLASSES[-1] else str(layer_class)


def _median(values: Iterable[float]) -> float:
    # The standard library's median brings `decimal` and 3 ms to every start.
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
