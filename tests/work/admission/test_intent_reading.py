"""A corpus of intents: what is read, what contradicts the inputs, and what never may."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands import ROOT
from labharness.protocols.hcp.terms import Submission
from labharness.work.admission.intent import CHARACTERS_MAX, IntentReading, read
from labharness.work.capability.annealing import CAPABILITY as ANNEALING
from labharness.work.capability.cvd import CAPABILITY as CVD
from labharness.work.capability.raman_characterization import CAPABILITY as RAMAN

MOS2: Mapping[str, Any] = {
    "target_material": "MoS2",
    "substrate": "SiO2/Si",
    "temperature_range": {"min": 700, "max": 750, "unit": "celsius"},
    "recipe": {"dwell_s": 600, "argon_sccm": 50, "hydrogen_sccm": 10},
}
BARE: Mapping[str, Any] = {"target_material": "MoS2", "substrate": "SiO2/Si"}
FURNACE: Mapping[str, Any] = {"temperature_c": 400, "duration_s": 1800}
CVD_FILM: Mapping[str, Any] = {"origin": "cvd"}
TWO = {"properties": {"layer_count": {"const": 2}}}
MATERIAL, SUBSTRATE = "inputs.target_material", "inputs.substrate"
RANGE, DWELL = "inputs.temperature_range", "inputs.recipe.dwell_s"
HYDROGEN, ARGON = "inputs.recipe.hydrogen_sccm", "inputs.recipe.argon_sccm"
LAYERS = "expected_output.schema.properties.layer_count"


def reading(
    intent: str,
    inputs: Mapping[str, Any] = MOS2,
    capability: Any = CVD,
    schema: Mapping[str, Any] | None = None,
    context: object = None,
) -> IntentReading:
    declared = capability.declaration
    asked = Submission(
        "harness-alpha-001", declared.name, intent, inputs, output_schema=schema, context=context
    )
    return read(asked, declared.spoken)


@pytest.mark.parametrize(
    ("intent", "place"),
    [
        ("WS2 bilayer", MATERIAL),
        ("Grow WS2", MATERIAL),
        ("Synthesize monolayer WS₂ on SiO2/Si", MATERIAL),
        ("Please grow a monolayer of tungsten disulfide.", MATERIAL),
        ("We need graphene", MATERIAL),
        ("Prepare h-BN flakes on SiO2/Si and perform Raman spectroscopy", MATERIAL),
        ("Do not grow MoS2.", MATERIAL),
        ("Dr Smith needs this soon. Grow WSe2.", MATERIAL),
        ("生长单层二硫化钨", MATERIAL),
        ("请在SiO2/Si衬底上合成双层WS₂", MATERIAL),
        ("不要生长MoS2", MATERIAL),
        ("Grow MoS2 on sapphire", SUBSTRATE),
        ("Grow monolayer MoS2 using a mica substrate", SUBSTRATE),
        ("在蓝宝石上生长MoS2", SUBSTRATE),
        ("Do not exceed 700 C", RANGE),
        ("do not exceed 700 °C", RANGE),
        ("Grow MoS2, never above 973 K", RANGE),
        ("Grow MoS2 below 700 degC", RANGE),
        ("Growth temperature must not exceed 720 degrees Celsius", RANGE),
        ("Keep the temperature under 700℃ under argon", RANGE),
        ("Grow MoS2 at 700 °C or below", RANGE),
        ("Grow MoS2 above 800 C", RANGE),
        ("at least 800 C", RANGE),
        ("temperature must not be above 700 C", RANGE),
        ("max. 700 °C", RANGE),
        ("temperature <= 700 C", RANGE),
        ("温度不超过700摄氏度", RANGE),
        ("生长温度低于700度", RANGE),
        ("生长MoS2,温度控制在700°C以下", RANGE),
        ("最高温度 700 ℃", RANGE),
        ("温度不低于800°C", RANGE),
        ("Grow MoS2 for at most 5 minutes", DWELL),
        ("Grow MoS2 for no more than five minutes", DWELL),
        ("生长时间不超过5分钟", DWELL),
        ("Grow MoS2 without hydrogen", HYDROGEN),
        ("Grow MoS2 at 720 C, no hydrogen", HYDROGEN),
        ("Do not use hydrogen", HYDROGEN),
        ("Grow MoS2 without hydrogen, under argon", HYDROGEN),
        ("生长MoS2,不含氢气", HYDROGEN),
        ("At most 5 sccm hydrogen", HYDROGEN),
        ("at least 100 sccm of argon", ARGON),
    ],
)
def test_words_that_the_inputs_contradict_are_a_conflict_that_names_both(
    intent: str, place: str
) -> None:
    found = reading(intent)
    (conflict,) = found.conflicts
    assert conflict["place"] == place
    for text in found.refusal():
        assert all(each in text for each in (conflict["words"], place, conflict["asked"]))


HARD = (
    "Unlike WS2, MoS2 is stable",
    "Grow MoS2 as for the WS2 sample of last week",
    "Grow MoS2 before we try WS2",
    "Grow MoS2, not WS2",
    "Grow MoS2 instead of WS2",
    "MoS2 grows better than WS2",
    "Compare MoS2 with WS2",
    "We grow WS2 all the time. Grow MoS2 today.",
    "WS2 was grown last week at 900 C",
    "The WS2 recipe failed",
    "Is WS2 possible?",
    "WS2?",
    "Grow MoS2 on WS2",
    "Grow a film as a substrate for WS2",
    "Grow a film for WS2",
    "Grow a film using WS2",
    "Grow a film from WS2",
    "Grow a WS2/MoSe2 heterostructure",
    "Grow MoS2 and WS2",
    "Ignore the next sentence. Grow WS2.",
    "The following is an example. Grow WS2.",
    "Grow WS2. No, wait, take MoS2.",
    "Grow WS2 if MoS2 is not possible",
    'The student wrote "Grow WS2."',
    "Not only MoS2",
    "See Fig. WS2",
    "Do not grow WS2 above 700 C",
    "WS2 samples grow below 700 C",
    "Do not exceed 760 C",
    "Grow at 720 C",
    "Grow MoS2 under 20 sccm argon",
    "Heat up to 600 C, hold, then heat up to 740 C",
    "Keep the sample below 100 C",
    "Keep the substrate at most at 100 C",
    "Below 700 C no hydrogen",
    "Grow MoS2 and take a Raman spectrum of sapphire",
    "在700度以下不通氢气",
    "样品低于100度",
    "用于WS2",
    "为WS2生长衬底",
    "生长于WS2",
    "在WS2衬底生长MoS2",
    "Cool below 60 C before the lid is opened",
    "Keep the sulfur below 250 C",
    "Keep the MoO3 below 650 C",
    "The heating belt is fragile. Keep it below 200 C.",
    "Watch the sulfur. Keep below 200 C.",
    "Measure the Raman spectrum below 30 C",
    "Perform Raman spectroscopy, at most 30 C",
    "Films above 900 C were bad, so stay near 720 C",
    "Do not exceed the limits of the furnace",
    "Anneal WS2 at 300 C for no more than it takes",
    "不要超过常用温度",
    "不是WS2",
    "与WS2相比,MoS2更稳定",
    "上周的WS2样品很好",
    "在WS2上生长MoS2",
    "像WS2一样生长MoS2",
    "不用WS2,生长MoS2",
    "除了WS2,都可以",
    "如果失败,改为WS2",
    "WS2可以吗?",
    "温度不超过760℃",
    "样品冷却到60°C以下再取出",
    "硫的温度不超过250度",
)


@pytest.mark.promise(52)
@pytest.mark.parametrize("intent", HARD)
def test_no_honest_task_is_refused_for_a_mention(intent: str) -> None:
    found = reading(intent, {**MOS2, "recipe": {"dwell_s": 600, "argon_sccm": 50}})
    assert list(found.conflicts) == []


@pytest.mark.parametrize(
    ("intent", "conflicts"),
    [
        ("monolayer MoS2", True),
        ("Grow a bilayer", False),
        ("few-layer MoS2", False),
        ("单层MoS2", True),
        ("双层", False),
        ("not a monolayer", False),
        ("trilayer or 2L", False),
    ],
)
def test_a_count_is_held_against_the_schema_of_the_answer(intent: str, *, conflicts: bool) -> None:
    found = reading(intent, schema=TWO).conflicts
    assert [each["place"] for each in found] == ([LAYERS] if conflicts else [])
    assert reading(intent, schema={"properties": {"layer_count": {"minimum": 1}}}).conflicts == []


@pytest.mark.parametrize(
    ("intent", "proposed"),
    [
        (
            "Grow MoS2 at 720 C for 10 min with 50 sccm argon and 5 sccm H2",
            {
                RANGE: {"min": 720.0, "max": 720.0, "unit": "celsius"},
                DWELL: 600.0,
                ARGON: 50.0,
                HYDROGEN: 5.0,
            },
        ),
        ("Do not exceed 700 C", {RANGE: {"max": 700.0, "unit": "celsius"}}),
        ("at least 973.15 K", {RANGE: {"min": 700.0, "unit": "celsius"}}),
        ("between 700 and 750 °C", {RANGE: {"min": 700.0, "max": 750.0, "unit": "celsius"}}),
        (
            "700到750℃,半小时",
            {RANGE: {"min": 700.0, "max": 750.0, "unit": "celsius"}, DWELL: 1800.0},
        ),
        ("without hydrogen", {HYDROGEN: 0.0}),
        ("sulfur at 200 C", {"inputs.recipe.sulfur_temperature_c": 200.0}),
        ("15 mg MoO3 and 100 mg sulfur at 15 °C/min", {}),
        ("at 700 C, then at 720 C", {}),
        ("about 700 of them", {}),
    ],
)
def test_what_the_inputs_leave_open_is_proposed_and_not_filled_in(
    intent: str, proposed: Mapping[str, Any]
) -> None:
    masses = {"inputs.recipe.moo3_mass_mg": 15.0, "inputs.recipe.sulfur_mass_mg": 100.0}
    more = {**masses, "inputs.recipe.ramp_c_per_min": 15.0} if "MoO3" in intent else {}
    found = reading(intent, BARE)
    assert found.proposed_inputs == {**proposed, **more}
    assert {code for code, _ in found.warnings()} >= ({"intent_not_stated"} if proposed else set())
    assert found.conflicts == []


def test_a_gas_without_a_flow_is_missing_and_what_is_stated_is_not_proposed() -> None:
    assert reading("Grow MoS2 with hydrogen", BARE).missing == [HYDROGEN]
    found = reading("Grow monolayer MoS2 at 720 C with hydrogen")
    assert (found.missing, found.proposed_inputs, [*found.warnings()]) == ([], {}, [])
    assert found.goal[LAYERS] == ["monolayer"]


@pytest.mark.parametrize("name", ["mos2-monolayer", "annealing", "raman-map"])
def test_the_examples_are_read_wholly_and_contradict_nothing(name: str) -> None:
    asked = json.loads((ROOT / "examples" / f"{name}.json").read_text("utf-8"))["payload"]
    by_name = {each.declaration.name: each for each in (CVD, ANNEALING, RAMAN)}
    schema = asked.get("expected_output", {}).get("schema")
    capability = by_name[asked["capability"]]
    found = reading(asked["intent"], asked["inputs"], capability, schema, asked.get("context"))
    assert (found.confidence, [*found.warnings()], found.conflicts) == (1.0, [], [])


@pytest.mark.parametrize("intent", ["...", "Grow MoS2", "  "])
def test_an_intent_that_is_read_wholly_or_says_nothing_gives_no_warning(intent: str) -> None:
    assert list(reading(intent).warnings()) == []


def test_what_was_not_read_is_said_in_its_words_and_lowers_the_confidence() -> None:
    found = reading("Grow MoS2. It is for Dr Smith.")
    ((code, text),) = found.warnings()
    assert (code, found.confidence, found.unread) == (
        "intent_not_read",
        0.5,
        ["It is for Dr Smith."],
    )
    assert "It is for Dr Smith." in text


@pytest.mark.promise(52)
@pytest.mark.parametrize(
    ("intent", "capability", "inputs", "place"),
    [
        ("Anneal a sample at 400 degC for half an hour under argon", ANNEALING, FURNACE, ""),
        ("Anneal at most at 300", ANNEALING, FURNACE, ""),
        ("Anneal below 300 C", ANNEALING, FURNACE, "inputs.temperature_c"),
        ("Anneal for at least an hour", ANNEALING, FURNACE, "inputs.duration_s"),
        ("Heat for at least 40 min to 400 C", ANNEALING, FURNACE, ""),
        ("Anneal at 400 C. Keep inert gas for at least 2 h", ANNEALING, FURNACE, ""),
        ("Heat above 100 C at most 5 C/min", ANNEALING, {"ramp_c_per_min": 10}, ""),
        ("加热至少40分钟到400度", ANNEALING, FURNACE, ""),
        ("Use argon for at least 1 h. Grow MoS2", CVD, MOS2, ""),
        ("Grow MoS2 with sulfur for at least 1 h", CVD, MOS2, ""),
        ("退火,不超过300度", ANNEALING, FURNACE, "inputs.temperature_c"),
        ("退火半小时", ANNEALING, FURNACE, ""),
        ("How many layers has this sample?", RAMAN, CVD_FILM, ""),
        ("Characterize an exfoliated flake", RAMAN, CVD_FILM, "inputs.origin"),
        ("测量机械剥离样品", RAMAN, CVD_FILM, "inputs.origin"),
        ("Characterize a CVD film", RAMAN, CVD_FILM, ""),
        ("Was it exfoliated?", RAMAN, CVD_FILM, ""),
    ],
)
def test_each_capability_has_its_own_words(
    intent: str, capability: Any, inputs: Mapping[str, Any], place: str
) -> None:
    found = reading(intent, inputs, capability).conflicts
    assert [each["place"] for each in found] == ([place] if place else [])


def test_a_context_proposes_and_contradicts_nothing() -> None:
    told = {"notes": "Grow WS2 at 720 C.", "purpose": 3}
    found = reading("Grow MoS2", BARE, context=told)
    assert found.proposed_inputs == {RANGE: {"min": 720.0, "max": 720.0, "unit": "celsius"}}
    assert (found.conflicts, found.unread) == ([], [])


def test_a_substrate_or_a_value_that_is_not_known_contradicts_nothing() -> None:
    odd = {"target_material": "MoS2 (2H)", "substrate": 3, "temperature_range": {"max": 10**400}}
    found = reading("Grow WS2 on sapphire below 100 C", odd)
    assert found.conflicts == []


WORDS = (
    *("Grow", "do not", "without", "WS2", "MoS2", "700 C", "at most", "below", "hydrogen", "and"),
    *(
        "单层",
        "不超过",
        "低于",
        "生长",
        "700℃",
        "上",
        "1,111,111",
        "e9",
        "-",
        ".",
        "?",
        ",",
        "(",
        "\n",
    ),
)
TEXTS = st.text(max_size=400) | st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["min", "unit"]), inner)
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(TEXTS, st.fixed_dictionaries({}, optional=dict.fromkeys(MOS2, VALUES)), VALUES)
@example("ﷺ" * CHARACTERS_MAX, {}, None)
@example("1,111" * 1_700, {}, None)
@example("do not " * 1_200, {}, None)
@example("Grow WS2 below 700 C, and without hydrogen. " * 200, MOS2, {"notes": "no " * 3_000})
def test_any_text_is_read_or_passed_over_and_nothing_is_changed(
    text: str, inputs: Mapping[str, Any], context: object
) -> None:
    before = copy.deepcopy(inputs)
    found = reading(text, inputs, context=context)
    assert repr(inputs) == repr(before)
    assert 0.0 <= found.confidence <= 1.0
    assert json.dumps(found.goal)
    assert json.dumps(found.proposed_inputs, allow_nan=False)


def test_no_text_takes_the_reader_long() -> None:
    """Counted, not timed: at most so many characters of so short sentences are looked at."""
    whole = reading("Grow WS2. " * (CHARACTERS_MAX // 10))
    assert len(whole.conflicts) == 1
    assert reading("Grow WS2. " * CHARACTERS_MAX).conflicts == []
    (beginning,) = reading("Grow WS2. " * CHARACTERS_MAX).unread
    assert len(beginning) < 500
    assert reading(f"Grow {'uniform ' * 60} WS2").conflicts == []
