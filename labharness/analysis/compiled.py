"""The Levenberg-Marquardt fit of ``lines`` as machine code, one spectrum at a time.

The steps equal those in NumPy; only the order of sums differs. It needs numba, the extra ``fast``.
The machine code is cached beside this file or in the user's cache, so only the first process
compiles it.
"""

import numpy as np
from numba import njit

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.lines import FitRules

SUMS_MAY_BE_REORDERED = {"reassoc", "contract", "nsz"}
"""Lets sums use a processor's vector units; NaN and infinity keep their meaning."""


def fit_rows(
    x: Array,
    counts: Array,
    root_weight: Array,
    start: Array,
    low: Array,
    high: Array,
    rules: FitRules,
) -> tuple[Array, Array, Array, Mask]:
    """Return parameters, curvature and chi-squared of each row, and whether its fit converged.

    Other threads run meanwhile.
    """
    rows, size = start.shape
    best, curvature = start.copy(), np.empty((rows, size, size))
    cost, stopped = np.empty(rows), np.zeros(rows, dtype=np.bool_)
    pixels, weights = np.ascontiguousarray(counts), np.ascontiguousarray(root_weight)
    _fit(x, pixels, weights, low, high, rules, best, curvature, cost, stopped)
    return best, curvature, cost, stopped


@njit(nogil=True, cache=True, error_model="numpy")
def _fit(
    x: Array,
    counts: Array,
    root_weight: Array,
    low: Array,
    high: Array,
    rules: FitRules,
    best: Array,
    best_curvature: Array,
    best_cost: Array,
    stopped: Mask,
) -> None:
    """Fit each row from its start in ``best``; write the results to the last four arguments."""
    size = low.size
    even = size + size % 2  # sums use tiles of two rows; a row of zeros fills the last one
    freedom = max(x.size - size, 1)
    jacobian, residual = np.zeros((even, x.size)), np.empty(x.size)
    curvature, gradient = np.empty((even, even)), np.empty(even)
    new_curvature, new_gradient = np.empty((even, even)), np.empty(even)
    lower, diagonal = np.zeros((size, size)), np.empty(size)
    step, trial = np.empty(size), np.empty(size)
    for row in range(counts.shape[0]):
        p = best[row]
        for pixel in range(x.size):
            jacobian[size - 2, pixel] = root_weight[row, pixel]
            jacobian[size - 1, pixel] = root_weight[row, pixel] * x[pixel]
        _evaluate(x, counts[row], p, jacobian, residual)
        cost = _normal(jacobian, residual, curvature, gradient)
        damping, settled = rules.damping_start, False
        for _ in range(rules.iterations_max):
            stiffest = 0.0
            for k in range(size):
                stiffest = max(stiffest, curvature[k, k])
            for k in range(size):
                stiffness = max(curvature[k, k], rules.curvature_floor * stiffest)
                diagonal[k] = stiffness * (1 + damping)
            _solve(curvature, diagonal, gradient, lower, step)
            promise = 0.0
            for k in range(size):
                promise += step[k] * gradient[k]
                value = p[k] + step[k]
                if k < size - 2 and k % 3 == 2:
                    value = abs(value)
                trial[k] = min(max(value, low[k]), high[k])
            _evaluate(x, counts[row], trial, jacobian, residual)
            new_cost = _normal(jacobian, residual, new_curvature, new_gradient)
            better = new_cost <= cost
            enough = rules.cost_change_min * max(1.0, new_cost / freedom)
            settled = better and promise < enough and damping <= rules.damping_converged_max
            if better:
                p[:] = trial
                cost = new_cost
                curvature, new_curvature = new_curvature, curvature
                gradient, new_gradient = new_gradient, gradient
                damping = max(damping / 10, rules.damping_min)
            else:
                damping *= 10
            if settled or damping > rules.damping_max:
                break
        best_cost[row], stopped[row] = cost, settled
        best_curvature[row] = curvature[:size, :size]


@njit(nogil=True, cache=True, fastmath=SUMS_MAY_BE_REORDERED, error_model="numpy")
def _evaluate(x: Array, counts: Array, p: Array, jacobian: Array, residual: Array) -> None:
    """Write weighted residuals and Jacobian; its last rows, weight and weight times x, are set."""
    size = p.size
    weight, slope = jacobian[size - 2], jacobian[size - 1]
    for pixel in range(x.size):
        residual[pixel] = (counts[pixel] - p[size - 2]) * weight[pixel] - p[size - 1] * slope[pixel]
    for first in range(0, size - 2, 3):
        height, position, per_half = p[first], p[first + 1], 2 / p[first + 2]
        rise = 2 * height * per_half
        for pixel in range(x.size):
            reach = (x[pixel] - position) * per_half
            shape = 1 / (reach * reach + 1)
            weighted = shape * weight[pixel]
            residual[pixel] -= height * weighted
            moved = shape * weighted * rise * reach
            jacobian[first, pixel] = weighted
            jacobian[first + 1, pixel] = moved
            jacobian[first + 2, pixel] = moved * reach * 0.5


@njit(nogil=True, cache=True, fastmath=SUMS_MAY_BE_REORDERED)
def _normal(jacobian: Array, residual: Array, curvature: Array, gradient: Array) -> float:
    """Write curvature and downhill gradient; return chi-squared."""
    for a in range(0, jacobian.shape[0], 2):
        one, two = jacobian[a], jacobian[a + 1]
        down, down_two = 0.0, 0.0
        for pixel in range(residual.size):
            down += one[pixel] * residual[pixel]
            down_two += two[pixel] * residual[pixel]
        gradient[a], gradient[a + 1] = down, down_two
        for b in range(0, a + 2, 2):
            _tile(jacobian, a, b, curvature)
    cost = 0.0
    for pixel in range(residual.size):
        cost += residual[pixel] * residual[pixel]
    return cost


@njit(nogil=True, cache=True, fastmath=SUMS_MAY_BE_REORDERED)
def _tile(jacobian: Array, a: int, b: int, curvature: Array) -> None:
    """Add up four products at once: half the loads of pixels, a third of the time."""
    one, two, three, four = jacobian[a], jacobian[a + 1], jacobian[b], jacobian[b + 1]
    s13, s14, s23, s24 = 0.0, 0.0, 0.0, 0.0
    for pixel in range(one.size):
        s13 += one[pixel] * three[pixel]
        s14 += one[pixel] * four[pixel]
        s23 += two[pixel] * three[pixel]
        s24 += two[pixel] * four[pixel]
    curvature[a, b] = curvature[b, a] = s13
    curvature[a, b + 1] = curvature[b + 1, a] = s14
    curvature[a + 1, b] = curvature[b, a + 1] = s23
    curvature[a + 1, b + 1] = curvature[b + 1, a + 1] = s24


@njit(nogil=True, cache=True, error_model="numpy")
def _solve(curvature: Array, diagonal: Array, right: Array, lower: Array, step: Array) -> None:
    """Solve the damped normal equations by Cholesky's decomposition."""
    size = step.size
    for i in range(size):
        for j in range(i + 1):
            rest = diagonal[i] if i == j else curvature[i, j]
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(rest) if i == j else rest / lower[j, j]
    for i in range(size):
        rest = right[i]
        for k in range(i):
            rest -= lower[i, k] * step[k]
        step[i] = rest / lower[i, i]
    for i in range(size - 1, -1, -1):
        rest = step[i]
        for k in range(i + 1, size):
            rest -= lower[k, i] * step[k]
        step[i] = rest / lower[i, i]
