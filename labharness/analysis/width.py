"""Limit the instrument's width to the narrowest line that it has shown."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from labharness.analysis.peaks import PeakFit, SiliconFit

__all__ = ["CLEAR_SNR_MIN", "bounded"]

CLEAR_SNR_MIN = 20.0
"""Only a line this clear limits the instrument's width; that of a weaker one is too uncertain."""


def bounded(
    silicon: Sequence[SiliconFit | None], fits: Iterable[PeakFit], others: Iterable[float] = ()
) -> list[SiliconFit | None]:
    """Return silicon's lines, each with the width of the narrowest line in the same spectra.

    Doped silicon is up to 11 cm⁻¹ wide and does not show the instrument's width.

    Args:
        silicon: The silicon line of each spectrum, or None.
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
    # The lowest tenth of a map: the narrowest of ten thousand fits is narrow by chance.
    narrowest = float(np.quantile(widths, 0.1))
    return [line and replace(line, narrowest_fwhm_cm1=narrowest) for line in silicon]
