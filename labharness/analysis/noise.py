"""Intensities of anyone's file brought to the scale on which their noise is that of photons."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.despike import despike
from labharness.analysis.spectrum import Spectrum

__all__ = ["Scaled", "in_electrons"]

Array = NDArray[np.float64]

RAW_RATIO_MIN, RAW_RATIO_MAX = 0.5, 2.0
"""Variance over level of counts as they come from a camera of about one electron per count."""

READ_NOISE_COUNTS = 6.0
"""Cooled cameras: 4–8 electrons."""

SECOND_DIFFERENCE_SIGMA = np.sqrt(6.0)
"""Standard deviation of y[-1] - 2 y[0] + y[1] in units of a pixel's."""

MAD_TO_SIGMA = 1.4826
FLAT_MAX = 1e-9
"""A relative scatter below this is no measurement but a calculated curve."""

ELECTRONS_MAX = 1e6
"""Electrons of the brightest pixel at most: no line shape is trusted to better than 0.1 %."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """A spectrum in electrons, and what had to be assumed to get there.

    Attributes:
        spectrum: Counts as if one electron made one.
        note: What a reader must know; empty for raw counts.
    """

    spectrum: Spectrum
    note: str


def in_electrons(shift_cm1: Array, intensity: Array) -> Scaled:
    """Find the scale on which the scatter of quiet pixels is photon noise.

    Raw counts stay as they are. Averaged, corrected or normalised intensities are scaled so that
    the variance of quiet pixels equals their level; without a level (background taken off) every
    pixel gets the scatter of the quiet ones.

    Raises:
        ValueError: When the numbers are no spectrum, or carry no noise and so no errors.
    """
    clean, _ = despike(intensity)
    second = clean[:-2] - 2 * clean[1:-1] + clean[2:]
    # The quieter half: slopes of lines make second differences too.
    local = clean[1:-1]
    quiet = local <= np.median(local)
    scatter = float(MAD_TO_SIGMA * np.median(np.abs(second[quiet])) / SECOND_DIFFERENCE_SIGMA)
    level = float(np.median(local[quiet]))
    top = float(np.max(np.abs(clean)))
    if not scatter > FLAT_MAX * top:
        raise ValueError("the intensities carry no noise, so nothing says how sure a line is")
    variance = scatter**2
    ratio = variance / (max(level, 0.0) + READ_NOISE_COUNTS**2)
    if RAW_RATIO_MIN <= ratio <= RAW_RATIO_MAX:
        return Scaled(Spectrum(shift_cm1, intensity, READ_NOISE_COUNTS), "")
    most = ELECTRONS_MAX / top
    if level > 0 and variance < RAW_RATIO_MAX * level:
        scale, read_noise = min(level / variance, most), 0.0
        note = (
            f"intensities are no raw counts: one unit is taken as {scale:.3g} electrons, "
            "from the scatter of quiet pixels"
        )
    else:
        # A gain nobody knows: so many electrons that photon noise adds little to the scatter.
        scale, read_noise = most, scatter * most
        note = (
            "intensities are no raw counts: every pixel gets the scatter of the quiet ones, "
            "and errors of bright lines may be too small"
        )
    return Scaled(Spectrum(shift_cm1, intensity * scale, read_noise), note)
