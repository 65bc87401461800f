"""A value that is confirmed and does nothing is said so, where it is set and in the journal."""

import asyncio
from pathlib import Path

import pytest

from commands import edited_lab, say
from labharness.core.clock import VirtualLoop, run
from labharness.core.vocabulary import Command, Ending
from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.journal.reading import read
from labharness.lab import LabPlan, read_lab
from labharness.line.effects import Idle, idle_steps
from rig import SHORT_LINE

FAST = ("--attend", "--speed", "fast", "--for", "20", "--name", "Ada")
WARM = Command("furnace.setpoint", 55.0, "degC")
SWEPT_S = 700.0  # five volumes of 0.2 L at 100 sccm take 600 s; then the argon may be shut
MAINS = Command("box.furnace_contactor", 1.0, "")


def warned(bench: Bench, time: VirtualTime, *commands: Command) -> str:
    """Carry out commands on a running line; return the last one's warning."""

    async def scene() -> str:
        async with bench.running() as lab:
            await asyncio.sleep(SWEPT_S)
            for command in commands:
                outcome = await lab.line.perform(command)
                assert outcome.ending is Ending.CONFIRMED, outcome
                await lab.line.next_tick()
            return outcome.warning

    return time.run(scene())


EVERY_DAY = ("without mains", "with mains", "a dark laser")
COMMANDS = {
    "without mains": (
        (WARM,),
        "box.furnace_contactor is off (0), so nothing heats",
    ),
    "with mains": ((MAINS, WARM), ""),
    "nothing asked for": ((Command("furnace.setpoint", 0.0, "degC"),), ""),
    "not what it heats by": ((Command("furnace.setpoint_rate", 5.0, "degC/min"),), ""),
    "in manual": (
        (Command("furnace.mode", 1.0, ""), WARM),
        "the controller is in manual and box.furnace_contactor is off (0), so nothing heats",
    ),
    "behind a shut valve": (
        (Command("box.argon_valve", 0.0, ""), Command("argon.setpoint", 50.0, "sccm")),
        "box.argon_valve is off (0), so nothing flows",
    ),
    "through an open valve": ((Command("argon.setpoint", 50.0, "sccm"),), ""),
    "no valve": ((Command("nitrogen.setpoint", 50.0, "sccm"),), ""),
    "a dark laser": (
        (Command("laser.power", 0.0005, "W"),),
        "emission is off, so nothing shines",
    ),
    "a lit laser": (
        (Command("laser.emission", 1.0, ""), Command("laser.power", 0.0005, "W")),
        "",
    ),
}


@pytest.mark.promise(41)
@pytest.mark.parametrize(
    ("commands", "warning"),
    [
        pytest.param(*each, id=name, marks=[pytest.mark.thorough] * (name not in EVERY_DAY))
        for name, each in COMMANDS.items()
    ],
)
def test_a_value_without_effect_is_warned_of(
    simulated_lab: Bench,
    virtual_time: VirtualTime,
    commands: tuple[Command, ...],
    warning: str,
) -> None:
    assert warned(simulated_lab, virtual_time, *commands) == warning


def said_of_furnace(polled_manual: float, manual: float) -> str:
    """What is said of a setpoint of the furnace, whose mains are on, by its last poll and now."""
    polled = {"furnace.manual": polled_manual, "box.furnace_contactor": 1.0}
    now = polled | {"furnace.manual": manual}

    async def read(channel: str) -> float:
        return now[channel]

    furnace = read_lab(SHORT_LINE).by_name["furnace"]
    return run(Idle(polled.__getitem__, read).why(furnace, "setpoint", 55.0), VirtualLoop())


@pytest.mark.promise(41)
def test_a_controller_that_was_put_to_manual_at_its_keys_is_seen() -> None:
    assert said_of_furnace(1.0, 1.0) == "the controller is in manual, so nothing heats"
    assert said_of_furnace(0.0, 0.0) == ""


def test_what_the_last_poll_says_is_measured_again_before_it_is_said() -> None:
    assert said_of_furnace(1.0, 0.0) == "", "it was put to automatic since"


@pytest.mark.promise(41)
def test_set_says_it_and_the_journal_keeps_it(tmp_path: Path) -> None:
    lab = edited_lab(tmp_path, 'part = "furnace"\nprepare = [["mode", 0]]', 'part = "furnace"')
    said = say("set", "furnace.setpoint", 55, "degC", "--lab", lab, *FAST, "--out", tmp_path / "r")
    words = "the controller is in manual and box.furnace_contactor is off (0), so nothing heats"
    assert said.out.startswith(f"furnace.setpoint confirmed, reads 55; {words}\n"), said
    assert f"by hand (Ada): furnace.setpoint = 55 degC confirmed: {words}" in said.err
    assert said.code == 0
    ended = [
        each.body for each in read(tmp_path / "r" / "journal.sqlite") if each.kind == "outcome"
    ]
    assert [each.get("warning") for each in ended][-1] == words


def test_of_a_plan_the_steps_are_told_that_ask_for_an_effect_and_have_none(
    short_plan: LabPlan,
) -> None:
    heat, cool = (Command("furnace.setpoint", each, "degC") for each in (300.0, 0.0))
    steps = [("cool", cool), ("look", Command("nobody.power", 1.0, "W")), ("heat", heat)]
    (idle,) = idle_steps(steps, {}, short_plan.by_name, lambda name: 0.0, lambda channel: 0.0)
    assert idle.startswith("heat: furnace.setpoint = 300 degC would be confirmed, but ")
