"""What was measured over the run: a chart for each quantity that has a limit, and extremes."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from labharness.desk.report.facts import Phase, Points, RunFacts
from labharness.desk.report.html import Html, el, joined, table
from labharness.desk.report.rules import Bar
from labharness.desk.report.svg import (
    COLOURS,
    Frame,
    Scale,
    clock_ticks,
    curve,
    number,
    rounded_ticks,
    thinned,
)
from labharness.desk.report.words import PHRASES, known, say

__all__ = ["UNITS", "charts", "extremes", "phase_table", "unit_text"]

UNITS: Final = {"degC": "°C", "degC/min": "°C/min", "um": "µm"}
FIRST: Final = ("degC", "sccm", "Torr")
WIDTHS: Final = {"wide": 1040.0, "narrow": 360.0}
"""A drawing for a screen or paper and one for a phone, so that letters keep their size."""

COLUMNS: Final = 1000
"""A run of hours is thinned once to this; lowest and highest reading of each column stay."""

HEIGHT_PX: Final = 230.0
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 48.0, 10.0, 20.0, 26.0
HEADROOM: Final = 1.15
CHARACTER_PX, CHINESE_PX = 6.6, 12.5


@dataclass(frozen=True, slots=True)
class _Quantity:
    """All channels of one unit: measured, set, and what bounds them."""

    unit: str
    measured: tuple[str, ...]
    set: tuple[str, ...]
    bars: tuple[Bar, ...]

    def colour(self, channel: str) -> str:
        """Give a channel the colour of its instrument; grey to what several share."""
        owners = [each.partition(".")[0] for each in self.measured]
        owner = channel.partition(".")[0]
        return COLOURS[owners.index(owner) % len(COLOURS)] if owner in owners else "#555"


def unit_text(unit: str) -> str:
    """Give a unit as people write it."""
    return UNITS.get(unit, unit)


def clock(seconds: float | None) -> str:
    """Write a time as h:mm:ss; a dash where there is none."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def charts(facts: RunFacts) -> Html:
    """Draw a chart for each quantity that can trip the line."""
    quantities = _quantities(facts)
    if not quantities:
        return el("p", say("no_traces" if facts.rules.units else "no_rules"))
    figures = []
    end_s = _end_s(facts)
    for each in quantities:
        key = f"quantity.{each.unit}"
        title = say(key if key in PHRASES else "quantity.other")
        thin = {
            name: tuple(thinned(facts.traces[name], 0.0, end_s, COLUMNS))
            for name in (*each.measured, *each.set)
        }
        drawings = [
            el("div", _drawing(facts, each, thin, width), class_=name)
            for name, width in WIDTHS.items()
        ]
        head = el("figcaption", el("b", title, ", ", unit_text(each.unit)), " ", _legend(each))
        figures.append(el("figure", head, *drawings, "\n"))
    return joined(*figures, el("p", say("chart_key"), " ", _foreseen(facts), class_="note"))


def _foreseen(facts: RunFacts) -> Html:
    if facts.prediction is None:
        return say("no_forecast")
    used = facts.prediction.gas_used_cm3.items()
    gas = ", ".join(f"{number(volume / 1000)} L {name}" for name, volume in used if volume)
    duration = clock(facts.prediction.duration_s)
    return say("foreseen", duration=duration, gas=gas or say("no_gas"))


def extremes(facts: RunFacts) -> Html:
    """Tabulate the lowest and highest reading of each charted channel, beside its limits."""
    rows = []
    for each in _quantities(facts):
        for channel in each.measured:
            values = [value for _, value in facts.traces[channel] if value == value]  # not NaN
            if not values:
                continue
            bars = [bar for bar in each.bars if bar.channel == channel]
            unit = unit_text(each.unit)
            rows.append(
                el(
                    "tr",
                    el("td", channel),
                    el("td", f"{number(min(values))} {unit}", class_="time"),
                    el("td", f"{number(max(values))} {unit}", class_="time"),
                    el(
                        "td",
                        ", ".join(f"{number(bar.value)} {unit}" for bar in bars),
                        class_="time",
                    ),
                    el(
                        "td",
                        "; ".join(dict.fromkeys(bar.source for bar in bars)),
                        class_="said source",
                    ),
                )
            )
    heads = [say(key) for key in ("channel", "lowest", "highest", "limit", "source")]
    return table(heads, rows) if rows else Html("")


def phase_table(facts: RunFacts) -> Html:
    """Tabulate the phases under the numbers of the charts, beside what pre-flight expected."""
    prediction = facts.prediction
    rows = []
    follows = []
    for index, each in enumerate(facts.phases, 1):
        cells = [
            el("td", str(index), class_="number"),
            el("td", known("phase", each.name)),
            el("td", clock(each.start_s), class_="time"),
            el("td", clock(each.end_s - each.start_s), class_="time"),
        ]
        names = [step.name for step in facts.steps if step.phase == each.name]
        if prediction is not None and names:
            expected = sum(prediction.took_s.get(name, 0.0) for name in names)
            cells.append(el("td", clock(expected), class_="time"))
            killed = "; ".join(prediction.if_killed.get(names[-1], ())) or "–"
            follows.append(el("dt", known("phase", each.name)))
            follows.append(el("dd", killed, class_="said"))
        rows.append(el("tr", *cells))
    if not rows:
        return Html("")
    heads = ["", say("phase"), say("start"), say("took")]
    if prediction is None:
        return table(heads, rows, class_="slim")
    listed = el("dl", *follows, class_="facts small")
    return joined(
        table([*heads, say("expected")], rows, class_="slim"), el("h3", say("if_killed")), listed
    )


def _quantities(facts: RunFacts) -> list[_Quantity]:
    rules = facts.rules
    units = dict.fromkeys((*FIRST, *rules.units.values()))
    shown = set(rules.setpoints.values())
    found = []
    for unit in units:
        bars = tuple(bar for bar in rules.bars if bar.unit == unit)
        measured = tuple(
            channel
            for channel, its in rules.units.items()
            if its == unit and channel not in shown and channel in facts.traces
        )
        can_set = {bar.channel for bar in bars}
        set_ = tuple(
            shows
            for channel, shows in rules.setpoints.items()
            if channel in can_set and shows in facts.traces
        )
        if unit and measured and any(bar.channel in rules.units for bar in bars):
            found.append(_Quantity(unit, measured, set_, bars))
    return found


def _legend(quantity: _Quantity) -> Html:
    shown = [
        el("span", el("i", "●", class_=f"c{COLOURS.index(quantity.colour(each))}"), " ", each)
        for each in quantity.measured
    ]
    return el("span", *shown, class_="legend")


def _drawing(
    facts: RunFacts, quantity: _Quantity, traces: Mapping[str, Points], width: float
) -> Html:
    predicted = {} if facts.prediction is None else facts.prediction.channels
    forecast = {name: predicted[name] for name in quantity.measured if name in predicted}
    values = [bar.value for bar in quantity.bars] + [0.0]
    everything: list[Points] = [*traces.values()]
    everything += [part for each in forecast.values() for part in (each.low, each.high)]
    for points in everything:
        values += [value for _, value in points if not math.isnan(value)]
    end_s = _end_s(facts)
    frame = Frame(
        Scale(0.0, end_s, LEFT_PX, width - RIGHT_PX),
        Scale(min(values), max(values) * HEADROOM or 1.0, HEIGHT_PX - BOTTOM_PX, TOP_PX),
    )
    parts = [_shade(frame, facts.phases)]
    y_ticks = rounded_ticks(frame.y.low, frame.y.high, 5)
    parts.append(frame.axes(clock_ticks(end_s, int(width / 90)), y_ticks))
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
    parts += [_bars(frame, quantity, facts.rules.setpoints), _marks(frame, facts)]
    size = f"0 0 {width:.0f} {HEIGHT_PX:.0f}"
    return el("svg", *parts, viewBox=size, role="img", aria_label=", ".join(quantity.measured))


def _end_s(facts: RunFacts) -> float:
    """Give the end of the common time axis: the run's, or the prediction's when that is later."""
    foreseen = () if facts.prediction is None else facts.prediction.channels.values()
    return max([facts.duration_s, *(each.points[-1][0] for each in foreseen if each.points)])


def _shade(frame: Frame, phases: Sequence[Phase]) -> Html:
    parts = []
    for index, each in enumerate(phases, 1):
        left, right = frame.x(each.start_s), frame.x(each.end_s)
        shade = "phase odd" if index % 2 else "phase"
        parts.append(
            el(
                "rect",
                x=left,
                y=0.0,
                width=max(right - left, 0.0),
                height=frame.y.start_px,
                class_=shade,
            )
        )
        label: object = index
        english, chinese = PHRASES.get(f"phase.{each.name}", (each.name, ""))
        need_px = max(len(english) * CHARACTER_PX, len(chinese) * CHINESE_PX) + 20
        if right - left > need_px:
            label = joined(index, " ", known("phase", each.name, tag="tspan"))
        if right - left > CHARACTER_PX + 2:
            middle = (left + right) / 2
            parts.append(el("text", label, x=middle, y=13.0, text_anchor="middle"))
    return joined(*parts)


def _bars(frame: Frame, quantity: _Quantity, setpoints: Container[str]) -> Html:
    drawn: dict[tuple[bool, bool, float], list[Bar]] = {}
    for bar in quantity.bars:
        drawn.setdefault((bar.trips, bar.channel in setpoints, bar.value), []).append(bar)
    left, right = frame.x.start_px, frame.x.end_px
    parts = []
    for (trips, settable, value), bars in drawn.items():
        at = frame.y(value)
        owners = list(dict.fromkeys(bar.channel.partition(".")[0] for bar in bars))
        style = "bound" if settable else "limit" if trips else "limit warns"
        colour = quantity.colour(bars[0].channel if len(owners) == 1 else "")
        stroke = colour if settable else None
        parts.append(el("line", x1=left, x2=right, y1=at, y2=at, class_=style, stroke=stroke))
        if settable:
            what = joined("≤ ", number(value), " ", ", ".join(owners))
            parts.append(el("text", what, x=left + 4, y=at + 13))
        else:
            what = joined(number(value), " ", say("trip_at" if trips else "warn_at", tag="tspan"))
            parts.append(el("text", what, x=right - 4, y=at - 4, text_anchor="end", class_=style))
    return joined(*parts)


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
                    each.text.partition(":")[0],
                    x=at - 5 if late else at + 5,
                    y=bottom - 6,
                    text_anchor="end" if late else "start",
                    class_="trip",
                ),
            )
        )
    return joined(*parts)
