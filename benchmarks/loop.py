"""Time the loop alone: the shipped line, armed and polled in virtual time, without a plan."""

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.journal import SqliteJournal
from labharness.lab import Lab, LabPlan, default_lab_path, read_lab

ROUNDS = 3
COUNTED_TICKS = 60  # of lab time in which exchanges are counted; no time is taken meanwhile
SPEED_MIN = 2000.0  # lab seconds a wall second


async def poll(lab: Lab, ticks: int) -> tuple[float, float]:
    """Poll an armed, running line; return lab seconds a wall second, and exchanges a lab second."""
    line = lab.line
    await line.open()
    await line.arm(lab.plan.safe_procedure)
    line.start()
    lab.guard.core.log = []
    for _ in range(COUNTED_TICKS):
        await line.next_tick()
    exchanges = len(lab.guard.core.log)
    lab.guard.core.log = None
    lab_s, started = lab.clock.now_s(), time.perf_counter()
    for _ in range(ticks):
        await line.next_tick()
    speed = (lab.clock.now_s() - lab_s) / (time.perf_counter() - started)
    line.disarm()
    await line.close()
    return speed, exchanges / COUNTED_TICKS


def measure(plan: LabPlan, ticks: int) -> tuple[float, float]:
    loop = VirtualLoop()

    async def main(folder: Path) -> tuple[float, float]:
        with SqliteJournal(folder / "journal.sqlite") as journal:
            lab = Lab(plan, clock=Clock(loop), chance=Chance(1), journal=journal)
            return await poll(lab, ticks)

    with tempfile.TemporaryDirectory() as name:
        return run(main(Path(name)), loop)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0, help="lab hours a round (default 2)")
    hours: float = parser.parse_args().hours
    with tempfile.TemporaryDirectory() as state:
        os.environ["LABHARNESS_STATE"] = state
        plan = read_lab(default_lab_path())
        count = len(plan.instruments)
        print(f"the polled line, {count} instruments, {hours:g} lab h on {os.cpu_count()} cores")
        print(f"{'x real time':>12} {'exchanges/lab s':>16} {'us/exchange':>12}")
        speeds = []
        for _ in range(ROUNDS):
            speed, rate = measure(plan, round(hours * 3600))
            speeds.append(speed)
            print(f"{speed:12.0f} {rate:16.1f} {1e6 / (speed * rate):12.1f}", flush=True)
    print(f"median {median(speeds):.0f} x real time; target at least {SPEED_MIN:.0f}")


if __name__ == "__main__":
    main()
