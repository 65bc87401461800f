"""Live three days on the whole shipped line, at 1 Hz in virtual time; a process of its own.

The first argument is the journal. Each line that is printed is the lab hour and the memory in
bytes. Within pytest the test kit would keep every frame of every wire.
"""

import gc
import os
import sys
from pathlib import Path

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.core.vocabulary import Command
from labharness.journal import SqliteJournal
from labharness.lab import Lab, default_lab_path, read_lab

HOURS = 72
LOOK_EVERY_H = 3
BEGINNING = (Command("argon.setpoint", 100.0, "sccm"), Command("box.furnace_contactor", 1.0, ""))


def memory_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def confirmed(lab: Lab, command: Command) -> None:
    outcome = await lab.line.perform(command)
    if str(outcome.ending) != "confirmed":
        raise RuntimeError(f"{command}: {outcome}")


async def live(lab: Lab) -> None:
    """Keep a flowing line, with one command an hour."""
    line = lab.line
    await line.open()
    await line.arm(lab.plan.safe_procedure)
    line.start()
    for command in BEGINNING:
        await confirmed(lab, command)
    for hour in range(1, HOURS + 1):
        for _ in range(3600):
            await line.next_tick()
        await confirmed(lab, Command("argon.setpoint", 100.0 + hour % 2, "sccm"))
        if hour % LOOK_EVERY_H == 0:
            sys.stdout.write(f"{hour} {memory_bytes()}\n")
            sys.stdout.flush()
    line.disarm()
    await line.close()


def main() -> None:
    loop = VirtualLoop()

    async def within() -> None:
        with SqliteJournal(Path(sys.argv[1])) as journal:
            await live(
                Lab(
                    read_lab(default_lab_path()),
                    clock=Clock(loop),
                    chance=Chance(1),
                    journal=journal,
                )
            )

    run(within(), loop)


if __name__ == "__main__":
    main()
