"""Text of a measured number: its digits end where those of its error end."""

import math

ERROR_DIGITS = 2
"""Digits of the error; the value ends at the same decimal (JCGM 100:2008, 7.2.6)."""

DECIMALS_MAX = 6
"""With more decimals, value and error are written with an exponent."""


def measured_text(value: float, sigma: float) -> str:
    """Write a value with one sigma: 384.123 and 0.0312 is ``384.123 ± 0.031``.

    A value that is not finite is a dash, and so is an error that is not finite.
    """
    if not math.isfinite(value):
        return "–"
    if not (math.isfinite(sigma) and sigma > 0):
        return f"{value:.6g} ± –"
    power = ERROR_DIGITS - 1 - math.floor(math.log10(sigma))
    if power <= 0:
        return f"{round(value, power):.0f} ± {round(sigma, power):.0f}"
    if power > DECIMALS_MAX:
        digits = max(math.floor(math.log10(max(abs(value), sigma))) + power, 0)
        return f"{value:.{digits}e} ± {sigma:.{ERROR_DIGITS - 1}e}"
    return f"{value:.{power}f} ± {sigma:.{power}f}"
