"""Convert axes in meV, µm or absolute wave numbers to cm⁻¹, nm or eV, by their heading."""

import re

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile
from labharness.analysis.spectrum import EV_NM, NM_TO_CM1

SHIFT_WORDS = ("shift", "loss", "verschiebung")
UM_WORDS = ("um", "µm", "μm", "micron", "microns", "micrometer")
SHIFT_MEV_MAX = 620.0
"""5000 cm⁻¹; a photon of so little energy is in the far infrared."""


def in_other_unit(name: str, title: str, axis: Array) -> tuple[Array, str] | None:
    """Convert an axis to cm⁻¹, nm or eV; return None if the heading names another unit.

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
            return energy_ev * (NM_TO_CM1 / EV_NM), "1/cm"
        return energy_ev, "eV"
    if words & set(UM_WORDS) and "wavel" in title:
        return axis * 1000, "nm"
    if "abs" in title and words & {"cm", "wavenumber", "wavenumbers"} and not is_shift:
        if not (axis > 0).all():
            raise BadFile(
                f"{name}: an absolute wave number of {axis.min():g} cm⁻¹; all are above 0"
            )
        return NM_TO_CM1 / axis, "nm"
    return None
