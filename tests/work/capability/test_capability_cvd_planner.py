"""A plan keeps its order and the line's limits whatever the recipe."""

from dataclasses import replace
from pathlib import Path
from tomllib import loads

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labharness_envelopes
from labharness.core.vocabulary import Command
from labharness.work.capability import Planned
from labharness.work.capability.cvd.planner import plan_growth
from labharness.work.capability.cvd.recipe import CvdSettings, GrowthFacts, Recipe
from labharness.work.plan import stated_commands

ENVELOPE = loads(
    (Path(str(labharness_envelopes.__file__)).parent / "lines" / "cvd_mos2.toml").read_text()
)
FACTS = GrowthFacts(
    limits={row["channel"]: (row["low"], row["high"], row["unit"]) for row in ENVELOPE["limit"]},
    tube_volume_cm3=2000,
    settings=CvdSettings(laser_nm=532.0, a1g_si_monolayer=0.12, source="test"),
)
STAGES = [
    *("loading", "leak_check", "purge", "ramp", "material_growth", "cooling"),
    *("transfer", "characterisation", "analysis"),
]
PLAIN = Recipe(
    sample_id="s",
    temperature_c=735.0,
    dwell_s=600.0,
    ramp_c_per_min=15.0,
    argon_sccm=50.0,
    hydrogen_sccm=0.0,
    moo3_mass_mg=15.0,
    sulfur_mass_mg=100.0,
    sulfur_temperature_c=200.0,
)
RECIPES = st.builds(
    Recipe,
    sample_id=st.just("s"),
    temperature_c=st.floats(550, 950),
    dwell_s=st.floats(0, 1e5),
    ramp_c_per_min=st.floats(0.1, 20),
    argon_sccm=st.floats(20, FACTS.limits["argon.setpoint"][1]),
    hydrogen_sccm=st.just(0.0) | st.floats(1, 50),
    moo3_mass_mg=st.floats(0.1, 100),
    sulfur_mass_mg=st.floats(0.1, 1000),
    sulfur_temperature_c=st.floats(115, 250),
)


def planned(recipe: Recipe = PLAIN, facts: GrowthFacts = FACTS) -> Planned:
    return plan_growth(recipe, facts, 0.95)


def ids(plan: Planned) -> list[str]:
    return [each.instruction_id for each in plan.instructions.instructions]


def commands(plan: Planned) -> list[Command]:
    return [
        command
        for each in plan.instructions.instructions
        for command in stated_commands(each.action, each.parameters)
    ]


@settings(deadline=None, max_examples=30)
@given(RECIPES)
def test_stages_follow_each_other_and_never_return(recipe: Recipe) -> None:
    stages = [each.stage for each in planned(recipe).instructions.instructions]
    assert list(dict.fromkeys(stages)) == STAGES
    assert stages == sorted(stages, key=STAGES.index)


@settings(deadline=None, max_examples=30)
@given(RECIPES)
def test_no_command_is_beyond_a_limit_of_the_shipped_envelope(recipe: Recipe) -> None:
    for command in commands(planned(recipe)):
        low, high, unit = FACTS.limits[command.channel]
        assert low <= command.value <= high, command
        assert command.unit == unit


@settings(deadline=None, max_examples=30)
@given(RECIPES)
def test_nothing_heats_or_burns_before_the_purge_and_nothing_after_the_dwell(
    recipe: Recipe,
) -> None:
    plan = planned(recipe)
    order = ids(plan)
    purged, dwelt = order.index("purge_air"), order.index("dwell")
    hazards = {"furnace.setpoint": 60, "sulfur.setpoint": 60, "hydrogen.setpoint": 0}
    hazards |= {"box.hydrogen_valve": 0, "box.furnace_contactor": 0, "box.sulfur_contactor": 0}
    used = set()
    for place, each in enumerate(plan.instructions.instructions):
        for command in stated_commands(each.action, each.parameters):
            if command.value > hazards.get(command.channel, 1e9):
                assert purged < place < dwelt, command
                used.add(command.channel)
    assert ("hydrogen.setpoint" in used) is (recipe.hydrogen_sccm > 0)
    assert ("hydrogen" in plan.process_gases) is (recipe.hydrogen_sccm > 0)


@settings(deadline=None, max_examples=30)
@given(RECIPES)
def test_sulfur_is_seen_hot_before_the_furnace_passes_650_degrees(recipe: Recipe) -> None:
    plan = planned(recipe)
    gate = ids(plan).index("sulfur_hot")
    before = [
        command.value
        for each in plan.instructions.instructions[:gate]
        for command in stated_commands(each.action, each.parameters)
        if command.channel == "furnace.setpoint"
    ]
    assert max(before) <= 640
    after = plan.instructions.instructions[gate + 1]
    assert after.parameters["to"] >= max(before)


@settings(deadline=None, max_examples=30)
@given(RECIPES)
def test_the_tube_opens_only_with_heat_off_setpoints_cold_and_temperatures_seen(
    recipe: Recipe,
) -> None:
    state: dict[str, float] = {}
    seen: set[str] = set()
    opened = 0
    for each in planned(recipe).instructions.instructions:
        for command in stated_commands(each.action, each.parameters):
            state[command.channel] = command.value
            if command.channel.endswith("contactor") and command.value:
                seen.clear()
        if each.action == "wait" and each.parameters.get("at_most", 1e9) <= 60:
            seen.add(each.parameters["channel"])
        if each.action == "ask_operator":
            opened += 1
            assert state["box.furnace_contactor"] == state["box.sulfur_contactor"] == 0
            assert state["furnace.setpoint"] <= 60
            assert state["sulfur.setpoint"] <= 60
            assert {"furnace.temperature", "sulfur.temperature"} <= seen
    assert opened == 2


def test_whatever_was_left_in_the_tube_is_flushed_out_before_it_is_opened_to_load() -> None:
    plan = planned()
    order = ids(plan)
    assert order.index("load_sulfur_cold") < order.index("load_flush_hydrogen")
    assert order.index("load_flush_hydrogen") < order.index("load")


def test_hydrogen_is_flushed_out_before_the_lid_opens() -> None:
    plan = planned(replace(PLAIN, hydrogen_sccm=10.0))
    order = ids(plan)
    assert order.index("hydrogen_shut") < order.index("flush_hydrogen") < order.index("transfer")
    flush = plan.instructions.instructions[order.index("flush_hydrogen")]
    assert flush.parameters["volumes"] >= 5


def test_the_pump_and_the_vent_are_never_open_together() -> None:
    state = {"box.vent": 1.0, "box.pump_isolation": 0.0}
    pumped = False
    for command in commands(planned()):
        state[command.channel] = command.value
        assert not (state["box.vent"] and state["box.pump_isolation"])
        pumped |= bool(state["box.pump_isolation"])
    assert pumped
    assert state["box.vent"]


def test_the_vent_opens_only_after_one_atmosphere_was_seen() -> None:
    plan = planned()
    order = ids(plan)
    fill = plan.instructions.instructions[order.index("filled")]
    assert order[order.index("filled") + 1] == "vent_open"
    assert fill.parameters["at_least"] >= 740


def test_the_last_degrees_are_slow_unless_the_line_says_otherwise() -> None:
    slow = planned()
    last = [each for each in slow.instructions.instructions if each.action == "ramp"][-2:]
    told = [(each.parameters["to"], each.parameters["rate"]) for each in last]
    assert told == [(705.0, 15.0), (735.0, 5.0)]
    growth = {"final_ramp_c_per_min": 15.0}
    fast = planned(
        facts=replace(FACTS, settings=FACTS.settings.model_copy(update={"growth": growth}))
    )
    last = [each for each in fast.instructions.instructions if each.action == "ramp"][-2:]
    assert [each.parameters["to"] for each in last] == [640.0, 735.0]
    assert {each.parameters["rate"] for each in last} == {15.0}


@pytest.mark.parametrize(("volume_cm3", "mbar_per_min"), [(2000, 0.03), (200, 0.3)])
def test_the_leak_limit_follows_the_volume(volume_cm3: float, mbar_per_min: float) -> None:
    plan = planned(facts=replace(FACTS, tube_volume_cm3=volume_cm3))
    leak = plan.instructions.instructions[ids(plan).index("leak_rate")]
    assert leak.parameters["limit"] == pytest.approx(mbar_per_min * 0.750062)


def test_a_small_tube_is_filled_no_faster_than_half_its_volume_a_minute() -> None:
    def fills(plan: Planned) -> list[object]:
        fill = {"load_fill", "fill"}
        instructions = plan.instructions.instructions
        return [each.parameters["value"] for each in instructions if each.instruction_id in fill]

    assert fills(planned(facts=replace(FACTS, tube_volume_cm3=200))) == [100, 100]
    assert fills(planned()) == [480, 480]


def test_a_longer_growth_takes_longer_by_as_much() -> None:
    longer = planned(replace(PLAIN, dwell_s=4200.0))
    assert longer.duration_s - planned().duration_s == pytest.approx(3600.0)
    assert 5 * 3600 < planned().duration_s < 8 * 3600
