"""The Raman microscope: a 532 nm laser, and a monochromator of 1800 gr/mm with a CCD."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from labharness_simulators.plant.relays import Relays
from labharness_simulators.plant.spectrum import Light

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LASER_NM = 532.0
NM_PER_CM1 = 1e7
EV_NM = 1_239.842


class Laser:
    """A continuous 532 nm laser whose interlock is the enclosure's own contact.

    Attributes:
        on: emission is commanded.
        power_w: setpoint in W; below 0 or NaN counts as 0, above the maximum as the maximum.
        hours: emission so far.
        wavelength_nm: wavelength of the beam.
    """

    __slots__ = ("_relays", "hours", "on", "power_w", "wavelength_nm")

    POWER_W_MAX = 0.1

    def __init__(self, relays: Relays) -> None:
        self._relays = relays
        self.on = False
        self.power_w = 0.0
        self.hours = 0.0
        self.wavelength_nm = LASER_NM

    @property
    def output_w(self) -> float:
        """The measured power in W at the sample; 0 unless on with the enclosure shut."""
        if not (self.on and self.power_w > 0.0 and self._relays.enclosure_shut):
            return 0.0
        return min(self.power_w, self.POWER_W_MAX)

    @property
    def interlock_open(self) -> bool:
        """True while the enclosure, whose contact is the laser's interlock, is open."""
        return not self._relays.enclosure_shut

    def step(self, dt_s: float) -> None:
        """Count the hours of emission."""
        if self.on and self.output_w > 0.0:
            self.hours += dt_s / 3600.0


class Spectrometer:
    """A monochromator with a 1024-pixel CCD at -60 °C.

    Its stated axis has a calibration error that is fixed for the instrument.

    Attributes:
        grating_lines_per_mm: grating in the beam; dispersion and resolution follow from it.
        pixels: number across the dispersed direction.
        chip_temperature_c: temperature of the CCD. offset_cm1, scale_error: calibration: a line at
            s appears at s·(1 + scale_error) + offset.
    """

    __slots__ = (
        "_centre_nm",
        "_generator",
        "_look",
        "_now_s",
        "_seed",
        "_target_nm",
        "chip_temperature_c",
        "grating_lines_per_mm",
        "offset_cm1",
        "pixels",
        "scale_error",
    )

    SPEED_NM_PER_S = 10.0
    NM_PER_PIXEL = 0.018  # at 1800 gr/mm: 0.6 cm⁻¹ a pixel near 545 nm
    RESOLUTION_PIXELS = 2.0  # FWHM of the instrument: 1.2 cm⁻¹
    EDGE_FILTER_CM1 = 90.0
    SATURATION = 65_535
    BIAS_COUNTS = 300.0
    READ_NOISE_COUNTS = 5.0
    DARK_COUNTS_PER_S = 0.01
    COSMIC_RAYS_PER_S = 0.05
    COSMIC_MEDIAN_COUNTS = 300.0
    COSMIC_LOG_SD = 1.2
    EXPOSURE_S_MAX = 3_600.0
    AVERAGES_MAX = 1_000

    def __init__(self, look: Callable[[float], Light | None], chance: random.Random | None) -> None:
        """Take the light of a spot from `look(exposure_s)`; None from it is a dark field."""
        self._look = look
        self._seed = None if chance is None else chance.getrandbits(63)
        self._generator: np.random.Generator | None = None
        self._now_s = 0.0
        self._centre_nm = self._target_nm = 545.0
        self.grating_lines_per_mm = 1800
        self.pixels = 1024
        self.chip_temperature_c = -60.0
        self.offset_cm1 = 0.0 if chance is None else chance.normalvariate(0.0, 0.5)
        self.scale_error = 0.0 if chance is None else chance.normalvariate(0.0, 3e-4)

    @property
    def centre_nm(self) -> float:
        """The wavelength on the middle of the chip, in nm; it moves at 10 nm/s.

        Raises:
            ValueError: outside 0 to 1500 nm.
        """
        return self._centre_nm

    @centre_nm.setter
    def centre_nm(self, centre_nm: float) -> None:
        if not 0.0 <= centre_nm <= 1500.0:
            raise ValueError(f"spectrometer: asked for {centre_nm} nm; allowed 0 to 1500 nm")
        self._target_nm = float(centre_nm)

    @property
    def moving(self) -> bool:
        """True while the grating turns."""
        return self._centre_nm != self._target_nm

    def advance_to(self, now_s: float) -> None:
        """Turn the grating until `now_s`, in seconds from the plant's start."""
        elapsed_s = now_s - self._now_s
        if elapsed_s <= 0.0:
            return
        self._now_s = now_s
        distance_nm = self._target_nm - self._centre_nm
        if distance_nm:
            reach_nm = elapsed_s * self.SPEED_NM_PER_S
            if reach_nm >= abs(distance_nm):
                self._centre_nm = self._target_nm
            else:
                self._centre_nm += math.copysign(reach_nm, distance_nm)

    def wavelengths_nm(self) -> list[float]:
        """Return the stated wavelength in nm of each pixel, ascending."""
        step_nm = self.NM_PER_PIXEL * 1800.0 / self.grating_lines_per_mm
        middle = 0.5 * (self.pixels - 1)
        return [self._centre_nm + (pixel - middle) * step_nm for pixel in range(self.pixels)]

    def exposure(self, exposure_s: float, averages: int = 1) -> list[int]:
        """Expose the chip; return the counts of each pixel, averaged over `averages` exposures.

        It returns at once: the caller waits for the exposure. More than 5 mW burns the film at the
        spot.

        Raises:
            ValueError: an exposure outside (0, 3600] s, or averages outside 1..1000.
        """
        import numpy as np

        if not 0.0 < exposure_s <= self.EXPOSURE_S_MAX:
            raise ValueError(
                f"spectrometer: asked for {exposure_s} s; allowed up to {self.EXPOSURE_S_MAX} s"
            )
        if not 1 <= averages <= self.AVERAGES_MAX:
            raise ValueError(
                f"spectrometer: asked for {averages} averages; allowed 1 to {self.AVERAGES_MAX}"
            )
        light = self._look(exposure_s)
        counts: NDArray[np.float64] = np.full(self.pixels, self.DARK_COUNTS_PER_S * exposure_s)
        if light is not None:
            counts += self._disperse(light)
        if self._seed is not None:
            if self._generator is None:
                self._generator = np.random.Generator(np.random.PCG64(self._seed))
            counts = self._detect(counts, exposure_s, averages, self._generator)
        counts = np.clip(np.rint(counts + self.BIAS_COUNTS), 0, self.SATURATION)
        spectrum: list[int] = counts.astype(np.int64).tolist()
        return spectrum

    def _disperse(self, light: Light) -> NDArray[np.float64]:
        """Spread light over the pixels: intrinsic shapes, then the instrument's Gaussian."""
        import numpy as np

        wavelength_nm = np.array(self.wavelengths_nm())
        wavelength_nm = np.maximum(wavelength_nm, 1.0)
        stated_cm1 = NM_PER_CM1 / LASER_NM - NM_PER_CM1 / wavelength_nm
        shift_cm1 = (stated_cm1 - self.offset_cm1) / (1.0 + self.scale_error)
        sharp = np.zeros(self.pixels)
        # Lines far outside the window count too: their wings are part of the background.
        for line in light.lines:
            u = (shift_cm1 - line.centre_cm1) / (0.5 * line.width_cm1)
            sharp += line.height * self._unblurred(line.width_cm1) / (1.0 + u * u)
        energy_ev = EV_NM / wavelength_nm
        across = np.linspace(-1.0, 1.0, self.pixels)
        smooth = light.background * (1.0 + 0.2 * across + 0.05 * across * across)
        for band in light.bands:
            u = (energy_ev - band.centre_ev) / (0.5 * band.width_ev)
            squared = u * u
            smooth += band.height * (0.7 * np.exp(-math.log(2.0) * squared) + 0.3 / (1.0 + squared))
        reach = 4
        offsets = np.arange(-reach, reach + 1)
        kernel = np.exp(-4.0 * math.log(2.0) * (offsets / self.RESOLUTION_PIXELS) ** 2)
        padded = np.pad(sharp, reach, mode="edge")
        seen: NDArray[np.float64] = np.convolve(padded, kernel / kernel.sum(), mode="valid")
        seen += smooth
        seen[shift_cm1 < self.EDGE_FILTER_CM1] = 0.0
        return seen

    def _unblurred(self, width_cm1: float) -> float:
        """Return the factor on a line's height that restores its stated height after blurring."""
        blur_cm1 = 0.6 * self.RESOLUTION_PIXELS * 1800.0 / self.grating_lines_per_mm
        voigt_cm1 = 0.5346 * width_cm1 + math.sqrt(0.2166 * width_cm1**2 + blur_cm1**2)
        return voigt_cm1 / width_cm1

    def _detect(
        self,
        counts: NDArray[np.float64],
        exposure_s: float,
        averages: int,
        generator: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Add shot noise, read noise and cosmic rays to the mean of some exposures."""
        seen: NDArray[np.float64] = generator.poisson(counts * averages) / averages
        seen += generator.normal(0.0, self.READ_NOISE_COUNTS / math.sqrt(averages), self.pixels)
        for _ in range(int(generator.poisson(self.COSMIC_RAYS_PER_S * exposure_s * averages))):
            place = int(generator.integers(0, self.pixels))
            height = self.COSMIC_MEDIAN_COUNTS * generator.lognormal(0.0, self.COSMIC_LOG_SD)
            seen[place] += height / averages
            if generator.random() < 0.3 and place + 1 < self.pixels:
                seen[place + 1] += 0.5 * height / averages
        return seen
