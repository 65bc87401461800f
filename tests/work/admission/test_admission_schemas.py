"""What is wrong with inputs is said by its place, its reason and what mends it."""

from itertools import pairwise
from typing import Any

import pytest

from labharness.protocols.json_numbers import value_fault
from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety
from labharness.work.admission.schemas import (
    KEPT_CHARACTERS_MAX,
    caller_schema_fault,
    input_fault,
    kept,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["target", "size"],
    "additionalProperties": False,
    "properties": {
        "target": {"type": "string", "enum": ["MoS2", "WS2"]},
        "size": {"type": ["number", "null"], "minimum": 1, "maximum": 10},
        "range": {
            "type": "object",
            "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
            "additionalProperties": False,
            "required": ["min"],
        },
        "name": {"type": "string", "pattern": "^a"},
    },
}
GOOD: dict[str, Any] = {"target": "MoS2", "size": 1}


@pytest.mark.parametrize(
    ("change", "where", "remedy"),
    [
        ({"target": "gold"}, "inputs.target", "Set inputs.target to one of: MoS2, WS2"),
        ({"size": "big"}, "inputs.size", "Write inputs.size as a number or null"),
        ({"size": 0.5}, "inputs.size", "Set inputs.size to at least 1"),
        ({"size": 11}, "inputs.size", "Set inputs.size to at most 10"),
        ({"range": {"max": 3}}, "inputs.range", "Add to inputs.range: min"),
        ({"name": "b"}, "inputs.name", "Make inputs.name fit pattern ^a"),
        (
            {"sise": 2, "target": "WS2"},
            "inputs",
            "Leave out of inputs: sise; it takes: target, size, range, name",
        ),
        (
            {"range": {"min": 1, "top": 2}},
            "inputs.range",
            "Leave out of inputs.range: top; it takes: min, max",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_mends_it(
    change: dict[str, Any], where: str, remedy: str
) -> None:
    fault = input_fault(SCHEMA, {**GOOD, **change})
    assert fault is not None
    assert (fault.where, fault.remedy) == (where, remedy)


def test_what_fits_has_nothing_said_of_it_up_to_its_bounds() -> None:
    assert input_fault(SCHEMA, GOOD) is None
    assert input_fault(SCHEMA, {"target": "WS2", "size": 10, "range": {"min": 1}}) is None


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (
            {**GOOD, "sise": 2},
            "'sise' is not an input (did you mean size?); it takes target, size, range, name",
        ),
        (
            {**GOOD, "maxx": 2},
            "'maxx' is not an input (did you mean range.max?); it takes target, size, range, name",
        ),
        (
            {"size": 1, "targett": "MoS2"},
            "'targett' is not an input (did you mean target?); it takes target, size, range, name",
        ),
    ],
)
def test_a_name_that_is_no_input_is_told_what_may_be_meant(
    inputs: dict[str, Any], reason: str
) -> None:
    fault = input_fault(SCHEMA, inputs)
    assert fault is not None
    assert fault.reason == reason


@pytest.mark.parametrize(
    ("value", "place", "why"),
    [
        (2**53, "x", "an integer beyond"),
        (-(2**53), "x", "an integer beyond"),
        ({"a": [1, float("nan")]}, "x.a[1]", "nan is not a number"),
        ({"a": ({"b": float("inf")},)}, "x.a[0].b", "inf is not a number"),
    ],
)
def test_a_number_that_json_cannot_carry_is_told_with_its_place(
    value: object, place: str, why: str
) -> None:
    found = value_fault(value, "x")
    assert found is not None
    assert found[0] == place
    assert found[1].startswith(why)


def test_whole_numbers_up_to_what_every_program_reads_alike_pass() -> None:
    assert value_fault({"a": [2**53 - 1, 1 - 2**53, 0.5, "x", True, None]}, "x") is None


def test_a_schema_is_used_up_to_its_depth() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(22):  # with the word in it 24 deep
        schema = {"not": schema}
    assert caller_schema_fault(schema) is None
    assert caller_schema_fault({"not": schema}) == "it is nested 25 deep; at most 24"


def test_references_follow_each_other_up_to_a_depth() -> None:
    def chain(length: int) -> dict[str, Any]:
        names = [f"a{number}" for number in range(length)]
        inner = {name: {"$ref": f"#/$defs/{then}"} for name, then in pairwise(names)}
        return {"$ref": "#/$defs/a0", "$defs": {**inner, names[-1]: {}}}

    assert caller_schema_fault(chain(24)) is None
    assert "more than 24 deep" in str(caller_schema_fault(chain(25)))


def test_only_a_pattern_is_taken_for_one() -> None:
    assert (
        caller_schema_fault({"title": "(a+)+", "properties": {"pattern": {"const": "("}}}) is None
    )


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        (DeclaredConstraints("PT0S", 1), "max_duration must be longer than PT0S"),
        (DeclaredConstraints("PT1S", 0), "concurrent_limit must be at least 1"),
    ],
)
def test_a_capability_takes_time_and_runs_at_least_once(
    constraints: DeclaredConstraints, why: str
) -> None:
    safety = Safety("R1", False, False)
    with pytest.raises(ValueError, match=f"capability 'cvd': {why}"):
        Declaration("cvd", "1.0.0", "", {}, {}, safety, constraints)
    assert (
        Declaration(
            "cvd", "1.0.0", "", {}, {}, safety, DeclaredConstraints("PT1S", 1)
        ).max_duration_s
        == 1
    )


@pytest.mark.parametrize(("length", "looks"), [(10, 1), (KEPT_CHARACTERS_MAX, 2)])
def test_a_schema_is_looked_at_once_unless_it_is_long(length: int, looks: int) -> None:
    looked: list[dict[str, Any]] = []

    def check(schema: dict[str, Any]) -> int:
        looked.append(schema)
        return len(looked)

    checked = kept(check)
    schema = {"description": "x" * length}
    assert (checked(schema), checked({**schema})) == (1, looks)
    assert looked == [schema] * looks
    assert checked({**schema, "type": "object"}) == looks + 1
