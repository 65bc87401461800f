"""The legend of a drawing: its marks and their meaning, on one or more lines."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from labharness.faces.report.html import Html, joined
from labharness.faces.report.svg import box, dot, level, words_at

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
        mark = _mark(each, x, y)
        room = (MARK_PX if mark else 0.0) + LETTER_PX * each.letters + GAP_PX
        if x + room > left + width and x > left:
            x, y = left, y + LINE_PX
            mark = _mark(each, x, y)
        parts += mark
        parts.append(words_at(x + (MARK_PX - 4 if mark else 0.0), y, each.label, class_="small"))
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
