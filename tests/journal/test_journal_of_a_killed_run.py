"""What a session has on the disk when it is killed, and how soon it meets a full disk."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from labharness.journal import reading
from labharness.lab import LabPlan
from labharness.safety.guard import Latch
from platforms import unix
from real_wires import quick
from rig import HERE, approved_copy

READY_S_MAX = 60.0
FULL_DISK = HERE / "full_disk.py"
KEPT_S = 5.0
LOADED_S = 1.5
"""What a machine with other work may add between a poll and its commit."""

pytestmark = [pytest.mark.calm, unix]


class Idle:
    """A person who has set one flow and waits, in a process of its own and at real speed."""

    def __init__(self, folder: Path) -> None:
        self.plan: LabPlan = approved_copy(folder, edit=quick)
        self.journal = folder / "run" / "journal.sqlite"
        self.full = folder / "full"
        options = ["--attend", "--speed", "real", "--for", "600", "--name", "Ada"]
        what = ["set", "argon.setpoint", "120", "sccm", "--lab", self.plan.path, *options]
        self.process = subprocess.Popen(
            list(map(str, (sys.executable, FULL_DISK, self.full, *what, "--out", folder / "run"))),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            if line.startswith("argon.setpoint confirmed"):
                return
            said.append(line)
        raise AssertionError("".join(said))

    def end(self) -> None:
        """Kill it, whatever it does."""
        self.process.kill()
        self.process.communicate(timeout=READY_S_MAX)


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Idle]:
    one = Idle(tmp_path)
    try:
        yield one
    finally:
        one.end()


@pytest.mark.promise(20)
def test_a_session_that_is_killed_keeps_its_outcomes_and_all_but_the_last_five_seconds(
    idle: Idle,
) -> None:
    time.sleep(KEPT_S + 2.0)  # what is idle writes nothing but what it measures
    idle.process.kill()
    killed = datetime.now(UTC)
    idle.process.wait(READY_S_MAX)
    with sqlite3.connect(idle.journal) as database:
        (run,) = database.execute("SELECT value FROM header WHERE part = 'run'").fetchone()
    begun = datetime.fromisoformat(json.loads(run)["epoch"])
    assert reading.verify_file(idle.journal).ok
    ended = [each.body for each in reading.read(idle.journal) if each.kind == "outcome"]
    assert ended[-1]["ending"] == "confirmed"
    assert ended[-1]["read_back"] == 120.0
    last_s = max(at_s for _, at_s, _ in reading.samples(idle.journal))
    assert (killed - begun).total_seconds() - last_s <= KEPT_S + LOADED_S


@pytest.mark.promise(20)
def test_a_disk_that_fills_up_while_nothing_happens_trips_within_five_seconds(idle: Idle) -> None:
    time.sleep(1.0)
    idle.full.touch()
    full_s = time.monotonic()
    latch = idle.plan.state_dir / "latch.json"
    while not latch.exists() and time.monotonic() - full_s < 60.0:
        time.sleep(0.02)
    took_s = time.monotonic() - full_s
    assert took_s <= KEPT_S + LOADED_S
    trip = Latch(latch).trip
    assert trip is not None
    assert trip.cause == "journal_lost"
