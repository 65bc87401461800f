"""The rules of risk, each with its reason."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.admission.declaration import (
    Constraints,
    Declaration,
    RiskLevel,
    Safety,
    SideEffects,
)
from labharness.admission.risk import RiskContext, assess, points_of, way_down


def declared(
    ceiling: RiskLevel = "R5", physical: bool = True, effects: SideEffects = "sandboxed"
) -> Declaration:
    safety = Safety(ceiling, True, physical, side_effects=effects)
    return Declaration("cvd", "1.0.0", "", {}, {}, safety, Constraints("PT1H"))


def facts(**changes: object) -> RiskContext:
    harmless: dict[str, Any] = {
        "process_gases": (),
        "undeclared_gases": (),
        "physical": False,
        "temperature_c_max": None,
        "attended": True,
        "shared_instrument": False,
        "safeguards_missing": (),
        "stays_energised": (),
    }
    return RiskContext(**{**harmless, **changes})


def heated(highest: float, unit: str = "celsius") -> dict[str, Any]:
    return {"temperature_range": {"min": 20, "max": highest, "unit": unit}}


@pytest.mark.parametrize(
    ("declaration", "level"),
    [
        (declared(physical=False, effects="none"), "R1"),
        (declared(physical=False, effects="sandboxed"), "R2"),
        (declared(physical=True), "R3"),
        (declared(physical=True, effects="none"), "R3"),
    ],
)
def test_the_floor_comes_from_the_declaration(declaration: Declaration, level: str) -> None:
    assessment = assess(declaration, {}, facts())
    assert assessment.level == level
    assert len(assessment.reasons) == 1


@pytest.mark.parametrize(
    ("inputs", "level"),
    [
        (heated(750), "R3"),
        (heated(799.99), "R3"),
        (heated(800), "R4"),
        (heated(1073.14, "kelvin"), "R3"),
        (heated(1073.15, "kelvin"), "R4"),
        ({"temperature_range": {"max": 800}}, "R4"),
        ({"temperature_range": {"min": 900}}, "R4"),
        (heated(20, "rankine"), "R4"),
        ({}, "R3"),
    ],
)
def test_a_furnace_is_r4_from_800_celsius(inputs: dict[str, Any], level: str) -> None:
    assert assess(declared(), inputs, facts()).level == level


@pytest.mark.parametrize(
    ("planned_c", "level"), [(799.0, "R3"), (800.0, "R4"), (float("nan"), "R4")]
)
def test_what_the_plan_reaches_counts_like_what_is_asked(planned_c: float, level: str) -> None:
    assert assess(declared(), {}, facts(temperature_c_max=planned_c)).level == level


@pytest.mark.parametrize(
    ("gas", "level"),
    [
        ("argon", "R3"),
        ("Ar", "R3"),
        ("oxygen", "R3"),
        ("hydrogen", "R4"),
        ("H2", "R4"),
        ("H2S", "R4"),
        ("forming gas", "R4"),
    ],
)
def test_a_flammable_toxic_or_unknown_gas_is_r4(gas: str, level: str) -> None:
    assert assess(declared(), {}, facts(process_gases=("argon", gas))).level == level


@pytest.mark.parametrize(
    ("context", "level"),
    [
        (facts(attended=False), "R4"),
        (facts(shared_instrument=True), "R4"),
        (facts(safeguards_missing=("over-temperature",)), "R4"),
        (facts(shared_instrument=True, safeguards_missing=("x",)), "R5"),
        (facts(attended=False, process_gases=("hydrogen",)), "R5"),
    ],
)
def test_circumstances_raise_the_level_step_by_step(context: RiskContext, level: str) -> None:
    assessment = assess(declared(), {}, context)
    assert assessment.level == level
    assert assessment.refusal is None


def test_an_unattended_run_without_its_safeguard_is_refused() -> None:
    context = facts(attended=False, safeguards_missing=("over-temperature",))
    refusal = assess(declared(), {}, context).refusal
    assert refusal is not None
    assert refusal.code == "safety_violation"
    assert "over-temperature" in refusal.message


def test_above_the_ceiling_is_refused_and_not_capped() -> None:
    assessment = assess(declared("R3"), heated(900), facts())
    assert assessment.level == "R4"
    assert assessment.refusal is not None
    assert assessment.refusal.code == "risk_too_high"
    assert assessment.refusal.suggestion.startswith("Reduce temperature_range.max to below 800")


def test_beyond_r5_no_ceiling_covers() -> None:
    context = facts(attended=False, shared_instrument=True, process_gases=("H2",))
    assessment = assess(declared("R5"), {}, context)
    assert assessment.points == 6
    assert assessment.refusal is not None
    assert "beyond R5" in assessment.refusal.message


def test_the_way_down_is_the_fewest_changes_that_suffice() -> None:
    context = facts(process_gases=("H2",), shared_instrument=True)
    assessment = assess(declared(), heated(900), context)
    assert assessment.points == 5
    assert way_down(assessment, 4) == "Wait until the instrument is free to qualify for R4"
    down = str(way_down(assessment, 3))
    assert "temperature_range.max" in down
    assert "without H2" in down
    assert "free" in down
    assert way_down(assessment, 2) is None


@given(
    highest=st.floats(0, 2000),
    gases=st.lists(st.sampled_from(["argon", "hydrogen", "fog"]), max_size=2).map(tuple),
    attended=st.booleans(),
    shared=st.booleans(),
    missing=st.sampled_from([(), ("leak",)]),
)
@settings(deadline=None, max_examples=100)
def test_every_step_above_the_floor_has_its_reason(
    highest: float,
    gases: tuple[str, ...],
    attended: bool,
    shared: bool,
    missing: tuple[str, ...],
) -> None:
    context = facts(
        process_gases=gases, attended=attended, shared_instrument=shared, safeguards_missing=missing
    )
    assessment = assess(declared(), heated(highest), context)
    escalations = len(assessment.reasons) - 1
    assert assessment.points - 3 <= escalations
    assert (assessment.points > 3) == (escalations > 0)
    assert points_of(assessment.level) == min(assessment.points, 5)
