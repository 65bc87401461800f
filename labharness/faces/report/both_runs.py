"""Two runs on one page: what differs, and the pictures of both over each other."""

from collections.abc import Iterator, Sequence
from typing import Final

from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.answer_face import face_of
from labharness.faces.report.compare import Difference, differences
from labharness.faces.report.compared_run import ComparedRun, legend
from labharness.faces.report.conditions import masthead
from labharness.faces.report.document import document, section
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.figures import WIDTH_PX, Drawn, axes_of, curves_figure
from labharness.faces.report.html import Html, el, joined, table
from labharness.faces.report.quantities import quantities, unit_text
from labharness.faces.report.svg import GAP_S_MAX, Frame, clock_ticks, thinned
from labharness.faces.report.verdict import in_brief
from labharness.faces.report.words import PHRASES, both, known, plain, say

__all__ = ["both_runs"]

COLUMNS: Final = 400
"""Of a chart this small; lowest and highest reading of each column stay."""

TICKS: Final = 5
ROWS_MAX: Final = 300
ENDINGS: Final = ("task_completed", "task_failed", "task_rejected", "aborted")


def both_runs(one: RunFacts, other: RunFacts, names: tuple[str, str], language: str = "en") -> str:
    """Make the whole page.

    Args:
        one: A run.
        other: Another one.
        names: What the reader calls them: their folders.
        language: Which of ``LANGUAGES`` is shown first; the page holds all.

    Raises:
        KeyError: There is no such language.
    """
    title = f"{plain('two_runs', language)}: {names[0]}, {names[1]}"
    runs = (ComparedRun(0, names[0], one), ComparedRun(1, names[1], other))
    return document(title, _sections(runs), language)


def _sections(runs: Sequence[ComparedRun]) -> Iterator[Html]:
    yield el("h1", say("two_runs"))
    yield el("div", *map(_head, runs), class_="pair")
    yield section("differs", _differences(runs))
    shown = list(_charts(runs))
    if shown:
        yield section("traces", legend(runs), _key(runs), el("div", *shown, class_="pair"))
    for face in dict.fromkeys(face_of(each.facts.asked) for each in runs):
        yield from face.compared(runs)
    yield el("footer", say("foot_two"))


def _head(run: ComparedRun) -> Html:
    """Return which run it is and how it ended."""
    chain = run.facts.chain
    parts = [el("h3", run.label), masthead(run.facts), *in_brief(run.facts)]
    if not chain.ok:
        broken = say("chain_broken", count=chain.first_bad_seq, reason=chain.reason)
        parts.append(el("p", broken, class_="alarm"))
    changed = ", ".join(each.name for each in run.facts.artifacts if not each.holds)
    if changed:
        parts.append(el("p", changed, ": ", say("broken"), class_="alarm"))
    return el("div", *parts, class_=f"verdict {run.facts.ending}")


# ---- what differs


def _differences(runs: Sequence[ComparedRun]) -> Html:
    found = differences(runs[0].facts, runs[1].facts)
    if not found:
        return el("p", say("differs_nothing"))
    rows, part = [], ""
    for each in found[:ROWS_MAX]:
        if each.part != part:
            part = each.part
            rows.append(el("tr", el("th", known("part", part), colspan=3)))
        rows.append(el("tr", *(el("td", value, class_="said") for value in _cells(each))))
    more = len(found) - ROWS_MAX
    left_out = el("p", say("and_more", count=more)) if more > 0 else Html("")
    return joined(table(["", *(each.label for each in runs)], rows), left_out)


def _cells(found: Difference) -> tuple[Html, Html, Html]:
    phase = found.part == "phases"
    name = known("phase", found.name) if phase else both(found.name)
    return name, _value(found.one), _value(found.other)


def _value(value: str) -> Html:
    return say(value) if value in ENDINGS else both(value)


# ---- charts


def _charts(runs: Sequence[ComparedRun]) -> Iterator[Html]:
    """Draw each channel of the charts of either run, with what was set beside it."""
    units: dict[str, dict[str, None]] = {}
    for run in runs:
        for quantity in quantities(run.facts):
            units.setdefault(quantity.unit, {}).update(dict.fromkeys(quantity.measured))
    end_s = max(each.facts.duration_s for each in runs)
    for unit, channels in units.items():
        for channel in channels:
            key = f"quantity.{unit}"
            kind = say(key if key in PHRASES else "quantity.other")
            caption = joined(el("b", kind, ", ", unit_text(unit)), f" {channel}")
            curves = [one for run in runs for one in _curves(run, channel, unit, end_s)]
            frame = axes_of(curves, (0.0, end_s))
            if frame is not None:
                trips = [each for run in runs for each in _trips(run, frame)]
                ticks = clock_ticks(end_s, TICKS)
                yield curves_figure(caption, frame, curves, trips, across="time_axis", ticks=ticks)


def _curves(run: ComparedRun, channel: str, unit: str, end_s: float) -> Iterator[Drawn]:
    owner = owner_of(channel)
    set_ = [
        name
        for each in quantities(run.facts)
        if each.unit == unit
        for name in each.set
        if owner_of(name) == owner
    ]
    for name, class_ in (*((each, "set") for each in set_), (channel, run.trace)):
        points = tuple(thinned(run.facts.traces.get(name, ()), 0.0, end_s, COLUMNS))
        if points:
            yield Drawn(points, run.colour, class_, GAP_S_MAX)


def _trips(run: ComparedRun, frame: Frame) -> Iterator[Html]:
    """Draw where the line tripped, with the number of the run."""
    for each in run.facts.happened("trip"):
        at = frame.x(each.at_s)
        top, bottom = frame.y.end_px, frame.y.start_px
        late = at > WIDTH_PX / 2
        yield el("line", x1=at, x2=at, y1=top, y2=bottom, class_="trip")
        yield el(
            "text",
            say("trip_at", tag="tspan"),
            f" {run.at + 1}",
            x=at - 5 if late else at + 5,
            y=bottom - 6 - 14 * run.at,
            text_anchor="end" if late else "start",
            class_="trip",
        )


def _key(runs: Sequence[ComparedRun]) -> Html:
    trips = any(each.facts.happened("trip") for each in runs)
    said = [say("two_charts_key")] + ([" ", say("two_trips_key")] if trips else [])
    return el("p", *said, class_="note")
