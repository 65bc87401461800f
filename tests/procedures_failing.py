"""Procedures whose writes fail: causes, what stays on, and what must be off."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from alarmed import journal_in
from labharness.core.clock import Chance, Clock, VirtualLoop
from labharness.core.clock import run as run_on
from labharness.core.vocabulary import Cause, Command, Ending, Trip
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, LabPlan
from labharness.safety.guard import Latch
from rig import SAFE_TABLE

FURNACE, SULFUR, HYDROGEN = 6, 7, 2  # coils from 0, as wired

Work = Callable[[Lab], Awaitable[None]]


ON = (
    Command("box.furnace_contactor", 1.0, ""),
    Command("box.sulfur_contactor", 1.0, ""),
    Command("laser.emission", 1.0, ""),
)


SHUTDOWN = "immediate_shutdown"


@asynccontextmanager
async def energising(plan: LabPlan, folder: Path) -> AsyncIterator[Lab]:
    """Arm and start the line, give its heaters mains and the laser leave; close it at the end."""
    plan.make_state_dir()
    Latch(plan.state_dir / "latch.json").open()
    with journal_in(folder) as journal:
        clock = Clock(asyncio.get_running_loop())
        lab = Lab(plan, clock=clock, chance=Chance(1), journal=journal)
        await lab.line.open()
        await lab.line.arm(SAFE_TABLE)
        lab.line.start()
        for command in ON:
            outcome = await lab.line.perform(command)
            assert outcome.ending is Ending.CONFIRMED, outcome
        yield lab
        await lab.line.close()


def energised(plan: LabPlan, folder: Path, work: Work) -> Lab:
    """Do ``work`` on a line with mains and light."""

    async def main() -> Lab:
        async with energising(plan, folder) as lab:
            await work(lab)
        return lab

    return run_on(main(), VirtualLoop())


def cause(lab: Lab, procedure: str, of: Cause = Cause.EMERGENCY_STOP_LOOP) -> Trip:
    return Trip(of, procedure, "test", None, lab.clock.loop.time(), "test")


def is_off(lab: Lab) -> bool:
    """By the plant's own account, no heater has mains and no hydrogen comes."""
    coils = simulated_of(lab).plant.parts["relays"].coils
    return not (coils[FURNACE] or coils[SULFUR] or coils[HYDROGEN])
