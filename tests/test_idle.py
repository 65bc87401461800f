"""A value that is confirmed and does nothing is said so, where it is set and in the journal."""

import asyncio
from pathlib import Path

import pytest

from commands import edited_lab, say
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.testing.bench import Bench, VirtualTime
from labharness.vocabulary import Command, Ending
from rig import part
from test_procedures_fail import energised

FAST = ("--attend", "--speed", "fast", "--for", "20", "--name", "Ada")
WARM = Command("furnace.setpoint", 55.0, "degC")
SWEPT_S = 700.0  # five volumes of 0.2 L at 100 sccm take 600 s; then the argon may be shut
MAINS = Command("box.furnace_contactor", 1.0, "")


def warned(bench: Bench, time: VirtualTime, *commands: Command) -> str:
    """Carry out commands on a running line; give the last one's warning."""

    async def scene() -> str:
        async with bench.running() as lab:
            await asyncio.sleep(SWEPT_S)
            for command in commands:
                outcome = await lab.line.perform(command)
                assert outcome.ending is Ending.CONFIRMED, outcome
                await lab.line.next_tick()
            return outcome.warning

    return time.run(scene())


@pytest.mark.parametrize(
    ("commands", "warning"),
    {
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
    }.values(),
)
def test_a_value_without_effect_is_warned_of(
    simulated_lab: Bench,
    virtual_time: VirtualTime,
    commands: tuple[Command, ...],
    warning: str,
) -> None:
    assert warned(simulated_lab, virtual_time, *commands) == warning


def test_a_controller_that_was_put_to_manual_at_its_keys_is_seen(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    found: list[str] = []

    async def work(lab: Lab) -> None:
        assert lab.simulated is not None
        lab.simulated.faces["furnace"]._words[273] = 1  # mA, the key A/M on its front
        await lab.line.next_tick()
        outcome = await lab.line.perform(WARM)
        assert outcome.ending is Ending.CONFIRMED
        assert not part(lab.simulated.plant, "furnace").heating, "at the plant nothing heats"
        found.append(outcome.warning)

    energised(short_plan, tmp_path, work)
    assert found == ["the controller is in manual, so nothing heats"]


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


def test_what_the_last_poll_says_is_measured_again_before_it_is_said(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    found: list[str] = []

    async def work(lab: Lab) -> None:
        assert lab.simulated is not None
        words = lab.simulated.faces["furnace"]._words
        words[273] = 1
        await lab.line.next_tick()
        words[273] = 0  # since the last poll
        outcome = await lab.line.perform(WARM)
        assert outcome.ending is Ending.CONFIRMED
        found.append(outcome.warning)

    energised(short_plan, tmp_path, work)
    assert found == [""]
