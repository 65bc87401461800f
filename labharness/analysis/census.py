"""How many spots of a film are of which class, with what all its spots share integrated out.

Strain, doping, the way of growth, oxide, optics and quenching have *one* value for a sample, so a
hundred spots say no more of them than one does; noise is each spot's own. Labels of the spots are
therefore weighed together: a hypothesis holds how the sample is (row of the table, strain, scale of
A1g/Si and of PL/Raman) as Gaussians, and how many spots it has given to each class. Spots are taken
one by one; each hypothesis is continued with every class the spot may have, alike ones are merged,
the unlikely are dropped. All that is exact but for the merging and the dropping, and deterministic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.evidence import (
    CALIBRATION_CM1,
    CVD_ROW,
    LAYER_CLASSES,
    OUTLIER_SHARE,
    STUDENT_NODES,
    THICK_NODES,
    TWISTED_CENTRE_CM1,
    TWISTED_SHARE,
    TWISTED_TAU_CM1,
    Reference,
    SeparationRow,
)

__all__ = ["Census", "Measured", "likelihood", "take_census"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

CLASS_OF_LABEL = np.array([0, 1, 2, 3, 4, 5, 1])
"""What a spot may be: each class, and last a bilayer whose layers are twisted."""

LABELS, CLASSES, BILAYER, THICK, TWISTED = len(CLASS_OF_LABEL), len(LAYER_CLASSES), 1, 5, 6

MIXING = 1.0
"""Weight of the prior on how a film is shared among the classes (Dirichlet, this much over all six,
Perks): nine spots of one film are alike with a probability of 0.17, before anything is measured."""

TWISTING = 0.2
"""The same weight for how bilayers are shared among twisted and others: mostly they are alike."""

SPOT_CM1 = 0.2
"""Scatter of the separation between spots of one class in one film: strain differs from place to
place by some 0.05 %, 3.5 cm-1 for each (10.1021/acs.nanolett.6b02615). Judgement."""

SPOT_LN = 0.25
"""Scatter of ln(A1g/Si) between such spots, and what the law of A1g/Si leaves between classes.
Judgement. It is the same for every class: else a film would seem thin because it is even."""

SPOT_OUTLIER, SPOT_OUTLIER_CM1 = 0.02, 10.0
SPOT_EDGE, SPOT_EDGE_LN = 0.1, 4.0
"""Share of spots that lie over an edge or a particle and may show any separation, any A1g/Si."""

PL_LN = 0.7
"""Scatter of ln(PL/Raman) between spots. Judgement."""

SPOT_GLOW, SPOT_GLOW_LN = 0.03, 14.0
"""Share of spots whose photoluminescence may be anything: a particle that shines, a defect."""

NO_ROW_CM1 = 3.5
"""A sample that follows no row of the table: its separations may be shifted so far, all alike, and
say of the thickness nothing but that some spots are thicker than others."""

BEAM, PRUNED_LN = 128, 14.0
"""Hypotheses kept, and how much less likely than the best one may be."""

SPOTS_WEIGHED = 96
"""More spots than these say no more of what is common to them; the others are then judged by it."""

NEGLIGIBLE_LN = 7.0
"""What is a thousand times less likely than the best is left out of the answer."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers of one spot, or the medians over some.

    Attributes:
        separation_cm1, sigma_cm1: A1g - E2g, and its noise.
        ln_a1g_si, a1g_si_sigma: Logarithm of the ratio of heights and its noise; NaN without.
        ln_pl_raman: Logarithm of PL/Raman; NaN where it was not measured.
    """

    separation_cm1: float
    sigma_cm1: float
    ln_a1g_si: float = math.nan
    a1g_si_sigma: float = 0.0
    ln_pl_raman: float = math.nan


@dataclass(frozen=True, slots=True, eq=False)
class Census:
    """What the spots of a film say together.

    Attributes:
        weight: Probability of each way to count, shape (ways,).
        counts: Spots of each class in it, shape (ways, 6); whole, but for very many spots.
        spots: Probability of each class at each spot, shape (spots, 6).
    """

    weight: Array
    counts: Array
    spots: Array


@dataclass(slots=True, eq=False)
class _Ways:
    """Hypotheses, a row each: the start they come from, what they have learnt, what they count."""

    start: Whole
    ln_weight: Array
    z: Array  # common shift of the separations in units of tau: mean and variance
    z_var: Array
    a: Array  # ln(A1g/Si) of one layer
    a_var: Array
    q: Array  # ln(PL/Raman) of one layer and of more, shape (ways, 2)
    q_var: Array  # shape (ways, 2, 2)
    counts: Whole

    def taken(self, chosen: Whole) -> "_Ways":
        return _Ways(
            self.start[chosen],
            self.ln_weight[chosen],
            self.z[chosen],
            self.z_var[chosen],
            self.a[chosen],
            self.a_var[chosen],
            self.q[chosen],
            self.q_var[chosen],
            self.counts[chosen],
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Starts:
    """Every kind of sample there may be: constants of a hypothesis, a row each."""

    ln_weight: Array
    centre: Array  # of each label, shape (starts, labels)
    tau: Array
    spread: Array
    z_var: Array
    a: Array
    a_var: Array
    q: Array
    q_var: Array
    ln_ratio: Array  # of A1g/Si to that of one layer, shape (starts, labels)

    def ways(self) -> _Ways:
        size = self.ln_weight.size
        return _Ways(
            np.arange(size),
            self.ln_weight,
            np.zeros(size),
            self.z_var,
            self.a,
            self.a_var,
            np.tile(self.q, (size, 1)),
            np.tile(self.q_var, (size, 1, 1)),
            np.zeros((size, LABELS), dtype=np.int64),
        )


@lru_cache(maxsize=16)
def _starts(reference: Reference, rows: tuple[SeparationRow, ...]) -> _Starts:
    kinds = []  # weight, centres, taus, scatter of spots, variance of z
    for row in rows:
        centre = [*row.centre_cm1, TWISTED_CENTRE_CM1]
        tau = [math.hypot(each, CALIBRATION_CM1) for each in (*row.tau_cm1, TWISTED_TAU_CM1)]
        for variance in STUDENT_NODES:
            share = (1 - OUTLIER_SHARE) / len(rows) / len(STUDENT_NODES)
            kinds.append((share, centre, tau, SPOT_CM1, variance))
    anywhere = [*CVD_ROW.centre_cm1, TWISTED_CENTRE_CM1]
    kinds.append((OUTLIER_SHARE, anywhere, [NO_ROW_CM1] * LABELS, SPOT_CM1, 1.0))
    a_sd = reference.a1g_si_ln_sd()
    scales = ((1 - OUTLIER_SHARE, a_sd), (OUTLIER_SHARE, a_sd + 2.0))
    every = [(*kind, scale, thick) for kind in kinds for scale in scales for thick in THICK_NODES]
    layers = np.tile(np.array([1.0, 2, 3, 4, 5, 0, 2]), (len(every), 1))
    layers[:, THICK] = [each[-1] for each in every]
    one, more, shared = reference.pl_variances()
    return _Starts(
        np.log([each[0] * each[5][0] / len(THICK_NODES) for each in every]),
        np.array([each[1] for each in every]),
        np.array([each[2] for each in every]),
        np.array([each[3] for each in every]),
        np.array([each[4] for each in every]),
        np.full(len(every), math.log(reference.a1g_si_monolayer)),
        np.array([each[5][1] ** 2 for each in every]),
        np.array(reference.pl_medians_ln()),
        np.array([[one, shared], [shared, more]]),
        reference.a1g_si_exponent * np.log(layers),
    )


LN_LABEL = np.log([1, 1 - TWISTED_SHARE, 1, 1, 1, 1, TWISTED_SHARE])


def _urn_ln(counts: Whole) -> Array:
    """Weigh the label of one more spot by those that a film has already, shape (ways, labels)."""
    classes = _by_class(counts)
    total = counts.sum(1, keepdims=True)
    ln: Array = np.log((classes + MIXING / CLASSES) / (total + MIXING))[:, CLASS_OF_LABEL]
    # Within the bilayers an urn of its own: islands differ, a closed film is twisted as a whole.
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
    """Weigh the labels of all spots together.

    The order of the spots does not matter.

    Args:
        spots: At least one.
        reference: What is known of intensities on this microscope.
        rows: Ways in which the film may have been made, each as likely.
    """
    starts = _starts(reference, tuple(rows))
    ways = starts.ways()
    ordered = _ordered(spots)
    weighed = ordered
    if len(ordered) > SPOTS_WEIGHED:
        chosen = np.linspace(0, len(ordered) - 1, SPOTS_WEIGHED).round().astype(int)
        weighed = [ordered[index] for index in chosen]
    for spot in weighed:
        ways = _continued(ways, starts, spot)
    ways = ways.taken(np.flatnonzero(ways.ln_weight > ways.ln_weight.max() - NEGLIGIBLE_LN))
    weight = np.exp(ways.ln_weight - ways.ln_weight.max())
    weight /= weight.sum()
    shares, expected = _labelled(spots, ways, starts, weight)
    # Of very many spots a part has settled what is common; then every one of them counts.
    whole = len(spots) <= SPOTS_WEIGHED
    return Census(weight, _by_class(ways.counts) if whole else expected, shares)


def likelihood(
    spot: Measured, reference: Reference, rows: Sequence[SeparationRow]
) -> dict[int, float]:
    """Return the logarithm of what one measurement is worth for each class, before all others."""
    starts = _starts(reference, tuple(rows))
    ways = starts.ways()
    ln_all = ways.ln_weight[:, None] + LN_LABEL + _predicted(ways, starts, spot)[0]
    found = {}
    for index, name in enumerate(LAYER_CLASSES):
        found[name] = float(np.logaddexp.reduce(ln_all[:, index == CLASS_OF_LABEL], axis=None))
    return found


def _ordered(spots: Sequence[Measured]) -> list[Measured]:
    """Order spots by what they say, the usual ones first: an odd one is then seen to be odd."""

    def middle(numbers: list[float]) -> float:
        known = sorted(each for each in numbers if not math.isnan(each))
        return known[len(known) // 2] if known else math.nan

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


def _normal_ln(x: float, mean: Array, variance: Array) -> Array:
    found: Array = -0.5 * ((x - mean) ** 2 / variance + np.log(2 * math.pi * variance))
    return found


def _predicted(
    ways: _Ways, starts: _Starts, spot: Measured
) -> tuple[Array, tuple[Array, Array, Array, Array], tuple[Array, Array, Array], Array]:
    """Weigh a spot under each label, shape (ways, labels); with what an update needs.

    Each number may be an outlier: how far it is none is the last of what belongs to it.
    """
    start = ways.start
    tau = starts.tau[start]
    mean = starts.centre[start] + tau * ways.z[:, None]
    total, gain, straight = np.zeros_like(mean), np.zeros_like(mean), np.zeros_like(mean)
    if not math.isnan(spot.separation_cm1):
        own = spot.sigma_cm1**2 + starts.spread[start, None] ** 2
        variance = tau**2 * ways.z_var[:, None] + own
        bell = _normal_ln(spot.separation_cm1, mean, variance) + math.log(1 - SPOT_OUTLIER)
        floor = math.log(SPOT_OUTLIER / SPOT_OUTLIER_CM1)
        total = np.logaddexp(bell, floor)
        gain = tau * ways.z_var[:, None] / variance
        straight = np.exp(bell - total)
    d = (gain, spot.separation_cm1 - mean, tau, straight)
    ratio = starts.ln_ratio[start]
    r = (mean, mean, mean)
    if not math.isnan(spot.ln_a1g_si):
        r_mean = ways.a[:, None] + ratio
        r_variance = np.broadcast_to(
            ways.a_var[:, None] + SPOT_LN**2 + spot.a1g_si_sigma**2, r_mean.shape
        )
        bell = _normal_ln(spot.ln_a1g_si, r_mean, r_variance) + math.log(1 - SPOT_EDGE)
        edge = math.log(SPOT_EDGE / SPOT_EDGE_LN)
        both = np.logaddexp(bell, edge)
        total = total + both
        r = (ways.a_var[:, None] / r_variance, spot.ln_a1g_si - r_mean, np.exp(bell - both))
    shines = mean
    if not math.isnan(spot.ln_pl_raman):
        thick = (CLASS_OF_LABEL > 0).astype(int)
        p_var = np.stack([ways.q_var[:, 0, 0], ways.q_var[:, 1, 1]], axis=1)[:, thick] + PL_LN**2
        bell = _normal_ln(spot.ln_pl_raman, ways.q[:, thick], p_var) + math.log(1 - SPOT_GLOW)
        both = np.logaddexp(bell, math.log(SPOT_GLOW / SPOT_GLOW_LN))
        total, shines = total + both, np.exp(bell - both)
    return total, d, r, shines


def _continued(ways: _Ways, starts: _Starts, spot: Measured) -> _Ways:
    """Continue each hypothesis with each label of one more spot; merge, and drop the unlikely."""
    ln_spot, for_z, for_a, shines = _predicted(ways, starts, spot)
    ln_weight = ways.ln_weight[:, None] + _urn_ln(ways.counts) + ln_spot
    kept = np.flatnonzero(ln_weight.ravel() > ln_weight.max() - PRUNED_LN)
    way, label = np.divmod(kept, LABELS)
    found = ways.taken(way)
    found.ln_weight = ln_weight[way, label]
    gain, off, tau, straight = (each[way, label] for each in for_z)
    found.z, found.z_var = _learnt(found.z, found.z_var, gain * off, gain * tau, straight)
    if not math.isnan(spot.ln_a1g_si):
        gain, off, straight = (each[way, label] for each in for_a)
        found.a, found.a_var = _learnt(found.a, found.a_var, gain * off, gain, straight)
    if not math.isnan(spot.ln_pl_raman):
        many = (CLASS_OF_LABEL[label] > 0).astype(int)
        every = np.arange(way.size)
        column = found.q_var[every, :, many]
        variance = column[every, many] + PL_LN**2
        p_gain = shines[way, label][:, None] * column / variance[:, None]
        found.q = found.q + p_gain * (spot.ln_pl_raman - found.q[every, many])[:, None]
        found.q_var = found.q_var - p_gain[:, :, None] * column[:, None, :]
    counts = found.counts.copy()
    counts[np.arange(way.size), label] += 1
    found.counts = counts
    return _merged(found)


def _learnt(
    mean: Array, variance: Array, step: Array, narrowed: Array, straight: Array
) -> tuple[Array, Array]:
    """Move a Gaussian by a measurement as far as that is no outlier; both become one again."""
    spread = straight * (1 - straight) * step**2
    return mean + straight * step, variance * (1 - straight * narrowed) + spread


def _merged(ways: _Ways) -> _Ways:
    """Make one of those that count alike from the same start, and keep the likeliest."""
    base = int(ways.counts.sum(1).max()) + 1
    key = ways.start.copy()
    for column in ways.counts.T:
        key = key * base + column
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    size = first.size
    top = np.full(size, -np.inf)
    np.maximum.at(top, group, ways.ln_weight)
    share = np.exp(ways.ln_weight - top[group])
    total = np.bincount(group, share, size)
    share /= total[group]

    def mean(values: Array) -> Array:
        return np.bincount(group, share * values, size).astype(float)

    z, a = mean(ways.z), mean(ways.a)
    q = np.stack([mean(ways.q[:, 0]), mean(ways.q[:, 1])], axis=1)
    off = ways.q - q[group]
    q_var = np.empty((size, 2, 2))
    for one in (0, 1):
        for other in (0, 1):
            q_var[:, one, other] = mean(ways.q_var[:, one, other] + off[:, one] * off[:, other])
    found = _Ways(
        ways.start[first],
        top + np.log(total),
        z,
        mean(ways.z_var + (ways.z - z[group]) ** 2),
        a,
        mean(ways.a_var + (ways.a - a[group]) ** 2),
        q,
        q_var,
        ways.counts[first],
    )
    if size <= BEAM:
        return found
    return found.taken(np.sort(np.argsort(-found.ln_weight, kind="stable")[:BEAM]))


def _labelled(
    spots: Sequence[Measured], ways: _Ways, starts: _Starts, weight: Array
) -> tuple[Array, Array]:
    """Return the probability of each class at each spot by what all spots have said.

    Returns:
        Shape (spots, 6); and the sum over the spots for each way, shape (ways, 6).
    """
    urn = _urn_ln(ways.counts)
    found = np.empty((len(spots), CLASSES))
    sums = np.zeros((weight.size, LABELS))
    for index, spot in enumerate(spots):
        ln_label = urn + _predicted(ways, starts, spot)[0]
        label = np.exp(ln_label - ln_label.max(1, keepdims=True))
        label /= label.sum(1, keepdims=True)
        sums += label
        found[index] = np.bincount(CLASS_OF_LABEL, weight @ label, CLASSES)
    return found, _by_class(sums)
