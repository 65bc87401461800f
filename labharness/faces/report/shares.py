"""What a film is, as the answer says it: the headline, and the share of each class as bars."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.words import PHRASES, both, say

__all__ = ["LAYER_CLASSES", "LAYER_COLOURS", "area", "headline", "share_bars"]

LAYER_CLASSES: Final = ("1", "2", "3", "4", "5", "6")
LAYER_COLOURS: Final = {
    1: "#0072b2", 2: "#009e73", 3: "#b8860b", 4: "#d55e00", 5: "#a0448a", 6: "#4d4d4d"
}  # fmt: skip

MENTIONED: Final = 0.05
"""A smaller share does not come into the headline of a mixed film."""


def headline(film: Mapping[str, Any], layer_count: object) -> Html:
    """Return what the film is."""
    key = f"claim_{film['claim']}"
    if key not in PHRASES:
        return both(film["headline"])
    name = say(f"film_{layer_count}") if layer_count is not None else ""
    return say(key, name=name, shares=joined(*_shares(film["of_film"])))


def _shares(of_film: Mapping[str, Mapping[str, float]]) -> Iterator[object]:
    named = sorted(of_film.items(), key=lambda each: -each[1]["share"])
    for at, (name, row) in enumerate(named):
        if row["share"] >= MENTIONED or at == 0:
            yield joined(", " if at else "", f"{row['share'] * 100:.0f} % ", say(f"class_{name}"))


def area(film: Mapping[str, Any]) -> Html:
    """Return how the surveyed area is shared out."""
    rows = film["of_area"]
    shown = [
        joined(say(f"class_{name}"), f" {rows[name] * 100:.0f} %")
        for name in LAYER_CLASSES
        if rows.get(name, 0.0) >= 0.005
    ]
    bare = film["bare"]
    said = f" {bare['share'] * 100:.0f} % ({_span(bare)})"
    shown.append(joined(say("area_bare"), said))
    if rows["not_judged"] >= 0.005:
        shown.append(joined(say("area_not_judged"), f" {rows['not_judged'] * 100:.0f} %"))
    return el("p", say("surveyed_area"), ": ", *_between(shown))


def _between(parts: Sequence[object]) -> Iterator[object]:
    for at, each in enumerate(parts):
        yield "; " if at else ""
        yield each


def _span(row: Mapping[str, float]) -> str:
    return f"{row['low'] * 100:.0f}–{row['high'] * 100:.0f} %"


def share_bars(of_film: Mapping[str, Mapping[str, float]]) -> Html:
    """Draw the share of each class in the film, and the interval that holds it with 90 %."""
    parts = []
    for index, name in enumerate(LAYER_CLASSES):
        row, left = of_film[name], 34.0 + 62.0 * index
        height, colour = 70.0 * row["share"], LAYER_COLOURS[index + 1]
        low, high = 88.0 - 70.0 * row["low"], 88.0 - 70.0 * row["high"]
        middle = left + 20
        parts.append(
            joined(
                el("rect", x=left, y=88.0 - height, width=40.0, height=height, fill=colour),
                el("line", x1=left, x2=left + 40, y1=88.0, y2=88.0, class_="axis"),
                el("line", x1=middle, x2=middle, y1=low, y2=high, class_="axis"),
                el(
                    "text",
                    f"{row['share'] * 100:.0f} %",
                    x=middle,
                    y=high - 4,
                    text_anchor="middle",
                ),
                el("text", name, x=middle, y=104.0, text_anchor="middle"),
            )
        )
    drawing = el("svg", *parts, viewBox="0 0 420 110", role="img", class_="posterior")
    return el("figure", el("figcaption", el("b", say("shares"))), drawing)
