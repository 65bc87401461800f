"""The headline of a film, and the share of each class of layers in it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from labharness.faces.report.html import Html, joined
from labharness.faces.report.svg import box, drawing, level, upright, words_at
from labharness.faces.report.words import both, phrase, say

LAYER_CLASSES: Final = ("1", "2", "3", "4", "5", "6")
LAYER_COLOURS: Final = {
    1: "#0072b2", 2: "#009e73", 3: "#b8860b", 4: "#d55e00", 5: "#a0448a", 6: "#4d4d4d"
}  # fmt: skip

MENTIONED: Final = 0.05
"""A smaller share does not come into the headline of a mixed film."""

NAMED: Final = 0.005
"""A smaller share of the surveyed area is 0 %."""


def headline(film: Mapping[str, Any], layer_count: object) -> Html:
    """Return the claim of the answer in one sentence."""
    key = f"claim_{film['claim']}"
    if not phrase(key):
        return both(film["headline"])
    name = say(f"film_{layer_count}") if layer_count is not None else ""
    return say(key, name=name, shares=joined(*_shares(film["of_film"]), between=", "))


def _shares(of_film: Mapping[str, Mapping[str, float]]) -> Iterator[Html]:
    named = sorted(of_film.items(), key=lambda each: -each[1]["share"])
    for at, (name, row) in enumerate(named):
        if row["share"] >= MENTIONED or at == 0:
            yield joined(f"{row['share'] * 100:.0f} % ", say(f"class_{name}"))


def area_parts(film: Mapping[str, Any]) -> list[Html]:
    """Return the share of each class in the surveyed area."""
    rows, bare = film["of_area"], film["bare"]
    named = {f"class_{name}": rows.get(name, 0.0) for name in LAYER_CLASSES}
    shown = [_part(key, share) for key, share in named.items() if share >= NAMED]
    shown.append(joined(_part("area_bare", bare["share"]), f" ({_span(bare)})"))
    if rows["not_judged"] >= NAMED:
        shown.append(_part("area_not_judged", rows["not_judged"]))
    return shown


def _part(key: str, share: float) -> Html:
    return joined(say(key), f" {share * 100:.0f} %")


def _span(row: Mapping[str, float]) -> str:
    return f"{row['low'] * 100:.0f}–{row['high'] * 100:.0f} %"


def share_bars(of_film: Mapping[str, Mapping[str, float]]) -> Html:
    """Draw the share of each class in the film, and the interval that holds it with 90 %."""
    parts = []
    for index, name in enumerate(LAYER_CLASSES):
        row, left = of_film[name], 34.0 + 62.0 * index
        height, middle = 70.0 * row["share"], left + 20
        low, high = 88.0 - 70.0 * row["low"], 88.0 - 70.0 * row["high"]
        parts += [
            box(left, 88.0 - height, 40.0, height, fill=LAYER_COLOURS[index + 1]),
            level(88.0, left, left + 40, "axis"),
            upright(middle, low, high, "axis"),
            words_at(middle, high - 4, f"{row['share'] * 100:.0f} %", anchor="middle"),
            words_at(middle, 104.0, name, anchor="middle"),
        ]
    return drawing(parts, 420, 110, class_="posterior")
