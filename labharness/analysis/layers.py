"""Judge how many layers a sample has: evidence, shares of the classes, one claim, confidence."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, takewhile
from statistics import median
from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.census import Measured, likelihood, take_census
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
from labharness.analysis.lines import LineWindow, fit_window
from labharness.analysis.material_table import LineGroup
from labharness.analysis.peaks import PeakFit, SiliconFit, intrinsic_fwhm_cm1
from labharness.analysis.spectrum import Spectrum, Stack, covers, cut_window, stacked
from labharness.core.vocabulary.texts import Text

SHARE_CLAIMED = 0.75
"""One class must cover at least this share of a film to name the film."""

INTERVAL = 0.9
"""Probability that a share lies in its credible interval."""

JEFFREYS = 0.5
"""Weight of the prior on either side of one share (Jeffreys' for a proportion)."""

MENTIONED = 0.05
"""A smaller share is not in a headline."""

UNDETERMINED = Text("film.undetermined")

NODES = 1024
ANGLES = (np.arange(NODES) + 0.5) * (math.pi / 2 / NODES)
SQUARED_SINES: Array = np.sin(ANGLES) ** 2


@dataclass(frozen=True, slots=True)
class Share:
    """A share of an area: its mean, and its 90 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim on a film in one sentence, and its probability.

    Attributes:
        kind: ``film``: one class covers at least ``SHARE_CLAIMED`` of it; ``place``: the class of
            the one place that was measured; ``mainly``: one class covers more than any other;
            ``mixed``: the same, in a film of several classes; ``undetermined``.
        layer_class: The predominant class; None if undetermined, or if it is unknown in a mixed
            film.
        probability: Probability that the claim is right.
        headline: The claim in words.
    """

    kind: str
    layer_class: int | None
    probability: float
    headline: str


@lru_cache(maxsize=4096)
def _cumulated(a: float, b: float) -> Array:
    """Return the distribution function of Beta(a, b) at ``SQUARED_SINES``."""
    # With x = sin² the density is smooth for every a and b from 0.5.
    ln = (2 * a - 1) * np.log(np.sin(ANGLES)) + (2 * b - 1) * np.log(np.cos(ANGLES))
    density = np.exp(ln - ln.max())
    total: Array = np.cumsum(density)
    return (total - density / 2) / total[-1]


def beta_above(a: float, b: float, level: float) -> float:
    """Return the probability that a Beta(a, b) distributed share is above ``level``."""
    return float(1 - np.interp(level, SQUARED_SINES, _cumulated(a, b)))


def share(count: float, total: float) -> Share:
    """Return the share of ``count`` among ``total`` observations."""
    return _mixture(np.ones(1), np.array([count]), total)


def shares(weight: Array, counts: Array) -> dict[int, Share]:
    """Return the share of each class of a film.

    Args:
        weight: Probability of each hypothesis, shape (ways,).
        counts: Spots of each class in it, shape (ways, 6).
    """
    total = float(counts[0].sum())
    return {
        name: _mixture(weight, column, total)
        for name, column in zip(LAYER_CLASSES, counts.T, strict=True)
    }


def _mixture(weight: Array, counts: Array, total: float) -> Share:
    together = np.zeros(NODES)
    for count in np.unique(counts):
        part = _cumulated(_round(count) + JEFFREYS, _round(total - count) + JEFFREYS)
        together += weight[counts == count].sum() * part
    low, high = np.interp([(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], together, SQUARED_SINES)
    mean = float(weight @ counts) / total if total else 0.0
    return Share(mean, min(float(low), mean), max(float(high), mean))


def _round(count: float) -> float:
    return round(max(float(count), 0.0), 1)


def claim_of(weight: Array, counts: Array, level: float) -> Claim:
    """Return the strongest claim with this probability, or a weaker one with its own.

    Args:
        weight: Probability of each hypothesis, shape (ways,).
        counts: Spots of each class in it, shape (ways, 6).
        level: Probability needed for a claim of one class.
    """
    total = float(counts[0].sum())
    if total <= 1:
        at = weight @ counts
        best = int(np.argmax(at))
        return _stated("place", best, float(at[best]), level, "film.place")
    most = np.zeros(len(LAYER_CLASSES))
    first = np.zeros(len(LAYER_CLASSES))
    for part, row in zip(weight, counts, strict=True):
        for index in np.flatnonzero(row > 0):
            rest = _round(total - row[index])
            most[index] += part * beta_above(
                _round(row[index]) + JEFFREYS, rest + JEFFREYS, SHARE_CLAIMED
            )
            rival = _round(np.delete(row, index).max())
            first[index] += part * beta_above(_round(row[index]) + JEFFREYS, rival + JEFFREYS, 0.5)
    best = int(np.argmax(most))
    if most[best] >= level:
        return _stated("film", best, float(most[best]), level, "film.share")
    mean = weight @ counts / total
    several = 1 - float(weight @ (counts.max(1) >= total - 0.5))
    best = int(np.argmax(first))
    if several >= 0.5:
        return Claim("mixed", LAYER_CLASSES[best], float(first[best]), _mixed(mean))
    return _stated("mainly", best, float(first[best]), level, "film.most")


def _stated(kind: str, index: int, probability: float, level: float, code: str) -> Claim:
    name = LAYER_CLASSES[index]
    if probability < min(level, 0.75):
        return Claim("undetermined", None, probability, UNDETERMINED)
    said = Text(code, layers=class_name(name), percent=SHARE_CLAIMED * 100)
    return Claim(kind, name, probability, said)


def _mixed(mean: Array) -> Text:
    named = sorted(zip(mean.tolist(), LAYER_CLASSES, strict=True), reverse=True)
    words = {1: "one layer", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six or more"}
    first = words[named[0][1]]
    words[named[0][1]] = first if named[0][1] == 1 else f"{first} layers"
    parts = [
        Text("film.part", percent=part * 100, layers=words[name])
        for part, name in named
        if part >= MENTIONED
    ]
    return Text("film.mixed", parts=parts)


def class_name(name: int) -> Text:
    """Return the usual name of a class."""
    names = {1: "layers.monolayer", 2: "layers.bilayer", 6: "layers.many"}
    return Text(names.get(name, "layers.count"), count=name)


LA_GROUP = LineGroup(("LA(M)",), (LineWindow(219.0, 235.0, 15.0),), (205.0, 255.0), (205.0, 255.0))
"""LA(M) of MoS2 at 227 cm⁻¹."""

LA_SIGMA_MIN = 3.0


class LaOverE(NamedTuple):
    """Height of LA(M) over the height of E, 0 if LA(M) does not stand out, and its error."""

    ratio: float
    sigma: float


def la_over_e(spectrum: Spectrum, fit: PeakFit) -> LaOverE | None:
    """Return LA(M)/E; None if the axis does not cover it, or the fit fails."""
    return la_over_e_rows(stacked([spectrum]), [fit])[0]


def la_over_e_rows(stack: Stack, fits: Sequence[PeakFit]) -> tuple[LaOverE | None, ...]:
    """Return LA(M)/E of each row; see `la_over_e`."""
    axis = stack.shift_cm1
    if not fits or not covers(axis, *LA_GROUP.needs_cm1, 8):
        return (None,) * len(fits)
    window = cut_window(stack, LA_GROUP.range_cm1)
    found = fit_window(window, LA_GROUP.windows)
    line = found.line(0)
    shares: list[LaOverE | None] = []
    for converged, height, sigma, fit in zip(
        found.converged.tolist(),
        line.height_counts.tolist(),
        line.height_sigma_counts.tolist(),
        fits,
        strict=True,
    ):
        if not converged or fit.e.height_counts <= 0:
            shares.append(None)
        elif height <= LA_SIGMA_MIN * sigma:
            shares.append(LaOverE(0.0, sigma / fit.e.height_counts))
        else:
            ratio = height / fit.e.height_counts
            relative = math.hypot(sigma / height, fit.e.height_sigma_counts / fit.e.height_counts)
            shares.append(LaOverE(ratio, ratio * relative))
    return tuple(shares)


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
    layers, sure, needed = _name(best), claim.probability, POSTERIOR_MIN
    reasons = []
    if claim.kind == "undetermined":
        reasons.append(Text("doubt.probability", layers=layers, probability=sure, needed=needed))
    if alone and LAYER_CLASSES[0] < best < LAYER_CLASSES[-1]:
        reasons.append(Text("doubt.separation_alone"))
    if alone and strained and best == LAYER_CLASSES[-1]:
        reasons.append(Text("doubt.bulk"))
    if alone and claim.kind == "mixed" and sure < needed:
        reasons.append(Text("doubt.twisted"))
    weak = sure * quality
    if claim.kind != "mixed" and sure >= needed > weak:
        reasons.append(Text("doubt.weak", layers=layers, probability=weak, needed=needed))
    return tuple(reasons)


def _objections(spot: SpotEvidence) -> tuple[Text, ...]:
    """Return why a spot cannot be judged; empty if it can."""
    fit, silicon = spot.fit, spot.silicon
    widths = (fit.e.fwhm_cm1, fit.a.fwhm_cm1)
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
    return fit.a.height_counts / silicon.height_counts, math.hypot(
        fit.a.height_sigma_counts / fit.a.height_counts,
        silicon.height_sigma_counts / silicon.height_counts,
    )


def _terms(
    spots: Sequence[SpotEvidence], reference: Reference | None, rows: Sequence[SeparationRow]
) -> tuple[EvidenceTerm, ...]:
    """Return one evidence term per median over ``spots``; missing numbers give none."""
    separation, sigma = _median_separation(spots)
    low, high = (edge(tau for row in rows for tau in row.tau_cm1) for edge in (min, max))
    error = Text(
        "evidence.separation_error",
        low=low,
        high=high,
        rows=tuple(row.name for row in rows),
        axis=CALIBRATION_CM1,
        outliers=OUTLIER_SHARE,
    )
    found = [("evidence.separation", separation, "cm⁻¹", Measured(separation, sigma), error)]
    ratios = [each for each in map(_a1g_si, spots) if each[0] > 0]
    if reference is not None and ratios:
        ratio, relative = (median(column) for column in zip(*ratios, strict=True))
        number = Measured(math.nan, 0.0, math.log(ratio), relative)
        spread = reference.a1g_si_sample_ln_sd
        scale = _scale(reference, "a1g_si", math.hypot(A1G_SI_LN_SD, spread))
        error = Text("evidence.silicon_error", scale=scale, spread=spread)
        found.append(("evidence.silicon", ratio, "1", number, error))
    pl = [spot.pl_counts_per_raman for spot in spots if spot.pl_counts_per_raman is not None]
    if reference is not None and pl:
        shine = max(median(pl), PL_RAMAN_FLOOR)
        number = Measured(math.nan, 0.0, ln_pl_raman=math.log(shine))
        spread = reference.pl_dimmed_ln_sd
        error = Text(
            "evidence.glow_error",
            scale=_scale(reference, "pl_raman", math.hypot(PL_RAMAN_LN_SD, spread)),
            spread=spread,
            darker=reference.pl_quenching,
            darker_spread=reference.pl_quenching_ln_sd,
        )
        found.append(("evidence.glow", shine, "1", number, error))
    known = reference or Reference()
    return tuple(
        EvidenceTerm(Text(code), value, unit, likelihood(number, known, rows), error)
        for code, value, unit, number, error in found
    )


def _scale(reference: Reference, ratio: str, ln_sd: float) -> Text:
    """Return the uncertainty of the ratio of one layer on this microscope, in words."""
    error = getattr(reference, f"{ratio}_uncertainty")
    if error is None:
        return Text("evidence.uncalibrated", spread=ln_sd)
    value, source = (getattr(reference, f"{ratio}_{name}") for name in ("monolayer", "source"))
    return Text("evidence.calibrated", value=value, error=error, source=source)


def _is_disordered(spots: Sequence[SpotEvidence]) -> bool:
    shares = [spot.la_over_e.ratio for spot in spots if spot.la_over_e is not None]
    return median(_intrinsic_e_fwhm_cm1(spot) for spot in spots) > DISORDERED_E_FWHM_CM1 or (
        bool(shares) and median(shares) > DISORDERED_LA_OVER_E
    )


def _intrinsic_e_fwhm_cm1(spot: SpotEvidence) -> float:
    # Without silicon the instrument's width is unknown; subtracting nothing is the cautious choice.
    ruler = spot.silicon is not None and not spot.silicon.is_wider_than_instrument
    instrument = spot.silicon.instrument_fwhm_cm1 if spot.silicon is not None and ruler else 0.0
    return intrinsic_fwhm_cm1(spot.fit.e.fwhm_cm1, instrument)


def _separation_sigma_cm1(fit: PeakFit) -> float:
    """Return the error of the separation, larger if the lines fit badly (Birge ratio)."""
    return fit.separation_sigma_cm1 * math.sqrt(max(fit.reduced_chi2, 1.0))


def _median_separation(spots: Sequence[SpotEvidence]) -> tuple[float, float]:
    """Return the median separation and its error, from noise or scatter, whichever is larger."""
    separations = [spot.fit.separation_cm1 for spot in spots]
    middle = median(separations)
    noise = median(_separation_sigma_cm1(spot.fit) for spot in spots)
    scatter = 1.4826 * median(abs(separation - middle) for separation in separations)
    # The median of one or two is their mean.
    widening = MEDIAN_WIDENING if len(spots) > 2 else 1.0
    return middle, widening * max(noise, scatter) / math.sqrt(len(spots))


def _most_likely(posterior: Mapping[int, float]) -> int:
    return max(posterior, key=posterior.__getitem__)


def _credible_set(posterior: Mapping[int, float]) -> tuple[int, ...]:
    names = sorted(posterior, key=posterior.__getitem__, reverse=True)
    masses = accumulate(map(posterior.__getitem__, names))
    count = sum(1 for _ in takewhile(lambda mass: mass < CREDIBLE_MASS, masses)) + 1
    return tuple(sorted(names[:count]))


def _quality(spots: Sequence[SpotEvidence]) -> float:
    """Return the factor by which weak lines lower the confidence.

    Badly fitting lines do not lower it: their misfit is in the weights of the fit, in the error of
    the separation (Birge ratio) and in `CALIBRATION_CM1`. A brighter spectrum has a higher reduced
    chi-squared, and more light must not make an answer worse.
    """
    snr = median(min(spot.fit.snr_e, spot.fit.snr_a) for spot in spots)
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
