"""What a caller asks by schema is heard, or refused: a misspelt rule never drops in silence."""

from dataclasses import replace
from typing import Any

import pytest

from audited import SUBMISSION, Admitted, judged
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.schemas import unheard
from labharness.work.capability.cvd import CAPABILITY

PRODUCED = CAPABILITY.declaration.output_schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            {"properties": {"layer_cout": {"const": 1}}},
            "expected_output.schema.properties: no answer has 'layer_cout' (did you mean "
            "layer_count?); it has raman_analysis, growth_log, peak_distance, layer_count, "
            "confidence, film, intent, spectrum_data",
        ),
        (
            {"properties": {"film": {"properties": {"clam": {"const": "film"}}}}},
            "expected_output.schema.properties.film.properties: no answer has 'clam' (did you mean "
            "claim?); it has headline, claim, of_film, of_area, bare",
        ),
        (
            {"properties": {"layer_count": {"cosnt": 1}}},
            "expected_output.schema.properties.layer_count: 'cosnt' is not a rule of a schema "
            "(did you mean const?)",
        ),
        (
            {"allOf": [{"propertes": {"layer_count": {"const": 1}}}]},
            "expected_output.schema.allOf: 'propertes' is not a rule of a schema "
            "(did you mean properties?)",
        ),
        (
            {"$defs": {"few": {"properties": {"gold": {}}}}, "$ref": "#/$defs/few"},
            "expected_output.schema.$ref.properties: no answer has 'gold'; it has",
        ),
        (
            {"dependentSchemas": {"confidense": {"properties": {"layer_count": {"const": 1}}}}},
            "no answer has 'confidense' (did you mean confidence?)",
        ),
        (
            {"anyOf": [{"properties": {f"gold_{n}": {}}} for n in range(9)]},
            "; and 4 more",
        ),
    ],
)
def test_what_no_answer_hears_is_named_with_what_was_meant(
    schema: dict[str, Any], said: str
) -> None:
    assert said in unheard(schema, PRODUCED)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"layer_count": {"const": 1}, "film": {"properties": {"claim": {}}}}},
        {"properties": {"raman_analysis": {"properties": {"whatever": {"minimum": 1}}}}},
        {"properties": {"confidence": {"minimum": 0.9, "unit": "", "note": "for us", "x-id": 1}}},
        {"properties": {"growth_log": {"items": {"properties": {"anything": {}}}}}},
        {"required": ["layer_count"], "additionalProperties": True},
    ],
)
def test_what_an_answer_may_have_and_what_is_a_note_pass(schema: dict[str, Any]) -> None:
    assert unheard(schema, PRODUCED) == ""


@pytest.mark.promise(52)
def test_a_task_whose_schema_asks_in_a_misspelt_name_is_rejected_before_anything() -> None:
    asked = {"properties": {"layer_cout": {"const": 1}}}
    verdict = judged(replace(SUBMISSION, output_schema=asked))
    assert isinstance(verdict, Rejected)
    assert verdict.reason_code == "invalid_input"
    assert "did you mean layer_count?" in verdict.reason_message
    right = {"properties": {"layer_count": {"const": 1}}}
    assert isinstance(judged(replace(SUBMISSION, output_schema=right)), Admitted)
