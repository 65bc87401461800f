"""Schemas that nothing can fit: what is said of them is true, and it is said in bounded time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.work.admission import satisfiable
from labharness.work.admission.satisfiable import contradiction
from labharness.work.admission.schemas import caller_schema_fault, output_fault
from labharness.work.capability.cvd import CAPABILITY

PRODUCED = CAPABILITY.declaration.output_schema

numbers = st.integers(-1, 8)
types = st.sampled_from(["integer", "number", "string", "object", "array", "null", "boolean"])
leaves = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(types, st.lists(types, min_size=1, max_size=2, unique=True)),
        "minimum": numbers,
        "maximum": numbers,
        "exclusiveMinimum": numbers,
        "exclusiveMaximum": numbers,
        "const": numbers,
        "enum": st.lists(numbers, min_size=1, max_size=3),
        "minLength": st.integers(0, 3),
        "not": st.sampled_from([{}, {"type": "string"}]),
    },
)
values = st.recursive(
    st.one_of(leaves, st.booleans(), st.just({"$ref": "#/$defs/few"})),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2)}),
    ),
    max_leaves=4,
)
names = st.sampled_from(["layer_count", "confidence", "peak_distance", "growth_log", "gold"])
outputs = st.fixed_dictionaries(
    {"$defs": st.just({"few": {"minimum": 1, "maximum": 3}})},
    optional={
        "type": types,
        "required": st.lists(names, max_size=2, unique=True),
        "properties": st.dictionaries(names, values, max_size=3),
        "additionalProperties": st.booleans(),
        "minProperties": st.integers(0, 8),
        "maxProperties": st.integers(0, 8),
        "anyOf": st.lists(
            st.fixed_dictionaries({"properties": st.dictionaries(names, values, max_size=2)}),
            min_size=1,
            max_size=2,
        ),
    },
)
answers = st.fixed_dictionaries(
    {
        "raman_analysis": st.just({}),
        "growth_log": st.just([]),
        "peak_distance": st.floats(-1, 30),
        "layer_count": st.integers(1, 6),
        "confidence": st.floats(0, 1),
        "film": st.just({"headline": "monolayer", "claim": "film"}),
        "intent": st.just({"words": "", "met": None, "said": ""}),
        "spectrum_data": st.just({"raman_shift": [], "intensity": []}),
    }
)


@settings(deadline=None, max_examples=150)
@given(schema=outputs, answer=answers)
def test_no_answer_fits_a_schema_that_is_said_to_fit_none(
    schema: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert caller_schema_fault(schema) is None
    if contradiction(schema, PRODUCED) is not None:
        assert output_fault(PRODUCED, answer) is None
        assert output_fault(schema, answer) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        PRODUCED,
        {"required": ["layer_count"], "properties": {"layer_count": {"enum": [9, 2]}}},
        {"properties": {"confidence": {"type": ["string", "number"], "minimum": 0.9}}},
        {"anyOf": [{"required": ["gold"]}, {"required": ["layer_count"]}]},
        {"properties": {"gold": False}, "additionalProperties": True},
        {"properties": {"layer_count": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"maximum": 2}}},
        {"properties": {"spectrum_data": {"properties": {"colour": {"type": "string"}}}}},
        {"properties": {"growth_log": {"type": "array", "minItems": 3}}},
        {"patternProperties": {"^g": {}}, "additionalProperties": {"type": ["number", "object"]}},
    ],
)
def test_nothing_is_said_of_a_schema_that_an_answer_may_fit(schema: dict[str, Any]) -> None:
    assert contradiction(schema, PRODUCED) is None


def test_a_search_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    nine = {"properties": {"layer_count": {"minimum": 9}}}
    defined: dict[str, Any] = {"0": {"anyOf": [nine] * 60}}
    for number in range(3):
        defined[str(number + 1)] = {"anyOf": [{"$ref": f"#/$defs/{number}"}] * 60}
    assert contradiction({"$defs": defined, "$ref": "#/$defs/3"}, PRODUCED) is None
    monkeypatch.setattr(satisfiable, "STEPS_MAX", 3)
    assert contradiction({**nine, "title": "not looked at before"}, PRODUCED) is None


SMALL = {
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 6},
        "name": {"type": "string"},
        "rows": {"type": "array"},
        "more": {"type": "object"},
    },
    "required": ["count", "name"],
    "type": "object",
}


def said(**schema: Any) -> str | None:
    """What is said of a caller's schema for the count."""
    return contradiction({"properties": {"count": schema}}, SMALL)


@pytest.mark.parametrize(
    ("fits", "never", "why"),
    [
        ({"minimum": 6}, {"minimum": 7}, "is never at least 7 and at most 6"),
        ({"maximum": 1}, {"maximum": 0}, "is never at least 1 and at most 0"),
        ({"exclusiveMinimum": 5}, {"exclusiveMinimum": 6}, "is never at least 6 and at most 6"),
        ({"exclusiveMaximum": 2}, {"exclusiveMaximum": 1}, "is never at least 1 and at most 1"),
        (
            {"exclusiveMinimum": 2, "exclusiveMaximum": 4},
            {"exclusiveMinimum": 3, "exclusiveMaximum": 3},
            "is never at least 3 and at most 3",
        ),
        ({"type": "number"}, {"type": "string"}, "is a whole number, never a text"),
        ({"type": ["string", "integer"]}, {"type": ["null", "object"]}, "is a whole number, never"),
        ({"enum": [9, 6]}, {"enum": [9, 7]}, "is never one of [9, 7]"),
        ({"const": 1}, {"const": 0}, "is never one of [0]"),
        ({"anyOf": [{"minimum": 9}, {}]}, {"anyOf": [{"minimum": 9}]}, "and no other anyOf fits"),
        ({"oneOf": [{}, {"minimum": 9}]}, {"oneOf": [{"minimum": 9}]}, "and no other oneOf fits"),
        ({"allOf": [{"minimum": 6}]}, {"allOf": [{}, {"minimum": 7}]}, "at least 7 and at most 6"),
        ({"not": {"type": "string"}}, {"not": {}}, "nothing may stand at outputs.count"),
        ({"not": False}, {"not": True}, "nothing may stand at outputs.count"),
    ],
)
def test_what_just_fits_passes_and_the_next_value_is_said(
    fits: dict[str, Any], never: dict[str, Any], why: str
) -> None:
    assert said(**fits) is None
    assert why in str(said(**never))


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("name", "minLength", "maxLength"),
        ("rows", "minItems", "maxItems"),
        ("more", "minProperties", "maxProperties"),
    ],
)
def test_lengths_are_held_against_each_other(name: str, least: str, most: str) -> None:
    def of(few: int, many: int) -> str | None:
        schema = {"required": [name], "properties": {name: {least: few, most: many}}}
        return contradiction(schema, SMALL)

    assert of(2, 2) is None
    assert of(3, 2) == f"outputs.{name} never has at least 3 and at most 2 parts"
    only = {"required": [name], "properties": {name: {most: 0}}}
    assert contradiction(only, SMALL) is None
    mixed = {"properties": {"other": {"type": ["string", "array"], least: 3, most: 2}}}
    assert contradiction(mixed, SMALL) is None, "what may be of two kinds is not reckoned with"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"required": ["count", "rows"]}, None),
        ({"required": ["silver", "count", "gold"]}, "outputs never hold gold, silver"),
        ({"maxProperties": 2}, None),
        ({"maxProperties": 1}, "outputs hold 2 values, more than 1"),
        ({"maxProperties": 2, "required": ["rows"]}, "outputs hold 3 values, more than 2"),
        ({"minProperties": 4}, None),
        ({"minProperties": 5}, "outputs hold no more than 4 values"),
        ({"additionalProperties": False}, None),
        ({"additionalProperties": False, "required": ["rows"]}, "outputs never hold rows"),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "$ref": "#/definitions/any",
                "type": "string",
                "definitions": {"any": {}},
            },
            None,
        ),
        ({"additionalProperties": False, "properties": {"count": {}}}, None),
        (
            {"additionalProperties": False, "properties": {"count": {"type": "string"}}},
            "outputs.count",
        ),
        ({"additionalProperties": False, "properties": {"count": {}, "name": {}}}, None),
        ({"additionalProperties": False, "patternProperties": {"^.": {}}}, None),
        ({"properties": {"rows": False}}, None),
        (
            {"required": ["rows"], "properties": {"rows": False}},
            "nothing may stand at outputs.rows",
        ),
        (
            {
                "required": ["more"],
                "properties": {
                    "more": {
                        "required": ["x"],
                        "properties": {"x": {"minimum": 2, "maximum": 1, "type": "number"}},
                    }
                },
            },
            "outputs.more.x is never at least 2 and at most 1",
        ),
        (
            {"required": ["more"], "properties": {"more": {"required": ["x"], "maxProperties": 0}}},
            None,
        ),
        ({"properties": {"count": {"enum": [*range(7, 107)]}}}, "outputs.count is never one of"),
        ({"properties": {"count": {"enum": [*range(7, 108)]}}}, None),
    ],
)
def test_what_an_answer_holds_is_held_against_what_is_asked(
    schema: dict[str, Any], why: str | None
) -> None:
    found = contradiction(schema, SMALL)
    assert (found is None) if why is None else str(found).startswith(why)


def test_an_answer_holds_all_that_it_names_where_none_is_required() -> None:
    produced = {key: value for key, value in SMALL.items() if key != "required"}
    assert contradiction({"properties": {"rows": False}}, produced) is not None
