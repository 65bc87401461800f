"""Convert a shift of silicon's line into stress."""

__all__ = ["MPA_PER_CM1", "silicon_stress_mpa"]

MPA_PER_CM1 = -434.0
"""Uniaxial stress along [100] in backscattering from (001): De Wolf 1996,
10.1088/0268-1242/11/2/001. For a biaxial stress it is the sum of both components."""


def silicon_stress_mpa(moved_cm1: float) -> float:
    """Return the uniaxial stress in MPa, tension positive, for a shift of silicon's line.

    It holds only relative to unstressed silicon in the same run: an axis calibrated by this same
    line shows no stress. Heat also moves the line, by -0.022 cm⁻¹ per kelvin.
    """
    return MPA_PER_CM1 * moved_cm1
