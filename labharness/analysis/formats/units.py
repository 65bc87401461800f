"""Convert axes in eV, meV, µm or absolute wave numbers to cm⁻¹ or nm, by their heading."""

import re

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile

__all__ = ["NM_CM1", "NM_EV", "in_other_unit"]

NM_CM1 = 1e7
"""Product of wavelength in nm and wave number in cm⁻¹."""

NM_EV = 1239.841984
"""Product of wavelength in nm and photon energy in eV: h c / e, CODATA 2018."""

SHIFT_WORDS = ("shift", "loss", "verschiebung")
UM_WORDS = ("um", "µm", "μm", "micron", "microns", "micrometer")
SHIFT_MEV_MAX = 620.0
"""5000 cm⁻¹; a photon of so little energy is in the far infrared."""


def in_other_unit(name: str, title: str, axis: Array) -> tuple[Array, str] | None:
    """Convert an axis to cm⁻¹ or nm; return None if the heading names another unit.

    Known are energies in eV and meV, of photons or as a shift, wavelengths in µm, and absolute wave
    numbers.

    Args:
        name: Name of the format, for messages.
        title: The heading of the axis, in lower case.
        axis: The axis in the file.

    Raises:
        BadFile: When the numbers contradict the heading.
    """
    words = set(re.findall(r"[a-zµμ]+", title))
    is_shift = any(word in title for word in SHIFT_WORDS)
    if words & {"ev", "mev"}:
        milli = "mev" in words
        is_shift |= milli and bool(np.abs(axis).max() < SHIFT_MEV_MAX)
        energy_ev = axis / 1000 if milli else axis
        if is_shift:
            return energy_ev * (NM_CM1 / NM_EV), "1/cm"
        return _reciprocal(NM_EV, name, energy_ev, "an energy of a photon", "eV"), "nm"
    if words & set(UM_WORDS) and "wavel" in title:
        return axis * 1000, "nm"
    if "abs" in title and words & {"cm", "wavenumber", "wavenumbers"} and not is_shift:
        return _reciprocal(NM_CM1, name, axis, "an absolute wave number", "cm⁻¹"), "nm"
    return None


def _reciprocal(product: float, name: str, axis: Array, what: str, unit: str) -> Array:
    if not (axis > 0).all():
        raise BadFile(f"{name}: {what} of {axis.min():g} {unit}; all are above 0")
    nm: Array = product / axis
    return nm
