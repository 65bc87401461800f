"""How wide the instrument may be: no wider than the narrowest line that it has shown."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from labharness.analysis.peaks import PeakFit, SiliconFit

__all__ = ["CLEAR_SNR_MIN", "bounded"]

CLEAR_SNR_MIN = 20.0
"""A line this clear bounds the instrument's width; the width of a weaker one may be anything."""


def bounded(
    silicon: Sequence[SiliconFit | None], fits: Iterable[PeakFit], others: Iterable[float] = ()
) -> list[SiliconFit | None]:
    """Return silicon's lines, each with the width of the narrowest line seen beside it.

    Doped silicon is up to 11 cm⁻¹ wide and no ruler of the instrument.

    Args:
        silicon: The line of each spectrum.
        fits: The film's lines in the same spectra.
        others: Widths of other clear lines in them, in cm⁻¹.
    """
    widths = [
        *others,
        *(
            min(fit.e_fwhm_cm1, fit.a_fwhm_cm1)
            for fit in fits
            if fit.converged and min(fit.snr_e, fit.snr_a) > CLEAR_SNR_MIN
        ),
    ]
    if not widths:
        return list(silicon)
    # Of a map the lowest tenth: the narrowest of ten thousand fits is the luckiest one.
    narrowest = float(np.quantile(widths, 0.1))
    return [line and replace(line, narrowest_fwhm_cm1=narrowest) for line in silicon]
