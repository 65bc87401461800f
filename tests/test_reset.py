"""A reset looks for itself: while the cause stands, or cannot be read, the latch stays."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labharness.guard import Latch
from labharness.lab import Lab, LabPlan, care
from labharness.lab.care import NotReset, reset
from labharness.vocabulary import Cause, Trip
from rig import cut, part, plant_fault

Act = Callable[[Lab], None]


def trip(cause: Cause, channel: str) -> Trip:
    return Trip(cause, "immediate_shutdown", channel, 1.0, 0.0, f"{channel}: seen")


LEAK = trip(Cause.GAS_LEAK, "h2_detector.concentration")
ESTOP = trip(Cause.EMERGENCY_STOP_LOOP, "box.estop_closed")
HEAT = trip(Cause.OVER_TEMPERATURE, "sulfur.temperature")
SILENCE = trip(Cause.COMMUNICATION, "argon.flow")


def hot_sulfur(lab: Lab) -> None:
    assert lab.simulated is not None
    boat = part(lab.simulated.plant, "sulfur")
    boat.boat_k = boat._thermocouple_k = 900.0


def silent_once_known(port: str) -> Act:
    """Cut a port when its instruments have said who they are: every road opened well."""

    def act(lab: Lab) -> None:
        listen = lab.line.listen

        async def cut_first() -> None:
            cut(port)(lab)
            await listen()

        lab.line.listen = cut_first  # type: ignore[method-assign]  # of this line alone

    return act


def lost_reply(lab: Lab) -> None:
    assert lab.simulated is not None
    faults = lab.simulated.buses["detector"].faults
    listen = lab.line.listen

    async def lose_first() -> None:
        faults.reply_lost = 1
        await listen()

    lab.line.listen = lose_first  # type: ignore[method-assign]  # of this line alone


STANDING = {
    "gas leak": (LEAK, plant_fault("h2_detector_offset_ppm", 9000.0), "hydrogen in the room"),
    "emergency stop": (ESTOP, plant_fault("estop_open"), "emergency-stop loop open"),
    "over-temperature": (HEAT, hot_sulfur, "sulfur heater too hot"),
    "gas not read": (LEAK, silent_once_known("detector"), "not known: h2_detector.concentration"),
    "contact not read": (ESTOP, silent_once_known("relays"), "not known: box.estop_closed"),
    "another not read": (HEAT, silent_once_known("detector"), "not known: h2_detector.conc"),
    "still silent": (SILENCE, silent_once_known("inert"), "not known: argon.flow was not read"),
}


def latched(plan: LabPlan, cause: Trip, act: Act, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Latch a line, and let something be wrong with it when a person looks."""

    class AsItIs(Lab):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]  # handed on as they are
            act(self)

    monkeypatch.setattr(care, "Lab", AsItIs)
    plan.make_state_dir()
    path = plan.state_dir / "latch.json"
    Latch(path).close(cause)
    return path


@pytest.mark.parametrize("what", STANDING)
def test_no_reset_opens_the_latch_while_its_cause_stands_or_is_not_known(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    cause, act, said = STANDING[what]
    path = latched(short_plan, cause, act, monkeypatch)
    with pytest.raises(NotReset, match=f"the cause still stands: .*{said}"):
        reset(short_plan, "Ada", "looked")
    assert Latch(path).trip == cause
    assert not (short_plan.state_dir / "resets.jsonl").exists()


@pytest.mark.parametrize("cause", [LEAK, ESTOP, HEAT, SILENCE], ids=lambda each: each.channel)
@pytest.mark.parametrize("act", [lambda lab: None, lost_reply], ids=["sound", "one lost reply"])
def test_a_reset_of_a_sound_line_opens_the_latch(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch, cause: Trip, act: Act
) -> None:
    path = latched(short_plan, cause, act, monkeypatch)
    assert reset(short_plan, "Ada", "looked") == cause
    assert Latch(path).trip is None
    assert "Ada" in (short_plan.state_dir / "resets.jsonl").read_text("utf-8")
