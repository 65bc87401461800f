"""A fit of lines, drawn above its residuals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from labharness.faces.report import svg
from labharness.faces.report.html import Html, joined
from labharness.faces.report.legend import LegendEntry, legend_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FIT_PX: Final = 460.0
"""Width and height of the drawing."""

LEFT_PX, RIGHT_PX, TOP_PX = 62.0, FIT_PX - 14, 26.0
SPLIT_PX: Final = 310.0
"""Above it counts, below it residuals."""

FLOOR_PX: Final = FIT_PX - 42
RESIDUAL_SIGMA_MAX: Final = 6.0
"""A pixel further off is drawn at the edge."""

LEVEL_SHARE_MAX: Final = 0.4
"""Of the highest: with all above it an axis from zero would show a flat line."""

LETTER_PX, LINE_PX = 6.6, 15.0
"""Room that a letter of a label takes, and a line of them."""

LEGEND: Final = {"point": 8, "fitted": 3, "ground": 10}
"""Marks by their class in the style, each with the letters of its longest name."""

LEGEND_Y_PX: Final = 16.0

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Fitted:
    """One fit, for a drawing.

    Attributes:
        range: The ends of the axis across.
        points: Measured: place and counts.
        residuals: Place, and measured less fitted in units of one sigma.
        fitted: The fitted curve.
        ground: The background under the lines.
        labels: Place, height and name of each line.
    """

    range: tuple[float, float]
    points: Points
    residuals: Points
    fitted: Points
    ground: Points
    labels: Sequence[tuple[float, float, str]]


def fit_parts(
    drawn: Fitted, words: Callable[[str], Html], across: str = "shift_axis", up: str = "counts"
) -> Html:
    """Draw a fit into a square of ``FIT_PX``; the parts of a drawing, without its ``svg``.

    Args:
        drawn: At least two points.
        words: Returns the phrase of a key for a drawing.
        across: Key of the name of the axis across.
        up: Key of the name of the axis of counts.
    """
    x_scale = svg.Scale(*drawn.range, LEFT_PX, RIGHT_PX)
    heights = [y for _, y in (*drawn.points, *drawn.fitted, *drawn.ground)]
    above = svg.Frame(x_scale, svg.Scale(*span_of(heights), SPLIT_PX, TOP_PX))
    reach = RESIDUAL_SIGMA_MAX
    below = svg.Frame(x_scale, svg.Scale(-reach, reach, FLOOR_PX, SPLIT_PX + 12))
    key = [
        LegendEntry(words(f"legend_{name}"), letters, class_=name)
        for name, letters in LEGEND.items()
    ]
    return joined(
        above.axes([], svg.rounded_ticks(above.y.low, above.y.high, 5)),
        *(svg.dot(above.x(x), above.y(y)) for x, y in drawn.points),
        svg.curve(above, drawn.ground, math.inf, class_="ground"),
        svg.curve(above, drawn.fitted, math.inf, class_="fitted"),
        below.axes(svg.rounded_ticks(*drawn.range, 6), [(-3.0, "−3"), (0.0, "0"), (3.0, "3")]),
        *(
            svg.dot(below.x(x), below.y(min(max(sigma, -reach), reach)))
            for x, sigma in drawn.residuals
        ),
        *_labels(above, drawn.labels),
        legend_parts(key, LEFT_PX, LEGEND_Y_PX, RIGHT_PX - LEFT_PX),
        svg.axis_name(words(across), (LEFT_PX + RIGHT_PX) / 2, FIT_PX - 6),
        svg.upright_name(words(up), 12.0, 160.0),
        svg.upright_name(words("residual"), 12.0, 370.0),
    )


def pairs(x: "Array", y: "Array") -> list[tuple[float, float]]:
    """Return places and heights as points of a drawing."""
    return list(zip(x.tolist(), y.tolist(), strict=True))


def span_of(heights: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis of counts: from zero, or nearer on a high level."""
    low, high = min(heights), max(heights)
    if low > LEVEL_SHARE_MAX * high:
        room = 0.1 * (high - low) or 1.0
        return low - room, high + room
    low = min(low, 0.0)
    return low, high + (0.1 * (high - low) or 1.0)


def _labels(frame: svg.Frame, labels: Sequence[tuple[float, float, str]]) -> list[Html]:
    """Write each line's name above it, none over another one nor over the edge."""
    placed: list[tuple[float, float, float]] = []
    found = []
    for place, height, name in sorted(labels):
        half = LETTER_PX * len(name) / 2
        x = min(max(frame.x(place), LEFT_PX + half), max(RIGHT_PX - half, LEFT_PX + half))
        y = max(frame.y(height) - 6, TOP_PX + 10)
        for left, other_half, line in placed:
            if abs(x - left) < half + other_half and abs(y - line) < LINE_PX:
                y = line + LINE_PX if line - LINE_PX < TOP_PX + 10 else line - LINE_PX
        placed.append((x, half, y))
        found.append(svg.words_at(x, y, name, anchor="middle"))
    return found
