"""The rules of risk, each with its reason."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.protocols.hcp.terms import Rejected, RiskLevel
from labharness.work.admission.declaration import (
    Declaration,
    DeclaredConstraints,
    Safety,
    SideEffects,
)
from labharness.work.admission.risk import (
    RiskContext,
    assess,
    categories_of_gas,
    common_name,
    points_of,
    safe_in_time,
    way_down,
)


def declared(
    ceiling: RiskLevel = "R5", physical: bool = True, effects: SideEffects = "sandboxed"
) -> Declaration:
    safety = Safety(ceiling, True, physical, side_effects=effects)
    constraints = DeclaredConstraints("PT1H")
    return Declaration("cvd", "1.0.0", "", {}, {}, safety, constraints, "temperature_range")


def facts(**changes: object) -> RiskContext:
    harmless: dict[str, Any] = {
        "process_gases": (),
        "undeclared_gases": (),
        "physical": False,
        "hazardous": False,
        "temperature_c_max": None,
        "attended": True,
        "attended_at": "",
        "shared_instrument": False,
        "safeguards_missing": (),
        "stays_energised": (),
    }
    return RiskContext(**{**harmless, **changes})


def refused(context: RiskContext, ceiling: RiskLevel = "R5", **inputs: Any) -> Rejected:
    found = assess(declared(ceiling), inputs, context).refusal
    assert found is not None
    return found


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
    refusal = refused(facts(attended=False, safeguards_missing=("over-temperature",)))
    assert refusal.reason_code == "safety_violation"
    assert "over-temperature" in refusal.reason_message


def test_above_the_ceiling_is_refused_and_not_capped() -> None:
    refusal = refused(facts(), "R3", **heated(900))
    assert (refusal.reason_code, refusal.assessed_risk_level) == ("risk_too_high", "R4")
    assert str(refusal.suggestion).startswith("Reduce temperature_range.max to below 800")


def test_beyond_r5_no_ceiling_covers() -> None:
    context = facts(attended=False, shared_instrument=True, process_gases=("H2",))
    assessment = assess(declared("R5"), {}, context)
    assert assessment.points == 6
    assert "beyond R5" in refused(context).reason_message


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


def reason(context: RiskContext, inputs: dict[str, Any] | None = None) -> tuple[str, ...]:
    """What is said beside that instruments are commanded."""
    return assess(declared(), inputs or {}, context).reasons[1:]


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (facts(attended=False), "+1: nobody attends the whole run"),
        (facts(shared_instrument=True), "+1: an instrument is shared with another task"),
        (
            facts(safeguards_missing=("leak", "heat")),
            "+1: a hardware safeguard is missing or past its proof test: leak, heat",
        ),
        (
            facts(process_gases=("argon", "H2", "fog")),
            "at least R4: process gas: H2 is flammable, "
            "fog is unknown, so taken for flammable and toxic",
        ),
        (
            facts(process_gases=("argon", "H2"), undeclared_gases=("H2", "argon")),
            "at least R4: process gas: H2 is flammable (by the plan's commands; not declared)",
        ),
        (
            facts(temperature_c_max=850.0),
            "at least R4: the plan reaches 850 celsius, not below 800 celsius",
        ),
        (
            facts(temperature_c_max=float("inf")),
            "at least R4: the plan reaches a temperature that nothing bounds, "
            "not below 800 celsius",
        ),
    ],
)
def test_each_circumstance_is_said_with_its_level(context: RiskContext, said: str) -> None:
    assert reason(context) == (said,)


def test_what_is_asked_hot_is_said_in_its_own_unit() -> None:
    assert reason(facts(), heated(900)) == (
        "at least R4: temperature_range.max is 900 celsius, not below 800 celsius",
    )
    assert reason(facts(), heated(1100, "kelvin")) == (
        "at least R4: temperature_range.max is 1100 kelvin, not below 1073.15 kelvin",
    )


def test_a_plan_that_commands_instruments_is_physical_whatever_its_capability_says() -> None:
    for effects in ("none", "sandboxed"):
        found = assess(declared(physical=False, effects=effects), {}, facts(physical=True))
        assert found.reasons == (
            "at least R3: the plan commands instruments, though the capability declares none",
        )


def down(context: RiskContext, to: int = 3, heats: str = "") -> str | None:
    """The way down to a level, for a capability with this input for its temperature."""
    safety, constraints = Safety("R5", True, True), DeclaredConstraints("PT1H")
    declaration = Declaration("cvd", "1.0.0", "", {}, {}, safety, constraints, heats)
    return way_down(assess(declaration, {}, context), to)


def test_no_way_down_is_offered_that_is_none() -> None:
    hot = facts(temperature_c_max=850.0)
    assert down(hot) is None, "a capability without that input"
    assert down(hot, heats="temperature_range") == (
        "Set temperature_range.max below 800 celsius to qualify for R3"
    )
    declared_gas = facts(process_gases=("H2", "fog"))
    assert down(declared_gas) == "Choose a recipe without H2 and fog to qualify for R3"
    assert down(facts(process_gases=("H2",), undeclared_gases=("H2",))) is None
    assert down(facts(attended=False)) == "Run it in attended hours to qualify for R3"
    assert down(facts(safeguards_missing=("x",))) == (
        "Proof-test the hardware safeguard to qualify for R3"
    )


def test_what_stays_energised_runs_only_where_a_person_is() -> None:
    stays = facts(attended=False, stays_energised=("furnace.setpoint: hold", "laser.power"))
    refusal = refused(stays)
    assert refusal.reason_code == "safety_violation"
    assert refusal.reason_message == (
        "an unattended run needs instruments that go to their safe state within 5 s when nobody "
        "talks to them; these do not: furnace.setpoint: hold; laser.power"
    )
    assert str(refusal.suggestion).startswith("Run it in attended hours, or set and declare")
    assert assess(declared(), {}, facts(stays_energised=("laser.power",))).refusal is None


def test_what_exceeds_the_ceiling_is_said_by_its_level() -> None:
    context = facts(process_gases=("H2",), shared_instrument=True)
    refusal = refused(context, "R4")
    assert refusal.reason_message.startswith(
        "Task parameters indicate R5, but cvd runs up to R4: at least R3"
    )
    assert "+1: an instrument is shared" in refusal.reason_message
    assert refusal.suggestion == "Choose a recipe without H2 to qualify for R4"
    assert assess(declared("R5"), {}, context).refusal is None
    assert (
        refused(facts(), "R2").suggestion
        == "No change of inputs brings this below R2; ask for another capability"
    )


@pytest.mark.parametrize(
    ("said", "safe"),
    [
        ("safe(5)", True),
        ("safe(0.5)", True),
        ("safe(5.1)", False),
        ("hold", False),
        ("unknown", False),
    ],
)
def test_an_instrument_is_safe_by_itself_within_five_seconds(said: str, *, safe: bool) -> None:
    assert safe_in_time(said) is safe


def test_a_gas_is_weighed_by_one_name_whatever_it_is_called() -> None:
    assert [common_name(each) for each in ("H2", " h2 ", "Hydrogen", "fog")] == [
        "hydrogen",
        "hydrogen",
        "hydrogen",
        "fog",
    ]
    assert categories_of_gas(" H2") == ("flammable_gas",)
    assert categories_of_gas("argon") == ()
    assert categories_of_gas("fog") == ("flammable_gas", "toxic_gas")
