"""Measure LA(M) of MoS2 at 227 cm⁻¹, which only disorder makes visible, against its E line."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labharness.analysis.lines import LineWindow, fit_window
from labharness.analysis.material_table import LineGroup
from labharness.analysis.peaks import PeakFit
from labharness.analysis.spectrum import Spectrum
from labharness.analysis.stack import Stack, covers, cut_window, stacked

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
    error = np.sqrt(found.variance[:, 0] * found.inflation)
    heights = found.parameters[:, 0].tolist()
    shares: list[LaOverE | None] = []
    for converged, height, sigma, fit in zip(
        found.converged.tolist(), heights, error.tolist(), fits, strict=True
    ):
        if not converged or fit.e_height_counts <= 0:
            shares.append(None)
        elif height <= LA_SIGMA_MIN * sigma:
            shares.append(LaOverE(0.0, sigma / fit.e_height_counts))
        else:
            ratio = height / fit.e_height_counts
            relative = math.hypot(sigma / height, fit.e_height_sigma_counts / fit.e_height_counts)
            shares.append(LaOverE(ratio, ratio * relative))
    return tuple(shares)
