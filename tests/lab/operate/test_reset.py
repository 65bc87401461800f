"""A reset looks for itself: while the cause stands, or cannot be read, the latch stays."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labharness.core.vocabulary import Cause, Trip
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import idle_line
from labharness.lab.operate.idle_line import NotReset, reset
from labharness.lab.wiring.alarms import NotDone
from labharness.safety.guard import Latch
from rig import cut, part, plant_fault

Act = Callable[[Lab], None]
Wrong = Callable[[Lab, pytest.MonkeyPatch], None]


def trip(cause: Cause, channel: str) -> Trip:
    return Trip(cause, "immediate_shutdown", channel, 1.0, 0.0, f"{channel}: seen")


LEAK = trip(Cause.GAS_LEAK, "h2_detector.concentration")
ESTOP = trip(Cause.EMERGENCY_STOP_LOOP, "box.estop_closed")
HEAT = trip(Cause.OVER_TEMPERATURE, "sulfur.temperature")
SILENCE = trip(Cause.COMMUNICATION, "argon.flow")


def hot_sulfur(lab: Lab) -> None:
    boat = part(simulated_of(lab).plant, "sulfur")
    boat.boat_k = boat._thermocouple_k = 900.0


def at_once(act: Act) -> Wrong:
    return lambda lab, patch: act(lab)


def once_known(act: Act) -> Wrong:
    """Let it go wrong when the instruments have said who they are: every link opened well."""

    def prepare(lab: Lab, patch: pytest.MonkeyPatch) -> None:
        listen = lab.line.listen

        async def after_it() -> None:
            act(lab)
            await listen()

        patch.setattr(lab.line, "listen", after_it)

    return prepare


def lose_a_reply(lab: Lab) -> None:
    simulated_of(lab).buses["detector"].faults.reply_lost = 1


ESCAPED = plant_fault("h2_detector_offset_ppm", 9000.0)
STANDING = {
    "gas leak": (LEAK, at_once(ESCAPED), "hydrogen in the room"),
    "emergency stop": (ESTOP, at_once(plant_fault("estop_open")), "emergency-stop loop open"),
    "over-temperature": (HEAT, at_once(hot_sulfur), "sulfur heater too hot"),
    "gas not read": (LEAK, once_known(cut("detector")), "not known: h2_detector.concentration"),
    "contact not read": (ESTOP, once_known(cut("relays")), "not known: box.estop_closed"),
    "another not read": (HEAT, once_known(cut("detector")), "not known: h2_detector.conc"),
    "exhaust lost after the first cause": (
        SILENCE,
        at_once(plant_fault("exhaust_lost")),
        "box.exhaust_flow at least 1 does not hold",
    ),
    "lid opened after the first cause": (
        HEAT,
        at_once(plant_fault("lid_open")),
        "box.lid_shut at least 1 does not hold",
    ),
    "still silent": (SILENCE, once_known(cut("inert")), "not known: argon.flow was not read"),
}


def latched(plan: LabPlan, cause: Trip, wrong: Wrong, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Latch a line, and let something be wrong with it when a person looks."""

    class AsItIs(Lab):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            wrong(self, monkeypatch)

    monkeypatch.setattr(idle_line, "Lab", AsItIs)
    plan.make_state_dir()
    path = plan.state_dir / "latch.json"
    Latch(path).close(cause)
    return path


@pytest.mark.promise(14)
@pytest.mark.parametrize("what", STANDING)
def test_no_reset_opens_the_latch_while_its_cause_stands_or_is_not_known(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    cause, wrong, said = STANDING[what]
    path = latched(short_plan, cause, wrong, monkeypatch)
    with pytest.raises(NotReset, match=f"the cause still stands: .*{said}"):
        reset(short_plan, "Ada", "looked")
    assert Latch(path).trip == cause
    assert not (short_plan.state_dir / "resets.jsonl").exists()


@pytest.mark.parametrize("cause", [LEAK, ESTOP, HEAT, SILENCE], ids=lambda each: each.channel)
@pytest.mark.parametrize(
    "wrong",
    [at_once(lambda lab: None), once_known(lose_a_reply)],
    ids=["sound", "one lost reply"],
)
def test_a_reset_of_a_sound_line_opens_the_latch(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch, cause: Trip, wrong: Wrong
) -> None:
    path = latched(short_plan, cause, wrong, monkeypatch)
    assert reset(short_plan, "Ada", "looked") == cause
    assert Latch(path).trip is None
    assert "Ada" in (short_plan.state_dir / "resets.jsonl").read_text("utf-8")


def asked_for(plan: LabPlan) -> list[str]:
    lines = (plan.state_dir / "resets.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["what"] for line in lines]


def test_a_latch_that_does_not_open_leaves_its_alarms_and_says_how_it_ended(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = latched(short_plan, SILENCE, at_once(lambda lab: None), monkeypatch)
    alarms: list[str] = []
    monkeypatch.setattr(idle_line, "reset_alarms", lambda plan, **facts: alarms.append("reset"))

    def stays(latch: Latch) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as broken:
        broken.setattr(Latch, "open", stays)
        with pytest.raises(NotReset, match=r"the latch does not open: .*Read-only"):
            reset(short_plan, "Ada", "looked")
    assert path.exists()
    assert alarms == []
    asked, ended = asked_for(short_plan)
    assert asked == "asked"
    assert ended.startswith("the latch does not open")
    assert reset(short_plan, "Ada", "looked again") == SILENCE
    assert asked_for(short_plan)[2:] == ["asked", "opened"]
    assert alarms == ["reset"]


def test_alarms_that_cannot_be_reset_are_told_of_and_can_be_asked_for_again(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = latched(short_plan, SILENCE, at_once(lambda lab: None), monkeypatch)

    def fails(plan: LabPlan, **facts: object) -> None:
        raise NotDone("alarms.jsonl cannot be written: full")

    with monkeypatch.context() as full:
        full.setattr(idle_line, "reset_alarms", fails)
        with pytest.raises(NotReset, match=r"its alarms are not reset: .*full"):
            reset(short_plan, "Ada", "looked")
    assert not path.exists()
    assert asked_for(short_plan) == ["asked", "opened"]
    assert reset(short_plan, "Ada", "looked") is None
