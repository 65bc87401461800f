"""The charts of a run: one for each quantity that has a limit, with a label that names it."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final, NamedTuple

from labharness.core.texts import LANGUAGES
from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report import markup
from labharness.faces.report.facts import Phase, Points, RunFacts
from labharness.faces.report.markup import Frame, Html, el, exact, joined, level, words_at
from labharness.faces.report.quantities import (
    ChartedQuantity,
    acting,
    quantities,
    quantity_key,
    unit_text,
)
from labharness.faces.report.words import known, phrase, plain, say
from labharness.work.desk.rules_record import Bar

CHARACTER_PX, CHINESE_PX = 6.6, 12.5
CJK_FIRST: Final = "\u2e80"
LINE_PX: Final = 13.0
LABEL_PX_MAX: Final = 260.0


class _Line(NamedTuple):
    """One line: its effect, value, the only instrument that it concerns, and its label."""

    does: str
    value: float
    owner: str
    key: str
    fields: dict[str, str]


def text_px(text: str) -> float:
    """Estimate how wide a text is at 12 px."""
    return sum(CHINESE_PX if each >= CJK_FIRST else CHARACTER_PX for each in text)


def label_px(drawn: Iterable[ChartedQuantity]) -> float:
    """Return the room that the longest label of some charts takes beside them."""
    widths = [
        text_px(plain(line.key, language, **line.fields))
        for quantity in drawn
        for line in _lines(quantity)
        for language in LANGUAGES
    ]
    return min(max(widths, default=0.0), LABEL_PX_MAX)


def limits(frame: Frame, quantity: ChartedQuantity, *, beside: bool) -> Html:
    """Draw all lines with their labels.

    Args:
        frame: Of the chart.
        quantity: The quantity of the chart.
        beside: The labels have room to the right of the plot; else they stand within it.
    """
    lines = sorted(_lines(quantity), key=lambda line: -line.value)
    left, right = frame.x.start_px, frame.x.end_px
    offset = 4.0 if beside else -4.0  # a label within stands on its line, one outside beside it
    wanted = [frame.y(each.value) + offset for each in lines]
    places = apart(wanted, frame.y.end_px + offset, frame.y.start_px)
    parts = []
    for line, label_y in zip(lines, places, strict=True):
        at = frame.y(line.value)
        stroke = quantity.colour(line.owner) if line.does == "set" else None
        parts.append(level(at, left, right, f"limit {line.does}", stroke=stroke))
        index = quantity.colour_index(line.owner)
        style = "halo" if index is None else f"halo c{index}"
        said = say(line.key, tag="tspan", **line.fields)
        if beside:
            leader = {"x1": right, "x2": right + 6, "y1": at, "y2": label_y - 4}
            parts.append(el("line", **leader, class_="leader"))
            parts.append(words_at(right + 9, label_y, said, class_=style))
        else:
            parts.append(words_at(right - 3, label_y, said, anchor="end", class_=style))
    return joined(*parts)


def _lines(quantity: ChartedQuantity) -> Iterator[_Line]:
    grouped: dict[tuple[str, float], list[Bar]] = {}
    warns = (bar for bar in quantity.watched if not bar.trips)
    trips = acting(quantity.watched)
    for does, bars in (("trips", trips), ("warns", warns), ("set", quantity.settable)):
        for bar in bars:
            grouped.setdefault((does, bar.value), []).append(bar)
    for (does, value), bars in grouped.items():
        owners = list(dict.fromkeys(owner_of(bar.channel) for bar in bars))
        whole = len(owners) > 1 and set(owners) == set(quantity.owners)
        fields = {"who": ", ".join(owners), "value": exact(value)}
        owner = "" if len(owners) > 1 else owners[0]
        # where it concerns all of them its label names no instrument
        yield _Line(does, value, owner, f"limit.{does}.all" if whole else f"limit.{does}", fields)


def apart(places: Sequence[float], top: float, bottom: float) -> list[float]:
    """Move labels (the highest first) apart, so that none lies on another or below the plot."""
    found: list[float] = []
    for at in places:
        found.append(max(at, top, *(each + LINE_PX for each in found[-1:])))
    for index in reversed(range(len(found))):
        found[index] = min(found[index], bottom)
        bottom = found[index] - LINE_PX
    return found


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


Chart = tuple[str, str, list[tuple[int | None, str]], dict[str, Html]]
"""Of one quantity over the run: the key of its name, its unit, the legend (index of the colour, and
channel, of each curve), and a drawing for a wide and for a narrow page."""


def charts(facts: RunFacts) -> list[Chart]:
    """Draw a chart for each quantity that can trip the line."""
    drawn = quantities(facts)
    margin_px = {"wide": label_px(drawn) + 14.0, "narrow": RIGHT_PX}
    found = []
    for each in drawn:
        thin = {
            name: tuple(markup.thinned(facts.traces[name], 0.0, _end_s(facts), COLUMNS))
            for name in (*each.measured, *each.set)
        }
        drawings = {
            name: _drawing(facts, each, thin, width, margin_px[name])
            for name, width in WIDTHS.items()
        }
        legend = [(each.colour_index(channel), channel) for channel in each.measured]
        found.append((quantity_key(each.unit), unit_text(each.unit), legend, drawings))
    return found


def key_samples(facts: RunFacts) -> list[tuple[str, Html]]:
    """Return each kind of line that the charts have: its name and a sample of it."""
    drawn = quantities(facts)
    present = {
        "measured": "trace",
        "set": "set" if any(each.set for each in drawn) else "",
        "expected": "predicted" if facts.prediction is not None else "",
        "bound": "limit set" if any(each.settable for each in drawn) else "",
        "trips": "limit trips",
        "warns": "limit warns" if any(not bar.trips for q in drawn for bar in q.watched) else "",
    }
    return [(name, _sample(class_)) for name, class_ in present.items() if class_]


def _sample(class_: str) -> Html:
    band = markup.box(0, 1, 34, 10, class_="band") if class_ == "predicted" else ""
    return el("svg", band, markup.level(6, 0, 34, class_), viewBox="0 0 34 12", class_="sample")


def prediction_text(facts: RunFacts) -> Html:
    """Return the duration and the gas that pre-flight expected."""
    if facts.prediction is None:
        return say("no_forecast")
    used = facts.prediction.gas_used_cm3.items()
    gas = ", ".join(f"{markup.number(volume / 1000)} L {name}" for name, volume in used if volume)
    duration = markup.clock(facts.prediction.duration_s)
    return say("foreseen", duration=duration, gas=gas or say("no_gas"))


def _drawing(
    facts: RunFacts,
    quantity: ChartedQuantity,
    traces: Mapping[str, Points],
    width: float,
    margin_px: float,
) -> Html:
    predicted = {} if facts.prediction is None else facts.prediction.channels
    forecast = {name: predicted[name] for name in quantity.measured if name in predicted}
    bands = [part for each in forecast.values() for part in (each.low, each.high)]
    drawn = (value for points in (*traces.values(), *bands) for _, value in points)
    values = [0.0, *(line.value for line in _lines(quantity))]
    values += [each for each in drawn if not math.isnan(each)]
    end_s = _end_s(facts)
    frame = markup.Frame(
        markup.Scale(0.0, end_s, LEFT_PX, width - margin_px),
        markup.Scale(min(values), max(values) * HEADROOM or 1.0, HEIGHT_PX - BOTTOM_PX, TOP_PX),
    )
    x_ticks = markup.clock_ticks(end_s, int((width - margin_px) / 90))
    parts = [_shade(frame, facts.phases, width), frame.axes(x_ticks, frame.y.ticks(5))]
    for name, each in forecast.items():
        colour = quantity.colour(name)
        band = [*each.low, *reversed(each.high)]
        outline = Html(" ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in band))
        parts.append(el("polygon", points=outline, fill=colour, class_="band"))
        parts.append(markup.curve(frame, each.points, math.inf, stroke=colour, class_="predicted"))
    for class_, names in (("set", quantity.set), ("trace", quantity.measured)):
        for name in names:
            colour = quantity.colour(name)
            parts.append(markup.curve(frame, traces[name], stroke=colour, class_=class_))
    beside = margin_px > RIGHT_PX
    if beside:  # on a phone the legend has to do
        measured = {name: traces[name] for name in quantity.measured}
        lines_px = [frame.y(bar.value) for bar in (*quantity.watched, *quantity.settable)]
        for name, x, y in curve_labels(frame, measured, lines_px):
            colour = f"halo c{quantity.colour_index(name)}"
            parts.append(markup.words_at(x, y, owner_of(name), anchor="middle", class_=colour))
    parts += [limits(frame, quantity, beside=beside), _marks(frame, facts)]
    return markup.drawing(parts, width, HEIGHT_PX, aria_label=", ".join(quantity.measured))


def curve_labels(
    frame: markup.Frame, traces: Mapping[str, Points], lines_px: Sequence[float] = ()
) -> Iterator[tuple[str, float, float]]:
    """Find a place for the name of each curve: just above it, and furthest from all others.

    Args:
        frame: The place and the scales of the plot.
        traces: The curves by channel; the name of its instrument is written.
        lines_px: The heights of lines on which no name should lie.
    """
    taken: list[tuple[float, float]] = []
    s_per_px = (frame.x.high - frame.x.low) / (frame.x.end_px - frame.x.start_px)
    for name, points in traces.items():
        best: tuple[float, float, float] | None = None
        half_s = text_px(owner_of(name)) / 2 * s_per_px
        for share in LABEL_AT:
            at_s = frame.x.low + share * (frame.x.high - frame.x.low)
            span_s = at_s - half_s, at_s + half_s
            own = _values_in(points, *span_s)
            if not own:
                continue
            x, y = frame.x(at_s), frame.y(max(own)) - 6.0
            others = [_values_in(each, *span_s) for key, each in traces.items() if key != name]
            lines = [*lines_px, *(frame.y(value) for each in others for value in each)]
            gaps = [abs(each - y + 4.0) for each in lines]
            gaps += [abs(b - y) + max(0.0, abs(a - x) - text_px(name)) for a, b in taken]
            climb_px = frame.y(min(own)) - frame.y(max(own))
            room = min([*gaps, y - frame.y.end_px, ROOM_PX_MAX]) - climb_px
            if best is None or room > best[0]:
                best = (room, x, y)
        if best is not None:
            taken.append(best[1:])
            yield name, best[1], best[2]


def _values_in(points: Points, low_s: float, high_s: float) -> list[float]:
    """Return the values from a time to another, and the last one before; none are NaN."""
    first = max(bisect_right(points, low_s, key=lambda one: one[0]) - 1, 0)
    within = takewhile(lambda one: one[0] <= high_s, islice(points, first, None))
    return [value for _, value in within if not math.isnan(value)]


def _end_s(facts: RunFacts) -> float:
    """Return the end of the common time axis: the run's, or the prediction's when that is later."""
    foreseen = () if facts.prediction is None else facts.prediction.channels.values()
    return max([facts.duration_s, *(each.points[-1][0] for each in foreseen if each.points)])


def _shade(frame: markup.Frame, phases: Sequence[Phase], width: float) -> Html:
    parts = []
    for index, each in enumerate(phases, 1):
        left, right = frame.x(each.start_s), frame.x(each.end_s)
        class_ = "phase odd" if index % 2 else "phase"
        parts.append(markup.box(left, 0.0, max(right - left, 0.0), frame.y.start_px, class_=class_))
    for index, named, middle, y in phase_labels(frame, phases, width):
        name = known("phase", phases[index - 1].name, tag="tspan")
        label: object = joined(index, " ", name) if named else index
        parts.append(markup.words_at(middle, y, label, anchor="middle", class_="halo"))
    return joined(*parts)


def phase_labels(
    frame: markup.Frame, phases: Sequence[Phase], width: float
) -> Iterator[tuple[int, bool, float, float]]:
    """Find room for each phase: number, whether its name fits too, and where; the longest first."""
    taken: dict[float, list[tuple[float, float]]] = {row: [] for row in LABEL_ROWS_PX}
    order = sorted(enumerate(phases, 1), key=lambda one: one[1].start_s - one[1].end_s)
    for index, each in order:
        key = f"phase.{each.name}"
        names = [plain(key, one) for one in LANGUAGES] if phrase(key) else [each.name]
        named_px = max(text_px(f"{index} {name}") for name in names)
        widths = {True: named_px, False: text_px(str(index))}
        middle = (frame.x(each.start_s) + frame.x(each.end_s)) / 2
        for named, y in ((named, y) for named in (True, False) for y in LABEL_ROWS_PX):
            half = widths[named] / 2 + 3
            low = min(max(middle - half, 0.0), width - 2 * half)
            if all(low >= end or low + 2 * half <= start for start, end in taken[y]):
                taken[y].append((low, low + 2 * half))
                yield index, named, low + half, y
                break


def _marks(frame: markup.Frame, facts: RunFacts) -> Html:
    top = frame.y.end_px
    parts = []
    for each in facts.happened("warning"):
        at = frame.x(each.at_s)
        corners = f"{at - 5:.1f},{top:.1f} {at + 5:.1f},{top:.1f} {at:.1f},{top + 9:.1f}"
        parts.append(el("polygon", el("title", each.text), points=corners, class_="warning"))
    for each in facts.happened("trip"):
        said = joined(say("trip_at", tag="tspan"), " ", each.label)
        parts.append(markup.trip_mark(frame, each.at_s, said))
    return joined(*parts)
