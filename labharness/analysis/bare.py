"""Decide which films are ruled out on a substrate: those that the spectra would have shown."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array, Mask
from labharness.analysis.lines import LineWindow
from labharness.analysis.material_table import SAPPHIRE, SILICA, Material
from labharness.analysis.stack import Stack, covers, cut_window

WITNESSES = {
    "MoS2": LineWindow(399.0, 411.0, 5.0),
    "WS2": LineWindow(347.0, 357.0, 7.0),
    "MoSe2": LineWindow(238.0, 245.0, 3.5),
    "WSe2": LineWindow(246.0, 253.0, 4.0),
    "MoTe2": LineWindow(231.0, 238.0, 4.0),
    "graphene": LineWindow(1570.0, 1600.0, 14.0),
    "graphite": LineWindow(1570.0, 1600.0, 14.0),
}
"""The line that shows a film of each first, from one layer to bulk; positions and widths as in the
table of materials. One to three layers of hBN are too weak to be ruled out."""

ROOM_CM1 = 18.0
"""Background beside such a line; its height is measured on it."""

FILM_OVER_SUBSTRATE = {SAPPHIRE.name: 0.10, SILICA.name: 0.30}
FILM_OVER_SILICON = 0.03
"""The weakest film to look for, relative to the substrate's own line (the first of its row). One
layer of MoS2 has 0.12 of silicon on 285 nm of oxide, and a quarter of it on oxide of another
thickness. On transparent substrates films are far brighter than the substrate. Judgement."""

SEEN_SIGMA = 6.0
"""A film would be seen if the weakest one has this many errors, as for its name."""

STANDS_SIGMA, STANDS_MISFIT, STANDS_SHARE = 5.0, 2.0, 0.15
"""An unknown line must have this many errors, exceed the misfit of the background by this factor,
and have this share of the weakest film. Then the place is not called bare."""

TRIED_STEP_CM1 = 1.0
WIDTH_MIN_PIXELS = 1.5

OWN_LINES_CM1 = {SAPPHIRE.name: (379.0, 418.0, 432.0, 449.0)}
"""Lines of a substrate beside those of films; there, only naming can tell the two apart."""


class Bareness(NamedTuple):
    """The films that spectra of a substrate rule out.

    Attributes:
        ruled_out: Films that most spectra would have shown, and do not show.
        not_seen: Films that would not have been seen.
        odd_cm1: Position of an unknown line, or None.
        odd_rows: Number of spectra that show it.
    """

    ruled_out: tuple[str, ...]
    not_seen: tuple[str, ...]
    odd_cm1: float | None
    odd_rows: int

    def said(self, substrate: str, rows: int) -> str:
        """Return one sentence about the films on a substrate, for this number of spectra."""
        if self.odd_cm1 is not None and 2 * self.odd_rows >= rows:
            return (
                f"it shows {substrate}; whether there is a film cannot be told: something weak "
                f"stands near {self.odd_cm1:.0f} cm⁻¹ that is not a line of {substrate}"
            )
        if not self.ruled_out:
            return (
                f"it shows {substrate}; whether there is a film cannot be told: "
                "none that is known here would have been seen in this range and this noise"
            )
        text = f"it shows {substrate} and no film of {_listed(self.ruled_out, 'or')}"
        if self.not_seen:
            text += f"; {_listed(self.not_seen, 'or')} would not have been seen"
        if self.odd_cm1 is not None:
            text += (
                f"; in {self.odd_rows} of {rows} spectra something weak stands near "
                f"{self.odd_cm1:.0f} cm⁻¹"
            )
        return text


def bareness(stack: Stack, substrate: Material, ruler_counts: Sequence[float]) -> Bareness:
    """Return which films the spectra of a substrate rule out.

    Args:
        stack: Spectra with the substrate and without a named film, cosmic rays included.
        substrate: The substrate.
        ruler_counts: Height of the substrate's own line in each, in electrons.
    """
    share = FILM_OVER_SUBSTRATE.get(substrate.name, FILM_OVER_SILICON)
    lowest = share * np.asarray(ruler_counts)
    ruled_out, not_seen = [], []
    odd: dict[float, int] = {}
    odd_rows = np.zeros(len(stack.counts), dtype=bool)
    for film, place in WITNESSES.items():
        looked = _witness_line(stack, place)
        if looked is None or np.median(SEEN_SIGMA * looked.noise_counts < lowest) < 1:
            not_seen.append(film)
        else:
            ruled_out.append(film)
        if looked is None or _is_beside(place, OWN_LINES_CM1.get(substrate.name, ())):
            continue
        stands = looked.stands & (looked.height_counts > STANDS_SHARE * lowest)
        odd_rows |= stands
        if stands.any():
            odd[float(np.median(looked.position_cm1[stands]))] = int(stands.sum())
    return Bareness(
        tuple(ruled_out),
        (*not_seen, "thin hBN"),
        max(odd, key=lambda at: odd[at]) if odd else None,
        int(odd_rows.sum()),
    )


class _WitnessLine(NamedTuple):
    """The best line in one place of each spectrum, and the noise there."""

    position_cm1: Array
    height_counts: Array
    stands: Mask
    noise_counts: Array


def _witness_line(stack: Stack, place: LineWindow) -> _WitnessLine | None:
    """Fit Lorentz lines at all places of a window to each spectrum, on a parabola."""
    low, high = place.low_cm1 - ROOM_CM1, place.high_cm1 + ROOM_CM1
    if not covers(stack.shift_cm1, place.low_cm1 - ROOM_CM1 / 2, place.high_cm1 + ROOM_CM1 / 2, 8):
        return None
    window = cut_window(stack, (low, high))
    x = window.shift_cm1
    pixel = float(np.median(np.diff(x)))
    tried = np.arange(place.low_cm1, place.high_cm1 + TRIED_STEP_CM1, TRIED_STEP_CM1)
    half = max(place.fwhm_cm1, WIDTH_MIN_PIXELS * pixel) / 2
    u = (x - x.mean()) / np.ptp(x)
    background, _ = np.linalg.qr(np.stack([u**0, u, u**2], axis=1))
    lines = 1 / (1 + ((x - tried[:, None]) / half) ** 2)
    lines -= (lines @ background) @ background.T
    square = (lines**2).sum(axis=1)
    rest = window.counts - (window.counts @ background) @ background.T
    heights = rest @ lines.T / square
    best = np.argmax(heights * np.sqrt(square), axis=1)
    rows = np.arange(len(rest))
    height, norm = heights[rows, best], square[best]
    quiet = np.where(window.root_noise > 0, window.root_noise, np.nan)
    noise = 1 / np.nanmedian(quiet, axis=1)
    # A removed cosmic ray may have hidden a line.
    struck = window.cosmic[:, (x >= place.low_cm1) & (x <= place.high_cm1)].any(axis=1)
    left = np.maximum((rest**2).sum(axis=1) - height**2 * norm, 0.0) / max(x.size - 5, 1)
    return _WitnessLine(
        tried[best],
        height,
        height * np.sqrt(norm) > np.maximum(STANDS_SIGMA * noise, STANDS_MISFIT * np.sqrt(left)),
        np.where(struck, np.inf, noise / np.sqrt(float(np.median(square)))),
    )


def _is_beside(place: LineWindow, lines_cm1: Sequence[float]) -> bool:
    low, high = place.low_cm1 - ROOM_CM1, place.high_cm1 + ROOM_CM1
    return any(low <= line <= high for line in lines_cm1)


def _listed(names: Sequence[str], last: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
