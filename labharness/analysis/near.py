"""The mean and the lowest value near each pixel of spectra; past an end its pixel repeats.

scipy.ndimage has both, but a growth, which uses nothing else of scipy, would import it for 0.2 s.
"""

import numpy as np

from labharness.analysis.arrays import Array

__all__ = ["lowest_near", "mean_of_three"]


def mean_of_three(counts: Array) -> Array:
    """Return the mean of each pixel and its two neighbours.

    Args:
        counts: One spectrum per row.
    """
    wider = np.pad(counts, ((0, 0), (1, 1)), mode="edge")
    mean: Array = (wider[:, :-2] + wider[:, 1:-1] + wider[:, 2:]) / 3
    return mean


def lowest_near(counts: Array, reach_pixels: int) -> Array:
    """Return the lowest value within a reach of each pixel to either side.

    The span whose lowest value is known doubles from step to step.

    Args:
        counts: One spectrum per row.
        reach_pixels: At least 0.
    """
    lowest: Array = np.pad(counts, ((0, 0), (reach_pixels, reach_pixels)), mode="edge")
    span, wide = 1, 2 * reach_pixels + 1
    while span < wide:
        more = min(span, wide - span)
        lowest = np.minimum(lowest[:, :-more], lowest[:, more:])
        span += more
    return lowest
