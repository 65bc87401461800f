"""Nothing of an envelope is approved unseen: its words hold each number, a page holds the words."""

import math
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
BANDS = (
    "above",
    "upto",
    "below",
)  # of the channels that a row guards: nothing where it guards none
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


def one_at_a_time(plan: LabPlan) -> Iterator[tuple[str, LabPlan]]:
    for field in fields(Envelope):
        rows = getattr(plan.envelope, field.name)
        if isinstance(rows, Mapping):
            for key, row in rows.items():
                for name, new in changes(row) if is_dataclass(row) else [("", "other")]:
                    yield f"{key}.{name}", replaced(plan, **{field.name: {**rows, key: new}})
                left = {other: each for other, each in rows.items() if other != key}
                yield f"{key} dropped", replaced(plan, **{field.name: left})
        elif isinstance(rows, tuple):
            for at, row in enumerate(rows):
                for name, new in changes(row):
                    other = (*rows[:at], new, *rows[at + 1 :])
                    yield f"{row.name}.{name}", replaced(plan, **{field.name: other})
                yield (
                    f"{row.name} dropped",
                    replaced(plan, **{field.name: (*rows[:at], *rows[at + 1 :])}),
                )
        elif is_dataclass(rows):
            for name, new in changes(rows):
                yield f"{field.name}.{name}", replaced(plan, **{field.name: new})


@pytest.mark.promise(47)
@pytest.mark.parametrize("lab", [default_lab_path(), SHORT_LINE], ids=["shipped", "short"])
def test_no_number_and_no_name_of_an_envelope_is_approved_unseen(lab: Path) -> None:
    plan = read_lab(lab)
    whole = told(plan)
    tried = 0
    for name, other in one_at_a_time(plan):
        tried += 1
        assert told(other) != whole, f"{name}: changed, and nothing that is shown tells of it"
    assert tried > 1000


@pytest.mark.promise(47)
def test_the_page_holds_the_rules_of_the_shipped_line_word_for_word() -> None:
    _, _, text = PAGE.read_text("utf-8").partition("```text\n")
    page = text.partition("```")[0].splitlines()
    says = told(read_lab(default_lab_path()))
    differs = "\n".join(unified_diff(page, says, PAGE.name, "the envelope", n=0, lineterm=""))
    assert not differs, differs
