"""What is wrong with inputs is said by its place, its reason and what mends it."""

from typing import Any

import pytest

from labharness.admission.schemas import input_fault

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
            "'sise' is no input (did you mean size?); it takes target, size, range, name",
        ),
        (
            {**GOOD, "maxx": 2},
            "'maxx' is no input (did you mean range.max?); it takes target, size, range, name",
        ),
        (
            {"size": 1, "targett": "MoS2"},
            "'targett' is no input (did you mean target?); it takes target, size, range, name",
        ),
    ],
)
def test_a_name_that_is_no_input_is_told_what_may_be_meant(
    inputs: dict[str, Any], reason: str
) -> None:
    fault = input_fault(SCHEMA, inputs)
    assert fault is not None
    assert fault.reason == reason
