"""Nothing of an envelope is approved unseen: its words hold each number, a page holds the words."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from difflib import unified_diff
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT
from labharness.faces.cli.rules import rules
from labharness.lab import LabPlan, default_lab_path, read_lab
from labharness.safety.kernel import Bound, Envelope, EnvelopeInvalid, Interlock
from rig import SHORT_LINE

PAGE = ROOT / "docs" / "reference" / "line-cvd-mos2.md"
REASON = "source"
# of the channels that a row guards: nothing where it guards none
BANDS = ("above", "upto", "below")
OTHER_BOUND = Bound("box.lid_shut", 0.25, 0.75)


def told(plan: LabPlan) -> list[str]:
    return list(rules(plan))


def another(value: object, kind: str) -> list[object]:
    """Return values of the same kind that are not this one."""
    one = 0.123 if "float" in kind else "other" if "str" in kind else OTHER_BOUND
    match value:
        case bool():
            return [not value]
        case Enum():
            return [next(each for each in type(value) if each is not value)]
        case int():
            return [value + 1]
        case float():
            return [0.123 if math.isinf(value) else value * 10 + 0.123]
        case str():
            return [value + "_other"]
        case None:
            return [OTHER_BOUND]
        case tuple():
            turned = [value[::-1]] if value[::-1] != value else []
            return [value[1:] if value else (one,), *turned]
        case Mapping():
            return [dict(list(value.items())[1:])]
    return []


def changes(row: Any) -> Iterator[tuple[str, Any]]:
    """Return a row with each value that decides changed, one at a time, as deep as rows go."""
    for field in fields(row):
        idle = isinstance(row, Interlock) and field.name in BANDS and not row.guards
        if field.name != REASON and not idle:
            yield from changed(row, field)


def changed(row: Any, field: Field[Any]) -> Iterator[tuple[str, Any]]:
    value = getattr(row, field.name)
    inner: list[tuple[str, Any]] = [("", each) for each in another(value, str(field.type))]
    if is_dataclass(value):
        inner += changes(value)
    if isinstance(value, tuple):
        for at, each in enumerate(value):
            if is_dataclass(each):
                inner += [
                    (f"[{at}].{name}", (*value[:at], new, *value[at + 1 :]))
                    for name, new in changes(each)
                ]
    for name, new in inner:
        try:
            yield f"{field.name}{name}", replace(row, **{field.name: new})
        except (EnvelopeInvalid, AttributeError, TypeError):
            continue  # no such row can be loaded


def replaced(plan: LabPlan, **rows: object) -> LabPlan:
    """Put rows into an envelope without asking whether they agree with each other."""
    envelope = object.__new__(Envelope)
    for field in fields(Envelope):
        was = getattr(plan.envelope, field.name)
        object.__setattr__(envelope, field.name, rows.get(field.name, was))
    return replace(plan, envelope=envelope)


def without_rows(plan: LabPlan) -> LabPlan:
    """Take out every row that stands among others; lines of purge, room and contacts are left."""
    return replaced(
        plan,
        **{
            field.name: {} if isinstance(rows, Mapping) else ()
            for field in fields(Envelope)
            if isinstance(rows := getattr(plan.envelope, field.name), Mapping | tuple)
        },
    )


def one_at_a_time(plan: LabPlan) -> Iterator[tuple[str, LabPlan, LabPlan]]:
    """Return what changes, and an envelope of the one row alone before and after.

    Rows are told one by one (the test compares all of them together once), which spares telling
    a hundred others a thousand times.
    """
    bare = without_rows(plan)
    for field in fields(Envelope):
        rows = getattr(plan.envelope, field.name)
        if isinstance(rows, Mapping):
            for key, row in rows.items():
                alone = replaced(bare, **{field.name: {key: row}})
                for name, new in changes(row) if is_dataclass(row) else [("", "other")]:
                    yield f"{key}.{name}", alone, replaced(bare, **{field.name: {key: new}})
                yield f"{key} dropped", alone, bare
        elif isinstance(rows, tuple):
            for row in rows:
                alone = replaced(bare, **{field.name: (row,)})
                for name, new in changes(row):
                    yield f"{row.name}.{name}", alone, replaced(bare, **{field.name: (new,)})
                yield f"{row.name} dropped", alone, bare
        elif is_dataclass(rows):
            for name, new in changes(rows):
                yield f"{field.name}.{name}", bare, replaced(bare, **{field.name: new})


@pytest.mark.promise(47)
@pytest.mark.parametrize("lab", [default_lab_path(), SHORT_LINE], ids=["shipped", "short"])
def test_no_number_and_no_name_of_an_envelope_is_approved_unseen(lab: Path) -> None:
    plan = read_lab(lab)
    bare = Counter(told(without_rows(plan)))
    together, tried, before, says = Counter(bare), 0, plan, [""]
    for name, alone, other in one_at_a_time(plan):
        tried += 1
        if alone is not before:
            before, says = alone, told(alone)
            together += Counter(says) - bare
        assert told(other) != says, f"{name}: changed, and nothing that is shown tells of it"
    assert tried > 1000
    assert together == Counter(told(plan)), "a row says the same alone and among the others"


@pytest.mark.promise(47)
def test_the_page_holds_the_rules_of_the_shipped_line_word_for_word() -> None:
    _, _, text = PAGE.read_text("utf-8").partition("```text\n")
    page = text.partition("```")[0].splitlines()
    says = told(read_lab(default_lab_path()))
    differs = "\n".join(unified_diff(page, says, PAGE.name, "the envelope", n=0, lineterm=""))
    assert not differs, differs
