"""Elements of markup, and charts as inline SVG; recorded text in them is escaped.

Scales, axes and curves keep every extreme.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Final

from labharness.core.vocabulary.durations import clock_text

TEXT_CHARACTERS_MAX: Final = 4000
"""Characters of one recorded text that a page shows; the journal keeps all of it."""

# Controls break markup, lone surrogates have no UTF-8, and direction overrides (Unicode TR 36) can
# make a reader see another text than the one that was recorded.
_UNSHOWABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


class Html(str):
    """Text that is markup already; templates know it by `__html__`."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return it as it is."""
        return self


def text(raw: object) -> Html:
    """Return any value as text that is safe between tags and within quotes, bounded in length."""
    shown = str(raw)
    if len(shown) > TEXT_CHARACTERS_MAX:
        shown = f"{shown[:TEXT_CHARACTERS_MAX]}… (+{len(shown) - TEXT_CHARACTERS_MAX})"
    return Html(escape(_UNSHOWABLE.sub("\ufffd", shown)).replace("&#x27;", "&#39;"))


def escaped(value: object) -> object:
    """Return a value as a page shows it: markup unchanged, anything else as safe text."""
    return value if hasattr(value, "__html__") else text(value)


def joined(*parts: object, between: str = "") -> Html:
    """Put parts one after the other; what is not ``Html`` is escaped."""
    return Html(between.join(str(escaped(part)) for part in parts))


def el(tag: str, *children: object, **attributes: object) -> Html:
    """Return one element of a drawing or a sentence; pages and tables are templates.

    Args:
        tag: Its name; from this program, never from a file.
        children: Its content; escaped unless it is ``Html``.
        attributes: ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``; ``None`` is
            left out; a float is written to a tenth, which is finer than a pixel. ``Html`` is
            written unchanged, so it must hold no quotes: the points of a curve.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{written}>{joined(*children)}</{tag}>")


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(escaped(value))


COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#8a4f9e", "#a6761d", "#4d4d4d")
"""Told apart by the colour-blind too (Okabe and Ito 2008), darkened where paper needs it."""

COLUMN_PX: Final = 1.5
"""Two extremes this near are one stroke of the pen."""

GAP_S_MAX: Final = 120.0
"""A silence longer than this is a gap in the curve, no straight line: two minutes of polls."""

MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880)


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight map from values to pixels."""

    low: float
    high: float
    start_px: float
    end_px: float

    def __call__(self, value: float) -> float:
        """Return the place of a value in px."""
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return self.start_px + share * (self.end_px - self.start_px)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """Return about ``count`` ticks at 1, 2 or 5 times a power of ten."""
        return rounded_ticks(self.low, self.high, count)


@dataclass(frozen=True, slots=True)
class Frame:
    """The place of a plot within its drawing, in px, with its two scales."""

    x: Scale
    y: Scale

    def axes(
        self, x_ticks: Iterable[tuple[float, str]], y_ticks: Iterable[tuple[float, str]]
    ) -> Html:
        """Draw the frame, its ticks and the numbers beside them."""
        left, right = self.x.start_px, self.x.end_px
        bottom, top = self.y.start_px, self.y.end_px
        parts = []
        for value, label in y_ticks:
            at = self.y(value)
            parts.append(level(at, left, right, "grid"))
            parts.append(words_at(left - 6, at + 4, label, anchor="end"))
        for value, label in x_ticks:
            at = self.x(value)
            parts.append(upright(at, bottom, bottom + 4, "axis"))
            parts.append(axis_name(label, at, bottom + 17))
        edge = box(left, top, right - left, bottom - top, class_="axis", fill="none")
        return joined(*parts, edge)


def drawing(parts: Iterable[object], width: float, height: float, **more: object) -> Html:
    """Return a drawing of its parts."""
    return el("svg", *parts, viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", **more)


def words_at(x: float, y: float, *said: object, anchor: str | None = None, **more: object) -> Html:
    """Write words that begin, end or have their middle at a place; `anchor` is SVG's."""
    return el("text", *said, x=x, y=y, text_anchor=anchor, **more)


def axis_name(name: object, x: float, y: float) -> Html:
    """Write the name of an axis across."""
    return words_at(x, y, name, anchor="middle")


def upright_name(name: object, x: float, y: float) -> Html:
    """Write the name of an axis upwards, beside it."""
    turned = f"translate({x:.0f} {y:.0f}) rotate(-90)"
    return el("text", name, transform=turned, text_anchor="middle")


def upright(x: float, low: float, high: float, class_: str) -> Html:
    """Draw a line upwards."""
    return el("line", x1=x, x2=x, y1=low, y2=high, class_=class_)


def level(y: float, left: float, right: float, class_: str, **more: object) -> Html:
    """Draw a line across."""
    return el("line", x1=left, x2=right, y1=y, y2=y, class_=class_, **more)


def dot(x: float, y: float) -> Html:
    """Draw one measured point."""
    return el("circle", cx=x, cy=y, r=1.8, class_="point")


def box(x: float, y: float, width: float, height: float, **more: object) -> Html:
    """Draw a rectangle from its upper left corner."""
    return el("rect", x=x, y=y, width=width, height=height, **more)


def trip_mark(frame: Frame, at_s: float, said: Html, row: int = 0) -> Html:
    """Draw a line where something tripped; its words are inside the plot, on a row from below."""
    at, bottom = frame.x(at_s), frame.y.start_px
    late = at > (frame.x.start_px + frame.x.end_px) / 2
    x, anchor = (at - 5, "end") if late else (at + 5, "start")
    words = words_at(x, bottom - 6 - 14 * row, said, anchor=anchor, class_="trip")
    return joined(upright(at, frame.y.end_px, bottom, "trip"), words)


def curve(
    frame: Frame, points: Sequence[tuple[float, float]], gap: float = GAP_S_MAX, **style: object
) -> Html:
    """Draw points as lines, broken where nothing was measured for longer than ``gap``."""
    columns = max(int(abs(frame.x.end_px - frame.x.start_px) / COLUMN_PX), 1)
    runs: list[list[tuple[str, str]]] = [[]]
    before = -math.inf
    for x, y in thinned(points, frame.x.low, frame.x.high, columns):
        if math.isnan(y) or x - before > gap:
            runs.append([])
        if not math.isnan(y):
            runs[-1].append((f"{frame.x(x):.1f}", f"{frame.y(y):.1f}"))
            before = x
    return joined(
        *(el("polyline", points=Html(_turns(run)), fill="none", **style) for run in runs if run)
    )


def _turns(run: Sequence[tuple[str, str]]) -> str:
    """Leave out the points within a level stretch: they change nothing and are most of a plot."""
    last = len(run) - 1
    return " ".join(
        f"{x},{y}"
        for at, (x, y) in enumerate(run)
        if at in (0, last) or not run[at - 1][1] == y == run[at + 1][1]
    )


def thinned(
    points: Sequence[tuple[float, float]], low: float, high: float, columns: int
) -> Iterator[tuple[float, float]]:
    """Keep of each column of pixels the first, the lowest and the highest point, in order."""
    if len(points) <= columns or not high > low:
        yield from points
        return
    per_unit, value = columns / (high - low), itemgetter(1)

    def column(point: tuple[float, float]) -> int | None:
        x, y = point
        return None if math.isnan(y) else int((x - low) * per_unit)

    for at, near in groupby(points, column):
        found = list(near)
        if at is None:  # nothing was measured, which ends a stretch
            yield from found
        else:
            yield from sorted({found[0], min(found, key=value), max(found, key=value)})


def rounded_ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Return about ``count`` ticks at 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [(low, number(low))]
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [index * step for index in range(first, last + 1)]
    labels = [number(value) for value in values]
    if len(set(labels)) < len(labels):  # four digits do not tell 418.2 from 418.25
        decimals = max(-math.floor(math.log10(step)), 0)
        labels = [f"{value:.{decimals}f}" for value in values]
    return list(zip(values, labels, strict=True))


def clock_ticks(end_s: float, count: int) -> list[tuple[float, str]]:
    """Return ticks of a time axis at whole minutes or hours."""
    wanted = end_s / 60 / max(count, 1)
    step = next((each for each in MINUTES if each >= wanted), math.ceil(wanted / 1440) * 1440)
    minutes = range(0, math.floor(end_s / 60) + 1, step)
    return [(60.0 * each, f"{each // 60}:{each % 60:02}") for each in minutes]


def clock(seconds: float | None) -> str:
    """Write a time as h:mm:ss; a dash where there is none."""
    return "–" if seconds is None else clock_text(seconds)


def number(value: float) -> str:
    """Write a number as short as a reader wants it: four digits, no exponent below a million."""
    if value and (abs(value) >= 1e6 or abs(value) < 1e-3):
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"


def exact(value: float) -> str:
    """Write a number that was recorded or stated with all its digits: 1013.25, 250, 1e-07."""
    text = f"{value:.15g}"
    return text if float(text) == value else repr(value)


def significant(value: float, digits: int) -> str:
    """Write a number with its last zeros, so that a column has the same digits throughout."""
    if not value or not math.isfinite(value):
        return number(value)
    return f"{value:.{max(digits - 1 - math.floor(math.log10(abs(value))), 0)}f}"
