"""Area under a pseudo-Voigt line, and its error from the fit's covariance.

The line is ``h (m L + (1 - m) G)``, where Lorentz line L and Gauss line G have height one and the
same full width w (Wertheim 1974, 10.1063/1.1686503). L has the area ``w π/2`` and G ``w/2 sqrt(π/ln
2)``, so the area is ``h w k`` with ``k = m π/2 + (1 - m)/2 sqrt(π/ln 2)``. The error is propagated
to first order with the whole covariance of the fit (JCGM 100:2008, equation 13): height and width
of a fitted line are anticorrelated, so errors added in quadrature would be too large.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from labharness.analysis.arrays import Array

LORENTZ_SHARE, GAUSS_SHARE = math.pi / 2, math.sqrt(math.pi / math.log(2)) / 2
"""Area of a line of height one and full width one."""


def line_area(height: ArrayLike, fwhm: ArrayLike, mixing: ArrayLike = 1.0) -> Array:
    """Return the area under each line, in the height's unit times the width's.

    Args:
        height: Height over the background, one value a line.
        fwhm: Full width at half maximum.
        mixing: Share of the Lorentz line in the height, 0–1; 1 is a Lorentz line.
    """
    area: Array = np.asarray(height) * np.asarray(fwhm) * _shape(mixing)
    return area


def area_sigma(
    height: ArrayLike, fwhm: ArrayLike, covariance: ArrayLike, mixing: ArrayLike = 1.0
) -> Array:
    """Return one sigma of the area of each line.

    Args:
        height: Height over the background, shape (n).
        fwhm: Full width at half maximum, shape (n).
        covariance: Covariance of height, width and, if it was fitted, mixing: shape (n, 2, 2) or
            (n, 3, 3).
        mixing: Share of the Lorentz line in the height, 0–1.

    Raises:
        ValueError: When the covariance has another shape.
    """
    h, w, c = np.asarray(height), np.asarray(fwhm), np.asarray(covariance)
    if c.shape not in ((h.size, 2, 2), (h.size, 3, 3)):
        raise ValueError(
            f"a covariance of {h.size} lines has the shape {h.size}x2x2 or {h.size}x3x3, "
            f"got {'x'.join(map(str, c.shape))}"
        )
    k = _shape(mixing)
    slopes = np.stack([w * k, h * k, h * w * (LORENTZ_SHARE - GAUSS_SHARE)], axis=-1)
    slopes = slopes[:, : c.shape[1]]
    variance = np.einsum("ij,ijk,ik->i", slopes, c, slopes)
    sigma: Array = np.sqrt(np.maximum(variance, 0.0))
    return sigma


def _shape(mixing: ArrayLike) -> Array:
    share = np.asarray(mixing, dtype=np.float64)
    return share * LORENTZ_SHARE + (1 - share) * GAUSS_SHARE
