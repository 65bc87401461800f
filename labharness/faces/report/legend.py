"""What the marks of a drawing stand for, below or above it: the one place where that is drawn."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from labharness.faces.report.html import Html, el, joined

__all__ = ["LegendEntry", "legend_parts"]

LINE_PX, LETTER_PX = 14.0, 6.2
MARK_PX, GAP_PX = 18.0, 8.0
STROKE_PX: Final = 14.0


class LegendEntry(NamedTuple):
    """One mark and what it stands for.

    Attributes:
        label: Its words.
        letters: How many of them are seen at a time: of two languages one is hidden.
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
        mark = _mark(each, x, y)
        room = (MARK_PX if mark else 0.0) + LETTER_PX * each.letters + GAP_PX
        if x + room > left + width and x > left:
            x, y = left, y + LINE_PX
            mark = _mark(each, x, y)
        parts += mark
        parts.append(
            el("text", each.label, x=x + (MARK_PX - 4 if mark else 0.0), y=y, class_="small")
        )
        x += room
    return joined(*parts)


def _mark(entry: LegendEntry, x: float, y: float) -> list[Html]:
    if entry.class_ == "point":
        return [el("circle", cx=x + 5, cy=y - 4, r=1.8, class_="point")]
    if entry.class_:
        return [el("line", x1=x - 3, x2=x - 3 + STROKE_PX, y1=y - 4, y2=y - 4, class_=entry.class_)]
    if entry.colour:
        return [el("rect", x=x, y=y - 9, width=10.0, height=10.0, fill=entry.colour)]
    return []
