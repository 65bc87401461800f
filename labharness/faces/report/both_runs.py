"""Two runs on one page: their differences, and the charts of both over each other."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.answer_face import face_of
from labharness.faces.report.compare import Difference, differences
from labharness.faces.report.compared_run import ComparedRun
from labharness.faces.report.document import document
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.figures import Drawn, axes_of, curves_drawn
from labharness.faces.report.html import Html, joined
from labharness.faces.report.quantities import quantities, quantity_key, unit_text
from labharness.faces.report.svg import GAP_S_MAX, Frame, clock_ticks, thinned, trip_mark
from labharness.faces.report.verdict import in_brief, masthead
from labharness.faces.report.words import both, known, plain, say

COLUMNS: Final = 400
"""Of a chart this small; lowest and highest reading of each column stay."""

TICKS: Final = 5
ROWS_MAX: Final = 300
ENDINGS: Final = ("task_completed", "task_failed", "task_rejected", "aborted")


class SharedChart(NamedTuple):
    """One channel of both runs."""

    key: str
    unit: str
    channel: str
    drawing: Html


def both_runs(one: RunFacts, other: RunFacts, names: tuple[str, str], language: str = "en") -> str:
    """Make the whole page.

    Args:
        one: A run.
        other: Another one.
        names: The reader's names of the runs: their folders.
        language: The one of ``LANGUAGES`` that is shown first; the page holds all.

    Raises:
        KeyError: There is no such language.
    """
    runs = (ComparedRun(0, names[0], one), ComparedRun(1, names[1], other))
    found = differences(one, other)
    shown = groupby(found[:ROWS_MAX], lambda each: each.part)
    faces = dict.fromkeys(face_of(each.facts.asked) for each in runs)
    return document(
        "both_runs.html.j2",
        f"{plain('two_runs', language)}: {names[0]}, {names[1]}",
        language,
        runs=[(each, masthead(each.facts), in_brief(each.facts)) for each in runs],
        parts=[(part, [_cells(each) for each in rows]) for part, rows in shown],
        left_out=len(found) - ROWS_MAX,
        charts=list(_charts(runs)),
        trips=any(each.facts.happened("trip") for each in runs),
        sections=[each for face in faces for each in face.compared(runs)],
    )


def _cells(found: Difference) -> tuple[Html, Html, Html]:
    name = known("phase", found.name) if found.part == "phases" else both(found.name)
    one, other = (say(each) if each in ENDINGS else both(each) for each in (found.one, found.other))
    return name, one, other


def _charts(runs: Sequence[ComparedRun]) -> Iterator[SharedChart]:
    """Draw each channel of the charts of either run, with what was set beside it."""
    units: dict[str, dict[str, None]] = {}
    for run in runs:
        for quantity in quantities(run.facts):
            units.setdefault(quantity.unit, {}).update(dict.fromkeys(quantity.measured))
    end_s = max(each.facts.duration_s for each in runs)
    for unit, channels in units.items():
        for channel in channels:
            curves = [one for run in runs for one in _curves(run, channel, unit, end_s)]
            frame = axes_of(curves, (0.0, end_s))
            if frame is not None:
                trips = [each for run in runs for each in _trips(run, frame)]
                ticks = clock_ticks(end_s, TICKS)
                drawing = curves_drawn(frame, curves, trips, across="time_axis", ticks=ticks)
                yield SharedChart(quantity_key(unit), unit_text(unit), channel, drawing)


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
        said = joined(say("trip_at", tag="tspan"), f" {run.at + 1}")
        yield trip_mark(frame, each.at_s, said, row=run.at)
