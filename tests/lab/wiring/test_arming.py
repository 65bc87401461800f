"""The first command after arming is judged by what was read after ``prepare``, at any pace."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from labharness.core.clock import Chance, Clock, PacedLoop, run
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.journal import SqliteJournal
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.line import NotArmed
from labharness.safety.kernel import Mode
from real_wires import quick
from rig import SAFE_TABLE, approved_copy, cut

GRID = (0.0, 0.13, 0.29, 0.41, 0.57, 0.73, 0.89)
"""Seconds after a grid point of the polls at which a line is armed."""
FIRST = Command("box.furnace_contactor", 1.0, "")
"""What takes the status words of two controllers, which the safe table had put to manual."""
FAST = 10.0
"""Lab seconds a real one: a paced loop as a real one, in which replies come between two turns."""


@pytest.fixture
def plan(tmp_path: Path) -> LabPlan:
    """Return the short line without the instrument whose ``prepare`` takes a minute of polls."""
    return approved_copy(tmp_path, edit=quick)


async def armed_after(lab: Lab, wait_s: float) -> None:
    """Arm at some place between two polls."""
    await asyncio.sleep(wait_s)
    await lab.line.arm(SAFE_TABLE)


def prepared_s(lab: Lab) -> float:
    """Return when the last setting of ``prepare`` was confirmed, by the journal."""
    journal = lab.line.journal
    assert isinstance(journal, SqliteJournal)
    journal.commit()
    return max(each.at_s for each in read(journal.path) if each.kind == "outcome")


def older(lab: Lab, than_s: float) -> dict[str, float]:
    """Return the watched channels last read before a moment, with the times of those readings."""
    tracks = lab.line.memory.tracks
    watched = lab.line.envelope.watches
    return {each: tracks[each].at_s for each in watched if tracks[each].at_s <= than_s}


@pytest.mark.promise(9)
@pytest.mark.parametrize("wait_s", GRID)
async def test_nothing_that_is_listened_to_was_read_before_prepare(
    plan: LabPlan, simulated_lab: Bench, wait_s: float
) -> None:
    async with simulated_lab.on(plan).opened() as lab:
        await armed_after(lab, wait_s)
        assert lab.line.memory.mode is Mode.HELD
        assert older(lab, prepared_s(lab)) == {}
        lab.line.start()
        outcome = await lab.line.perform(FIRST)
        assert outcome.ending is Ending.CONFIRMED, outcome.detail


@pytest.mark.promise(9)
@pytest.mark.calm
@pytest.mark.parametrize("wait_s", GRID[:4])
def test_at_a_real_pace_nothing_was_read_before_prepare_either(
    plan: LabPlan, tmp_path: Path, wait_s: float
) -> None:
    async def play() -> None:
        with SqliteJournal(tmp_path / "journal.sqlite") as journal:
            clock = Clock(asyncio.get_running_loop())
            lab = Lab(plan, clock=clock, chance=Chance(1), journal=journal)
            try:
                await lab.line.open()
                await armed_after(lab, wait_s)
                assert older(lab, prepared_s(lab)) == {}
                lab.line.start()
                outcome = await lab.line.perform(FIRST)
                assert outcome.ending is Ending.CONFIRMED, outcome.detail
            finally:
                await lab.line.close()

    run(play(), PacedLoop(FAST))


Ends = Callable[[Lab, Outcome], Outcome]


@pytest.fixture
def not_armed(
    plan: LabPlan,
    simulated_lab: Bench,
    virtual_time: VirtualTime,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Ends], str]:
    """Return why a line is not armed if the last setting of ``prepare`` ends otherwise."""

    def said(ends: Ends) -> str:
        async def play() -> str:
            async with simulated_lab.on(plan).opened() as lab:
                perform = lab.line.perform

                async def perform_otherwise(command: Command) -> Outcome:
                    outcome = await perform(command)
                    last = command.channel == "hydrogen.watchdog_ms"
                    return ends(lab, outcome) if last else outcome

                monkeypatch.setattr(lab.line, "perform", perform_otherwise)
                with pytest.raises(NotArmed) as why:
                    await lab.line.arm(SAFE_TABLE)
                assert lab.line.memory.mode is Mode.DISARMED
                return str(why.value)

        return virtual_time.run(play())

    return said


def test_a_line_whose_instrument_falls_silent_after_prepare_is_not_armed_and_says_which(
    not_armed: Callable[[Ends], str],
) -> None:
    def silent(lab: Lab, outcome: Outcome) -> Outcome:
        cut("heat")(lab)
        return outcome

    assert "not read within 5 s of prepare: furnace." in not_armed(silent)


@pytest.mark.promise(3)
@pytest.mark.parametrize("ending", [each for each in Ending if each is not Ending.CONFIRMED])
def test_a_line_is_not_armed_by_a_prepare_that_nothing_shows(
    not_armed: Callable[[Ends], str], ending: Ending
) -> None:
    said = not_armed(lambda _, done: Outcome(done.command, ending, None, "nobody saw it"))
    assert said == f"prepare hydrogen.watchdog_ms = 5000 {ending}: nobody saw it"
