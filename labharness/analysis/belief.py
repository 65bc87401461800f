"""Gaussian knowledge of one measured number for all classes, updated spot by spot.

The mean of a class in a sample is a value common to the sample times a factor of the class, plus a
deviation of the class's own. Given the common value the classes are independent, so the covariance
of two classes follows from that of each with the common value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.arrays import Array

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
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
        return Belief(*(each[chosen] for each in self._columns()))

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
            found: Array = np.add.reduceat(weight * values, first, axis=0)
            return found

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

    def _columns(self) -> tuple[Array, ...]:
        return self.common, self.common_var, self.mean, self.var, self.tie
