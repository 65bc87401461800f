"""A person at the terminal who strays: whatever is typed, the referee on the plant's truth sees.

Every walk is drawn from its seed, and plays the same again from it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adversary import Walked, play_walk
from labharness.chaos.scenario import Fault
from labharness.chaos.world import GuardLeft
from labharness.core.clock import Chance
from labharness.lab import LabPlan
from labharness.safety.guard import Latch
from labharness.work.desk.by_hand import ByHand
from rig import approved_copy
from walks import Step, draw_walk, shrink_walk, stroll

DAILY = (2, 4)  # two once opened a tube whose hydrogen meter was dead; all pause or die now
LONG = (5, 10, *range(1000, 1400))

Play = Callable[..., Walked]


@pytest.fixture
def walked(tmp_path: Path, short_plan: LabPlan) -> Play:
    """Play walks, each in a folder of its own, on the short line where no other is named."""
    count = iter(range(100_000))

    def run(walk: Sequence[Step], plan: LabPlan | None = None) -> Walked:
        return play_walk(plan or short_plan, walk, tmp_path / f"walk{next(count)}")

    return run


def told(seed: int, walk: Sequence[Step], played: Walked, walked: Play) -> str:
    """Return what was found, with the fewest steps that still do it, and its seed."""
    assert played.violation is not None
    rule = played.violation.rule

    def breaks(fewer: Sequence[Step]) -> bool:
        found = walked(fewer).violation
        return found is not None and found.rule == rule

    shown = walked(shrink_walk(walk, breaks))
    return f"seed {seed}, {len(walk)} steps, of which these are enough:\n{shown}"


@pytest.mark.promise(6)
@pytest.mark.parametrize("seed", [DAILY[0], pytest.param(DAILY[1], marks=pytest.mark.thorough)])
def test_what_a_person_types_by_hand_harms_nobody(
    walked: Play, short_plan: LabPlan, seed: int
) -> None:
    walk = draw_walk(seed, short_plan.envelope)
    played = walked(walk)
    assert played.violation is None, f"seed {seed}:\n{played}"


@pytest.mark.promise(6)
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_what_many_people_type_by_hand_harms_nobody(walked: Play, short_plan: LabPlan) -> None:
    found = []
    for seed in LONG:
        walk = draw_walk(seed, short_plan.envelope)
        played = walked(walk)
        if played.violation is not None:
            found.append(told(seed, walk, played, walked))
    assert not found, "\n\n".join(found)


def test_a_walk_is_the_same_again_from_its_seed(walked: Play, short_plan: LabPlan) -> None:
    first = draw_walk(7, short_plan.envelope)
    assert first == draw_walk(7, short_plan.envelope)
    assert first != draw_walk(8, short_plan.envelope)
    once, again = walked(first), walked(first)
    assert once.told == again.told
    assert once.lab_s == again.lab_s


def put(*wanted: tuple[str, float]) -> list[Step]:
    return [Step("set", channel, value) for channel, value in wanted]


PURGE = [
    *put(("box.argon_valve", 1), ("box.vent", 1), ("argon.setpoint", 480)),
    Step("until", "purged", 400.0),
]
LEAK_CHECK = [
    *put(("box.nitrogen_bypass_shut", 1), ("argon.setpoint", 0), ("box.argon_valve", 0)),
    *put(("box.vent", 0), ("box.pump", 1), ("box.pump_isolation", 1)),
    Step("until", "evacuated", 60.0),
    *put(("box.pump_isolation", 0)),
    Step("wait", "", 60.0),
    *put(("box.pump", 0), ("box.argon_valve", 1), ("argon.setpoint", 100)),
    Step("until", "filled", 300.0),
]
HYDROGEN = [
    *put(("box.vent", 1)),
    *put(("argon.setpoint", 85)),
    Step("wait", "", 5.0),
    *put(("box.hydrogen_valve", 1), ("hydrogen.setpoint", 50)),
    Step("wait", "", 120.0),
    *put(("hydrogen.setpoint", 0), ("box.hydrogen_valve", 0)),
]


def without(row: str) -> Callable[[str], str]:
    """Take what one row of an envelope requires of hydrogen out of it."""

    def edit(text: str) -> str:
        head, found, tail = text.partition(f'name = "{row}"')
        kept = tail.replace('    { purged_of = "hydrogen", volumes = 5 },\n', "", 1)
        return head + found + (kept if found else tail)

    return edit


def test_the_adversary_sees_a_tube_that_is_opened_with_hydrogen_in_it(
    walked: Play, tmp_path: Path
) -> None:
    """The referee sees the plant, and no row: with the row left out the same steps harm."""
    walk = [*PURGE, *LEAK_CHECK, *HYDROGEN, Step("open", "load", 60.0)]
    sound = walked(walk)
    assert sound.violation is None
    assert sound.endings["not opened"] == 1
    folder = tmp_path / "lab"
    folder.mkdir()
    row = "the tube is opened only cold, off, and flushed of hydrogen"
    harmed = walked(walk, approved_copy(folder, edit=without(row)))
    assert harmed.violation is not None
    assert harmed.violation.rule == "the tube opened by plan with hydrogen in it"


def test_what_is_behind_a_lie_is_a_demand_and_no_violation(walked: Play) -> None:
    """A leak after the leak check: nothing on the line measures oxygen."""
    leak = Fault(kind="air_leak", stage="", after_s=0.0, amount=20.0)
    heat = put(("sulfur.setpoint_rate", 50), ("box.sulfur_contactor", 1), ("argon.setpoint", 20))
    played = walked(
        [
            *PURGE,
            *LEAK_CHECK,
            *put(("box.vent", 1)),
            Step("fault", fault=leak),
            *heat,
            Step("wait", "", 5.0),
            *put(("sulfur.setpoint", 250)),
            Step("wait", "", 600.0),
        ]
    )
    assert played.violation is None
    assert played.demands["hot sulfur in air, and heated"] > 60


def test_a_tube_that_is_held_open_is_not_pumped(walked: Play) -> None:
    """Seed 1234: its relays then went silent, the lid was shut, and the vent opened on a vacuum."""
    cut = Fault(kind="bus_cut", stage="", after_s=0.0, target="relays", lasts_s=10.0)
    flushed = [*PURGE[:-1], Step("until", "flushed", 8000.0)]
    shut = put(("box.nitrogen_bypass_shut", 1), ("argon.setpoint", 0), ("box.argon_valve", 0))
    pump = put(("box.vent", 0), ("box.pump", 1), ("box.pump_isolation", 1))
    opened = Step("open", "load", 180.0)
    walk = [*flushed, *shut, opened, *pump, Step("fault", fault=cut), Step("wait", "", 60.0)]
    played = walked(walk)
    assert played.violation is None
    assert "refused: box.pump_isolation to 1  takes box.lid_shut at least 1" in str(played)


def test_gas_that_a_relief_has_yet_to_shut_does_not_flow_again(walked: Play) -> None:
    """Seed 2234: the referee looked between the two frames, and counted from there."""
    dip = Fault(kind="power_dip", stage="", after_s=0.0, lasts_s=3.0)
    walk = [
        *put(("hydrogen.setpoint", 10)),
        Step("safe", "", 10.857),
        Step("wait", "", 300.0),
        Step("open", "load", 60.0),
        Step("reset", "mended"),
        *PURGE,
        *LEAK_CHECK,
        *put(("box.vent", 1), ("box.hydrogen_valve", 1), ("hydrogen.setpoint", 20)),
        Step("wait", "", 300.0),
        Step("fault", fault=dip),
    ]
    assert walked(walk).violation is None


# ---- who drives dies, stands still, is overruled, and is reset

WARM = [
    *put(("box.nitrogen_bypass_shut", 1), ("box.argon_valve", 1), ("box.vent", 1)),
    *put(("furnace.setpoint_rate", 50), ("box.furnace_contactor", 1)),
    Step("wait", "", 5.0),
    *put(("furnace.setpoint", 140)),
    Step("wait", "", 30.0),
]
# the procedure has left it in manual, and a poll shows that it no longer is
AGAIN = [*put(("furnace.mode", 0)), Step("wait", "", 5.0), *WARM]
ALONE = Step("wait", "", 90.0)
RESET = Step("reset", "mended")


def sudden(kind: str, lasts_s: float = 0.0, after_s: float = 3.0) -> Step:
    return Step("fault", fault=Fault(kind=kind, stage="", after_s=after_s, lasts_s=lasts_s))


def ended(played: Walked) -> dict[str, int]:
    return {each: count for each, count in played.endings.items() if each != "confirmed"}


def test_a_harness_that_dies_leaves_the_line_to_nobody_before_a_reset(walked: Play) -> None:
    """The next one opens the same state directory, is refused, and goes on after the reset."""
    played = walked([*WARM, sudden("kill"), ALONE, RESET, *AGAIN])
    assert played.violation is None
    assert ended(played) == {"armed": 2, "killed": 1, "not armed": 1, "reset": 1}
    assert played.endings["confirmed"] == 6 + 7


def test_a_harness_that_dies_while_it_arms_has_latched(walked: Play) -> None:
    played = walked([sudden("kill", after_s=4.0), *WARM, RESET, *AGAIN])
    assert played.violation is None
    assert ended(played) == {"armed": 1, "killed": 1, "not armed": 1, "reset": 1}


@pytest.mark.parametrize(("lasts_s", "trip"), [(0.3, ""), (15.0, "no heartbeat for 1 s")])
def test_a_harness_that_stands_still_has_tripped_when_it_wakes(
    walked: Play, lasts_s: float, trip: str
) -> None:
    played = walked([*WARM, sudden("pause", lasts_s), ALONE])
    assert played.violation is None
    assert played.trip == trip


@pytest.mark.parametrize(
    ("step", "rule"),
    [
        (sudden("kill"), "energised though the harness is dead"),
        (sudden("pause", 15.0), "energised though the harness stands still"),
    ],
)
def test_the_adversary_sees_what_a_harness_left_that_no_guard_looks_after(
    walked: Play, monkeypatch: pytest.MonkeyPatch, step: Step, rule: str
) -> None:
    async def nobody(*args: object) -> None:
        return None

    monkeypatch.setattr(GuardLeft, "alone", nobody)
    played = walked([*WARM, step, ALONE])
    assert played.violation is not None
    assert played.violation.rule == rule


def test_the_adversary_sees_a_line_that_was_given_away_without_a_reset(
    walked: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("close", "set_marker"):
        monkeypatch.setattr(Latch, name, lambda latch, what: None)
    played = walked([*WARM, sudden("kill"), ALONE])
    assert played.violation is not None
    assert played.violation.rule == "armed though it must be latched"


def test_what_somebody_else_types_makes_safe_amid_what_the_first_does(walked: Play) -> None:
    """The first one types on and is refused; after a reset it begins again."""
    more = put(("furnace.setpoint", 145), ("furnace.setpoint", 130))
    played = walked([*WARM, Step("safe", "", 0.05), *more, RESET, *AGAIN])
    assert played.violation is None
    assert played.trip == "made safe by hand (Ben): it smells"
    found = ended(played)
    assert found.pop("refused") + found.pop("mismatch") == 2
    assert found == {"armed": 2, "safe": 1, "reset": 1}


def test_the_adversary_sees_that_safe_did_nothing(
    walked: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(hands: object, asked: object) -> dict[str, object]:
        return {}

    monkeypatch.setattr(ByHand, "_safe", nothing)
    played = walked([*WARM, Step("safe"), ALONE])
    assert played.violation is not None
    assert played.violation.rule == "energised after a stop request"


def test_somebody_makes_safe_what_a_dead_harness_left(walked: Play) -> None:
    played = walked([*WARM, sudden("kill"), ALONE, Step("safe"), RESET, *AGAIN])
    assert played.violation is None
    found = ended(played)
    assert found.pop("safe, and nobody drove") == 1
    assert found == {"armed": 2, "killed": 1, "not armed": 1, "reset": 1}


def test_a_latch_is_not_reset_while_its_cause_stands(walked: Play) -> None:
    """The lid is open: who has not mended it is refused, and so is the next harness."""
    lid = Step("fault", fault=Fault(kind="lid_open", stage="", after_s=0.0))
    played = walked([*WARM, lid, ALONE, Step("reset"), Step("mend"), RESET, *AGAIN])
    assert played.violation is None
    assert ended(played) == {"armed": 2, "not reset": 1, "not armed": 1, "reset": 1}


def test_what_is_sudden_leaves_the_steps_before_it_as_they_were(short_plan: LabPlan) -> None:
    """It has a stream of chance of its own: so a seed that was played once stays of use."""
    kinds = set()
    for seed in range(60):
        plain = stroll(Chance(seed).stream("walk"), short_plan.envelope)
        walk = list(draw_walk(seed, short_plan.envelope))
        first = next((at for at, step in enumerate(walk) if kind_of(step)), len(walk))
        assert walk[:first] == plain[:first]
        kinds |= {kind_of(step) for step in walk}
    assert kinds == {"", "kill", "pause", "safe", "reset"}


def kind_of(step: Step) -> str:
    """Name what is sudden; anything else is nothing."""
    if step.fault is not None:
        return step.fault.kind if step.fault.kind in ("kill", "pause") else ""
    return step.act if step.act in ("safe", "reset") else ""


def test_a_violation_is_shrunk_to_the_steps_that_make_it() -> None:
    walk = [Step("wait", "", float(each)) for each in range(40)]
    needed = {walk[3], walk[17], walk[31]}
    assert set(shrink_walk(walk, lambda fewer: needed <= set(fewer))) == needed
