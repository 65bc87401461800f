"""What spots have told of one number: a Gaussian for each class, tied by what all classes share.

The mean that a class has in a sample is what is common to the sample, weighed by a factor of the
class, and a room that is the class's own. Given what is common the classes say nothing of each
other, so the covariance of two classes follows from that of each with what is common.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Belief"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Beliefs on one number, a row for each hypothesis; in the number's own unit.

    Attributes:
        common, common_var: What all classes share: mean and variance, shape (ways,).
        mean, var: Of each label, shape (ways, labels).
        tie: Covariance of each label with what is common, shape (ways, labels).
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
        """Return what is believed before anything is measured.

        Args:
            centre: Of each label, shape (ways, labels).
            factor: By which a label follows what is common, the same shape.
            common_var: Variance of what is common, shape (ways,).
            room: Standard deviation of a label's own, which broadcasts to (ways, labels).
        """
        tie = factor * common_var[:, None]
        var = factor * tie + np.square(room)
        return cls(np.zeros_like(common_var), common_var, centre, var, tie)

    def taken(self, chosen: Whole) -> "Belief":
        """Return the rows ``chosen``."""
        return Belief(*(each[chosen] for each in self._columns()))

    def learnt(self, label: Whole, value: float, own_var: float, straight: Array) -> "Belief":
        """Return what is believed after a spot, as far as that is no outlier; Gaussian again.

        Args:
            label: Of the spot, shape (ways,).
            value: Measured there.
            own_var: Variance of what is the spot's own: its scatter and its noise.
            straight: Probability that the number is no outlier, shape (ways,).
        """
        every = np.arange(label.size)
        tie, var = self.tie[every, label], self.var[every, label]
        cross = self.tie * (tie / self.common_var)[:, None]
        cross[every, label] = var
        step = (value - self.mean[every, label]) / (var + own_var)
        narrowed = straight / (var + own_var)
        # Between the two, outlier or not, lies a spread of its own.
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
            first: Where in ``order`` each group begins.
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
