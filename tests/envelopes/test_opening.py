"""Opening the line by hand is judged as a command is: cold, off, flushed; and then it is open."""

from pathlib import Path

import pytest

from labharness.core.vocabulary import Command, Ending
from labharness.lab import Lab, default_lab_path, read_lab
from labharness.lab.config.lab_file import BadLabFile
from labharness.line.command import NotOpened
from labharness.safety.kernel import EnvelopeInvalid
from rig import SHORT_LINE, approved_copy

FLUSHED_S = 200.0  # five volumes of 200 cm3 at 480 sccm take 125 s


async def flush(lab: Lab) -> None:
    await lab.line.perform(Command("argon.setpoint", 480.0, "sccm"))
    until_s = lab.clock.now_s() + FLUSHED_S
    while lab.clock.now_s() < until_s:
        await lab.line.next_tick()


async def nobody() -> str:
    raise AssertionError("somebody was asked")


async def somebody() -> str:
    return "ada"


async def test_nobody_is_asked_to_open_a_tube_of_which_nobody_knows_what_is_in_it(lab: Lab) -> None:
    with pytest.raises(NotOpened, match="purged of hydrogen by 5 volumes"):
        await lab.line.by_hand("load", nobody)
    await flush(lab)
    assert await lab.line.by_hand("load", somebody) == "ada"
    with pytest.raises(NotOpened, match="has no limit"):
        await lab.line.by_hand("unscrew", nobody)


@pytest.mark.parametrize(
    ("command", "lacks"),
    [
        (Command("box.furnace_contactor", 1.0, ""), "furnace_contactor"),
        (Command("box.sulfur_contactor", 1.0, ""), "sulfur_contactor"),
    ],
)
async def test_nobody_is_asked_to_open_what_is_on(lab: Lab, command: Command, lacks: str) -> None:
    await flush(lab)
    assert (await lab.line.perform(command)).ending is Ending.CONFIRMED
    with pytest.raises(NotOpened, match=lacks):
        await lab.line.by_hand("load", nobody)


async def test_until_it_is_done_the_lid_counts_as_open_whatever_it_reads(lab: Lab) -> None:
    await flush(lab)
    endings = []

    async def meanwhile() -> str:
        await lab.line.next_tick()
        assert lab.line.latest("box.lid_shut") == 1.0
        outcome = await lab.line.perform(Command("box.furnace_contactor", 1.0, ""))
        endings.append(outcome.ending)
        return "ada"

    await lab.line.by_hand("load", meanwhile)
    outcome = await lab.line.perform(Command("box.furnace_contactor", 1.0, ""))
    assert [*endings, outcome.ending] == [Ending.REFUSED, Ending.CONFIRMED]


async def test_no_command_opens_what_a_person_opens(lab: Lab) -> None:
    await flush(lab)
    outcome = await lab.line.perform(Command("operator.load", 0.0, ""))
    assert outcome.ending is Ending.REFUSED
    assert "no instrument 'operator'" in outcome.detail


def test_an_opening_names_a_contact_that_is_watched(tmp_path: Path) -> None:
    wrong = ('opens = "box.lid_shut"', 'opens = "box.lid"')
    with pytest.raises((BadLabFile, EnvelopeInvalid), match=r"box\.lid is not watched"):
        approved_copy(tmp_path, edit=lambda text: text.replace(*wrong))


def test_every_line_that_ships_judges_what_its_plans_ask_a_person_to_open() -> None:
    for path in (SHORT_LINE, default_lab_path()):
        limits = read_lab(path).envelope.limits
        asked = ("load", "move_to_microscope", "put_under_microscope")
        assert {f"operator.{action}" for action in asked} <= set(limits)


@pytest.mark.promise(9)
async def test_no_sample_is_put_under_a_laser_that_is_on_and_while_it_is_put_there_it_stays_off(
    lab: Lab,
) -> None:
    for command in (Command("laser.power", 0.0003, "W"), Command("laser.emission", 1.0, "")):
        assert (await lab.line.perform(command)).ending is Ending.CONFIRMED
    with pytest.raises(NotOpened, match=r"laser\.emission"):
        await lab.line.by_hand("put_under_microscope", nobody)
    await lab.line.perform(Command("laser.emission", 0.0, ""))
    endings = []

    async def meanwhile() -> str:
        outcome = await lab.line.perform(Command("laser.emission", 1.0, ""))
        endings.append(outcome.ending)
        return "ada"

    await lab.line.by_hand("put_under_microscope", meanwhile)
    outcome = await lab.line.perform(Command("laser.emission", 1.0, ""))
    assert [*endings, outcome.ending] == [Ending.REFUSED, Ending.CONFIRMED]
