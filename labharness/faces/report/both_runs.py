"""Two runs on one page: their differences, part by part, and the charts of both over each other."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text
from labharness.faces.report.answer_face import ComparedRun, face_of
from labharness.faces.report.document import document
from labharness.faces.report.facts import Points, RunFacts
from labharness.faces.report.figures import Drawn, axes_of, curves_drawn
from labharness.faces.report.markup import (
    GAP_S_MAX,
    Frame,
    Html,
    clock,
    clock_ticks,
    exact,
    joined,
    number,
    thinned,
    trip_mark,
)
from labharness.faces.report.page import in_brief, masthead
from labharness.faces.report.quantities import quantities, quantity_key, unit_text
from labharness.faces.report.words import both, known, plain, say

ABSENT: Final = "–"
ABOUT: Final = ("labharness", "python", "system")
HEADER: Final = ("seed", "lab_digest", "envelope_digest")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: the part of the run, its name, and what either run has."""

    part: str
    name: str
    one: str
    other: str


def differences(one: RunFacts, other: RunFacts) -> list[Difference]:
    """Compare two runs, part by part.

    Readings are compared to three digits, for they scatter; all else as it was recorded.
    """
    theirs = {each.name for each in other.phases}
    common = [each for each in one.phases if each.name in theirs]
    longest = max(common, key=lambda each: each.end_s - each.start_s, default=None)
    phase = "" if longest is None else longest.name
    found = []
    for (part, mine), (_, yours) in zip(_parts(one, phase), _parts(other, phase), strict=True):
        if not (mine and yours):
            if mine or yours:
                sizes = (
                    Text("entries", count=len(each)) if each else ABSENT for each in (mine, yours)
                )
                found.append(Difference(part, "all", *sizes))
            continue
        for name in dict.fromkeys((*mine, *yours)):
            left, right = mine.get(name, ABSENT), yours.get(name, ABSENT)
            if left != right:
                found.append(Difference(part, name, left, right))
    return found


def _parts(facts: RunFacts, phase: str) -> Iterator[tuple[str, dict[str, str]]]:
    asked = facts.asked
    capability = {"capability": asked.get("capability"), "version": asked.get("capability_version")}
    yield (
        "asked",
        _flat(
            {**capability, "inputs": asked.get("inputs"), "constraints": asked.get("constraints")}
        ),
    )
    yield "recipe", _flat(facts.plan.get("recipe", {}))
    header = {name: facts.header.get(name) for name in HEADER}
    about = {name: facts.about.get(name) for name in ABOUT}
    yield "provenance", _flat({**header, "plan_digest": facts.plan.get("digest", ABSENT), **about})
    firmware = {each.name: f"{each.model} {each.firmware}".strip() for each in facts.instruments}
    yield "instruments", firmware
    yield "phases", {each.name: clock(each.end_s - each.start_s) for each in facts.phases}
    yield "traces", dict(_key_values(facts, phase))
    yield "events", _counted(facts)
    series = face_of(asked).series
    yield "answer", {"ending": facts.ending, **_flat(_answer(facts), left_out=series)}


def _answer(facts: RunFacts) -> dict[str, Any]:
    said = {
        name: facts.answer[name]
        for name in ("error_code", "error_message", "reason_code", "reason_message", "suggestion")
        if name in facts.answer
    }
    return {**said, **facts.results}


def _key_values(facts: RunFacts, phase: str) -> Iterator[tuple[str, str]]:
    """Return the highest reading of each channel, and its mean over one phase."""
    within = next((each for each in facts.phases if each.name == phase), None)
    for channel, points in facts.traces.items():
        unit = unit_text(facts.rules.units.get(channel, ""))
        values = [value for _, value in points if not math.isnan(value)]
        if not unit or not values:
            continue
        yield Text("highest", channel=channel), f"{_three_digits(max(values))} {unit}"
        mean = None if within is None else _mean(points, within.start_s, within.end_s)
        if mean is not None:
            yield Text("mean", channel=channel, phase=phase), f"{_three_digits(mean)} {unit}"


def _three_digits(value: float) -> str:
    return number(float(f"{value:.3g}"))


def _mean(points: Points, start_s: float, end_s: float) -> float | None:
    inside = [value for at, value in points if start_s <= at <= end_s and not math.isnan(value)]
    return math.fsum(inside) / len(inside) if inside else None


def _counted(facts: RunFacts) -> dict[str, str]:
    told = Counter(each.kind for each in facts.happenings if each.kind in ("trip", "warning"))
    trips = {f"trip {at}": each.text for at, each in enumerate(facts.happened("trip"), 1)}
    counts = {f"{kind}s": str(told[kind]) for kind in ("trip", "warning")}
    commands = {f"commands {ending}": str(count) for ending, count in facts.commands.items()}
    return {**counts, **trips, **commands}


def _flat(value: object, name: str = "", left_out: Collection[str] = frozenset()) -> dict[str, str]:
    """Return every scalar of a JSON value under its path, without the keys that are left out."""
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for each, part in value.items():
            if each not in left_out:
                found |= _flat(part, f"{name}.{each}" if name else str(each), left_out)
        return found
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = (", ".join(_flat(each, name, left_out).values()) for each in value)
        return {name: ", ".join(items)}
    return {name: exact(value) if isinstance(value, float) else str(value)}


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
