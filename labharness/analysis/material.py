"""What a spectrum shows, as far as its lines can tell: MoS2, WS2, carbon, silicon, or unknown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labharness.analysis.film import FILM_WINDOW_CM1, film_signal
from labharness.analysis.lines import LineWindow, fit_lines
from labharness.analysis.peaks import (
    A_LINE,
    E_LINE,
    PEAK_WINDOW_CM1,
    PeakFit,
    SiliconFit,
    cut_window,
)
from labharness.analysis.spectrum import Spectrum

__all__ = ["LaOverE", "Material", "Seen", "identify", "la_over_e"]


class Material(NamedTuple):
    """A name for people, and why no layers are counted of it."""

    name: str
    why_no_count: str


MOS2 = Material("MoS2", "")
WS2 = Material(
    "WS2",
    "it shows WS2, and only MoS2 has a table of layers here; a ratio 2LA(M)/A1' above 2 at "
    "514–532 nm suggests one layer (Berkdemir 2013, 10.1038/srep01755)",
)
GRAPHENE = Material("graphene", "it shows graphene, and only MoS2 has a table of layers here")
CARBON = Material(
    "disordered carbon", "it shows disordered carbon: neither graphene nor MoS2, so no layers"
)
SILICON = Material("silicon", "it shows silicon and no film")
UNKNOWN = Material(
    "unknown", "no line of MoS2 stands out, nor of another material that is known here"
)

HEIGHT_SIGMA_MIN = 6.0
"""A line stands this many of its own errors above its background."""

WS2_LINES = (
    ((320.0, 385.0), LineWindow(345.0, 358.0, 8.0)),
    ((400.0, 440.0), LineWindow(413.0, 423.0, 5.0)),
)
"""2LA(M) with E' at 351–357 cm⁻¹, A1' at 417.5–420.5; each in a range of its own."""

CARBON_RANGE_CM1 = (1150.0, 1750.0)
CARBON_LINES = (LineWindow(1290.0, 1375.0, 80.0, 300.0), LineWindow(1560.0, 1625.0, 40.0, 150.0))
"""D, 1330–1345 cm⁻¹ with the laser's colour, and G, 1581–1605."""

CARBON_SHARE_MIN = 0.02
"""A weak G beside a bright line is a trace on the sample or a curved background."""

TWO_D_RANGE_CM1 = (2550.0, 2800.0)
TWO_D_LINES = (LineWindow(2620.0, 2730.0, 40.0, 150.0),)

GRAPHENE_G_FWHM_MAX_CM1 = 25.0
GRAPHENE_2D_FWHM_MAX_CM1 = 75.0
GRAPHENE_D_OVER_G_MAX = 0.5
"""Graphene: G 12–16 cm⁻¹ wide, 2D 24–60 over one and more layers, D weak."""

LA_RANGE_CM1 = (205.0, 255.0)
LA_LINES = (LineWindow(219.0, 235.0, 15.0),)
"""LA(M) of MoS2 at 227 cm⁻¹."""

LA_SIGMA_MIN = 3.0


class LaOverE(NamedTuple):
    """Height of LA(M) over the height of E, 0 where LA(M) does not stand out, and its error."""

    ratio: float
    sigma: float


@dataclass(frozen=True, slots=True)
class Seen:
    """One fitted line: where, how wide, how high, and the error of the height."""

    position_cm1: float
    fwhm_cm1: float
    height_counts: float
    height_sigma_counts: float


def identify(spectrum: Spectrum, silicon: SiliconFit | None) -> Material:
    """Name the material when its lines stand out, on an axis already calibrated to silicon.

    A single line is never enough: both of MoS2, both of WS2, or D and G of carbon must be there.
    Graphene needs a narrow 2D line too.
    """
    axis = spectrum.shift_cm1
    covered = axis[0] <= FILM_WINDOW_CM1[0] and axis[-1] >= FILM_WINDOW_CM1[1]
    if covered and film_signal(spectrum).present:
        # A survey trusts its camera; the scale of a foreign file is a guess, so the lines are
        # asked again, against the misfit of their fit.
        mos2 = _seen(spectrum, PEAK_WINDOW_CM1, (E_LINE, A_LINE))
        if mos2 and all(map(_stands, mos2)):
            return MOS2
    ws2 = [_seen(spectrum, range_cm1, (line,)) for range_cm1, line in WS2_LINES]
    if all(found and _stands(found[0]) for found in ws2):
        return WS2
    carbon = _carbon(spectrum)
    if carbon is not None:
        return carbon
    return UNKNOWN if silicon is None else SILICON


def _carbon(spectrum: Spectrum) -> Material | None:
    found = _seen(spectrum, CARBON_RANGE_CM1, CARBON_LINES)
    if not found:
        return None
    d, g = found
    top = float(spectrum.counts.max() - np.median(spectrum.counts))
    if not _stands(g) or g.height_counts < CARBON_SHARE_MIN * top:
        return None
    two_d = _seen(spectrum, TWO_D_RANGE_CM1, TWO_D_LINES)
    if (
        two_d
        and _stands(two_d[0])
        and two_d[0].fwhm_cm1 < GRAPHENE_2D_FWHM_MAX_CM1
        and g.fwhm_cm1 < GRAPHENE_G_FWHM_MAX_CM1
        and d.height_counts < GRAPHENE_D_OVER_G_MAX * g.height_counts
    ):
        return GRAPHENE
    return CARBON if _stands(d) else None


def la_over_e(spectrum: Spectrum, fit: PeakFit) -> LaOverE | None:
    """Give LA(M)/E; None when the axis does not hold it or there is nothing to fit."""
    found = _seen(spectrum, LA_RANGE_CM1, LA_LINES)
    if not found or fit.e_height_counts <= 0:
        return None
    (la,) = found
    if la.height_counts <= LA_SIGMA_MIN * la.height_sigma_counts:
        return LaOverE(0.0, la.height_sigma_counts / fit.e_height_counts)
    ratio = la.height_counts / fit.e_height_counts
    relative = math.hypot(
        la.height_sigma_counts / la.height_counts, fit.e_height_sigma_counts / fit.e_height_counts
    )
    return LaOverE(ratio, ratio * relative)


def _stands(line: Seen) -> bool:
    return line.height_counts > HEIGHT_SIGMA_MIN * line.height_sigma_counts


def _seen(
    spectrum: Spectrum, range_cm1: tuple[float, float], windows: Sequence[LineWindow]
) -> tuple[Seen, ...]:
    """Fit lines within a range; empty when the axis does not cover it or the fit fails."""
    axis = spectrum.shift_cm1
    if axis[0] > range_cm1[0] or axis[-1] < range_cm1[1]:
        return ()
    x, counts, root_weight, _ = cut_window([spectrum], range_cm1)
    if x.size < 4 * (3 * len(windows) + 2) // 3:
        return ()
    fits = fit_lines(x, counts, root_weight, windows)
    if not fits.converged[0]:
        return ()
    freedom = max(int((root_weight > 0).sum()) - fits.parameters.shape[1], 1)
    inflation = max(1.0, float(fits.chi2[0]) / freedom)
    sigma = np.sqrt(np.maximum(np.diagonal(fits.covariance[0]), 0.0) * inflation)
    row = fits.parameters[0].tolist()
    return tuple(
        Seen(row[at + 1], row[at + 2], row[at], float(sigma[at]))
        for at in range(0, 3 * len(windows), 3)
    )
