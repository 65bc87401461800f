"""Three days of the whole line at 1 Hz: the journal stays small, and memory does not grow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labharness.journal.reading import verify_file
from rig import HERE
from three_days import HOURS

SETTLED_H = 24  # by then caches and free lists are full
JOURNAL_BYTES_MAX = 40 * 10**6
GROWTH_A_DAY_MAX = 0.01


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read as on Linux")
def test_three_days_of_the_whole_line_stay_small_on_disk_and_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    done = subprocess.run(
        [sys.executable, str(HERE / "three_days.py"), str(path)],
        env={**os.environ, "LABHARNESS_STATE": str(tmp_path / "state")},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    memory = {int(hour): int(size) for hour, size in map(str.split, done.stdout.splitlines())}
    size = path.stat().st_size
    sys.stdout.write(f"journal {size / 1e6:.1f} MB\n")
    sys.stdout.writelines(f"{hour:3} h {each / 1e6:.2f} MB\n" for hour, each in memory.items())
    assert verify_file(path).ok
    assert size <= JOURNAL_BYTES_MAX
    days = (HOURS - SETTLED_H) / 24
    grown = (memory[HOURS] - memory[SETTLED_H]) / memory[SETTLED_H] / days
    assert grown < GROWTH_A_DAY_MAX
