"""The photoluminescence of a film, from a separate file: one band, and its ratio to Raman.

The ratio of its height to a Raman line distinguishes one layer of MoS2 from more, on a microscope
with a measured value for one layer: grating, camera, exposure and power all change it. Here it is
only reported.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats import BadFile, Recording
from labharness.analysis.lines import LineWindow, fit_window
from labharness.analysis.noise import in_electrons
from labharness.analysis.peaks import fit_silicon
from labharness.analysis.spectrum import EV_NM, NM_TO_CM1, PIXELS_MIN, Spectrum, cut_window, stacked

NM_MIN, NM_MAX = 300.0, 1700.0
EV_MIN, EV_MAX = 0.7, 4.2
"""Range of silicon and InGaAs cameras; an axis without a unit in this range is taken as such."""

START_SHARE = 0.15
"""Initial width of the fit as a share of the axis: an A exciton of 18 nm on a survey of 120 nm."""

HEIGHT_SIGMA_MIN = 6.0

BAND_SHIFT_CM1_MIN = 800.0
"""The A exciton of MoS2 at 1.85 eV is 890 cm⁻¹ from a laser of 633 nm, the nearest one in use (Mak
2010, 10.1103/PhysRevLett.105.136805)."""

SILICON_FWHM_CM1_MAX = 12.5
"""Widest silicon line of any instrument; no band is as narrow."""

BLUE_EV_MIN, BLUE_EV_MAX = 0.07, 0.45
"""Energy above the band in which a second one is searched: the B exciton lies 0.15 eV above the A
exciton in MoS2 and 0.4 eV in WS2 (Mak 2010, 10.1103/PhysRevLett.105.136805; Kormanyos 2015,
10.1088/2053-1583/2/2/022001), by the splitting of the valence band."""


@dataclass(frozen=True, slots=True, eq=False)
class PlBand:
    """The band of one spectrum: a Lorentz line against wavelength, on a straight background.

    If a second band stands out on its blue side, such as the B exciton, both are fitted together.
    Errors are one sigma, enlarged by the root of the reduced chi-squared if that is above one.

    Attributes:
        wavelength_nm: Axis of the spectrum.
        counts: In the unit of its file.
        stands_out: The fit converged, and the band is six errors high.
        ground_counts: Background at each pixel, including the second band.
    """

    wavelength_nm: Array
    counts: Array
    noise_counts: Array
    ground_counts: Array
    stands_out: bool
    position_nm: float
    position_sigma_nm: float
    fwhm_nm: float
    fwhm_sigma_nm: float
    height_counts: float
    height_sigma_counts: float
    area_counts_nm: float
    area_sigma_counts_nm: float

    @property
    def energy_ev(self) -> float:
        """Energy of the position."""
        return EV_NM / self.position_nm

    def model(self, wavelength_nm: Array) -> Array:
        """Return the fitted curve."""
        reach = (wavelength_nm - self.position_nm) / (self.fwhm_nm / 2)
        ground: Array = np.interp(wavelength_nm, self.wavelength_nm, self.ground_counts)
        return ground + self.height_counts / (1 + reach * reach)


def pl_bands(recording: Recording, laser_nm: float | None) -> tuple[PlBand, ...]:
    """Fit the band of each spectrum.

    Args:
        recording: The file.
        laser_nm: Laser of the Raman spectra, for an axis in Raman shifts without a laser in the
            file.

    Raises:
        BadFile: When the wavelengths of the axis are unknown.
        ValueError: When the numbers are not a spectrum.
    """
    axis_nm = wavelengths_nm(recording, laser_nm)
    _must_be_light(recording, axis_nm, recording.laser_nm or laser_nm)
    order = slice(None) if axis_nm[0] < axis_nm[-1] else slice(None, None, -1)
    return tuple(_band(axis_nm[order], row[order]) for row in recording.intensity)


def _must_be_light(recording: Recording, axis_nm: Array, laser_nm: float | None) -> None:
    """Refuse a Raman spectrum: an axis too near to the laser, or silicon as its highest line.

    Raises:
        BadFile: It is a Raman spectrum.
    """
    axes = [recording.axis] if recording.axis_unit == "1/cm" else []
    if laser_nm is not None:
        shift_cm1 = NM_TO_CM1 / laser_nm - NM_TO_CM1 / axis_nm
        if float(shift_cm1.max()) < BAND_SHIFT_CM1_MIN:
            ends, least = shift_cm1.max(), BAND_SHIFT_CM1_MIN
            raise BadFile("glow.raman", format=recording.format, ends=ends, least=least)
        axes.append(np.sort(shift_cm1))
    if any(_has_silicon_on_top(axis, recording.intensity) for axis in axes):
        raise BadFile("glow.silicon", format=recording.format)


def _has_silicon_on_top(shift_cm1: Array, intensity: Array) -> bool:
    row = np.median(intensity, axis=0)
    line = None
    if row.size >= PIXELS_MIN and np.ptp(row) > 0:
        line = fit_silicon(in_electrons(shift_cm1, row))
    if line is None or line.fwhm_cm1 > SILICON_FWHM_CM1_MAX:
        return False
    return abs(float(shift_cm1[int(row.argmax())]) - line.position_cm1) < line.fwhm_cm1


def wavelengths_nm(recording: Recording, laser_nm: float | None) -> Array:
    """Return the wavelength of each pixel, as stated or as the axis suggests.

    Raises:
        BadFile: The axis is a Raman shift without a known laser.
    """
    axis, low, high = recording.axis, float(recording.axis[0]), float(recording.axis[-1])
    if recording.axis_unit == "nm":
        return axis
    if not recording.unit_stated:
        if low >= EV_MIN and high <= EV_MAX:
            return EV_NM / axis
        if low >= NM_MIN and high <= NM_MAX:
            return axis
    laser = laser_nm if recording.laser_nm is None else recording.laser_nm
    if laser is None:
        raise BadFile("glow.no_laser", format=recording.format, low=low, high=high)
    if high >= NM_TO_CM1 / laser:
        raise BadFile("glow.shift", format=recording.format, high=high, laser=laser)
    return NM_TO_CM1 / (NM_TO_CM1 / laser - axis)


def _band(wavelength_nm: Array, counts: Array) -> PlBand:
    scaled = in_electrons(wavelength_nm, counts)
    brightest = int(np.abs(counts).argmax())
    unit = float(counts[brightest] / scaled.counts[brightest])
    low, high = float(scaled.shift_cm1[0]), float(scaled.shift_cm1[-1])
    span = high - low
    alone = _fit_windows(scaled, unit, (LineWindow(low, high, START_SHARE * span, span),))
    if not alone.stands_out:
        return alone
    width = alone.fwhm_nm
    near = max(low, alone.position_nm - width), min(high, alone.position_nm + width)
    blue = (
        max(low, EV_NM / (alone.energy_ev + BLUE_EV_MAX)),
        min(near[0], EV_NM / (alone.energy_ev + BLUE_EV_MIN)),
    )
    if not blue[0] < blue[1]:
        return alone
    windows = LineWindow(*near, width, span), LineWindow(*blue, width, span)
    both = _fit_windows(scaled, unit, windows)
    return both if both.stands_out else alone


def _fit_windows(scaled: Spectrum, unit: float, windows: Sequence[LineWindow]) -> PlBand:
    """Fit lines together and return the first; it stands out if all of them do."""
    axis = scaled.shift_cm1
    cut = cut_window(stacked([scaled]), (float(axis[0]), float(axis[-1])))
    x, clean = cut.shift_cm1, cut.counts
    fits = fit_window(cut, windows)
    row = fits.parameters[0]
    lines = [fits.line(number) for number in range(len(windows))]
    clear = all(
        each.height_counts[0] > HEIGHT_SIGMA_MIN * each.height_sigma_counts[0] for each in lines
    )
    numbers = [float(each[0]) for each in astuple(lines[0])]
    ground = row[-2] + row[-1] * (x - fits.centre_cm1)
    for other in row[3:-2].reshape(-1, 3):
        ground = ground + other[0] / (1 + ((x - other[1]) / (other[2] / 2)) ** 2)
    with np.errstate(divide="ignore"):
        noise = unit / cut.root_noise[0]
    stands_out = bool(fits.converged[0]) and clear
    in_units = (each * unit for each in numbers[4:])  # heights and areas
    return PlBand(x, clean[0] * unit, noise, ground * unit, stands_out, *numbers[:4], *in_units)
