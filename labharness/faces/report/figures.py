"""Small drawings: curves on one pair of axes, a fit of lines above its residuals, their legends."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from labharness.faces.report import markup
from labharness.faces.report.markup import Html, box, dot, joined, level, words_at
from labharness.faces.report.words import say

if TYPE_CHECKING:
    from labharness.analysis.arrays import Array

LINE_PX, LETTER_PX = 14.0, 6.2
MARK_PX, GAP_PX = 18.0, 8.0
STROKE_PX: Final = 14.0


class LegendEntry(NamedTuple):
    """One mark and its meaning.

    Attributes:
        label: Its words.
        letters: Their number in the longer language; only one of two is seen.
        colour: Of a square; empty for none.
        class_: Of a line or a point in the style of drawings; empty for a square.
    """

    label: object
    letters: int
    colour: str = ""
    class_: str = ""


def legend_parts(entries: Sequence[LegendEntry], left: float, y: float, width: float) -> Html:
    """Draw entries beside each other, on as many lines as they take.

    Args:
        entries: In their order.
        left: Where each line begins.
        y: Base of the first line of words.
        width: Where a line ends, from ``left``.
    """
    parts: list[Html] = []
    x = left
    for each in entries:
        marked = each.class_ or each.colour
        room = (MARK_PX if marked else 0.0) + LETTER_PX * each.letters + GAP_PX
        if x + room > left + width and x > left:
            x, y = left, y + LINE_PX
        parts += _mark(each, x, y)
        parts.append(words_at(x + (MARK_PX - 4 if marked else 0.0), y, each.label, class_="small"))
        x += room
    return joined(*parts)


def _mark(entry: LegendEntry, x: float, y: float) -> list[Html]:
    if entry.class_ == "point":
        return [dot(x + 5, y - 4)]
    if entry.class_:
        return [level(y - 4, x - 3, x - 3 + STROKE_PX, entry.class_)]
    if entry.colour:
        return [box(x, y - 9, 10.0, 10.0, fill=entry.colour)]
    return []


WIDTH_PX, HEIGHT_PX = 460.0, 250.0
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 62.0, 8.0, 8.0, 42.0
HEADROOM: Final = 1.1


@dataclass(frozen=True, slots=True)
class Drawn:
    """One curve.

    Attributes:
        points: Place and height; NaN was not measured.
        class_: ``trace`` for what was measured, ``set`` for what was asked; ``trace over`` lets
            through what lies below it.
        gap: A longer stretch without points is left open, in the unit of the axis.
    """

    points: Sequence[tuple[float, float]]
    stroke: str = markup.COLOURS[0]
    class_: str = "trace"
    gap: float = math.inf


def axes_of(
    curves: Sequence[Drawn], across: tuple[float, float] | None = None
) -> markup.Frame | None:
    """Find the scales that show all of some curves; None where there is nothing to show.

    Args:
        curves: All that are drawn.
        across: The ends of the axis across; else those of the points.
    """
    places = [x for each in curves for x, _ in each.points]
    heights = [y for each in curves for _, y in each.points if not math.isnan(y)]
    if len(heights) < 2:
        return None
    low, high = across or (min(places), max(places))
    bottom, top = min(0.0, *heights), max(heights) * HEADROOM or 1.0
    return markup.Frame(
        markup.Scale(low, high, LEFT_PX, WIDTH_PX - RIGHT_PX),
        markup.Scale(bottom, top, HEIGHT_PX - BOTTOM_PX, TOP_PX),
    )


def curves_drawn(
    frame: markup.Frame,
    curves: Sequence[Drawn],
    marks: Sequence[Html] = (),
    *,
    across: str,
    up: str | None = None,
    ticks: Sequence[tuple[float, str]] | None = None,
) -> Html:
    """Draw curves.

    Args:
        frame: The result of ``axes_of``.
        curves: In the order in which they lie on one another.
        marks: Lines and words on top of them.
        across: Key of the name of the axis across.
        up: Key of the name of the axis upwards; the caption may have its unit.
        ticks: Those of the axis across, where its values are not plain numbers.
    """
    along = frame.x.ticks(6) if ticks is None else ticks
    parts = [frame.axes(along, frame.y.ticks(5))]
    for each in curves:
        style = {"stroke": each.stroke, "class_": each.class_}
        parts.append(markup.curve(frame, each.points, each.gap, **style))
    parts += marks
    centre = (frame.x.start_px + frame.x.end_px) / 2
    parts.append(markup.axis_name(say(across, tag="tspan"), centre, HEIGHT_PX - 6))
    if up is not None:
        parts.append(markup.upright_name(say(up, tag="tspan"), 12.0, HEIGHT_PX / 2 - 16))
    return markup.drawing(parts, WIDTH_PX, HEIGHT_PX)


FIT_PX: Final = 460.0
"""Width and height of the drawing."""

FIT_LEFT_PX, FIT_RIGHT_PX, FIT_TOP_PX = 62.0, FIT_PX - 14, 26.0
SPLIT_PX: Final = 310.0
"""Above it counts, below it residuals."""

FLOOR_PX: Final = FIT_PX - 42
RESIDUAL_SIGMA_MAX: Final = 6.0
"""A pixel further off is drawn at the edge."""

LEVEL_SHARE_MAX: Final = 0.4
"""Of the highest: with all above it an axis from zero would show a flat line."""

NAME_LETTER_PX, NAME_LINE_PX = 6.6, 15.0
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
    x_scale = markup.Scale(*drawn.range, FIT_LEFT_PX, FIT_RIGHT_PX)
    heights = [y for _, y in (*drawn.points, *drawn.fitted, *drawn.ground)]
    above = markup.Frame(x_scale, markup.Scale(*span_of(heights), SPLIT_PX, FIT_TOP_PX))
    reach = RESIDUAL_SIGMA_MAX
    below = markup.Frame(x_scale, markup.Scale(-reach, reach, FLOOR_PX, SPLIT_PX + 12))
    named = ((words(f"legend_{name}"), letters, "", name) for name, letters in LEGEND.items())
    key = [LegendEntry(*each) for each in named]
    return joined(
        above.axes([], above.y.ticks(5)),
        *(markup.dot(above.x(x), above.y(y)) for x, y in drawn.points),
        markup.curve(above, drawn.ground, math.inf, class_="ground"),
        markup.curve(above, drawn.fitted, math.inf, class_="fitted"),
        below.axes(markup.rounded_ticks(*drawn.range, 6), [(-3.0, "−3"), (0.0, "0"), (3.0, "3")]),
        *(
            markup.dot(below.x(x), below.y(min(max(sigma, -reach), reach)))
            for x, sigma in drawn.residuals
        ),
        *_labels(above, drawn.labels),
        legend_parts(key, FIT_LEFT_PX, LEGEND_Y_PX, FIT_RIGHT_PX - FIT_LEFT_PX),
        markup.axis_name(words(across), (FIT_LEFT_PX + FIT_RIGHT_PX) / 2, FIT_PX - 6),
        markup.upright_name(words(up), 12.0, 160.0),
        markup.upright_name(words("residual"), 12.0, 370.0),
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


def _labels(frame: markup.Frame, labels: Sequence[tuple[float, float, str]]) -> list[Html]:
    """Write each line's name above it, none over another one nor over the edge."""
    placed: list[tuple[float, float, float]] = []
    found = []
    for place, height, name in sorted(labels):
        half = NAME_LETTER_PX * len(name) / 2
        least = FIT_LEFT_PX + half
        x = min(max(frame.x(place), least), max(FIT_RIGHT_PX - half, least))
        y = max(frame.y(height) - 6, FIT_TOP_PX + 10)
        for left, other_half, line in placed:
            if abs(x - left) < half + other_half and abs(y - line) < NAME_LINE_PX:
                down = line - NAME_LINE_PX < FIT_TOP_PX + 10
                y = line + NAME_LINE_PX if down else line - NAME_LINE_PX
        placed.append((x, half, y))
        found.append(markup.words_at(x, y, name, anchor="middle"))
    return found
