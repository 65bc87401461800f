"""A small drawing of curves on one pair of axes: a spectrum, or one channel of two runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from labharness.faces.report import svg
from labharness.faces.report.html import Html
from labharness.faces.report.words import say

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
    stroke: str = svg.COLOURS[0]
    class_: str = "trace"
    gap: float = math.inf


def axes_of(curves: Sequence[Drawn], across: tuple[float, float] | None = None) -> svg.Frame | None:
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
    return svg.Frame(
        svg.Scale(low, high, LEFT_PX, WIDTH_PX - RIGHT_PX),
        svg.Scale(
            min(0.0, *heights), max(heights) * HEADROOM or 1.0, HEIGHT_PX - BOTTOM_PX, TOP_PX
        ),
    )


def curves_drawn(
    frame: svg.Frame,
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
    along = svg.rounded_ticks(frame.x.low, frame.x.high, 6) if ticks is None else ticks
    parts = [frame.axes(along, svg.rounded_ticks(frame.y.low, frame.y.high, 5))]
    for each in curves:
        parts.append(
            svg.curve(frame, each.points, each.gap, stroke=each.stroke, class_=each.class_)
        )
    parts += marks
    centre = (frame.x.start_px + frame.x.end_px) / 2
    parts.append(svg.axis_name(say(across, tag="tspan"), centre, HEIGHT_PX - 6))
    if up is not None:
        parts.append(svg.upright_name(say(up, tag="tspan"), 12.0, HEIGHT_PX / 2 - 16))
    return svg.drawing(parts, WIDTH_PX, HEIGHT_PX)
