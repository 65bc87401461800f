"""Axes in other units than cm⁻¹ and nm, brought to these where a file says which unit it is."""

import re

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.formats.recording import BadFile

__all__ = ["NM_CM1", "NM_EV", "in_other_unit"]

Array = NDArray[np.float64]

NM_CM1 = 1e7
"""Product of wavelength in nm and wave number in cm⁻¹."""

NM_EV = 1239.841984
"""Product of wavelength in nm and photon energy in eV: h c / e, CODATA 2018."""

SHIFT_WORDS = ("shift", "loss", "verschiebung")
UM_WORDS = ("um", "µm", "μm", "micron", "microns", "micrometer")
SHIFT_MEV_MAX = 620.0
"""5000 cm⁻¹; a photon of so little energy is one of the far infrared."""


def in_other_unit(name: str, title: str, axis: Array) -> tuple[Array, str] | None:
    """Bring an axis to cm⁻¹ or nm by its heading; None where that names none of these units.

    Read are energies in eV and meV, of photons or as a shift, wavelengths in µm, and absolute wave
    numbers.

    Args:
        name: Of the format, for messages.
        title: The heading of the axis, in lower case.
        axis: As the file has it.

    Raises:
        BadFile: When the heading says so and the numbers cannot be.
    """
    words = set(re.findall(r"[a-zµμ]+", title))
    is_shift = any(word in title for word in SHIFT_WORDS)
    if words & {"ev", "mev"}:
        milli = "mev" in words
        is_shift |= milli and bool(np.abs(axis).max() < SHIFT_MEV_MAX)
        energy_ev = axis / 1000 if milli else axis
        if is_shift:
            return energy_ev * (NM_CM1 / NM_EV), "1/cm"
        return _over(NM_EV, name, energy_ev, "an energy of a photon", "eV"), "nm"
    if words & set(UM_WORDS) and "wavel" in title:
        return axis * 1000, "nm"
    if "abs" in title and words & {"cm", "wavenumber", "wavenumbers"} and not is_shift:
        return _over(NM_CM1, name, axis, "an absolute wave number", "cm⁻¹"), "nm"
    return None


def _over(product: float, name: str, axis: Array, what: str, unit: str) -> Array:
    if not (axis > 0).all():
        raise BadFile(f"{name}: {what} of {axis.min():g} {unit}; all are above 0")
    nm: Array = product / axis
    return nm
