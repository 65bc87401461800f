"""What may be called bare: a substrate on which a film, were it there, would have been seen."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.lines import LineWindow
from labharness.analysis.material_table import SAPPHIRE, SILICA, Material
from labharness.analysis.stack import Stack, covers, cut_window

__all__ = ["Bareness", "bareness"]

Array = NDArray[np.float64]

WITNESSES = {
    "MoS2": LineWindow(399.0, 411.0, 5.0),
    "WS2": LineWindow(347.0, 357.0, 7.0),
    "MoSe2": LineWindow(238.0, 245.0, 3.5),
    "WSe2": LineWindow(246.0, 253.0, 4.0),
    "MoTe2": LineWindow(231.0, 238.0, 4.0),
    "graphene": LineWindow(1570.0, 1600.0, 14.0),
    "graphite": LineWindow(1570.0, 1600.0, 14.0),
}
"""The line by which a film of each would show itself first, of one layer to bulk; positions and
widths are those of the table of materials. Of hBN a layer or three are too weak to be ruled out."""

ROOM_CM1 = 18.0
"""Background beside such a line, on which its height is measured."""

FILM_OVER_SUBSTRATE = {SAPPHIRE.name: 0.10, SILICA.name: 0.30}
FILM_OVER_SILICON = 0.03
"""The lowest film that is looked for, over the substrate's own line (the first of its row). One
layer of MoS2 has 0.12 of silicon on 285 nm of oxide, and a quarter of it where the oxide is of
another thickness. On what is transparent films are far brighter than their substrate. Judgement."""

SEEN_SIGMA = 6.0
"""A film would be seen where the lowest one looked for is so many errors high, as for its name."""

STANDS_SIGMA, STANDS_MISFIT, STANDS_SHARE = 5.0, 2.0, 0.15
"""What is so many errors high, stands so far out of what else the background does not explain, and
has this share of the lowest film is a line of something: nobody says there that nothing is."""

TRIED_STEP_CM1 = 1.0
WIDTH_MIN_PIXELS = 1.5

OWN_LINES_CM1 = {SAPPHIRE.name: (379.0, 418.0, 432.0, 449.0)}
"""Lines of a substrate beside those of films; there, only naming can tell the two apart."""


class Bareness(NamedTuple):
    """What spectra of a substrate say of films.

    Attributes:
        ruled_out: Films that are not there: most spectra would have shown them, and show nothing.
        not_seen: Films that would not have been seen.
        odd_cm1: Where something stands that has no name; None where nothing does.
        odd_rows: In how many spectra.
    """

    ruled_out: tuple[str, ...]
    not_seen: tuple[str, ...]
    odd_cm1: float | None
    odd_rows: int

    def said(self, substrate: str, rows: int) -> str:
        """Say in a sentence what there is on a substrate, as far as so many spectra tell."""
        if self.odd_cm1 is not None and 2 * self.odd_rows >= rows:
            return (
                f"it shows {substrate}; whether there is a film cannot be told: something weak "
                f"stands near {self.odd_cm1:.0f} cm⁻¹ that is no line of {substrate}"
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
    """Ask which films the spectra of a substrate rule out.

    Args:
        stack: Spectra in which the substrate was named and no film, cosmic rays and all.
        substrate: What they show.
        ruler_counts: Height of the substrate's own line in each, in electrons.
    """
    share = FILM_OVER_SUBSTRATE.get(substrate.name, FILM_OVER_SILICON)
    lowest = share * np.asarray(ruler_counts)
    ruled_out, not_seen = [], []
    odd: dict[float, int] = {}
    odd_rows = np.zeros(len(stack.counts), dtype=bool)
    for film, place in WITNESSES.items():
        looked = _looked(stack, place)
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


class _Looked(NamedTuple):
    """The best line in one place of each spectrum, and what noise lets be seen there."""

    position_cm1: Array
    height_counts: Array
    stands: NDArray[np.bool_]
    noise_counts: Array


def _looked(stack: Stack, place: LineWindow) -> _Looked | None:
    """Hold Lorentz lines at all places of a window against each spectrum, on a parabola."""
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
    # Where a cosmic ray was taken out, a line may have been.
    struck = window.cosmic[:, (x >= place.low_cm1) & (x <= place.high_cm1)].any(axis=1)
    left = np.maximum((rest**2).sum(axis=1) - height**2 * norm, 0.0) / max(x.size - 5, 1)
    return _Looked(
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
