"""Two runs on one page: their differences, part by part, and the charts of both over each other."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text
from labharness.faces.report import markup
from labharness.faces.report.answer_face import ComparedRun, face_of
from labharness.faces.report.document import document
from labharness.faces.report.facts import RunFacts, values_within
from labharness.faces.report.figures import Drawn, axes_of, curves_drawn
from labharness.faces.report.markup import Frame, Html, exact, joined
from labharness.faces.report.page import in_brief, masthead
from labharness.faces.report.quantities import quantities, quantity_key, unit_text
from labharness.faces.report.reading import ENDINGS
from labharness.faces.report.words import both, known, plain, say

ABSENT: Final = "–"
ABOUT: Final = ("labharness", "python", "system")
SAID: Final = ("error_code", "error_message", "reason_code", "reason_message", "suggestion")
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
    names = ("capability", "capability_version", "inputs", "constraints")
    told = {name.removeprefix("capability_"): asked.get(name) for name in names}
    yield "asked", _flat(told)
    yield "recipe", _flat(facts.plan.get("recipe", {}))
    header = {name: facts.header.get(name) for name in HEADER}
    about = {name: facts.about.get(name) for name in ABOUT}
    yield "provenance", _flat({**header, "plan_digest": facts.plan.get("digest", ABSENT), **about})
    models = ((row["instrument"], f"{row['model']} {row['firmware']}") for row in facts.instruments)
    firmware = {name: model.strip() for name, model in models}
    yield "instruments", firmware
    yield "phases", {each.name: markup.clock(each.end_s - each.start_s) for each in facts.phases}
    yield "traces", dict(_key_values(facts, phase))
    yield "events", _counted(facts)
    series = face_of(asked).series
    said = {name: facts.answer[name] for name in SAID if name in facts.answer}
    flat = _flat({**said, **facts.results}, left_out=series)
    yield "answer", {"ending": facts.ending, **flat}


def _key_values(facts: RunFacts, phase: str) -> Iterator[tuple[str, str]]:
    """Return the highest reading of each channel, and its mean over one phase."""
    within = next((each for each in facts.phases if each.name == phase), None)
    for channel, points in facts.traces.items():
        unit = unit_text(facts.rules.units.get(channel, ""))
        values = [value for _, value in points if not math.isnan(value)]
        if not unit or not values:
            continue
        yield Text("highest", channel=channel), f"{_three_digits(max(values))} {unit}"
        inside = [] if within is None else values_within(points, within)
        if inside:
            mean = math.fsum(inside) / len(inside)
            yield Text("mean", channel=channel, phase=phase), f"{_three_digits(mean)} {unit}"


def _three_digits(value: float) -> str:
    return markup.number(float(f"{value:.3g}"))


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
    endings = ENDINGS.values()
    one, other = (say(it) if it in endings else both(it) for it in (found.one, found.other))
    return name, one, other


def _charts(runs: Sequence[ComparedRun]) -> Iterator[tuple[str, str, str, Html]]:
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
                ticks = markup.clock_ticks(end_s, TICKS)
                drawing = curves_drawn(frame, curves, trips, across="time_axis", ticks=ticks)
                yield quantity_key(unit), unit_text(unit), channel, drawing


def _curves(run: ComparedRun, channel: str, unit: str, end_s: float) -> Iterator[Drawn]:
    owner = owner_of(channel)
    asked = [name for each in quantities(run.facts) if each.unit == unit for name in each.set]
    set_ = ((name, "set") for name in asked if owner_of(name) == owner)
    for name, class_ in (*set_, (channel, run.trace)):
        points = tuple(markup.thinned(run.facts.traces.get(name, ()), 0.0, end_s, COLUMNS))
        if points:
            yield Drawn(points, run.colour, class_, markup.GAP_S_MAX)


def _trips(run: ComparedRun, frame: Frame) -> Iterator[Html]:
    """Draw where the line tripped, with the markup.number of the run."""
    for each in run.facts.happened("trip"):
        said = joined(say("trip_at", tag="tspan"), f" {run.at + 1}")
        yield markup.trip_mark(frame, each.at_s, said, row=run.at)
