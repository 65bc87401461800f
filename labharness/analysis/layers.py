"""Judge how many layers a sample has, with a testable confidence, or `undetermined`."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from labharness.analysis.census import Measured, likelihood, take_census
from labharness.analysis.disorder import LaOverE
from labharness.analysis.evidence import (
    A1G_SI_LN_SD,
    CALIBRATION_CM1,
    CVD_ROW,
    CVD_ROWS,
    EXFOLIATED_ROW,
    LAYER_CLASSES,
    NANOCRYSTALLINE_ROW,
    OUTLIER_SHARE,
    PL_RAMAN_LN_SD,
    EvidenceTerm,
    Reference,
    SeparationRow,
)
from labharness.analysis.peaks import PeakFit, SiliconFit, intrinsic_fwhm_cm1
from labharness.analysis.shares import UNDETERMINED, Claim, Share, claim_of, shares
from labharness.core.vocabulary.texts import Text

POSTERIOR_MIN = 0.75
"""Below this probability, also after a reduction for weak lines, no class is reported."""

CREDIBLE_MASS = 0.95
"""Posterior mass of a credible set. With it the set holds the truth nine times in ten, also for
films with unusual strain or doping."""

SNR_MIN, SNR_GOOD = 5.0, 10.0
QUALITY_MIN, QUALITY_IMPAIRED_MAX = 0.5, 0.9

SEPARATION_SIGMA_MAX_CM1 = 0.8
SEPARATION_MIN_CM1, SEPARATION_MAX_CM1 = 17.0, 27.5
FWHM_MIN_PIXELS, FWHM_MAX_CM1 = 0.8, 14.0
INSTRUMENT_FWHM_MAX_CM1 = 7.0
PIXEL_MAX_CM1 = 3.0
SILICON_OFFSET_MAX_CM1 = 5.0

DISORDERED_E_FWHM_CM1 = 4.5
DISORDERED_LA_OVER_E = 0.3
"""A film is nanocrystalline or disordered if its E line is wider than this without the instrument,
or its LA(M) line higher than this share of E."""

PL_RAMAN_FLOOR = 1e-3
"""A photoluminescence below this share of A1g counts as none; its logarithm would be noise."""

MEDIAN_WIDENING = math.sqrt(math.pi / 2)
"""A median of many values scatters this much more than their mean."""


@dataclass(frozen=True, slots=True)
class SpotEvidence:
    """The measurements at one spot of the sample.

    Attributes:
        fit: The two MoS2 lines.
        silicon: The silicon line of the same spectrum; None if it was not seen.
        pl_counts_per_raman: Height of the A exciton over the height of A1g at equal exposure and
            laser power; None if not measured, 0 or less without photoluminescence.
        la_over_e: The LA(M) line at 227 cm⁻¹, which only disorder makes visible, against E; None if
            the spectrum does not cover it.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerVerdict:
    """The result: the claim on the film, its confidence, and all evidence for it.

    Attributes:
        layer_count: The predominant class: 1-5, 6 for six or more, None for undetermined.
        confidence: Probability that ``claim`` is right, times ``quality``; of the most likely class
            without a count; 0 when no spot could be judged.
        claim: The claim on the film; None when no spot could be judged.
        shares: Share of each class in the film's area, over the spots that could be judged.
        posterior: Expected share of each class among the judged spots; empty without any. With one
            spot it is the probability of each class.
        credible_set: The fewest classes that together reach 0.95 of that.
        reasons: Why the count is undetermined; empty otherwise.
        notes: Notes for the reader of a count.
        evidence: The medians over the spots of the predominant class and their likelihoods.
        quality: 1 for clear lines, 0.5–0.9 for weak ones.
        peak_distance_cm1: Median A1g − E2g separation of those spots.
        peak_distance_sigma_cm1: Its error from noise and from scatter between them.
        spot_classes: Most likely class of each spot, given all spots, in their order; None if the
            spot could not be judged.
        covered_spots: Number of spots where the A1g line stands out of the noise.
        spots_of_class: Number of spots of the predominant class.
    """

    layer_count: int | None = None
    confidence: float = 0.0
    claim: Claim | None = None
    shares: Mapping[int, Share] = field(default_factory=dict)
    posterior: Mapping[int, float] = field(default_factory=dict)
    credible_set: tuple[int, ...] = ()
    reasons: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()
    evidence: tuple[EvidenceTerm, ...] = ()
    quality: float = 0.0
    peak_distance_cm1: float | None = None
    peak_distance_sigma_cm1: float | None = None
    spot_classes: tuple[int | None, ...]
    covered_spots: int
    spots_of_class: int = 0


def judge_layers(
    spots: Sequence[SpotEvidence],
    reference: Reference | None,
    rows: Sequence[SeparationRow] = CVD_ROWS,
    level: float = POSTERIOR_MIN,
    trust: float = 1.0,
) -> LayerVerdict:
    """Judge the layers of a film.

    Strain, doping, oxide and calibration are common to all spots of a sample and are integrated out
    (`take_census`), so spots are never multiplied as if independent. Each spot counts for the
    shares of the classes in the film's area.

    Args:
        spots: The measurements.
        reference: Ratios of this instrument; without a calibration they are broad priors. Without a
            reference A1g/Si and PL/Raman are not used.
        rows: Ways in which the film may have been made, equally likely; disordered film has its own
            rows.
        level: Probability needed to claim one class for the whole film, at least 0.75; below it the
            weaker claim, of a predominant class, is made.
        trust: Factor of the confidence, for what the fits do not show: a second film, smoothing.
    """
    objections = [_objections(spot) for spot in spots]
    judged = [spot for spot, objection in zip(spots, objections, strict=True) if not objection]
    covered = sum(spot.fit.snr_a >= SNR_MIN for spot in spots)
    complaints = _count_objections(objections)
    if not judged:
        return LayerVerdict(
            reasons=complaints or (Text("spot.none"),),
            spot_classes=(None,) * len(spots),
            covered_spots=covered,
        )
    if _is_disordered(judged):
        rows = (EXFOLIATED_ROW, CVD_ROW, NANOCRYSTALLINE_ROW)
    known = Reference() if reference is None else reference
    numbers = [_measured(spot, intensities=reference is not None) for spot in judged]
    census = take_census(numbers, known, rows)
    claim = claim_of(census.weight, census.counts, max(level, POSTERIOR_MIN))
    expected = census.weight @ census.counts / census.counts[0].sum()
    posterior = dict(zip(LAYER_CLASSES, expected.tolist(), strict=True))
    names = [LAYER_CLASSES[index] for index in census.spots.argmax(1)]
    common = claim.layer_class or _most_likely(posterior)
    if common not in names:
        common = Counter(names).most_common(1)[0][0]
    cluster = [spot for spot, name in zip(judged, names, strict=True) if name == common]
    quality = _quality(cluster) * trust
    evidence = _terms(cluster, reference, rows)
    strained = any(row is not EXFOLIATED_ROW for row in rows)
    reasons = _doubts(claim, posterior, quality, alone=len(evidence) == 1, strained=strained)
    if trust < 1:
        told = {"doubt.weak": "doubt.lowered"}
        reasons = tuple(Text(told.get(each.code, each.code), **each.params) for each in reasons)
    if reasons:
        claim = _uncounted(claim)
    opinions = iter(names)
    distance, sigma = _median_separation(cluster)
    return LayerVerdict(
        layer_count=claim.layer_class,
        confidence=claim.probability * quality,
        claim=claim,
        shares=shares(census.weight, census.counts),
        posterior=posterior,
        credible_set=_credible_set(posterior),
        reasons=reasons,
        notes=(*complaints, *_notes(cluster, len(judged), common)),
        evidence=evidence,
        quality=quality,
        peak_distance_cm1=distance,
        peak_distance_sigma_cm1=sigma,
        spot_classes=tuple(None if objection else next(opinions) for objection in objections),
        covered_spots=covered,
        spots_of_class=len(cluster),
    )


def _uncounted(claim: Claim) -> Claim:
    """Remove the count from a claim; a mixed film is recognised without one."""
    if claim.kind == "mixed":
        headline = Text("film.open", headline=claim.headline)
        return replace(claim, layer_class=None, headline=headline)
    return replace(claim, kind="undetermined", layer_class=None, headline=UNDETERMINED)


def _doubts(
    claim: Claim, posterior: Mapping[int, float], quality: float, *, alone: bool, strained: bool
) -> tuple[Text, ...]:
    """Return why the layers are not counted; a mixed film has a count for any shares."""
    best = claim.layer_class or _most_likely(posterior)
    reasons = []
    if claim.kind == "undetermined":
        reasons.append(
            Text(
                "doubt.probability",
                layers=_name(best),
                probability=claim.probability,
                needed=POSTERIOR_MIN,
            )
        )
    if alone and LAYER_CLASSES[0] < best < LAYER_CLASSES[-1]:
        reasons.append(Text("doubt.separation_alone"))
    if alone and strained and best == LAYER_CLASSES[-1]:
        reasons.append(Text("doubt.bulk"))
    if alone and claim.kind == "mixed" and claim.probability < POSTERIOR_MIN:
        reasons.append(Text("doubt.twisted"))
    if claim.kind != "mixed" and claim.probability >= POSTERIOR_MIN > claim.probability * quality:
        reasons.append(
            Text(
                "doubt.weak",
                layers=_name(best),
                probability=claim.probability * quality,
                needed=POSTERIOR_MIN,
            )
        )
    return tuple(reasons)


def _objections(spot: SpotEvidence) -> tuple[Text, ...]:
    """Return why a spot cannot be judged; empty if it can."""
    fit, silicon = spot.fit, spot.silicon
    widths = (fit.e_fwhm_cm1, fit.a_fwhm_cm1)
    rules = (
        (not fit.converged, Text("spot.not_converged")),
        (min(fit.snr_e, fit.snr_a) < SNR_MIN, Text("spot.noise", least=SNR_MIN)),
        (
            not _separation_sigma_cm1(fit) <= SEPARATION_SIGMA_MAX_CM1,
            Text("spot.separation_error", most=SEPARATION_SIGMA_MAX_CM1),
        ),
        (
            not SEPARATION_MIN_CM1 <= fit.separation_cm1 <= SEPARATION_MAX_CM1,
            Text("spot.separation", low=SEPARATION_MIN_CM1, high=SEPARATION_MAX_CM1),
        ),
        (
            min(widths) < FWHM_MIN_PIXELS * fit.pixel_cm1 or max(widths) > FWHM_MAX_CM1,
            Text("spot.width", pixels=FWHM_MIN_PIXELS, most=FWHM_MAX_CM1),
        ),
        (fit.pixel_cm1 > PIXEL_MAX_CM1, Text("spot.pixels", most=PIXEL_MAX_CM1)),
        (fit.cosmic_near_line, Text("spot.cosmic_ray")),
        (
            silicon is not None and silicon.instrument_fwhm_cm1 > INSTRUMENT_FWHM_MAX_CM1,
            Text("spot.instrument", most=INSTRUMENT_FWHM_MAX_CM1),
        ),
        (
            silicon is not None and abs(silicon.offset_cm1) > SILICON_OFFSET_MAX_CM1,
            Text("spot.silicon", most=SILICON_OFFSET_MAX_CM1),
        ),
    )
    return tuple(text for broken, text in rules if broken)


def _count_objections(objections: Sequence[tuple[Text, ...]]) -> tuple[Text, ...]:
    counts = Counter(text for spot in objections for text in spot)
    return tuple(
        Text("spot.count", what=text, count=count, spots=len(objections))
        for text, count in counts.items()
    )


def _measured(spot: SpotEvidence, *, intensities: bool) -> Measured:
    fit = spot.fit
    ratio, relative = _a1g_si(spot)
    pl = spot.pl_counts_per_raman
    return Measured(
        fit.separation_cm1,
        _separation_sigma_cm1(fit),
        math.log(ratio) if intensities and ratio > 0 else math.nan,
        relative if intensities and ratio > 0 else 0.0,
        math.log(max(pl, PL_RAMAN_FLOOR)) if intensities and pl is not None else math.nan,
    )


def _a1g_si(spot: SpotEvidence) -> tuple[float, float]:
    """Return the ratio of heights and its relative error; 0 without silicon.

    Silicon that is wider than the instrument is not the silicon of the calibration: lower than it.
    """
    fit, silicon = spot.fit, spot.silicon
    if silicon is None or silicon.is_wider_than_instrument:
        return 0.0, 0.0
    return fit.a_height_counts / silicon.height_counts, math.hypot(
        fit.a_height_sigma_counts / fit.a_height_counts,
        silicon.height_sigma_counts / silicon.height_counts,
    )


def _terms(
    spots: Sequence[SpotEvidence], reference: Reference | None, rows: Sequence[SeparationRow]
) -> tuple[EvidenceTerm, ...]:
    """Return one evidence term per median over ``spots``; missing numbers give none."""
    known = reference or Reference()
    separation, sigma = _median_separation(spots)
    low, high = (edge(tau for row in rows for tau in row.tau_cm1) for edge in (min, max))
    terms = [
        EvidenceTerm(
            Text("evidence.separation"),
            separation,
            "cm⁻¹",
            likelihood(Measured(separation, sigma), known, rows),
            Text(
                "evidence.separation_error",
                low=low,
                high=high,
                rows=tuple(row.name for row in rows),
                axis=CALIBRATION_CM1,
                outliers=OUTLIER_SHARE,
            ),
        )
    ]
    if reference is None:
        return tuple(terms)
    ratios = [each for each in map(_a1g_si, spots) if each[0] > 0]
    if ratios:
        ratio, relative = (_median(column) for column in zip(*ratios, strict=True))
        number = Measured(math.nan, 0.0, math.log(ratio), relative)
        scale = _scale(
            reference.a1g_si_monolayer,
            reference.a1g_si_uncertainty,
            reference.a1g_si_source,
            math.hypot(A1G_SI_LN_SD, reference.a1g_si_sample_ln_sd),
        )
        error = Text("evidence.silicon_error", scale=scale, spread=reference.a1g_si_sample_ln_sd)
        found = likelihood(number, reference, rows)
        terms.append(EvidenceTerm(Text("evidence.silicon"), ratio, "1", found, error))
    pl = [spot.pl_counts_per_raman for spot in spots if spot.pl_counts_per_raman is not None]
    if pl:
        shine = max(_median(pl), PL_RAMAN_FLOOR)
        number = Measured(math.nan, 0.0, ln_pl_raman=math.log(shine))
        scale = _scale(
            reference.pl_raman_monolayer,
            reference.pl_raman_uncertainty,
            reference.pl_raman_source,
            math.hypot(PL_RAMAN_LN_SD, reference.pl_dimmed_ln_sd),
        )
        error = Text(
            "evidence.glow_error",
            scale=scale,
            spread=reference.pl_dimmed_ln_sd,
            darker=reference.pl_quenching,
            darker_spread=reference.pl_quenching_ln_sd,
        )
        found = likelihood(number, reference, rows)
        terms.append(EvidenceTerm(Text("evidence.glow"), shine, "1", found, error))
    return tuple(terms)


def _scale(value: float, uncertainty: float | None, source: str, ln_sd: float) -> Text:
    """Return the uncertainty of the ratio of one layer on this microscope, in words."""
    if uncertainty is None:
        return Text("evidence.uncalibrated", spread=ln_sd)
    return Text("evidence.calibrated", value=value, error=uncertainty, source=source)


def _is_disordered(spots: Sequence[SpotEvidence]) -> bool:
    shares = [spot.la_over_e.ratio for spot in spots if spot.la_over_e is not None]
    return _median(_intrinsic_e_fwhm_cm1(spot) for spot in spots) > DISORDERED_E_FWHM_CM1 or (
        bool(shares) and _median(shares) > DISORDERED_LA_OVER_E
    )


def _intrinsic_e_fwhm_cm1(spot: SpotEvidence) -> float:
    # Without silicon the instrument's width is unknown; subtracting nothing is the cautious choice.
    ruler = spot.silicon is not None and not spot.silicon.is_wider_than_instrument
    instrument = spot.silicon.instrument_fwhm_cm1 if spot.silicon is not None and ruler else 0.0
    return intrinsic_fwhm_cm1(spot.fit.e_fwhm_cm1, instrument)


def _separation_sigma_cm1(fit: PeakFit) -> float:
    """Return the error of the separation, larger if the lines fit badly (Birge ratio)."""
    return fit.separation_sigma_cm1 * math.sqrt(max(fit.reduced_chi2, 1.0))


def _median_separation(spots: Sequence[SpotEvidence]) -> tuple[float, float]:
    """Return the median separation and its error, from noise or scatter, whichever is larger."""
    separations = [spot.fit.separation_cm1 for spot in spots]
    middle = _median(separations)
    noise = _median(_separation_sigma_cm1(spot.fit) for spot in spots)
    scatter = 1.4826 * _median(abs(separation - middle) for separation in separations)
    # The median of one or two is their mean.
    widening = MEDIAN_WIDENING if len(spots) > 2 else 1.0
    return middle, widening * max(noise, scatter) / math.sqrt(len(spots))


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
    """Return the factor by which weak lines lower the confidence.

    Badly fitting lines do not lower it: their misfit is in the weights of the fit, in the error of
    the separation (Birge ratio) and in `CALIBRATION_CM1`. A brighter spectrum has a higher reduced
    chi-squared, and more light must not make an answer worse.
    """
    snr = _median(min(spot.fit.snr_e, spot.fit.snr_a) for spot in spots)
    if snr >= SNR_GOOD:
        return 1.0
    share = max((snr - SNR_MIN) / (SNR_GOOD - SNR_MIN), 0.0)
    return QUALITY_MIN + share * (QUALITY_IMPAIRED_MAX - QUALITY_MIN)


def _notes(cluster: Sequence[SpotEvidence], judged: int, common: int) -> tuple[Text, ...]:
    silicon = [spot.silicon for spot in cluster if spot.silicon is not None]
    uncalibrated, wide = not silicon, any(each.is_wider_than_instrument for each in silicon)
    remarks = (
        (
            len(cluster) < judged,
            Text("note.cluster", count=len(cluster), judged=judged, layers=_name(common)),
        ),
        (common == LAYER_CLASSES[-1], Text("note.six")),
        (uncalibrated, Text("note.no_silicon")),
        (wide, Text("note.silicon_unused")),
        (_is_disordered(cluster), Text("note.disordered")),
    )
    return tuple(text for said, text in remarks if said)


def _name(layer_class: int) -> str:
    return Text("layers.six") if layer_class == LAYER_CLASSES[-1] else str(layer_class)


def _median(values: Iterable[float]) -> float:
    # The standard library's median imports `decimal` and adds 3 ms to every start.
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
