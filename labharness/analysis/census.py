"""The census: how many spots of a film belong to each layer class, judged together.

Strain, doping, the way of growth, oxide, optics and quenching have *one* value per sample, so a
hundred spots tell no more about them than one does; noise is each spot's own. The labels of the
spots are therefore weighed together. A hypothesis holds the state of the sample (row of the table,
strain, scale of A1g/Si and of PL/Raman) as Gaussians, and the number of spots in each class. Spots
are taken one by one: each hypothesis is continued with every possible class of the spot, equal ones
are merged, and unlikely ones are dropped. Apart from the merging and dropping, the calculation is
exact and deterministic.

Gaussian knowledge of one measured number for all classes, updated spot by spot. The mean of a class
in a sample is a value common to the sample times a factor of the class, plus a deviation of the
class's own. Given the common value the classes are independent, so the covariance of two classes
follows from that of each with the common value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median_high
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.arrays import Array
from labharness.analysis.evidence import (
    CALIBRATION_CM1,
    CVD_ROW,
    LAYER_CLASSES,
    OUTLIER_SHARE,
    STUDENT_NODES,
    THICK_NODES,
    TWISTED_CENTRE_CM1,
    TWISTED_SHARE,
    Reference,
    SeparationRow,
)

Whole = NDArray[np.int64]

CLASS_OF_LABEL = np.array([0, 1, 2, 3, 4, 5, 1])
"""Class of each label: the classes, and last a bilayer whose layers are twisted."""

LABELS, CLASSES, BILAYER, THICK, TWISTED = len(CLASS_OF_LABEL), len(LAYER_CLASSES), 1, 5, 6

MIXING = 1.0
"""Weight of the prior on the shares of the classes in a film (Dirichlet, this much over all six,
Perks): before any measurement nine spots of one film are equal with a probability of 0.17."""

TWISTING = 0.2
"""The same weight for the share of twisted bilayers; most films have one kind."""

SPOT_CM1 = 0.2
"""Scatter of the separation between spots of one class in one film: strain differs from place to
place by some 0.05 %, 3.5 cm-1 for each % (10.1021/acs.nanolett.6b02615). Judgement."""

SPOT_LN = 0.25
"""Scatter of ln(A1g/Si) between such spots, and the error of the law of A1g/Si between classes.
Judgement. It is the same for every class: otherwise an even film would seem thin."""

SPOT_OUTLIER, SPOT_OUTLIER_CM1 = 0.02, 10.0
SPOT_EDGE, SPOT_EDGE_LN = 0.1, 4.0
"""Share of spots over an edge or a particle, which may show any separation, any A1g/Si."""

PL_LN = 0.7
"""Scatter of ln(PL/Raman) between spots. Judgement."""

SPOT_GLOW, SPOT_GLOW_LN = 0.03, 14.0
"""Share of spots with any photoluminescence: a particle that shines, a defect."""

CLASS_CM1 = 0.35
"""Own deviation of each class's separation in a sample: the part of tau that classes do not share.
Two layers are 2.1 to 2.6 cm-1 above one in every row of the table, and a real sample deviates from
the table: without this, films with steps 0.3 cm-1 off are counted wrongly and with certainty.
Judgement."""

CLASS_LN = 0.15
"""The same for ln(A1g/Si), as part of its spread from sample to sample: no class follows a power of
N exactly. Judgement."""

EXPONENT_SD = 0.1
"""Uncertainty of the power of N in A1g/Si: layers dim the silicon beneath them, so that 1.1 to 1.3
are found. Judgement."""

CLASS_PL_LN = 0.8
"""The same for ln(PL/Raman) of two layers and more, as part of its spread in quenching.
Judgement."""

NO_ROW_CM1 = 3.5
"""For a sample outside every row of the table: its separations share one shift of this size, and
tell only that some spots are thicker than others."""

SETTLED = 5
"""After this number of spots the initial kind of sample no longer matters: hypotheses with equal
counts become one. The knowledge of classes not yet seen becomes one Gaussian."""

BEAM_BEFORE, BEAM, PRUNED_LN = 512, 128, 12.0
"""Hypotheses kept before that and after it, and the lowest ln weight relative to the best. Too few
are certain of a wrong pair of classes: the second class of a film comes late, and tells most."""

SPOTS_WEIGHED = 96
"""More spots do not improve the common values; further spots are judged by them."""

NEGLIGIBLE_LN = 7.0
"""Hypotheses a thousand times less likely than the best are left out of the answer."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers of one spot, or medians over several.

    Attributes:
        separation_cm1, sigma_cm1: A1g - E2g, and its noise. ln_a1g_si, a1g_si_sigma: Logarithm of
            the ratio of heights and its noise; NaN without.
        ln_pl_raman: Logarithm of PL/Raman; NaN if it was not measured.
    """

    separation_cm1: float
    sigma_cm1: float
    ln_a1g_si: float = math.nan
    a1g_si_sigma: float = 0.0
    ln_pl_raman: float = math.nan


@dataclass(frozen=True, slots=True, eq=False)
class Census:
    """The joint result for the spots of a film.

    Attributes:
        weight: Probability of each hypothesis, shape (ways,).
        counts: Spots of each class in it, shape (ways, 6); whole numbers, except for very many
            spots.
        spots: Probability of each class at each spot, shape (spots, 6).
    """

    weight: Array
    counts: Array
    spots: Array


class _Number(NamedTuple):
    """A number of a spot: its value, its own variance, and its share and range of outliers."""

    value: float
    own_var: float
    outlier: float
    outlier_range: float


class Belief(NamedTuple):
    """Gaussians of one number, one row per hypothesis; in the number's own unit.

    Attributes:
        common, common_var: Mean and variance of the common value, shape (ways,). mean, var: Mean
            and variance of each label, shape (ways, labels).
        tie: Covariance of each label with the common value, shape (ways, labels).
    """

    common: Array
    common_var: Array
    mean: Array
    var: Array
    tie: Array

    @classmethod
    def before(
        cls, centre: Array, factor: Array, common_var: Array, room: Sequence[float] | Array
    ) -> "Belief":
        """Return the prior, before any measurement.

        Args:
            centre: Mean of each label, shape (ways, labels).
            factor: Factor of the common value in each label, the same shape.
            common_var: Variance of the common value, shape (ways,).
            room: Standard deviation of each label's own deviation, which broadcasts to (ways,
                labels).
        """
        tie = factor * common_var[:, None]
        var = factor * tie + np.square(room)
        return cls(np.zeros_like(common_var), common_var, centre, var, tie)

    def taken(self, chosen: Whole) -> "Belief":
        """Return the rows ``chosen``."""
        return Belief(*(each[chosen] for each in self))

    def learnt(self, label: Whole, value: float, own_var: float, straight: Array) -> "Belief":
        """Return the posterior after a spot, approximated by a Gaussian; outliers count less.

        Args:
            label: Label of the spot, shape (ways,).
            value: Measured value.
            own_var: Variance of the spot itself: its scatter and its noise.
            straight: Probability that the value is not an outlier, shape (ways,).
        """
        every = np.arange(label.size)
        tie, var = self.tie[every, label], self.var[every, label]
        cross = self.tie * (tie / self.common_var)[:, None]
        cross[every, label] = var
        step = (value - self.mean[every, label]) / (var + own_var)
        narrowed = straight / (var + own_var)
        # The two cases, outlier or not, differ in their means: that adds variance.
        spread = straight * (1 - straight) * step**2 - narrowed
        moved, widened = (straight * step)[:, None], spread[:, None]
        return Belief(
            self.common + straight * step * tie,
            self.common_var + spread * tie**2,
            self.mean + moved * cross,
            self.var + widened * cross**2,
            self.tie + widened * cross * tie[:, None],
        )

    def merged(self, share: Array, order: Whole, first: Whole) -> "Belief":
        """Return one Gaussian for each group of rows, with the group's mean and covariances.

        Args:
            share: Weight of each row in its group, shape (ways,).
            order: The rows, group after group.
            first: Start of each group in ``order``.
        """
        weight = share[order, None]
        sizes = np.diff(np.append(first, order.size))

        def mean(values: Array) -> Array:
            return np.add.reduceat(weight * values, first, axis=0)

        common, common_var = self.common[order, None], self.common_var[order, None]
        labels = self.mean[order]
        middle, labels_middle = mean(common), mean(labels)
        off = common - np.repeat(middle, sizes, axis=0)
        labels_off = labels - np.repeat(labels_middle, sizes, axis=0)
        return Belief(
            middle[:, 0],
            mean(common_var + off**2)[:, 0],
            labels_middle,
            mean(self.var[order] + labels_off**2),
            mean(self.tie[order] + labels_off * off),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Ways:
    """Hypotheses, one per row: their start, their knowledge and their counts.

    The beliefs are on separation, ln(A1g/Si) and ln(PL/Raman), in this order.
    """

    start: Whole
    ln_weight: Array
    beliefs: tuple[Belief, ...]
    counts: Whole

    def taken(self, chosen: Whole) -> "_Ways":
        beliefs = tuple(each.taken(chosen) for each in self.beliefs)
        return _Ways(self.start[chosen], self.ln_weight[chosen], beliefs, self.counts[chosen])


@lru_cache(maxsize=16)
def _priors(reference: Reference, rows: tuple[SeparationRow, ...]) -> _Ways:
    """Return every possible kind of sample, before any measurement."""
    kinds = []  # weight, centres, taus, variance of the common shift in units of tau
    for row in rows:
        centre = [*row.centre_cm1, TWISTED_CENTRE_CM1]
        tau = [math.hypot(each, CALIBRATION_CM1) for each in (*row.tau_cm1, row.twisted_tau_cm1)]
        for variance in STUDENT_NODES:
            share = (1 - OUTLIER_SHARE) / len(rows) / len(STUDENT_NODES)
            kinds.append((share, centre, tau, variance))
    anywhere = [*CVD_ROW.centre_cm1, TWISTED_CENTRE_CM1]
    kinds.append((OUTLIER_SHARE, anywhere, [NO_ROW_CM1] * LABELS, 1.0))
    a_sd = reference.a1g_si_ln_sd()
    scales = ((1 - OUTLIER_SHARE, a_sd), (OUTLIER_SHARE, a_sd + 2.0))
    every = [(*kind, *scale) for kind in kinds for scale in scales]
    size = len(every)
    ones = np.ones((size, LABELS))
    separation = Belief.before(
        np.array([each[1] for each in every]),
        np.sqrt(np.square([each[2] for each in every]) - CLASS_CM1**2),
        np.array([each[3] for each in every]),
        [CLASS_CM1] * LABELS,
    )
    thick = np.log(THICK_NODES)
    ln_layers = np.array([*np.log([1.0, 2, 3, 4, 5]), thick.mean(), math.log(2)])
    ratio_room = np.hypot(CLASS_LN, EXPONENT_SD * ln_layers)
    ratio_room[THICK] = math.hypot(
        ratio_room[THICK], reference.a1g_si_exponent * float(thick.std())
    )
    a1g_si = Belief.before(
        math.log(reference.a1g_si_monolayer) + reference.a1g_si_exponent * ln_layers * ones,
        ones,
        _common_var(np.array([each[5] ** 2 for each in every]), CLASS_LN),
        ratio_room,
    )
    return _Ways(
        np.arange(size),
        np.log([each[0] * each[4] for each in every]),
        (separation, a1g_si, _pl_prior(reference, size)),
        np.zeros((size, LABELS), dtype=np.int64),
    )


def _pl_prior(reference: Reference, size: int) -> Belief:
    """Return the prior of ln(PL/Raman); the common value is that of two and more layers."""
    one, more = reference.pl_medians_ln()
    one_var, more_var, shared = reference.pl_variances()
    common_var = shared + float(_common_var(np.array(more_var - shared), CLASS_PL_LN))
    centre = np.full((size, LABELS), more)
    factor, room = np.ones_like(centre), np.full(LABELS, CLASS_PL_LN)
    centre[:, 0], factor[:, 0] = one, shared / common_var
    room[0] = math.sqrt(one_var - shared**2 / common_var)
    return Belief.before(centre, factor, np.full(size, common_var), room)


def _common_var(var: Array, room: float) -> Array:
    """Return the part of a variance between samples that all classes share."""
    return np.maximum(var - room**2, var / 2)


LN_LABEL = np.log([1, 1 - TWISTED_SHARE, 1, 1, 1, 1, TWISTED_SHARE])


def _urn_ln(counts: Whole) -> Array:
    """Return the prior ln weight of the next spot's labels for given counts, (ways, labels)."""
    classes = _by_class(counts)
    total = counts.sum(1, keepdims=True)
    ln: Array = np.log((classes + MIXING / CLASSES) / (total + MIXING))[:, CLASS_OF_LABEL]
    # Bilayers have their own urn: islands differ, a closed film is twisted as a whole.
    both = np.log(classes[:, BILAYER] + TWISTING)
    ln[:, BILAYER] += np.log(counts[:, BILAYER] + TWISTING * (1 - TWISTED_SHARE)) - both
    ln[:, TWISTED] += np.log(counts[:, TWISTED] + TWISTING * TWISTED_SHARE) - both
    return ln


def _by_class(counts: Whole | Array) -> Array:
    classes: Array = counts[:, :CLASSES].astype(float)
    classes[:, BILAYER] += counts[:, TWISTED]
    return classes


def take_census(
    spots: Sequence[Measured], reference: Reference, rows: Sequence[SeparationRow]
) -> Census:
    """Judge the labels of all spots together; the order of the spots does not matter.

    Args:
        spots: At least one.
        reference: The known intensities of this microscope.
        rows: Ways in which the film may have been made, equally likely.
    """
    ways = _priors(reference, tuple(rows))
    ordered = _ordered(spots)
    weighed = ordered
    if len(ordered) > SPOTS_WEIGHED:
        chosen = np.linspace(0, len(ordered) - 1, SPOTS_WEIGHED).round().astype(int)
        weighed = [ordered[index] for index in chosen]
    # A number that no spot has stays at its prior, and is left out of the hypotheses.
    shown = [
        place for place in range(len(ways.beliefs)) if any(_numbers(each)[place] for each in spots)
    ]
    ways = replace(ways, beliefs=tuple(ways.beliefs[place] for place in shown))
    for index, spot in enumerate(weighed):
        if index == SETTLED:
            ways = replace(ways, start=np.zeros_like(ways.start))
        numbers = _numbers(spot)
        kept = BEAM if index >= SETTLED else BEAM_BEFORE
        ways = _continued(ways, [numbers[place] for place in shown], kept)
    ways = ways.taken(np.flatnonzero(ways.ln_weight > ways.ln_weight.max() - NEGLIGIBLE_LN))
    weight = np.exp(ways.ln_weight - ways.ln_weight.max())
    weight /= weight.sum()
    shares, expected = _labelled(spots, shown, ways, weight)
    # With very many spots a part has settled the common values; then each spot counts.
    whole = len(spots) <= SPOTS_WEIGHED
    return Census(weight, _by_class(ways.counts) if whole else expected, shares)


def likelihood(
    spot: Measured, reference: Reference, rows: Sequence[SeparationRow]
) -> dict[int, float]:
    """Return the log likelihood of one measurement for each class, without any other spot."""
    ways = _priors(reference, tuple(rows))
    ln_spot = np.log(_predicted(ways.beliefs, _numbers(spot))[0])
    ln_all = ways.ln_weight[:, None] + LN_LABEL + ln_spot
    return {
        name: float(np.logaddexp.reduce(ln_all[:, index == CLASS_OF_LABEL], axis=None))
        for index, name in enumerate(LAYER_CLASSES)
    }


def _ordered(spots: Sequence[Measured]) -> list[Measured]:
    """Order spots, the usual ones first, so that an odd one is recognised."""

    def middle(numbers: list[float]) -> float:
        known = [each for each in numbers if not math.isnan(each)]
        return median_high(known) if known else math.nan

    d0 = middle([spot.separation_cm1 for spot in spots])
    r0 = middle([spot.ln_a1g_si for spot in spots])
    p0 = middle([spot.ln_pl_raman for spot in spots])

    def key(spot: Measured) -> tuple[float, ...]:
        off = (
            abs(spot.separation_cm1 - d0) + spot.sigma_cm1,
            abs(spot.ln_a1g_si - r0),
            abs(spot.ln_pl_raman - p0) / 2,
        )
        numbers = (spot.separation_cm1, spot.ln_a1g_si, spot.ln_pl_raman, spot.sigma_cm1)
        told = sum(each for each in off if not math.isnan(each))
        return (told, *(math.inf if math.isnan(each) else each for each in numbers))

    return sorted(spots, key=key)


def _numbers(spot: Measured) -> tuple[_Number | None, ...]:
    """Return the numbers of a spot in the order of the beliefs; None if not measured."""
    found = (
        _Number(
            spot.separation_cm1, SPOT_CM1**2 + spot.sigma_cm1**2, SPOT_OUTLIER, SPOT_OUTLIER_CM1
        ),
        _Number(spot.ln_a1g_si, SPOT_LN**2 + spot.a1g_si_sigma**2, SPOT_EDGE, SPOT_EDGE_LN),
        _Number(spot.ln_pl_raman, PL_LN**2, SPOT_GLOW, SPOT_GLOW_LN),
    )
    return tuple(None if math.isnan(each.value) else each for each in found)


def _predicted(
    beliefs: Sequence[Belief], numbers: Sequence[_Number | None]
) -> tuple[Array, list[Array | None]]:
    """Return the probability density of a spot under each label, shape (ways, labels).

    Returns:
        The density; and for each number the probability that it is not an outlier. No density is 0,
        because each number may be an outlier.
    """
    density = np.ones_like(beliefs[0].mean)
    straight: list[Array | None] = []
    for belief, number in zip(beliefs, numbers, strict=True):
        if number is None:
            straight.append(None)
            continue
        var = belief.var + number.own_var
        bell = np.exp(-0.5 * (number.value - belief.mean) ** 2 / var)
        bell *= (1 - number.outlier) / np.sqrt(2 * math.pi * var)
        both = bell + number.outlier / number.outlier_range
        density *= both
        straight.append(bell / both)
    return density, straight


def _continued(ways: _Ways, numbers: Sequence[_Number | None], beam: int) -> _Ways:
    """Continue each hypothesis with each label of one more spot; merge, and drop the unlikely."""
    density, straight = _predicted(ways.beliefs, numbers)
    ln_weight = ways.ln_weight[:, None] + _urn_ln(ways.counts) + np.log(density)
    kept = np.flatnonzero(ln_weight.ravel() > ln_weight.max() - PRUNED_LN)
    way, label = np.divmod(kept, LABELS)
    found = ways.taken(way)
    beliefs = tuple(
        belief
        if number is None or sure is None
        else belief.learnt(label, number.value, number.own_var, sure[way, label])
        for belief, number, sure in zip(found.beliefs, numbers, straight, strict=True)
    )
    counts = found.counts
    counts[np.arange(way.size), label] += 1
    return _merged(_Ways(found.start, ln_weight[way, label], beliefs, counts), beam)


def _merged(ways: _Ways, beam: int) -> _Ways:
    """Merge hypotheses with equal counts and start, and keep the likeliest."""
    base = int(ways.counts.sum(1).max()) + 1
    key = ways.start.copy()
    for column in ways.counts.T:
        key = key * base + column
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    top = np.maximum.reduceat(ways.ln_weight[order], first)
    sizes = np.diff(np.append(first, order.size))
    share = np.empty_like(ways.ln_weight)
    share[order] = np.exp(ways.ln_weight[order] - np.repeat(top, sizes))
    total = np.add.reduceat(share[order], first)
    share[order] /= np.repeat(total, sizes)
    ln_weight = top + np.log(total)
    if first.size > beam:
        chosen = np.sort(np.argsort(-ln_weight, kind="stable")[:beam])
        inside = np.repeat(np.isin(np.arange(first.size), chosen), sizes)
        order, sizes, ln_weight = order[inside], sizes[chosen], ln_weight[chosen]
        first = np.cumsum(sizes) - sizes
    return _Ways(
        ways.start[order[first]],
        ln_weight,
        tuple(each.merged(share, order, first) for each in ways.beliefs),
        ways.counts[order[first]],
    )


def _labelled(
    spots: Sequence[Measured], shown: Sequence[int], ways: _Ways, weight: Array
) -> tuple[Array, Array]:
    """Return the probability of each class at each spot, given all spots.

    Returns:
        Shape (spots, 6); and the sum over the spots for each hypothesis, shape (ways, 6).
    """
    urn = np.exp(_urn_ln(ways.counts))
    found = np.empty((len(spots), CLASSES))
    sums = np.zeros((weight.size, LABELS))
    for index, spot in enumerate(spots):
        numbers = _numbers(spot)
        label = urn * _predicted(ways.beliefs, [numbers[place] for place in shown])[0]
        label /= label.sum(1, keepdims=True)
        sums += label
        found[index] = np.bincount(CLASS_OF_LABEL, weight @ label, CLASSES)
    return found, _by_class(sums)
