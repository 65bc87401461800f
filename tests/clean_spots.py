"""One clean spot of a film, as the fits of a good spectrum give it."""

from dataclasses import replace
from typing import Any

from labharness.analysis.layers import SpotEvidence
from labharness.analysis.lines import SeenLine
from labharness.analysis.peaks import PeakFit, SiliconFit

CLEAN = PeakFit(
    e=SeenLine(384.1, 0.15, 3.2, 0.1, 1700.0, 30.0),
    a=SeenLine(404.0, 0.13, 4.8, 0.1, 4400.0, 40.0),
    separation_cm1=19.9,
    separation_sigma_cm1=0.2,
    snr_e=60.0,
    snr_a=150.0,
    reduced_chi2=1.0,
    converged=True,
    cosmic_near_line=False,
    pixel_cm1=0.6,
)
SILICON = SiliconFit(
    position_cm1=520.7,
    position_sigma_cm1=0.01,
    fwhm_cm1=3.4,
    fwhm_sigma_cm1=0.01,
    height_counts=4400.0 / 0.12,
    height_sigma_counts=100.0,
)


def spot(
    separation_cm1: float = 19.9,
    *,
    a1g_si: float | None = None,
    pl: float | None = None,
    **changes: Any,
) -> SpotEvidence:
    """One clean spot; without ``a1g_si`` there is no silicon line."""
    fit = replace(CLEAN, separation_cm1=separation_cm1, **changes)
    silicon = (
        None if a1g_si is None else replace(SILICON, height_counts=fit.a.height_counts / a1g_si)
    )
    return SpotEvidence(fit, silicon, pl)
