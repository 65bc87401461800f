"""A smooth background under lines: asymmetrically reweighted penalised least squares (arPLS).

Baek, Park, Ahn and Choo, Analyst 140 (2015) 250, 10.1039/C4AN01061B: a curve with little curvature
(Whittaker's smoother), repeated with less and less weight where the spectrum is above it.
"""

import numpy as np

from labharness.analysis.arrays import Array

BASELINE_PERIOD_CM1 = 500.0
"""The smoother halves a wave of this period; luminescence and filters change more slowly.
Judgement. It takes the wings of a broad Lorentz line for background: on a glow of half the axis a
line of 40 cm⁻¹ keeps its area to 1 %, one of 60 loses a tenth and one of 150 a fifth."""

ITERATIONS_MAX = 50
CHANGE_MIN = 1e-3
"""Stop when the weights change by less than this share."""

STEEPNESS, OFFSET_SIGMA = 2.0, 2.0
"""Equation 10 of the paper: the weight falls from one to nothing around the mean of the points
below the curve, within two of their standard deviations to either side."""

EXPONENT_MAX = 500.0


def arpls(axis_cm1: Array, counts: Array) -> Array:
    """Return the background under one spectrum, in its unit.

    Args:
        axis_cm1: Shift of each pixel, ascending.
        counts: One value a pixel.
    """
    from scipy.linalg import solveh_banded

    size = counts.size
    if size < 3:
        return np.zeros(size)
    pixel = float(axis_cm1[-1] - axis_cm1[0]) / (size - 1)
    stiffness = (BASELINE_PERIOD_CM1 / (2 * np.pi * pixel)) ** 4
    penalty = _penalty(size) * stiffness
    weight = np.ones(size)
    ground: Array = counts
    for _ in range(ITERATIONS_MAX):
        matrix = penalty.copy()
        matrix[-1] += weight
        ground = solveh_banded(matrix, weight * counts, check_finite=False)
        above = counts - ground
        below = above[above < 0]
        if below.size < 2 or not below.std() > 0:
            break
        reach = OFFSET_SIGMA * float(below.std()) - float(below.mean())
        exponent = STEEPNESS * (above - reach) / float(below.std())
        new = 1 / (1 + np.exp(np.clip(exponent, -EXPONENT_MAX, EXPONENT_MAX)))
        changed = float(np.linalg.norm(new - weight)) / float(np.linalg.norm(weight))
        weight = new
        if changed < CHANGE_MIN:
            break
    return ground


def _penalty(size: int) -> Array:
    """Return the upper bands of D'D, where D takes second differences of ``size`` pixels."""
    bands = np.zeros((3, size))
    for row, factor in enumerate((1.0, -2.0, 1.0)):
        for column in range(row, 3):
            other = (1.0, -2.0, 1.0)[column]
            bands[2 - (column - row), column : size - 2 + column] += factor * other
    return bands
