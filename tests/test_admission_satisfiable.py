"""Schemas that nothing can fit: what is said of them is true, and it is said in bounded time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.admission import satisfiable
from labharness.admission.satisfiable import contradiction
from labharness.admission.schemas import caller_schema_fault, output_fault
from labharness.capability.cvd import CAPABILITY

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
    branches: dict[str, Any] = {"anyOf": [nine] * 60}
    for _ in range(3):
        branches = {"anyOf": [branches] * 60}
    assert contradiction(branches, PRODUCED) is None
    monkeypatch.setattr(satisfiable, "STEPS_MAX", 3)
    assert contradiction(nine, PRODUCED) is None
