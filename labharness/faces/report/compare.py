"""The differences between two runs, part by part."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from labharness.core.vocabulary.texts import Text
from labharness.faces.report.answer_face import face_of
from labharness.faces.report.facts import Points, RunFacts
from labharness.faces.report.quantities import unit_text
from labharness.faces.report.svg import clock, exact, number

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
