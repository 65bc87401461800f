"""A recipe is what was asked for or a plain reason; nothing is clipped to fit."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.work.admission.schemas import caller_schema_fault, input_fault
from labharness.work.capability import CannotDo
from labharness.work.capability.cvd import CAPABILITY
from labharness.work.capability.cvd.recipe import (
    GROWTH_DEFAULTS,
    CvdSettings,
    GrowthFacts,
    Recipe,
    growth_facts,
    make_recipe,
)

FACTS = GrowthFacts(
    limits={
        "furnace.setpoint": (0, 950, "degC"),
        "furnace.setpoint_rate": (0, 20, "degC/min"),
        "sulfur.setpoint": (0, 250, "degC"),
        "argon.setpoint": (0, 500, "sccm"),
        "hydrogen.setpoint": (0, 50, "sccm"),
    },
    tube_volume_cm3=2000,
    settings=CvdSettings(laser_nm=532.0, a1g_si_monolayer=0.12, source="test"),
)


def growing(**growth: float) -> CvdSettings:
    return FACTS.settings.model_copy(update={"growth": growth})


def recipe(**inputs: Any) -> Recipe | CannotDo:
    return make_recipe({"target_material": "MoS2", "substrate": "SiO2/Si", **inputs}, FACTS)


def refused(**inputs: Any) -> CannotDo:
    found = recipe(**inputs)
    assert isinstance(found, CannotDo), found
    return found


def made(**inputs: Any) -> Recipe:
    found = recipe(**inputs)
    assert isinstance(found, Recipe), found
    return found


def test_nothing_asked_gives_the_lines_own_recipe_without_hydrogen() -> None:
    assert made() == Recipe(
        sample_id="sample",
        temperature_c=735.0,
        dwell_s=600.0,
        ramp_c_per_min=15.0,
        argon_sccm=50.0,
        hydrogen_sccm=0.0,
        moo3_mass_mg=15.0,
        sulfur_mass_mg=100.0,
        sulfur_temperature_c=200.0,
    )


@pytest.mark.parametrize(
    ("asked", "temperature_c"),
    [
        ({"min": 700, "max": 750, "unit": "celsius"}, 725.0),
        ({"min": 700, "max": 750}, 725.0),
        ({"min": 973.15, "max": 1023.15, "unit": "kelvin"}, 725.0),
        ({"min": 700}, 735.0),
        ({"min": 760}, 760.0),
        ({"max": 700}, 700.0),
        ({}, 735.0),
    ],
)
def test_the_middle_of_the_range_is_taken_or_what_is_usual(
    asked: Mapping[str, Any], temperature_c: float
) -> None:
    assert made(temperature_range=asked).temperature_c == pytest.approx(temperature_c)


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ({"temperature_range": {"min": 750, "max": 700}}, "min 750 is above max 700 celsius"),
        ({"temperature_range": {"min": -1, "unit": "kelvin"}}, "min: -1 kelvin is below 0 K"),
        ({"temperature_range": {"min": -300}}, "min: -300 celsius is below 0 K"),
        ({"recipe": {"dwell_s": -5}}, "recipe.dwell_s is -5, allowed is at least 0"),
        ({"recipe": {"argon_sccm": 5}}, "recipe.argon_sccm is 5, allowed is at least 20"),
        (
            {"recipe": {"hydrogen_sccm": 20.5}},
            "recipe.hydrogen_sccm is 20.5, allowed over hot sulfur is at most 20",
        ),
        (
            {"recipe": {"argon_sccm": 84.9, "hydrogen_sccm": 5}},
            "recipe.argon_sccm is 84.9, allowed beside hydrogen is at least 85",
        ),
        ({"recipe": {"sulfur_temperature_c": 100}}, "allowed is at least 115"),
        (
            {"temperature_range": {"min": 700, "max": 750}, "recipe": {"temperature_c": 760}},
            "recipe.temperature_c 760 is outside temperature_range, 700 to 750 degC",
        ),
        ({"recipe": {"temperature_c": 400}}, "does not grow at 400 degC"),
    ],
)
def test_a_bad_input_is_refused_with_its_name(inputs: Mapping[str, Any], why: str) -> None:
    found = refused(**inputs)
    assert found.reason_code == "invalid_input"
    assert why in found.message


@pytest.mark.parametrize(
    ("inputs", "name", "channel"),
    [
        ({"temperature_range": {"min": 900, "max": 1200}}, "temperature_range.max", "950 degC"),
        ({"recipe": {"temperature_c": 951}}, "temperature_range.max", "furnace.setpoint"),
        ({"recipe": {"ramp_c_per_min": 25}}, "recipe.ramp_c_per_min", "furnace.setpoint_rate"),
        ({"recipe": {"hydrogen_sccm": 60}}, "recipe.hydrogen_sccm", "hydrogen.setpoint"),
        ({"recipe": {"argon_sccm": 501}}, "recipe.argon_sccm", "argon.setpoint"),
        ({"recipe": {"sulfur_temperature_c": 260}}, "sulfur_temperature_c", "sulfur.setpoint"),
    ],
)
def test_beyond_the_envelope_is_a_safety_violation_that_names_the_limit(
    inputs: Mapping[str, Any], name: str, channel: str
) -> None:
    found = refused(**inputs)
    assert found.reason_code == "safety_violation"
    assert name in found.message
    assert channel in found.message + found.suggestion


@settings(deadline=None, max_examples=60)
@given(st.floats(-500, 3000), st.floats(-500, 3000))
def test_a_growth_temperature_is_always_within_what_was_asked_and_what_is_allowed(
    low: float, high: float
) -> None:
    found = recipe(temperature_range={"min": low, "max": high, "unit": "celsius"})
    if isinstance(found, Recipe):
        assert low <= found.temperature_c <= high <= 950


@pytest.mark.parametrize(
    ("material", "lack"),
    [
        ("WSe2", "H2Se"),
        ("MoSe2", "H2Se"),
        ("WS2", "WO3 source with salt"),
        ("graphene", "methane"),
        ("unobtainium", "a layer table"),
    ],
)
def test_another_material_is_told_what_this_line_lacks(material: str, lack: str) -> None:
    found = refused(target_material=material)
    assert found.reason_code == "invalid_input"
    assert "this line grows MoS2 on SiO2/Si" in found.message
    assert lack in found.message


def test_another_substrate_is_told_so_and_subscripts_and_case_are_no_other_material() -> None:
    assert "'sapphire'" in refused(substrate="sapphire").message
    made(target_material="MoS₂", substrate="SiO₂/Si")
    made(target_material="mos2", substrate="sio2 / si")


def test_a_line_without_hydrogen_grows_without_it_and_says_so_when_asked() -> None:
    limits = {name: limit for name, limit in FACTS.limits.items() if "hydrogen" not in name}
    facts = replace(FACTS, limits=limits)
    inputs = {"target_material": "MoS2", "substrate": "SiO2/Si"}
    assert isinstance(make_recipe(inputs, facts), Recipe)
    found = make_recipe({**inputs, "recipe": {"hydrogen_sccm": 5}}, facts)
    assert isinstance(found, CannotDo)
    assert found.reason_code == "resource_unavailable"


def test_beside_hydrogen_there_is_more_argon() -> None:
    assert made(recipe={"hydrogen_sccm": 5}).argon_sccm == 85.0
    assert made(recipe={"hydrogen_sccm": 5, "argon_sccm": 200}).argon_sccm == 200.0
    assert made().argon_sccm == 50.0


def test_the_lab_files_growth_values_replace_the_defaults() -> None:
    facts = replace(FACTS, settings=growing(dwell_s=60.0))
    assert growth_facts(facts) == {**GROWTH_DEFAULTS, "dwell_s": 60.0}


@pytest.mark.parametrize("growth", [{"dwel_s": 60.0}, {"dwell_s": 0.0}, {"dwell_s": math.nan}])
def test_a_wrong_growth_value_in_the_lab_file_is_an_error(growth: Mapping[str, float]) -> None:
    with pytest.raises(ValueError, match=r"growth\.dwel"):
        growth_facts(replace(FACTS, settings=growing(**growth)))


def test_the_declaration_is_strict_where_it_heats() -> None:
    schema = CAPABILITY.declaration.input_schema
    good = {"target_material": "MoS2", "substrate": "SiO2/Si", "recipe": {"dwell_s": 5}}
    assert caller_schema_fault(schema) is None
    assert input_fault(schema, good) is None
    assert input_fault(schema, {"target_material": "MoS2"}) is not None
    strange: tuple[Any, ...] = (5, {"dwel_s": 5}, {"sample_id": "a b"}, {"moo3_mass_mg": math.inf})
    assert all(input_fault(schema, {**good, "recipe": each}) for each in strange)
    strange = ([700], {"max": math.nan}, {"max": "hot"}, {"max": True}, {"unit": "F"})
    assert all(input_fault(schema, {**good, "temperature_range": each}) for each in strange)
    promised = {"peak_distance", "layer_count", "confidence", "spectrum_data"}
    assert promised <= CAPABILITY.declaration.produces()


def test_the_declaration_names_each_hazard_that_may_be_asked_for_and_what_brings_it_in() -> None:
    safety = CAPABILITY.declaration.to_json()["capability"]["safety"]
    named = ["high_temperature", "toxic_gas", "flammable_gas", "laser"]
    assert safety["hazard_categories"] == named
    assert set(safety["hazards_by"]) == {"flammable_gas", "laser"}
    assert "hydrogen_sccm" in safety["hazards_by"]["flammable_gas"]
    recipe = CAPABILITY.declaration.input_schema["properties"]["recipe"]["properties"]
    assert "hydrogen_sccm" in recipe
