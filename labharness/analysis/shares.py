"""Shares of the layer classes in a film with their intervals, and the one claim on it."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.evidence import LAYER_CLASSES
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
    found: Array = (total - density / 2) / total[-1]
    return found


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
