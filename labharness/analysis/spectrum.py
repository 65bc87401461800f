"""One measured spectrum, checked when it is made."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from labharness.analysis.arrays import Array

PIXELS_MIN = 20
"""A line, its background, cosmic rays and an estimate of the noise need at least this many."""

NM_TO_CM1 = 1e7
"""Wavenumber in cm⁻¹ of a wavelength of 1 nm."""

EV_NM = 1239.841984
"""Energy of a photon in eV times its wavelength in nm: hc/e (CODATA 2018, exact)."""


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Raw detector counts against Raman shift.

    The counts must be raw (one electron per count, no baseline subtracted): their size is the
    estimate of their Poisson noise.

    Attributes:
        shift_cm1: Raman shift of each pixel in cm⁻¹, strictly ascending.
        counts: Counts of each pixel.
        read_noise_counts: Standard deviation of the camera's read noise.

    Raises:
        ValueError: On NaN or infinity, unequal lengths, an axis that does not ascend, fewer than
            ``PIXELS_MIN`` pixels, or a negative read noise.
    """

    shift_cm1: Array
    counts: Array
    read_noise_counts: float = 6.0

    def __post_init__(self) -> None:
        shift = np.array(self.shift_cm1, dtype=np.float64)
        counts = np.array(self.counts, dtype=np.float64)
        if shift.ndim != 1 or shift.shape != counts.shape:
            raise ValueError(
                f"a spectrum needs as many counts as shifts in one row, "
                f"got shapes {shift.shape} and {counts.shape}"
            )
        if shift.size < PIXELS_MIN:
            raise ValueError(f"a spectrum needs at least {PIXELS_MIN} pixels, got {shift.size}")
        for name, values in (("shift_cm1", shift), ("counts", counts)):
            if not np.isfinite(values).all():
                pixel = int(np.argmin(np.isfinite(values)))
                raise ValueError(f"{name}[{pixel}] is {values[pixel]}; a measurement is finite")
        if not (np.diff(shift) > 0).all():
            pixel = int(np.argmin(np.diff(shift) > 0))
            raise ValueError(
                f"shift_cm1 must ascend, got {shift[pixel]} then {shift[pixel + 1]} "
                f"at pixel {pixel}"
            )
        if not 0 <= self.read_noise_counts < np.inf:
            raise ValueError(
                f"read_noise_counts must be finite and not negative, got {self.read_noise_counts}"
            )
        shift.setflags(write=False)
        counts.setflags(write=False)
        object.__setattr__(self, "shift_cm1", shift)
        object.__setattr__(self, "counts", counts)


def shift_from_wavelength(laser_nm: float, wavelength_nm: ArrayLike) -> Array:
    """Convert wavelengths to Raman shifts in cm⁻¹, in the order given.

    An ascending wavelength gives an ascending shift; the anti-Stokes side is negative. Both
    wavelengths must be of one medium, air or vacuum: mixing them moves 400 cm⁻¹ by about 5 cm⁻¹.

    Args:
        laser_nm: Wavelength of the laser.
        wavelength_nm: Wavelength of each pixel.

    Raises:
        ValueError: When a wavelength is not positive and finite.
    """
    wavelength = np.asarray(wavelength_nm, dtype=np.float64)
    if not 0 < laser_nm < np.inf:
        raise ValueError(f"laser_nm must be positive and finite, got {laser_nm}")
    if not ((wavelength > 0) & np.isfinite(wavelength)).all():
        raise ValueError("wavelength_nm must be positive and finite in every pixel")
    return NM_TO_CM1 / laser_nm - NM_TO_CM1 / wavelength
