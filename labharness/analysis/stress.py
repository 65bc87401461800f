"""How far the stress of silicon moves its line, and how much stress a moved line would mean."""

__all__ = ["MPA_PER_CM1", "silicon_stress_mpa"]

MPA_PER_CM1 = -434.0
"""Uniaxial stress along [100] in backscattering from (001): De Wolf 1996,
10.1088/0268-1242/11/2/001. Of a biaxial stress it is the sum of both components."""


def silicon_stress_mpa(moved_cm1: float) -> float:
    """Return the uniaxial stress in MPa, tension positive, that moves silicon by so much.

    Only against silicon without stress in the same run: an axis that was put right by this very
    line shows none. Heat moves the line as well, by -0.022 cm⁻¹ per kelvin.
    """
    return MPA_PER_CM1 * moved_cm1
