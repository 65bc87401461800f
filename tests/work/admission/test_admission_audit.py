"""The audit of submissions: order, reasons, suggestions."""

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audited import ARGON, CALLER, CVD, SUBMISSION, TEXT, Admitted, judged
from labharness.protocols.hcp.terms import REASON_CODES, Rejected
from labharness.work.admission.audit import CALLERS_SHOWN_MAX, Screened, screen
from labharness.work.admission.callers import BadCallers, read_callers
from labharness.work.admission.declaration import DeclaredConstraints, Safety
from labharness.work.admission.schemas import caller_schema_fault, output_fault


def rejected(**changes: object) -> Rejected:
    fields: dict[str, Any] = {**changes}
    verdict = judged(replace(SUBMISSION, **fields))
    if not isinstance(verdict, Rejected):
        raise AssertionError(f"admitted: {changes}")
    return verdict


def test_the_example_is_admitted_at_r3_and_waits_for_a_person() -> None:
    verdict = judged()
    assert isinstance(verdict, Admitted)
    assert verdict.risk.level == "R3"
    assert verdict.risk.needs_approval
    assert verdict.screened.max_duration_s == 259_200
    assert verdict.screened.data_classification == "T2"
    assert verdict.screened.priority == "normal"


def test_a_declaration_speaks_the_words_of_layer_three() -> None:
    capability = CVD.to_json()["capability"]
    assert list(capability) == [
        "name",
        "version",
        "description",
        "input_schema",
        "output_schema",
        "safety",
        "constraints",
        "references",
    ]
    assert capability["references"] == ["inputs_uri"]
    assert capability["safety"] == {
        "risk_ceiling": "R4",
        "requires_human_approval": True,
        "involves_physical_resources": True,
        "resource_types": ["high_temperature_furnace"],
        "hazard_categories": ["high_temperature"],
    }
    assert capability["constraints"] == {"max_duration": "PT72H", "concurrent_limit": 1}


@pytest.mark.parametrize(
    "changes", [{"name": "CVD!"}, {"version": "1.0"}, {"version": "v1.0.0"}, {"name": ""}]
)
def test_a_declaration_that_hcp_does_not_allow_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="capability"):
        replace(CVD, **changes)


@pytest.mark.parametrize("longest", ["PT30M", "PT4H", "PT72H", "P10D"])
@pytest.mark.parametrize("asked", ["three days", "P1Y", "PT0S", "P11D"])
def test_every_duration_that_is_suggested_may_be_asked_for(longest: str, asked: str) -> None:
    short = replace(CVD, constraints=DeclaredConstraints(max_duration=longest, concurrent_limit=1))
    refused = judged(replace(SUBMISSION, max_duration=asked), declarations=(short,))
    assert isinstance(refused, Rejected)
    suggested = re.findall(r"\bP[0-9DTHMS]+\b", refused.suggestion or "")
    assert suggested
    for each in suggested:
        kept = judged(replace(SUBMISSION, max_duration=each), declarations=(short,))
        assert isinstance(kept, Admitted), each


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"capability": "teleport"}, "invalid_input", "cvd-material-synthesis 1.0.0"),
        ({"capability": "document-analysis"}, "forbidden", "may not invoke"),
        ({"capability_version": ">=2.0.0"}, "invalid_input", "there are: 1.0.0"),
        ({"capability_version": "newest"}, "invalid_input", "not a version range"),
        ({"capability_version": ""}, "invalid_input", "not a version range"),
        ({"intent": "  "}, "invalid_input", "intent"),
        ({"inputs": {}}, "invalid_input", "target_material"),
        (
            {"inputs": {**SUBMISSION.inputs, "temperature_range": {"max": "hot"}}},
            "invalid_input",
            "inputs.temperature_range.max",
        ),
        (
            {"inputs": {**SUBMISSION.inputs, "temperature_range": {"unit": "fahrenheit"}}},
            "invalid_input",
            "inputs.temperature_range.unit",
        ),
        (
            {"inputs": {**SUBMISSION.inputs, "temperature_range": {"max": float("nan")}}},
            "invalid_input",
            "inputs.temperature_range.max",
        ),
        ({"output_format": "poem"}, "invalid_input", "raman_spectrum_analysis"),
        ({"required_fields": ("colour",)}, "invalid_input", "produces no colour"),
        ({"output_schema": {"required": ["colour"]}}, "invalid_input", "produces no colour"),
        ({"output_schema": {"$ref": "https://evil.example"}}, "invalid_input", "not fetched"),
        ({"max_duration": "three days"}, "invalid_input", "max_duration"),
        ({"max_duration": "PT73H"}, "invalid_input", "PT72H"),
        ({"max_duration": "PT0S"}, "invalid_input", "above PT0S"),
        ({"confidence_threshold": 1.5}, "invalid_input", "between 0 and 1"),
        ({"confidence_threshold": float("nan")}, "invalid_input", "between 0 and 1"),
        ({"data_classification": "T9"}, "invalid_input", "T1, T2, T3, T4"),
        ({"data_classification": "T3"}, "forbidden", "encryption"),
        ({"data_classification": "T4"}, "forbidden", "encryption"),
        ({"priority": "now"}, "invalid_input", "low, normal, high, urgent"),
        ({"caller_id": "somebody-else"}, "unauthorized", "is authenticated"),
    ],
)
def test_what_is_wrong_is_rejected_with_its_reason_and_a_way_out(
    changes: dict[str, Any], code: str, says: str
) -> None:
    verdict = rejected(**changes)
    assert verdict.reason_code == code
    assert says in verdict.reason_message
    assert verdict.suggestion


def test_nobody_is_told_anything_before_he_is_authenticated() -> None:
    verdict = judged(replace(SUBMISSION, capability="teleport"), caller=None)
    assert isinstance(verdict, Rejected)
    assert verdict.reason_code == "unauthorized"
    assert "cvd" not in verdict.reason_message


def test_who_is_not_known_is_told_of_those_who_are_where_that_may_be_told() -> None:
    def way_out(*callers: str) -> str:
        verdict = screen(
            replace(SUBMISSION, caller_id="somebody"),
            caller=None,
            declarations=(CVD,),
            formats=(),
            callers=callers,
        )
        assert isinstance(verdict, Rejected)
        assert verdict.reason_message == "caller 'somebody' is not authenticated"
        return str(verdict.suggestion)

    assert way_out() == "Submit with the credentials of a caller that the callers file names"
    assert way_out("b", "a") == "caller_id must be one of a, b"
    some = [f"c{number:03}" for number in range(CALLERS_SHOWN_MAX + 1)]
    assert way_out(*some) == f"caller_id must be one of {', '.join(some[:-1])}"
    other = rejected(caller_id="somebody")
    assert other.reason_message == (
        "payload.caller_id is 'somebody', but 'harness-alpha-001' is authenticated"
    )
    assert other.suggestion == "Write caller_id 'harness-alpha-001'"


def test_a_caller_hears_of_its_own_capabilities_only() -> None:
    assert "document-analysis" not in rejected(capability="teleport").reason_message


def test_data_above_the_class_of_the_caller_are_forbidden() -> None:
    verdict = judged(caller=replace(CALLER, data_class_max="T1"))
    assert isinstance(verdict, Rejected)
    assert verdict.reason_code == "forbidden"
    assert verdict.suggestion == "Declare data_classification T1, if the data allow it"


def test_the_highest_version_in_the_range_runs() -> None:
    newer, next_major = replace(CVD, version="1.10.0"), replace(CVD, version="2.0.0")
    verdict = judged(declarations=(newer, CVD, next_major))
    assert isinstance(verdict, Admitted)
    assert verdict.screened.declaration.version == "1.10.0"
    unstated = judged(
        replace(SUBMISSION, capability_version=None), declarations=(next_major, newer)
    )
    assert isinstance(unstated, Admitted)
    assert unstated.screened.declaration.version == "2.0.0"


def test_a_suggestion_that_is_followed_is_accepted() -> None:
    hot = {**SUBMISSION.inputs, "temperature_range": {"min": 700, "max": 900, "unit": "celsius"}}
    verdict = rejected(inputs=hot)
    assert verdict.reason_code == "risk_too_high"
    assert verdict.assessed_risk_level == "R4"
    assert "caller is only authorized for R1-R3" in verdict.reason_message
    assert (
        verdict.suggestion == "Reduce temperature_range.max to below 800 celsius to qualify for R3"
    )
    cooler = {**hot, "temperature_range": {"min": 700, "max": 799.9, "unit": "celsius"}}
    assert isinstance(judged(replace(SUBMISSION, inputs=cooler)), Admitted)


def test_the_questions_are_asked_in_the_order_of_the_approval_flow() -> None:
    hot = {"target_material": "MoS2", "temperature_range": {"max": 900, "unit": "celsius"}}
    asks = replace(SUBMISSION, capability=TEXT.name, inputs=hot)  # all of it is wrong
    ours = replace(CALLER, risk_max="R2")
    steps = [
        (judged(asks, caller=None), "unauthorized"),
        (judged(asks, ours), "forbidden"),
        (judged(replace(asks, capability=CVD.name), ours), "invalid_input"),
    ]
    asks = replace(asks, capability=CVD.name, inputs={**hot, "substrate": "SiO2/Si"})
    steps.append((judged(asks, ours), "risk_too_high"))
    found = [each.reason_code for each, _ in steps if isinstance(each, Rejected)]
    assert found == [code for _, code in steps]
    admitted = judged(asks, replace(CALLER, risk_max="R4"))
    assert isinstance(admitted, Admitted)
    assert (admitted.risk.level, admitted.risk.needs_approval) == ("R4", True)


def test_a_floor_that_nothing_lowers_is_said_to_be_one() -> None:
    verdict = judged(caller=replace(CALLER, risk_max="R2"))
    assert isinstance(verdict, Rejected)
    assert "No change of inputs" in str(verdict.suggestion)


def test_what_no_level_covers_is_rejected_with_the_level_it_was_weighed_at() -> None:
    verdict = judged(context=replace(ARGON, attended=False, safeguards_missing=("leak",)))
    assert isinstance(verdict, Rejected)
    assert (verdict.reason_code, verdict.assessed_risk_level) == ("safety_violation", "R5")
    assert "against: leak" in verdict.reason_message
    assert str(verdict.suggestion).startswith("Run it in attended hours")


@pytest.mark.parametrize(
    ("wants", "physical", "level", "needs"),
    [
        (True, True, "R3", True),
        (False, True, "R3", True),
        (True, False, "R3", True),
        (False, False, "R3", False),
        (True, False, "R1", False),
    ],
)
def test_a_person_agrees_from_r3_on_where_the_capability_or_the_plan_asks_for_it(
    *, wants: bool, physical: bool, level: str, needs: bool
) -> None:
    safety = Safety("R4", wants, level == "R3", side_effects="none")
    context = replace(ARGON, process_gases=(), temperature_c_max=None, physical=physical)
    verdict = judged(context=context, declarations=(replace(CVD, safety=safety),))
    assert isinstance(verdict, Admitted)
    assert (verdict.risk.level, verdict.risk.needs_approval) == (level, needs)


def test_what_a_caller_may_count_on_and_nobody_heeds_is_refused_by_its_name() -> None:
    verdict = rejected(unknown={"constraints": (), "expected_output": ("formt", "colour")})
    assert verdict.reason_code == "invalid_input"
    assert verdict.reason_message == (
        "expected_output: 'formt' is not known (did you mean format?); "
        "it takes format, required_fields, schema"
    )
    assert verdict.suggestion == "Leave out of expected_output: formt, colour"
    assert rejected(unknown={"constraints": ("speed",)}).reason_message == (
        "constraints: 'speed' is not known; "
        "it takes max_duration, confidence_threshold, data_classification, priority"
    )


@pytest.mark.parametrize("where", ["payload", "constraints", "expected_output"])
def test_a_name_that_a_higher_minor_version_may_know_is_ignored_and_said(where: str) -> None:
    unknown = {where: ("x_new", "y_new")}
    assert rejected(unknown=unknown).reason_code == "invalid_input"
    verdict = judged(replace(SUBMISSION, unknown=unknown, newer=True))
    assert isinstance(verdict, Admitted)
    assert verdict.screened.ignored == (f"{where}.x_new", f"{where}.y_new")


def test_so_is_one_of_inputs_and_recipe_and_what_is_planned_is_without_it() -> None:
    recipe = {"properties": {"growth_s": {}}, "additionalProperties": False}
    properties = {**CVD.input_schema["properties"], "recipe": recipe}
    schema = {**CVD.input_schema, "properties": properties, "additionalProperties": False}
    closed = replace(CVD, input_schema=schema)
    known = {**SUBMISSION.inputs, "recipe": {"growth_s": 600}}
    asks = replace(
        SUBMISSION, inputs={**known, "speed": 1, "recipe": {"growth_s": 600, "pulse_s": 2}}
    )
    refused = judged(asks, declarations=(closed,))
    assert isinstance(refused, Rejected)
    verdict = judged(replace(asks, newer=True), declarations=(closed,))
    assert isinstance(verdict, Admitted)
    assert verdict.screened.ignored == ("inputs.speed", "inputs.recipe.pulse_s")
    assert verdict.screened.submission.inputs == known


def test_a_higher_minor_version_excuses_no_wrong_value() -> None:
    wrong = {**SUBMISSION.inputs, "temperature_range": {"max": "hot"}}
    verdict = judged(replace(SUBMISSION, inputs=wrong, newer=True))
    assert isinstance(verdict, Rejected)
    assert verdict.reason_code == "invalid_input"


DIALECTS = (
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_of_a_dialect_and_with_a_name_is_read_by_its_own_rules(dialect: str) -> None:
    schema: dict[str, Any] = {
        "$schema": dialect,
        "$id": "https://caller.example/film.json",
        "properties": {"layer_count": {"$ref": "#/definitions/few"}},
        "definitions": {"few": {"maximum": 3}},
    }
    assert caller_schema_fault(schema) is None
    assert output_fault(schema, {"layer_count": 3}) is None
    assert output_fault(schema, {"layer_count": 4}) is not None
    assert isinstance(judged(replace(SUBMISSION, output_schema=schema)), Admitted)


def test_in_draft_07_a_rule_beside_a_reference_is_void() -> None:
    beside = {"$ref": "#/definitions/any", "maximum": 3}
    schema: dict[str, Any] = {"properties": {"n": beside}, "definitions": {"any": {}}}
    assert output_fault({"$schema": DIALECTS[0], **schema}, {"n": 4}) is None
    assert output_fault({"$schema": DIALECTS[2], **schema}, {"n": 4}) is not None


def test_a_closed_schema_leaves_room_for_what_is_required_beside_it() -> None:
    closed = {"properties": {"layer_count": {}}, "additionalProperties": False}
    fits = judged(replace(SUBMISSION, required_fields=("layer_count",), output_schema=closed))
    assert isinstance(fits, Admitted)
    verdict = rejected(required_fields=("confidence",), output_schema=closed)
    assert verdict.reason_code == "invalid_input"
    assert "confidence" in verdict.reason_message


def test_a_harmless_capability_needs_no_approval() -> None:
    caller = replace(CALLER, capabilities=("document-analysis",), risk_max="R1")
    verdict = judged(
        replace(SUBMISSION, capability="document-analysis"),
        caller,
        context=replace(ARGON, process_gases=(), temperature_c_max=None, physical=False),
    )
    assert isinstance(verdict, Admitted)
    assert verdict.risk.level == "R1"
    assert not verdict.risk.needs_approval


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    inputs=st.dictionaries(
        st.sampled_from(["target_material", "substrate", "temperature_range", "x"]), json_values
    ),
    schema=st.none()
    | st.dictionaries(
        st.sampled_from(["type", "required", "properties", "$ref", "pattern", "x"]), json_values
    ),
    version=st.none() | st.text(max_size=8),
    duration=st.none() | st.text(max_size=8),
)
@settings(deadline=None, max_examples=100)
def test_any_submission_gets_a_verdict_and_never_an_exception(
    inputs: dict[str, Any], schema: dict[str, Any] | None, version: str, duration: str
) -> None:
    verdict = screen(
        replace(
            SUBMISSION,
            inputs=inputs,
            output_schema=schema,
            capability_version=version,
            max_duration=duration,
        ),
        caller=CALLER,
        declarations=[CVD],
        formats={"raman_spectrum_analysis"},
    )
    if isinstance(verdict, Rejected):
        assert verdict.reason_code in REASON_CODES
        assert verdict.reason_message
    else:
        assert isinstance(verdict, Screened)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"$ref": "https://evil.example/x.json"}, "not fetched"),
        ({"items": [{"$ref": "file:///etc/passwd"}]}, "not fetched"),
        ({"$ref": "#"}, "not fetched"),
        ({"properties": {"a": {"$id": "https://evil.example"}}}, "would change"),
        ({"$id": "x", "items": {"$id": "x"}}, "would change"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "is not read"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, "circle"),
        ({"$ref": "#/$defs/b", "$defs": {}}, "nowhere"),
        (
            {
                "$ref": "#/$defs/a0",
                "$defs": {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 9} for i in range(9)}
                | {"a9": {}},
            },
            "more than 10000 values",
        ),
        ({"enum": ["x"] * 20_000}, "more than 10000 values"),
        ({"type": "colour"}, "not a JSON Schema"),
        ({"required": "all"}, "not a JSON Schema"),
        ({"pattern": "(a+)+$"}, "repeated group"),
        ({"pattern": "(?:a|a)*$"}, "repeated group"),
        ({"pattern": "(a|a){20}$"}, "repeated group"),
        ({"pattern": "a*a*a*$"}, "open repeats"),
        ({"pattern": "a{1,900}a{1,900}$"}, "open repeats"),
        ({"pattern": "^a*a*a*$"}, "open repeats"),
        ({"pattern": "^a*a*|b$"}, "open repeats"),
        ({"pattern": "a?" * 40 + "a" * 40}, "optional parts"),
        ({"pattern": r"(a)\1"}, "references to groups"),
        ({"pattern": "(?=a)b"}, "extensions"),
        ({"pattern": "x{5000}"}, "a count above"),
        ({"pattern": "["}, "not a regular expression"),
        ({"pattern": "a" * 201}, "longer than 200"),
        ({"patternProperties": {"(a+)+": {}}}, "repeated group"),
    ],
)
def test_a_schema_that_could_harm_us_is_not_used(schema: dict[str, Any], says: str) -> None:
    assert says in str(caller_schema_fault(schema))


@pytest.mark.parametrize(
    "pattern",
    [
        "^a*a*$",
        "a*$",
        "a*|b$",
        "^(?:a|b)$",
        "a{1000}",
        "(ab)c",
        "a" * 200,
        r"\(a",
        "[(]+",
        "a?" * 10,
    ],
)
def test_a_pattern_that_takes_bounded_time_is_used(pattern: str) -> None:
    assert caller_schema_fault({"pattern": pattern}) is None


def test_a_schema_nested_without_end_is_not_used() -> None:
    schema: dict[str, Any] = {}
    for _ in range(30):
        schema = {"not": schema}
    assert "at most 24" in str(caller_schema_fault(schema))


def test_plain_schemas_are_used_and_judge_outputs() -> None:
    schema = {
        "type": "object",
        "$defs": {"share": {"type": "number", "maximum": 1}},
        "properties": {
            "confidence": {"$ref": "#/$defs/share"},
            "pattern": {"type": "string", "pattern": "^[A-Z][a-z]+[0-9]?$"},
        },
    }
    assert caller_schema_fault(schema) is None
    assert output_fault(schema, {"confidence": 0.9, "pattern": "Ar2"}) is None
    fault = output_fault(schema, {"confidence": 97})
    assert fault is not None
    assert fault[0] == "outputs.confidence"


CALLERS = """
[callers.harness-alpha-001]
capabilities = ["cvd-material-synthesis"]
risk_max = "R3"
data_class_max = "T2"
"""


def test_the_callers_file_says_who_may_do_what() -> None:
    assert read_callers(CALLERS) == {"harness-alpha-001": CALLER}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (CALLERS + 'risk_maximum = "R5"\n', "risk_maximum"),
        (CALLERS.replace('"R3"', '"R9"'), "risk_max"),
        (CALLERS.replace('"R3"', "3"), "risk_max"),
        (CALLERS.replace('data_class_max = "T2"', ""), "data_class_max"),
        ("typo = 1\n" + CALLERS, "typo"),
        ("[callers", "callers file"),
        ("", "callers"),
        (CALLERS + "since = 2025-01-01T00:00:00Z\n", "callers file"),
        (
            "callers = " + "[" * 9000,
            "callers file is not TOML that can be read: it is nested too deep",
        ),
    ],
)
def test_a_callers_file_with_an_unknown_key_or_value_is_an_error(text: str, where: str) -> None:
    with pytest.raises(BadCallers, match=where):
        read_callers(text)


def test_admission_is_imported_without_its_heavy_libraries() -> None:
    code = (
        "import sys, labharness.work.admission.audit, labharness.work.admission.approval, "
        "labharness.work.admission.token; "
        "print({'pydantic', 'jsonschema', 'cryptography', 'semantic_version'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
