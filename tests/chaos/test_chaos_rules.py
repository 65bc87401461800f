"""The referee: each rule sees its harm, bounds are held by the envelope, lies end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos_scenes import FAULTS, Play, fault, player, scenario
from labharness.chaos.referee import Masking, rules_of
from labharness.chaos.scenario import Fault, Scenario
from labharness.chaos.table import KILL_S, PAUSE_S, POLL_S, REPEATS_S, STALE_S, TRIP_S, Scene, Way
from labharness.lab import default_lab_path, read_lab
from planted_harms import HARMS, planted
from rig import SHORT_LINE

RELIEVED = "relieved"
RULES = rules_of(FAULTS)
MASKS = {mask.name: mask for mask in FAULTS.mask}
OPENED_S, ACTED_S, SWEPT_S = 180.0 + TRIP_S, TRIP_S + REPEATS_S, 3600.0
FULL_POWER_S = 360.0  # the ramps take so long to drive a heater to full power
(STUCK_HEAT_S, GARBAGE_S, _) = (cause.for_s for cause in MASKS["furnace"].by)
FILLING_S, ARGON_S = MASKS["pressure unseen"].by[0].for_s, MASKS["argon"].after_s
LINES = pytest.mark.parametrize("path", [SHORT_LINE, default_lab_path()], ids=["short", "shipped"])


@pytest.fixture
def played(tmp_path: Path) -> Play:
    return player(tmp_path)


# ---- the referee's rules, one state each

WELL: dict[str, Any] = {
    "furnace_heater_c": 700.0,
    "substrate_c": 700.0,
    "sulfur_c": 200.0,
    "ambient_pa": 101_325.0,
    "pressure_pa": 102_000.0,
    "o2_fraction": 1e-4,
    "h2_fraction": 0.0,
    "hydrogen_sccm": 0.0,
    "inert_sccm": 50.0,
    "hydrogen_leak_sccm": 0.0,
    "room_h2_ppm": 0.0,
    "furnace_mains": True,
    "sulfur_mains": True,
    "hydrogen_valve": True,
    "furnace_power": 0.2,
    "sulfur_power": 0.2,
    "hydrogen_setpoint_sccm": 10.0,
    "furnace_heating": True,
    "sulfur_heating": True,
    "lid_open": False,
    "lid_held_open": False,
    "opened_h2_fraction": 0.0,
    "enclosure_open": False,
    "sucked_back_pa": 0.0,
    "laser_on": False,
}
HARMFUL: dict[str, dict[str, Any]] = {
    "ignitable mixture in the tube": {"h2_fraction": 0.05, "o2_fraction": 0.06},
    "hydrogen into a tube that holds air": {"hydrogen_sccm": 10.0, "o2_fraction": 0.02},
    "hydrogen with the lid open": {"hydrogen_sccm": 10.0, "lid_open": True},
    "hydrogen in the room": {"hydrogen_sccm": 10.0, "room_h2_ppm": 5000.0},
    "heat with the lid open": {"lid_open": True},
    "furnace too hot and heated": {"furnace_heater_c": 1020.0},
    "sulfur too hot and heated": {"sulfur_c": 310.0},
    "hot sulfur in air, and heated": {"o2_fraction": 0.05},
    "hot furnace in air, and heated": {"o2_fraction": 0.05},
    "a hot tube opened by plan": {"lid_held_open": True},
    "the tube opened by plan with hydrogen in it": {
        "lid_held_open": True,
        "opened_h2_fraction": 0.02,
    },
    "pressure too high and gas flowing": {"pressure_pa": 120_000.0},
    "hot tube below atmosphere": {"pressure_pa": 50_000.0},
    "oil sucked back through the vent": {"sucked_back_pa": 50_000.0},
    "no inert gas over a hot source": {"inert_sccm": 0.0},
    "laser on with its enclosure open": {"laser_on": True, "enclosure_open": True},
}


def broken(truth: dict[str, Any], scene: Scene) -> set[str]:
    values = FAULTS.values({**WELL, **truth}, replace(scene, watched=frozenset({"heat"})))
    return {rule.name for rule in RULES if rule.when(values)}


def test_a_growth_in_good_order_breaks_no_rule() -> None:
    assert broken({}, Scene(harness="alive")) == set()


@pytest.mark.parametrize("rule", HARMFUL)
def test_a_harmful_state_breaks_its_rule(rule: str) -> None:
    assert rule in broken(HARMFUL[rule], Scene(harness="alive"))


@pytest.mark.parametrize("ambient_pa", [101_325.0, 93_400.0, 83_500.0, 64_900.0])
def test_a_tube_is_held_against_the_room_around_it(ambient_pa: float) -> None:
    """0, 680, 1,600 and 3,600 m of the standard atmosphere: quartz bears a difference."""
    over, low = "pressure too high and gas flowing", "hot tube below atmosphere"
    scene = Scene(harness="alive")
    for difference_pa, harms in ((14_000, set()), (17_500, {over}), (-9_000, set())):
        truth = {"ambient_pa": ambient_pa, "pressure_pa": ambient_pa + difference_pa}
        assert broken(truth, scene) == harms
    assert broken({"ambient_pa": ambient_pa, "pressure_pa": ambient_pa - 11_000}, scene) == {low}


HYDROGEN = {"hydrogen_sccm": 10.0}
LASER = {"laser_on": True}
IN_SCENE: list[tuple[str, Scene, dict[str, Any]]] = [
    ("heat without extraction", Scene(harness="alive", blind={"exhaust_lost"}), {}),
    ("hydrogen without extraction", Scene(harness="alive", blind={"exhaust_lost"}), HYDROGEN),
    ("heat by a thermocouple that gives no signal", Scene(harness="alive", silent={"sulfur"}), {}),
    ("energised while a watched port is silent", Scene(harness="alive", cut={"heat"}), {}),
    ("energised though the harness is dead", Scene(harness="killed"), {}),
    ("energised though the harness stands still", Scene(harness="paused"), {}),
    ("energised after a stop request", Scene(harness="alive", stopped=True), {}),
    ("energised after the run has ended", Scene(harness="gone"), {}),
    ("energised while it must be latched", Scene(harness="alive", latched=True), {}),
    (
        "hydrogen in the room",
        Scene(harness="alive"),
        {"hydrogen_leak_sccm": 90.0, "room_h2_ppm": 4500.0},
    ),
    *(
        ("laser on, and nobody who could turn it off", scene, LASER)
        for scene in (
            Scene(harness="alive", latched=True),
            Scene(harness="alive", stopped=True),
            Scene(harness="killed"),
            Scene(harness="paused"),
            Scene(harness="gone"),
        )
    ),
    *(
        (f"{way.name} left on by the {by}", scene, {})
        for way in FAULTS.way
        for by, scene in (
            ("guard", Scene(harness="killed", guarded=True)),
            ("line", Scene(harness="alive", used=True, latched=True)),
            ("line", Scene(harness="alive", used=True, stopped=True)),
            ("line", Scene(harness="gone")),
        )
    ),
]


@pytest.mark.parametrize("way", FAULTS.way, ids=lambda way: way.name)
def test_each_way_is_looked_at_by_itself_and_only_where_a_frame_can_get_through(
    way: Way,
) -> None:
    port = way.port
    off = {
        **dict.fromkeys(("furnace_mains", "sulfur_mains", "hydrogen_valve"), False),
        **dict.fromkeys(("furnace_power", "sulfur_power", "hydrogen_setpoint_sccm"), 0.0),
        **dict.fromkeys(("furnace_heating", "sulfur_heating"), False),
    }
    numbers = FAULTS.numbers
    (key,) = (each for each in off if way.on({**numbers, **off, each: WELL[each]}))
    alone = {**off, key: WELL[key]}
    guarded = Scene(harness="killed", guarded=True)
    assert broken(off, guarded) == set()
    assert broken(alone, guarded) == {f"{way.name} left on by the guard"}, (
        "though nothing is heated"
    )
    assert broken(alone, Scene(harness="killed", guarded=True, deaf={port})) == set()
    assert broken(alone, Scene(harness="gone", disturbed={port})) == set()
    assert broken(alone, Scene(harness="alive", latched=True)) == set(), "not in this run"


@pytest.mark.parametrize(("rule", "scene", "truth"), IN_SCENE)
def test_a_state_in_the_wrong_scene_breaks_its_rule(
    rule: str, scene: Scene, truth: dict[str, Any]
) -> None:
    assert rule in broken(truth, scene)
    assert rule not in broken({}, Scene(harness="alive"))


def test_every_rule_is_broken_by_some_state() -> None:
    assert {*HARMFUL, *(rule for rule, _, _ in IN_SCENE)} == {rule.name for rule in RULES}


def test_the_shipped_envelope_keeps_the_referees_own_bounds() -> None:
    envelope = read_lab(default_lab_path()).envelope
    assert max(each.stale_s for each in envelope.watches.values() if each.procedure) <= STALE_S
    assert (TRIP_S, KILL_S, PAUSE_S) == (7.5, 3.0, 4.0)


HEATS_S = STUCK_HEAT_S - FULL_POWER_S - POLL_S
FOUND_S_MAX = {
    "furnace heats without getting hotter": HEATS_S,
    "sulfur heats without getting hotter": HEATS_S,
    "furnace thermocouple is stuck": HEATS_S,
    "sulfur thermocouple is stuck": HEATS_S,
    "furnace thermocouple reads garbage": GARBAGE_S - POLL_S,
    "sulfur thermocouple reads garbage": GARBAGE_S - POLL_S,
    "a shut tube is filled without its pressure rising": FILLING_S - POLL_S,
    "a shut tube is filled gently without its pressure rising": 100.0,
    "a shut tube is filled slowly without its pressure rising": 600.0,
    "argon does not come": ARGON_S - POLL_S,
    # the referee trusts in none of these: the numbers are those of the rows' own sources
    "furnace gets hotter faster than any ramp": 120.0,
    "furnace gets hotter faster than it was asked": 120.0,
    "furnace does not follow its setpoint": 300.0,
    "sulfur does not follow its setpoint": 300.0,
    "hydrogen detector stands still": 20.0,
    "hydrogen flow is not what was set": 30.0,
    "furnace is driven by hand": 5.0,
    "sulfur is driven by hand": 5.0,
    "a shut tube is filled by a trickle": 20.0,
    "argon flow is not what was set": 30.0,
    "nitrogen flow is not what was set": 30.0,
    "hydrogen flows through a shut valve": 10.0,
    "laser shines though it is off": 5.0,
    "pressure gauge is stuck": 1200.0,
}


@LINES
def test_each_row_finds_its_fault_in_the_time_that_the_referee_gives_it(path: Path) -> None:
    found_s = {each.name: each.found_s for each in read_lab(path).envelope.plausible}
    assert set(found_s) - set(FOUND_S_MAX) == set(), "rows without a bound of their own here"
    late = {name: each for name, each in found_s.items() if each > FOUND_S_MAX[name]}
    assert late == {}


# ---- what blinds the line, and for how long after it is over

SOUND = {"o2_fraction": 0.0, "laser_on": False}


def blinded(*faults: Fault, stage: str = "ramp") -> Masking:
    masking = Masking(FAULTS, set())
    for each in ("loading", "leak_check", "purge", "ramp"):
        masking.stage_begins(each, 0.0)
        if each == stage:
            break
    for one in faults:
        masking.begins(one, 0.0)
    return masking


def held(masking: Masking, at_s: float, **truth: Any) -> set[str]:
    """The words that still hold at a moment."""
    values = FAULTS.values({**WELL, "inert_sccm": 0.0, **SOUND, **truth}, Scene())
    for word in masking.seeing(values, at_s):
        masking.sees(word)
    return set(masking.words)


def lie(sensor: str, how: str) -> Fault:
    return fault(f"sensor_{how}", target=sensor)


def test_every_mask_hides_some_rule_or_stands_in_its_condition() -> None:
    used = {word for rule in RULES for word in rule.masks}
    used |= {word for word in MASKS for rule in RULES if repr(word) in rule.when.text}
    assert used == set(MASKS)


@pytest.mark.parametrize(
    ("cause", "after_s"),
    [
        (lie("furnace", "delayed"), OPENED_S),
        (lie("furnace", "stuck"), OPENED_S),
        (lie("sulfur", "wrong"), OPENED_S),
        (lie("gauge", "slow"), ACTED_S),
        (lie("gauge", "stuck"), ACTED_S),
        (lie("h2_detector", "off"), 0.0),
        (fault("bus_cut", target="vacuum"), ACTED_S),
        (fault("contact_stuck", target="vent"), ACTED_S),
        (fault("power_dip"), ACTED_S),
        (fault("exhaust_lost"), 0.0),
    ],
    ids=str,
)
def test_a_fault_that_is_over_blinds_for_its_time_and_no_longer(
    cause: Fault, after_s: float
) -> None:
    masking = blinded(cause)
    words = set(masking.words)
    assert words
    masking.ends(cause, 5.0)
    if after_s:
        assert held(masking, 5.0 + after_s - 0.1) & words
    assert held(masking, 5.0 + after_s) == set()


def test_a_gauge_that_read_high_has_relieved_the_tube_until_inert_gas_flows() -> None:
    cause = lie("gauge", "wrong")
    masking = blinded(cause)
    masking.ends(cause, 5.0)
    assert held(masking, 5.0 + ACTED_S) == {RELIEVED}


def test_air_that_leaked_in_blinds_until_it_is_swept_out_and_an_hour_at_most() -> None:
    leak = fault("air_leak", amount=15.0)
    for o2_fraction, at_s, left in (
        (0.02, 600.0, {"leak"}),
        (0.009, 6.0, set()),
        (0.02, SWEPT_S + 5.0, set()),
    ):
        masking = blinded(leak)
        assert held(masking, 4.0) == {"leak"}  # not swept, but open
        masking.ends(leak, 5.0)
        assert held(masking, at_s, o2_fraction=o2_fraction) == left


def test_a_laser_that_was_on_when_its_wires_came_back_is_not_called_before_it_is_off() -> None:
    cut = fault("bus_cut", target="laser")
    masking = blinded(cut)
    masking.ends(cut, 5.0)
    assert held(masking, 1e6, laser_on=True) == {"laser cut"}
    assert held(masking, 1e6) == set()


def test_what_another_fault_still_hides_stays_hidden() -> None:
    short, good = lie("gauge", "slow"), lie("gauge", "delayed")
    masking = blinded(short, good)
    masking.ends(short, 5.0)
    assert held(masking, 1e6) == {"gauge", "pressure unseen"}
    meter, valve = lie("argon", "wrong"), fault("contact_stuck", target="argon_valve")
    masking = blinded(meter, valve)
    assert held(masking, 1e6) == {"argon"}  # the valve, and the only witness of it
    masking.ends(meter, 1e6)
    assert held(masking, 1e6 + ARGON_S) == set()


def test_a_leak_check_that_was_passed_on_a_lie_stays_passed_while_the_leak_is_open() -> None:
    gauge, leak = lie("gauge", "delayed"), fault("air_leak", amount=15.0)
    masking = blinded(gauge, leak, stage="loading")
    assert "leak" not in masking.words  # the check is yet to come
    masking.stage_begins("leak_check", 10.0)
    masking.ends(gauge, 20.0)
    assert held(masking, 1e6, o2_fraction=0.05) == {"leak", "leak to be checked"}
    honest = blinded(leak, stage="leak_check")
    honest.stage_begins("purge", 10.0)
    # a leak that an honest gauge has passed is a finding, but for a furnace that takes no check
    assert honest.words == {"leak to be checked"}
    blind = {rule.name for rule in RULES if not honest.words.isdisjoint(rule.masks)}
    assert blind == {"hot furnace in air, and heated"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bug", "lied", "then"),
    [
        (
            "over-temperature does not trip",
            fault("sensor_delayed", "loading", 5.0, target="furnace", amount=5.0, lasts_s=1.0),
            fault("heater_runaway", "ramp", 300.0, amount=20.0),
        ),
        pytest.param(
            "over-pressure does not trip",
            fault("sensor_slow", "loading", 5.0, target="gauge", amount=5.0, lasts_s=1.0),
            fault("outlet_blocked", "ramp", 30.0),
            marks=pytest.mark.soak,
        ),
    ],
    ids=["temperature", "pressure"],
)
def test_a_lie_of_one_second_hides_no_harm_of_half_an_hour_later(
    played: Play, tmp_path: Path, bug: str, lied: Fault, then: Fault
) -> None:
    (harm,) = [harm for harm in HARMS if harm.name == bug]
    each: Scenario = scenario(lied, then, temperature_c=750.0, sulfur_temperature_c=200.0)
    with planted(harm, tmp_path / "lab") as plan:
        assert played(each, plan).violation is not None


def test_oil_that_was_sucked_back_behind_a_lie_is_not_called_once_the_lie_is_over() -> None:
    sucked = {"sucked_back_pa": 50_000.0}
    name = "oil sucked back through the vent"
    assert name in broken(sucked, Scene(harness="alive"))
    assert name not in broken(sucked, Scene(harness="alive", forgiven={"sucked_back_pa": 50_000.0}))
