"""Procedures whose writes fail: causes, what stays on, and what must be off."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from labharness.core.clock import Chance, Clock, VirtualLoop
from labharness.core.clock import run as run_on
from labharness.core.vocabulary import Cause, Command, Ending, Trip
from labharness.journal import SqliteJournal
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


def energised(plan: LabPlan, folder: Path, work: Work) -> Lab:
    """Arm and start the line, give its heaters mains and the laser leave, then do ``work``."""
    loop = VirtualLoop()
    labs: list[Lab] = []

    async def main() -> None:
        with SqliteJournal(folder / "journal.sqlite") as journal:
            lab = Lab(plan, clock=Clock(loop), chance=Chance(1), journal=journal)
            labs.append(lab)
            await lab.line.open()
            await lab.line.arm(SAFE_TABLE)
            lab.line.start()
            for command in ON:
                outcome = await lab.line.perform(command)
                assert outcome.ending is Ending.CONFIRMED, outcome
            await work(lab)
            await lab.line.close()

    folder.mkdir(exist_ok=True)
    plan.state_dir.mkdir(parents=True, exist_ok=True)
    Latch(plan.state_dir / "latch.json").open()
    run_on(main(), loop)
    return labs[0]


def cause(lab: Lab, procedure: str, of: Cause = Cause.EMERGENCY_STOP_LOOP) -> Trip:
    return Trip(of, procedure, "test", None, lab.clock.loop.time(), "test")


def is_off(lab: Lab) -> bool:
    """By the plant's own account, no heater has mains and no hydrogen comes."""
    assert lab.simulated is not None
    coils = lab.simulated.plant.parts["relays"].coils
    return not (coils[FURNACE] or coils[SULFUR] or coils[HYDROGEN])
