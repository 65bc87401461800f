"""Calibrate a microscope with a known monolayer: its A1g/silicon and PL/Raman."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labharness.analysis.film import peak_height
from labharness.analysis.layers import SpotEvidence, judge_layers
from labharness.core.vocabulary.texts import CodedError, Text

REPEAT_LN = 0.1
"""Day-to-day scatter of a ratio on one microscope, by focus and alignment. Judgement."""

SPOTS_MIN = 3
SEPARATION_MAX_CM1 = 21.0
"""A strained monolayer stays below (CVD row, two standard deviations); two layers lie above."""


class NotOneLayer(CodedError, ValueError, code="not_one_layer"):
    """The spectra cannot calibrate; the message says why."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A ratio of one layer: the median over the spots, and one standard deviation of it."""

    value: float
    uncertainty: float
    spots: int


@dataclass(frozen=True, slots=True)
class Glow:
    """Photoluminescence of a spot: wavelengths in nm, counts without dark, exposure in s."""

    wavelength_nm: Sequence[float]
    counts: Sequence[float]
    exposure_s: float


def a1g_si_of(spots: Sequence[SpotEvidence]) -> Calibration:
    """Return A1g/silicon of a film of one layer.

    Raises:
        NotOneLayer: Too few spots can be judged, they show no silicon, or look thicker.
    """
    found = judge_layers(spots, None)
    good = [spot for spot, name in zip(spots, found.spot_classes, strict=True) if name is not None]
    if len(good) < SPOTS_MIN:
        why = Text("calibration.why", reasons=found.reasons) if found.reasons else ""
        raise NotOneLayer(
            "calibration.spots", good=len(good), spots=len(spots), least=SPOTS_MIN, why=why
        )
    thick = [spot for spot in good if spot.fit.separation_cm1 > SEPARATION_MAX_CM1]
    if thick:
        raise NotOneLayer(
            "calibration.thick", most=SEPARATION_MAX_CM1, thick=len(thick), good=len(good)
        )
    ratios = [
        spot.fit.a.height_counts / spot.silicon.height_counts
        for spot in good
        if spot.silicon is not None
    ]
    if len(ratios) < SPOTS_MIN:
        raise NotOneLayer("calibration.no_silicon")
    return _calibration(ratios)


def pl_raman_of(
    spots: Sequence[tuple[SpotEvidence, float]], glows: Sequence[Glow]
) -> Calibration | None:
    """Return PL/Raman of a film of one layer; None if too few spots shine.

    The height is a Gaussian on a constant (`peak_height`), as in a growth: a number of this
    microscope and grating. A grating of 1800 lines/mm shows 18 nm at once, the middle of a band
    that is as wide and has broader feet. The part under the middle then counts as background: the
    simulated 20 reads 14 here, and also in a growth.

    Args:
        spots: Raman of a spot and its exposure in s.
        glows: Photoluminescence of the same spots, in the same order.
    """
    ratios = []
    for (spot, exposure_s), glow in zip(spots, glows, strict=False):
        height = peak_height(np.asarray(glow.wavelength_nm), np.asarray(glow.counts))
        if height > 0 and spot.fit.a.height_counts > 0:
            ratios.append(height / glow.exposure_s * exposure_s / spot.fit.a.height_counts)
    return _calibration(ratios) if len(ratios) >= SPOTS_MIN else None


def _calibration(ratios: Sequence[float]) -> Calibration:
    ln = np.log(ratios)
    value = math.exp(float(np.median(ln)))
    spread = float(np.std(ln, ddof=1)) / math.sqrt(ln.size)
    return Calibration(value, value * math.hypot(spread, REPEAT_LN), int(ln.size))
