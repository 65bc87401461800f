"""Time the shipped example as a separate process: a growth of six hours, start-up included."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from labharness.journal.reading import read

EXAMPLE = Path(__file__).parent.parent / "examples" / "mos2-monolayer.json"
ROUNDS = 3
SPEED_MIN = 1500.0  # lab seconds a wall second, polled at 1 Hz
MEMORY_MB_MAX = 250.0
KB_PER_UNIT = 1 / 1024 if sys.platform == "darwin" else 1  # macOS counts bytes


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def grow(folder: Path) -> tuple[float, float, float]:
    """Run the example into ``folder``; return seconds of wall clock, processor and laboratory."""
    command = [sys.executable, "-m", "labharness.faces.cli", "run", str(EXAMPLE)]
    command += ["--out", str(folder / "run"), "--json"]
    env = {**os.environ, "LABHARNESS_STATE": str(folder / "state")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed harness is not compiled at each start
    started, used_s = time.perf_counter(), children_cpu_s()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    wall_s, cpu_s = time.perf_counter() - started, children_cpu_s() - used_s
    lab_s = max(record.at_s for record in read(folder / "run" / "journal.sqlite"))
    return wall_s, cpu_s, lab_s


def main() -> None:
    print(f"the shipped example, a whole process, {ROUNDS} runs on {os.cpu_count()} cores")
    print(f"{'wall s':>8} {'cpu s':>8} {'lab s':>9} {'x real time':>12}")
    speeds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            wall_s, cpu_s, lab_s = grow(Path(name))
        speeds.append(lab_s / wall_s)
        print(f"{wall_s:8.2f} {cpu_s:8.2f} {lab_s:9.0f} {speeds[-1]:12.0f}", flush=True)
    peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * KB_PER_UNIT
    print(f"median {median(speeds):.0f} x real time; target at least {SPEED_MIN:.0f}")
    print(f"peak memory {peak_kb / 1024:.0f} MB; target at most {MEMORY_MB_MAX:.0f}")


if __name__ == "__main__":
    main()
