"""What one file holds: spectra on one axis, and what the file says about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.spectrum import shift_from_wavelength

__all__ = ["BadFile", "Recording"]

Array = NDArray[np.float64]

AXIS_UNITS = ("1/cm", "nm")
LASER_NM_MIN, LASER_NM_MAX = 200.0, 1200.0
"""Lasers of Raman spectrometers, from the deep ultraviolet to 1064 nm."""


class BadFile(ValueError):
    """A file that cannot be read; the message says in one line what was expected where."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Spectra as the file has them, brought to an ascending axis.

    Attributes:
        format: Name of the file's format.
        axis: Raman shift in cm⁻¹ or wavelength in nm of each pixel, ascending.
        axis_unit: ``1/cm`` or ``nm``.
        intensity: One spectrum per row, in the file's unit.
        laser_nm: Wavelength of the laser when the file names it.
        places: Where each spectrum was taken: a column of numbers per name.
        header: Further entries of the file, as text.

    Raises:
        BadFile: When the numbers are no spectra: nothing in them, NaN or infinity, an axis that
            turns round, unequal lengths, or a laser outside 200–1200 nm.
    """

    format: str
    axis: Array
    axis_unit: str
    intensity: Array
    laser_nm: float | None = None
    places: Mapping[str, Array] = field(default_factory=dict)
    header: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        axis = np.array(self.axis, dtype=np.float64)
        rows = np.atleast_2d(np.array(self.intensity, dtype=np.float64))
        if axis.ndim != 1 or rows.ndim != 2 or rows.shape[1] != axis.size or rows.size == 0:
            raise BadFile(
                f"{self.format}: {axis.size} points of an axis do not fit intensities of shape "
                f"{'x'.join(map(str, rows.shape))}"
            )
        if self.axis_unit not in AXIS_UNITS:
            raise BadFile(f"{self.format}: the axis is in {self.axis_unit!r}, not in 1/cm or nm")
        if not (np.isfinite(axis).all() and np.isfinite(rows).all()):
            raise BadFile(f"{self.format}: NaN or infinity among the numbers; a count is finite")
        if axis[0] > axis[-1]:
            axis, rows = axis[::-1].copy(), rows[:, ::-1].copy()
        if not (np.diff(axis) > 0).all():
            at = int(np.argmin(np.diff(axis) > 0))
            raise BadFile(
                f"{self.format}: the axis turns or stands at point {at + 1} "
                f"({axis[at]:g}, then {axis[at + 1]:g}); it must run one way"
            )
        if self.laser_nm is not None and not LASER_NM_MIN <= self.laser_nm <= LASER_NM_MAX:
            raise BadFile(
                f"{self.format}: a laser of {self.laser_nm:g} nm; "
                f"allowed are {LASER_NM_MIN:g}–{LASER_NM_MAX:g} nm"
            )
        for name, column in self.places.items():
            if len(column) != len(rows):
                raise BadFile(
                    f"{self.format}: {len(column)} values of {name} for {len(rows)} spectra"
                )
        axis.setflags(write=False)
        rows.setflags(write=False)
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "intensity", rows)

    def with_laser(self, laser_nm: float) -> "Recording":
        """Give the same spectra, taken with the laser a person has named.

        Raises:
            BadFile: When the laser is outside 200–1200 nm.
        """
        return replace(self, laser_nm=laser_nm)

    def shift_cm1(self) -> Array:
        """Give the Raman shift of each pixel.

        Raises:
            BadFile: When the axis is a wavelength and the laser is unknown.
        """
        if self.axis_unit == "1/cm":
            return self.axis
        if self.laser_nm is None:
            raise BadFile(
                f"{self.format}: the axis is a wavelength in nm and the file names no laser; "
                "say it with --laser-nm"
            )
        return shift_from_wavelength(self.laser_nm, self.axis)
