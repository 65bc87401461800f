"""What one file holds: spectra on one axis, and what the file says about them."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.spectrum import shift_from_wavelength

__all__ = [
    "LASER_NM_MAX",
    "LASER_NM_MIN",
    "SHIFT_CM1_MAX",
    "SHIFT_CM1_MIN",
    "BadFile",
    "Recording",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

AXIS_UNITS = ("1/cm", "nm")
LASER_NM_MIN, LASER_NM_MAX = 200.0, 1200.0
"""Lasers of Raman spectrometers, from the deep ultraviolet to 1064 nm."""


NM_MIN, NM_MAX = 425.0, 1200.0
"""Between the lines of MoS2 (to 420 cm⁻¹, were it a shift) and what a silicon camera sees."""

STEP_NM_MAX = 0.3
"""A pixel of 0.3 nm is 10 cm⁻¹ at 532 nm: coarser is no Raman spectrometer's wavelength axis."""

SILICON_CM1, SILICON_NEAR_CM1 = 520.7, 8.0

SHIFT_CM1_MIN, SHIFT_CM1_MAX = -1000.0, 5000.0
"""Raman spectrometers show no more, the anti-Stokes side included."""

POINTS_MIN = 2
PIXELS_KEPT_MIN = 0.5
"""Of an axis at least half must be numbers: the ends of a camera may be uncalibrated."""

TURNED_SHARE_MAX = 0.1
"""A tenth of the points may lie out of order; one always may."""


NUMBER_MAX = 1e30
"""No detector counts so far, and squares of more leave the range of a double: damage, no number."""


class BadFile(ValueError):
    """A file that cannot be read; the message says in one line what was expected where.

    Args:
        said: The message. It may quote the file: what is not printable becomes a blank.
    """

    def __init__(self, said: str) -> None:
        super().__init__("".join(each if each.isprintable() else " " for each in said))


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Spectra as the file has them, brought to an ascending axis.

    What is no number is left out and named in ``notes``: a pixel that is none in any spectrum, a
    spectrum that has one that is none, a few points of the axis that turn back.

    Attributes:
        format: Name of the file's format.
        axis: Raman shift in cm⁻¹ or wavelength in nm of each pixel, ascending.
        axis_unit: ``1/cm`` or ``nm``.
        intensity: One spectrum per row, in the file's unit.
        laser_nm: Wavelength of the laser when the file names it.
        places: Where each spectrum was taken: a column of numbers per name.
        header: Further entries of the file, as text.
        unit_stated: Whether the file says what its axis is; if not, a Raman shift is assumed.
        notes: What was left out, joined or assumed while reading, a sentence each.

    Raises:
        BadFile: When the numbers are no spectra: nothing in them, NaN or infinity throughout, an
            axis that turns round, unequal lengths, or a laser outside 200–1200 nm.
    """

    format: str
    axis: Array
    axis_unit: str
    intensity: Array
    laser_nm: float | None = None
    places: Mapping[str, Array] = field(default_factory=dict)
    header: Mapping[str, str] = field(default_factory=dict)
    unit_stated: bool = True
    notes: tuple[str, ...] = ()

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
        for name, column in self.places.items():
            if len(column) != len(rows):
                raise BadFile(
                    f"{self.format}: {len(column)} values of {name} for {len(rows)} spectra"
                )
        axis, rows, kept, notes = self._numbers_alone(axis, rows)
        if np.median(np.diff(axis)) < 0:
            axis, rows = axis[::-1].copy(), rows[:, ::-1].copy()
        if not (np.diff(axis) > 0).all():
            axis, rows, turned = self._in_order(axis, rows)
            notes = (*notes, turned)
        if self.laser_nm is not None and not LASER_NM_MIN <= self.laser_nm <= LASER_NM_MAX:
            raise BadFile(
                f"{self.format}: a laser of {self.laser_nm:g} nm; "
                f"allowed are {LASER_NM_MIN:g}–{LASER_NM_MAX:g} nm"
            )
        axis.setflags(write=False)
        rows.setflags(write=False)
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "intensity", rows)
        places = {name: np.asarray(column)[kept] for name, column in self.places.items()}
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "notes", (*self.notes, *notes))

    def _numbers_alone(
        self, axis: Array, rows: Array
    ) -> tuple[Array, Array, Mask, tuple[str, ...]]:
        """Return pixels and spectra that are numbers, which spectra are kept, and what is not."""
        finite, on_axis = np.abs(rows) <= NUMBER_MAX, np.abs(axis) <= NUMBER_MAX
        everywhere = np.ones(len(rows), dtype=np.bool_)
        if finite.all() and on_axis.all() and axis.size >= POINTS_MIN:
            return axis, rows, everywhere, ()
        pixels = on_axis & finite.any(axis=0)
        spectra: Mask = np.asarray(finite[:, pixels].all(axis=1), dtype=np.bool_)
        if pixels.sum() < max(POINTS_MIN, PIXELS_KEPT_MIN * axis.size) or not spectra.any():
            raise BadFile(
                f"{self.format}: NaN or infinity among the numbers; a count is finite"
                if not (finite.all() and on_axis.all())
                else f"{self.format}: {axis.size} point; a spectrum has at least {POINTS_MIN}"
            )
        notes = []
        if not pixels.all():
            gone = np.nonzero(~pixels)[0] + 1
            notes.append(_gone("pixel", "pixels", gone, "no spectrum has a number there"))
        if not spectra.all():
            gone = np.nonzero(~spectra)[0] + 1
            notes.append(_gone("spectrum", "spectra", gone, "NaN or infinity among the numbers"))
        return axis[pixels], rows[np.ix_(spectra, pixels)], spectra, tuple(notes)

    def _in_order(self, axis: Array, rows: Array) -> tuple[Array, Array, str]:
        """Leave out the fewest points after which the axis ascends.

        Raises:
            BadFile: When these are more than a tenth.
        """
        kept = _ascending(axis)
        gone = np.setdiff1d(np.arange(axis.size), kept)
        allowed = max(1.0, TURNED_SHARE_MAX * axis.size)
        if gone.size > allowed or len(kept) < POINTS_MIN:
            at = int(np.argmin(np.diff(axis) > 0))
            raise BadFile(
                f"{self.format}: the axis turns or stands at point {at + 1} "
                f"({axis[at]:g}, then {axis[at + 1]:g}); it must run one way"
            )
        note = _gone("point", "points", gone + 1, "the axis turns or stands there")
        return axis[kept], rows[:, kept], note

    def with_laser(self, laser_nm: float) -> "Recording":
        """Return the same spectra, taken with the laser a person has named.

        An axis of which the file says nothing, and which looks like wavelengths around those of
        this laser's Raman lines, becomes one in nm.

        Raises:
            BadFile: When the laser is outside 200–1200 nm.
        """
        named = replace(self, laser_nm=laser_nm)
        if self.looks_like_wavelengths:
            shift = shift_from_wavelength(laser_nm, self.axis)
            if shift[0] >= SHIFT_CM1_MIN and shift[-1] <= SHIFT_CM1_MAX:
                return replace(named, axis_unit="nm")
        return named

    @property
    def looks_like_wavelengths(self) -> bool:
        """Whether an axis of which the file says nothing is rather in nm than in cm⁻¹.

        It is fine, it lies where a grating puts visible light, it holds no line of MoS2 if it were
        a shift, and its brightest pixel is not where silicon's line would be.
        """
        if self.unit_stated or self.axis_unit != "1/cm":
            return False
        if not (self.axis[0] > NM_MIN and self.axis[-1] < NM_MAX):
            return False
        brightest = float(self.axis[int(np.argmax(self.intensity.mean(axis=0)))])
        fine = float(np.median(np.diff(self.axis))) < STEP_NM_MAX
        return fine and not abs(brightest - SILICON_CM1) <= SILICON_NEAR_CM1

    def shift_cm1(self) -> Array:
        """Return the Raman shift of each pixel.

        Raises:
            BadFile: When the axis is a wavelength and the laser is unknown, or it is none.
        """
        if self.axis_unit == "1/cm":
            return self.axis
        if self.laser_nm is None:
            raise BadFile(
                f"{self.format}: the axis is a wavelength in nm and the file names no laser; "
                "say it with --laser-nm"
            )
        if self.axis[0] <= 0:
            raise BadFile(f"{self.format}: a wavelength of {self.axis[0]:g} nm; all are above 0")
        return shift_from_wavelength(self.laser_nm, self.axis)


def _gone(one: str, many: str, numbers: NDArray[np.int64], why: str) -> str:
    if numbers.size == 1:
        return f"{one} {numbers[0]} is left out: {why}"
    return f"{numbers.size} {many} are left out, the first is {one} {numbers[0]}: {why}"


def _ascending(axis: Array) -> list[int]:
    """Find the longest ascending part of an axis, by patience sorting; n log n steps."""
    ends: list[float] = []
    at_end: list[int] = []
    before = np.full(axis.size, -1)
    for index, value in enumerate(axis.tolist()):
        length = bisect_left(ends, value)
        before[index] = at_end[length - 1] if length else -1
        if length == len(ends):
            ends.append(value)
            at_end.append(index)
        elif value < ends[length]:  # of two equal values the first stays
            ends[length], at_end[length] = value, index
    found = []
    index = at_end[-1]
    while index >= 0:
        found.append(index)
        index = int(before[index])
    return found[::-1]
