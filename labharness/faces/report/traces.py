"""What was measured over the run: a chart for each quantity that has a limit."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.facts import Phase, Points, RunFacts
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.limits import label_px, limits, text_px
from labharness.faces.report.quantities import ChartedQuantity, acting, quantities, unit_text
from labharness.faces.report.svg import (
    Frame,
    Scale,
    clock,
    clock_ticks,
    curve,
    number,
    rounded_ticks,
    thinned,
)
from labharness.faces.report.words import LANGUAGES, PHRASES, known, plain, say

__all__ = ["charts", "phase_labels"]

WIDTHS: Final = {"wide": 1040.0, "narrow": 360.0}
"""A drawing for a screen or paper and one for a phone, so that letters keep their size."""

COLUMNS: Final = 1000
"""A run of hours is thinned once to this; lowest and highest reading of each column stay."""

HEIGHT_PX: Final = 244.0
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 48.0, 10.0, 34.0, 26.0
LABEL_ROWS_PX: Final = (13.0, 27.0)
"""Where phases are named above a chart: most in the first row, crowded ones in the second."""

HEADROOM: Final = 1.15

LABEL_AT: Final = tuple(each / 20 for each in range(2, 19))
ROOM_PX_MAX: Final = 40.0
"""Where along a chart a curve may be named; more room than this is as good as this."""


def charts(facts: RunFacts) -> Html:
    """Draw a chart for each quantity that can trip the line."""
    drawn = quantities(facts)
    if not drawn:
        return el("p", say("no_traces" if facts.rules.units else "no_rules"))
    figures = []
    end_s = _end_s(facts)
    margin_px = {"wide": label_px(drawn) + 14.0, "narrow": RIGHT_PX}
    for each in drawn:
        key = f"quantity.{each.unit}"
        title = say(key if key in PHRASES else "quantity.other")
        thin = {
            name: tuple(thinned(facts.traces[name], 0.0, end_s, COLUMNS))
            for name in (*each.measured, *each.set)
        }
        drawings = [
            el("div", _drawing(facts, each, thin, width, margin_px[name]), class_=name)
            for name, width in WIDTHS.items()
        ]
        head = el("figcaption", el("b", title, ", ", unit_text(each.unit)), " ", _legend(each))
        figures.append(el("figure", head, *drawings, "\n"))
    key = el("p", say("chart_key"), " ", _foreseen(facts), class_="note")
    return joined(_key(facts, drawn), *figures, key)


def _key(facts: RunFacts, drawn: Sequence[ChartedQuantity]) -> Html:
    """Draw each kind of line once, and name the phases."""
    present = {
        "measured": True,
        "set": any(each.set for each in drawn),
        "expected": facts.prediction is not None,
        "bound": any(each.settable for each in drawn),
        "trips": True,
        "warns": any(not bar.trips for each in drawn for bar in each.watched),
    }
    shown = [
        el("span", _sample(name), " ", say(f"key.{name}"))
        for name, there in present.items()
        if there
    ]
    phases = [
        joined(el("b", index), " ", known("phase", each.name))
        for index, each in enumerate(facts.phases, 1)
    ]
    named = el("p", say("phases"), ": ", Html(" · ".join(phases)), class_="note phases")
    return joined(el("p", *shown, class_="key note"), named if phases else "")


def _sample(name: str) -> Html:
    style = {"measured": "trace", "expected": "predicted", "bound": "limit set"}
    class_ = style.get(name, name if name == "set" else f"limit {name}")
    line = el("line", x1=0, x2=34, y1=6, y2=6, class_=class_)
    band = el("rect", x=0, y=1, width=34, height=10, class_="band")
    return el("svg", band if name == "expected" else "", line, viewBox="0 0 34 12", class_="sample")


def _foreseen(facts: RunFacts) -> Html:
    if facts.prediction is None:
        return say("no_forecast")
    used = facts.prediction.gas_used_cm3.items()
    gas = ", ".join(f"{number(volume / 1000)} L {name}" for name, volume in used if volume)
    duration = clock(facts.prediction.duration_s)
    return say("foreseen", duration=duration, gas=gas or say("no_gas"))


def _legend(quantity: ChartedQuantity) -> Html:
    shown = [
        el("span", el("i", "●", class_=f"c{quantity.colour_index(each)}"), " ", each)
        for each in quantity.measured
    ]
    return el("span", *shown, class_="legend")


def _drawing(
    facts: RunFacts,
    quantity: ChartedQuantity,
    traces: Mapping[str, Points],
    width: float,
    margin_px: float,
) -> Html:
    predicted = {} if facts.prediction is None else facts.prediction.channels
    forecast = {name: predicted[name] for name in quantity.measured if name in predicted}
    values = [bar.value for bar in (*acting(quantity.watched), *quantity.settable)] + [0.0]
    values += [bar.value for bar in quantity.watched if not bar.trips]
    everything: list[Points] = [*traces.values()]
    everything += [part for each in forecast.values() for part in (each.low, each.high)]
    for points in everything:
        values += [value for _, value in points if not math.isnan(value)]
    end_s = _end_s(facts)
    frame = Frame(
        Scale(0.0, end_s, LEFT_PX, width - margin_px),
        Scale(min(values), max(values) * HEADROOM or 1.0, HEIGHT_PX - BOTTOM_PX, TOP_PX),
    )
    parts = [_shade(frame, facts.phases, width)]
    y_ticks = rounded_ticks(frame.y.low, frame.y.high, 5)
    parts.append(frame.axes(clock_ticks(end_s, int((width - margin_px) / 90)), y_ticks))
    for name, each in forecast.items():
        colour = quantity.colour(name)
        band = [*each.low, *reversed(each.high)]
        outline = Html(" ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in band))
        parts.append(el("polygon", points=outline, fill=colour, class_="band"))
        parts.append(curve(frame, each.points, math.inf, stroke=colour, class_="predicted"))
    for name in quantity.set:
        parts.append(curve(frame, traces[name], stroke=quantity.colour(name), class_="set"))
    for name in quantity.measured:
        parts.append(curve(frame, traces[name], stroke=quantity.colour(name), class_="trace"))
    beside = margin_px > RIGHT_PX
    if beside:  # on a phone the legend has to do
        measured = {name: traces[name] for name in quantity.measured}
        for name, x, y in curve_labels(frame, measured):
            colour = f"halo c{quantity.colour_index(name)}"
            label = el("text", owner_of(name), x=x, y=y, text_anchor="middle", class_=colour)
            parts.append(label)
    parts += [limits(frame, quantity, beside=beside), _marks(frame, facts)]
    size = f"0 0 {width:.0f} {HEIGHT_PX:.0f}"
    return el("svg", *parts, viewBox=size, role="img", aria_label=", ".join(quantity.measured))


def curve_labels(frame: Frame, traces: Mapping[str, Points]) -> Iterator[tuple[str, float, float]]:
    """Find a place for the name of each curve: just above it, and furthest from all others."""
    taken: list[tuple[float, float]] = []
    for name, points in traces.items():
        best: tuple[float, float, float] | None = None
        for share in LABEL_AT:
            at_s = frame.x.low + share * (frame.x.high - frame.x.low)
            value = _value_at(points, at_s)
            if value is None:
                continue
            x, y = frame.x(at_s), frame.y(value) - 6.0
            others = [_value_at(each, at_s) for key, each in traces.items() if key != name]
            gaps = [abs(frame.y(each) - y) for each in others if each is not None]
            gaps += [abs(b - y) + max(0.0, abs(a - x) - text_px(name)) for a, b in taken]
            room = min([*gaps, y - frame.y.end_px, ROOM_PX_MAX])
            if best is None or room > best[0]:
                best = (room, x, y)
        if best is not None:
            taken.append(best[1:])
            yield name, best[1], best[2]


def _value_at(points: Points, at_s: float) -> float | None:
    """Return the last value up to a time; none where nothing was measured."""
    index = bisect_right(points, at_s, key=lambda one: one[0]) - 1
    value = points[index][1] if index >= 0 else math.nan
    return None if math.isnan(value) else value


def _end_s(facts: RunFacts) -> float:
    """Return the end of the common time axis: the run's, or the prediction's when that is later."""
    foreseen = () if facts.prediction is None else facts.prediction.channels.values()
    return max([facts.duration_s, *(each.points[-1][0] for each in foreseen if each.points)])


def _shade(frame: Frame, phases: Sequence[Phase], width: float) -> Html:
    parts = []
    for index, each in enumerate(phases, 1):
        left, right = frame.x(each.start_s), frame.x(each.end_s)
        parts.append(
            el(
                "rect",
                x=left,
                y=0.0,
                width=max(right - left, 0.0),
                height=frame.y.start_px,
                class_="phase odd" if index % 2 else "phase",
            )
        )
    for index, named, middle, y in phase_labels(frame, phases, width):
        name = known("phase", phases[index - 1].name, tag="tspan")
        label: object = joined(index, " ", name) if named else index
        parts.append(el("text", label, x=middle, y=y, text_anchor="middle", class_="halo"))
    return joined(*parts)


def phase_labels(
    frame: Frame, phases: Sequence[Phase], width: float
) -> Iterator[tuple[int, bool, float, float]]:
    """Find room for each phase: number, whether its name fits too, and where; the longest first."""
    taken: dict[float, list[tuple[float, float]]] = {row: [] for row in LABEL_ROWS_PX}
    order = sorted(enumerate(phases, 1), key=lambda one: one[1].start_s - one[1].end_s)
    for index, each in order:
        key = f"phase.{each.name}"
        names = [plain(key, one) for one in LANGUAGES] if key in PHRASES else [each.name]
        widths = {
            True: max(text_px(f"{index} {name}") for name in names),
            False: text_px(str(index)),
        }
        middle = (frame.x(each.start_s) + frame.x(each.end_s)) / 2
        for named, y in ((named, y) for named in (True, False) for y in LABEL_ROWS_PX):
            half = widths[named] / 2 + 3
            low = min(max(middle - half, 0.0), width - 2 * half)
            if all(low >= end or low + 2 * half <= start for start, end in taken[y]):
                taken[y].append((low, low + 2 * half))
                yield index, named, low + half, y
                break


def _marks(frame: Frame, facts: RunFacts) -> Html:
    top, bottom = frame.y.end_px, frame.y.start_px
    parts = []
    for each in facts.happened("warning"):
        at = frame.x(each.at_s)
        corners = f"{at - 5:.1f},{top:.1f} {at + 5:.1f},{top:.1f} {at:.1f},{top + 9:.1f}"
        parts.append(el("polygon", el("title", each.text), points=corners, class_="warning"))
    for each in facts.happened("trip"):
        at = frame.x(each.at_s)
        late = at > (frame.x.start_px + frame.x.end_px) / 2
        parts.append(
            joined(
                el("line", x1=at, x2=at, y1=top, y2=bottom, class_="trip"),
                el(
                    "text",
                    say("trip_at", tag="tspan"),
                    " ",
                    each.label,
                    x=at - 5 if late else at + 5,
                    y=bottom - 6,
                    text_anchor="end" if late else "start",
                    class_="trip",
                ),
            )
        )
    return joined(*parts)
