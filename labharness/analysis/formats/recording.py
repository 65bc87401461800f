"""The content of one file: spectra on one axis, and the file's statements about them."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.spectrum import EV_NM, shift_from_wavelength
from labharness.core.vocabulary.texts import CodedError, Param

AXIS_UNITS = ("1/cm", "nm", "eV")
LASER_NM_MIN, LASER_NM_MAX = 200.0, 1200.0
"""Range of lasers of Raman spectrometers, from the deep ultraviolet to 1064 nm."""

NM_MIN, NM_MAX = 425.0, 1200.0
"""From above the lines of MoS2 (up to 420 cm⁻¹, if it were a shift) to the end of a silicon
camera."""

STEP_NM_MAX = 0.3
"""A pixel of 0.3 nm is 10 cm⁻¹ at 532 nm; the wavelength axis of a Raman spectrometer is finer."""

SILICON_CM1, SILICON_NEAR_CM1 = 520.7, 8.0

SHIFT_CM1_MIN, SHIFT_CM1_MAX = -1000.0, 5000.0
"""Range of Raman spectrometers, with the anti-Stokes side."""

POINTS_MIN = 2
PIXELS_KEPT_MIN = 0.5
"""At least half of an axis must be numbers: the ends of a camera may be uncalibrated."""

TURNED_SHARE_MAX = 0.1
"""A tenth of the points may be out of order; one always may."""

NUMBER_MAX = 1e30
"""No detector counts so far, and larger squares leave the range of a double: the file is
damaged."""


class BadFile(CodedError, ValueError, code="bad_file", usage=True):
    """A file that cannot be read; the message says in one line what was expected where.

    Args:
        said: The code of the message, or the message.
        params: Of a code. They may quote the file: unprintable characters become blanks.
    """

    def __init__(self, said: str, /, **params: Param) -> None:
        super().__init__(said, **params)
        if not str(self).isprintable():
            plain = {key: _plain(each) for key, each in params.items() if isinstance(each, str)}
            super().__init__(_plain(said), **{**params, **plain})


def _plain(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The spectra of a file, on an ascending axis.

    Invalid numbers are left out and named in ``notes``: a pixel without a number in any spectrum, a
    spectrum with an invalid number, a few points of the axis out of order.

    Attributes:
        format: Name of the file's format.
        axis: Raman shift in cm⁻¹ or wavelength in nm of each pixel, ascending.
        axis_unit: ``1/cm`` or ``nm``; an axis given in ``eV`` is converted to nm.
        intensity: One spectrum per row, in the file's unit.
        laser_nm: Wavelength of the laser, if the file names it.
        places: Place of each spectrum: a column of numbers per name.
        header: Further entries of the file, as text.
        unit_stated: Whether the file states the unit of its axis; if not, a Raman shift is assumed.
        notes: Sentences about what was left out, joined or assumed.
        in_ev: Whether the file has its axis in eV.

    Raises:
        BadFile: When the numbers are not spectra: no numbers, NaN or infinity throughout, an axis
            that turns back, unequal lengths, or a laser outside 200–1200 nm.
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
    in_ev: bool = False

    def __post_init__(self) -> None:
        axis = np.array(self.axis, dtype=np.float64)
        rows = np.atleast_2d(np.array(self.intensity, dtype=np.float64))
        if axis.ndim != 1 or rows.ndim != 2 or rows.shape[1] != axis.size or rows.size == 0:
            points, shape = axis.size, "x".join(map(str, rows.shape))
            raise BadFile("spectra.shape", format=self.format, points=points, shape=shape)
        if self.axis_unit not in AXIS_UNITS:
            raise BadFile("spectra.axis_unit", format=self.format, unit=self.axis_unit)
        for name, column in self.places.items():
            if len(column) != len(rows):
                raise BadFile(
                    "spectra.column",
                    format=self.format,
                    count=len(column),
                    name=name,
                    spectra=len(rows),
                )
        axis, rows, kept, notes = self._numbers_alone(axis, rows)
        if self.axis_unit == "eV":
            if not (axis > 0).all():
                raise BadFile("spectra.photon", format=self.format, found=axis.min())
            axis = EV_NM / axis
            object.__setattr__(self, "axis_unit", "nm")
            object.__setattr__(self, "in_ev", True)
        if np.median(np.diff(axis)) < 0:
            axis, rows = axis[::-1].copy(), rows[:, ::-1].copy()
        if not (np.diff(axis) > 0).all():
            axis, rows, turned = self._in_order(axis, rows)
            notes = (*notes, turned)
        laser_nm, low, high = self.laser_nm, LASER_NM_MIN, LASER_NM_MAX
        if laser_nm is not None and not low <= laser_nm <= high:
            raise BadFile("spectra.laser", format=self.format, laser=laser_nm, low=low, high=high)
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
        """Return valid pixels and spectra, a mask of the kept spectra, and notes on the rest."""
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
        notes = tuple(
            left_out(kind, (np.nonzero(~kept)[0] + 1).tolist(), why)
            for kind, kept, why in (
                ("pixel", pixels, "no spectrum has a number there"),
                ("spectrum", spectra, "NaN or infinity among the numbers"),
            )
            if not kept.all()
        )
        return axis[pixels], rows[np.ix_(spectra, pixels)], spectra, notes

    def _in_order(self, axis: Array, rows: Array) -> tuple[Array, Array, str]:
        """Leave out the fewest points so that the axis ascends.

        Raises:
            BadFile: When these are more than a tenth.
        """
        kept = _ascending(axis)
        gone = np.setdiff1d(np.arange(axis.size), kept)
        allowed = max(1.0, TURNED_SHARE_MAX * axis.size)
        if gone.size > allowed or len(kept) < POINTS_MIN:
            at = int(np.argmin(np.diff(axis) > 0))
            raise BadFile(
                "spectra.turns", format=self.format, point=at + 1, here=axis[at], then=axis[at + 1]
            )
        note = left_out("point", (gone + 1).tolist(), "the axis turns or stands there")
        return axis[kept], rows[:, kept], note

    def with_laser(self, laser_nm: float) -> "Recording":
        """Return the same spectra with the laser that a person named.

        An axis without a stated unit becomes one in nm, if it looks like wavelengths around this
        laser's Raman lines.

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
        """Whether an axis without a stated unit is rather in nm than in cm⁻¹.

        Its pixels are fine, it lies in the range of visible light, it would hold no line of MoS2 as
        a shift, and its brightest pixel is not near silicon's line.
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
            BadFile: When the axis is a wavelength without a known laser, or has values not above 0.
        """
        if self.axis_unit == "1/cm":
            return self.axis
        if self.laser_nm is None:
            what = "an energy in eV" if self.in_ev else "a wavelength in nm"
            raise BadFile("spectra.no_laser", format=self.format, what=what)
        if self.axis[0] <= 0:
            raise BadFile("spectra.wavelength", format=self.format, found=self.axis[0])
        return shift_from_wavelength(self.laser_nm, self.axis)


def left_out(kind: str, numbers: Sequence[int], why: str = "", *, wanted: str = "") -> str:
    """Return a sentence about what was left out.

    Args:
        kind: ``line``, ``spectrum`` or another noun with a plural in s; the plural of spectrum is
            known.
        numbers: Their numbers, counted from 1; one or more.
        why: The reason.
        wanted: Instead of it, the form that they do not have, as ``2 numbers``.
    """
    if len(numbers) == 1:
        return f"{kind} {numbers[0]} is left out: {why or f'it is not {wanted}'}"
    several = "spectra" if kind == "spectrum" else f"{kind}s"
    first = f"{len(numbers)} {several} are left out, the first is {kind} {numbers[0]}"
    return f"{first}: {why or f'they are not {wanted}'}"


def _ascending(axis: Array) -> list[int]:
    """Return the longest ascending part of an axis, by patience sorting; n log n steps."""
    ends: list[float] = []
    at_end: list[int] = []
    before = np.full(axis.size, -1)
    for index, value in enumerate(axis.tolist()):
        length = bisect_left(ends, value)
        before[index] = at_end[length - 1] if length else -1
        if length == len(ends):
            ends.append(value)
            at_end.append(index)
        elif value < ends[length]:  # of two equal values keep the first
            ends[length], at_end[length] = value, index
    found = []
    index = at_end[-1]
    while index >= 0:
        found.append(index)
        index = int(before[index])
    return found[::-1]
