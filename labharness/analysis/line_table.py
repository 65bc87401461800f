"""Which lines of which material are measured, and where: what a table of peaks has rows of."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.lines import LineWindow
from labharness.analysis.material import (
    CARBON,
    CARBON_LINES,
    CARBON_RANGE_CM1,
    GRAPHENE,
    MOS2,
    SILICON,
    TWO_D_LINES,
    TWO_D_RANGE_CM1,
    WS2,
    WS2_LINES,
)
from labharness.analysis.peaks import (
    A_LINE,
    E_LINE,
    PEAK_WINDOW_CM1,
    SILICON_LINE,
    SILICON_WINDOW_CM1,
)

__all__ = ["MATERIALS", "SILICON_NAME", "FitRange", "NamedLine", "Ratio", "ranges_of", "ratio_of"]

WIDEST_SHARE, START_SHARE = 1.0, 0.125
"""Of a range that a person names: how wide its one line may be, and where the fit starts."""

PIXELS_A_PARAMETER = 4 / 3
"""Fewer leave a fit no freedom to be tested; as for naming a material."""


class NamedLine(NamedTuple):
    """A line as its field calls it, and where it may lie."""

    name: str
    window: LineWindow


class FitRange(NamedTuple):
    """Lines that are fitted together on one background, within a range in cm⁻¹."""

    range_cm1: tuple[float, float]
    lines: tuple[NamedLine, ...]


class Ratio(NamedTuple):
    """Two lines whose heights are compared."""

    above: str
    below: str


_CARBON = (
    FitRange(CARBON_RANGE_CM1, tuple(map(NamedLine, ("D", "G"), CARBON_LINES))),
    FitRange(TWO_D_RANGE_CM1, (NamedLine("2D", TWO_D_LINES[0]),)),
)
_SILICON_RANGE = FitRange(SILICON_WINDOW_CM1, (NamedLine("Si", SILICON_LINE),))
_RANGES: dict[str, tuple[FitRange, ...]] = {
    MOS2.name: (FitRange(PEAK_WINDOW_CM1, (NamedLine("E2g", E_LINE), NamedLine("A1g", A_LINE))),),
    WS2.name: (
        FitRange(WS2_LINES[0][0], (NamedLine("2LA(M)+E'", WS2_LINES[0][1]),)),
        FitRange(WS2_LINES[1][0], (NamedLine("A1'", WS2_LINES[1][1]),)),
    ),
    GRAPHENE.name: _CARBON,
    CARBON.name: _CARBON,
    SILICON.name: (),
}
_RATIOS = {
    MOS2.name: Ratio("A1g", "E2g"),
    WS2.name: Ratio("2LA(M)+E'", "A1'"),
    GRAPHENE.name: Ratio("2D", "G"),
    CARBON.name: Ratio("D", "G"),
}

MATERIALS = tuple(_RANGES)
"""Those whose lines are known here."""

SILICON_NAME = SILICON.name


def ratio_of(material: str) -> Ratio | None:
    """Name the ratio of heights that people look for in a material; None where there is none."""
    return _RATIOS.get(material)


def ranges_of(
    material: str,
    axis_cm1: NDArray[np.float64],
    windows_cm1: Sequence[tuple[float, float]] = (),
) -> tuple[FitRange, ...]:
    """Say what is fitted on an axis: the material's lines and silicon's, or a person's ranges.

    Of a range that a person names those lines of material and silicon are fitted that may lie in
    it; where there are none, its highest line. A range that the axis ends in is cut there; a line
    that may lie beyond the axis is not fitted, nor is one with too few pixels.

    Args:
        material: As the analysis names it; of one without lines here silicon is left.
        axis_cm1: Shift of each pixel, ascending.
        windows_cm1: Ranges a person names, each from low to high.
    """
    known = (*_RANGES.get(material, ()), _SILICON_RANGE)
    if windows_cm1:
        first, last = float(axis_cm1[0]), float(axis_cm1[-1])
        cut = ((max(low, first), min(high, last)) for low, high in windows_cm1)
        known = tuple(_asked(each, known) for each in cut if each[0] < each[1])
    found = (_on(axis_cm1, each) for each in known)
    return tuple(each for each in found if each.lines)


def _asked(window_cm1: tuple[float, float], known: Sequence[FitRange]) -> FitRange:
    low, high = window_cm1
    lines = tuple(
        line
        for each in known
        for line in each.lines
        if low <= line.window.low_cm1 and line.window.high_cm1 <= high
    )
    if not lines:
        span = high - low
        window = LineWindow(low, high, START_SHARE * span, WIDEST_SHARE * span)
        lines = (NamedLine(f"{low:g}-{high:g}", window),)
    return FitRange(window_cm1, lines)


def _on(axis_cm1: NDArray[np.float64], wanted: FitRange) -> FitRange:
    low = max(wanted.range_cm1[0], float(axis_cm1[0]))
    high = min(wanted.range_cm1[1], float(axis_cm1[-1]))
    lines = tuple(
        line for line in wanted.lines if low <= line.window.low_cm1 and line.window.high_cm1 <= high
    )
    pixels = int(((axis_cm1 >= low) & (axis_cm1 <= high)).sum())
    if pixels < PIXELS_A_PARAMETER * (3 * len(lines) + 2):
        return FitRange((low, high), ())
    return FitRange((low, high), lines)
