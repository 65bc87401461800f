"""A whole growth over real links: simulators, guard and harness are processes of their own.

Pseudo-terminals with the baud rate modelled, TCP, WebSocket, and the guard's socket; a person
approves from another terminal. It runs faster than real time by as much as its links bear.
"""

import json
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from commands import COMMAND, say
from guard_rig import until
from labharness.journal.reading import verify_file
from labharness.lab import read_lab
from platforms import serves_ports
from rig import EXAMPLE, HERE
from served import Served

SPEED = 5
APPROVED_S_MAX = 60.0
GROWN_S_MAX = 1_500.0
PEAK_KB_MAX = {"guard": 40_000, "run": 200_000, "simulate": 200_000}

pytestmark = [
    pytest.mark.soak,
    pytest.mark.serial,  # half a second of silence trips the line
    pytest.mark.timeout(2_000),
    serves_ports,
]


def peak_kb(pid: int) -> int:
    """Return the most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


def approve(told: Path, lab: Path) -> None:
    """Agree to the plan whose name the run has told."""

    def asked() -> "re.Match[str] | None":
        return re.search(r"approvals show (\w+)", told.read_text("utf-8"))

    until(lambda: asked() is not None, "a question for an approval", within_s=APPROVED_S_MAX)
    found = asked()
    assert found is not None
    words = ("--name", "Ada", "--reason", "a growth over real links", "--lab", lab)
    assert say("approvals", "approve", found[1], *words).code == 0


def test_a_growth_over_real_links_comes_to_its_answer(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with Served(tmp_path / "served", "--speed", SPEED) as sim_lab:
        lab = sim_lab.lab_file
        state_dir = read_lab(lab).state_dir
        assert say("arm", lab).code == 0
        guard = subprocess.Popen([*COMMAND, "guard", str(lab)], start_new_session=True)
        until((state_dir / "guard.sock").exists, "the guard")
        command = [sys.executable, HERE / "hurried_run.py", SPEED, "--lab", lab, "--out", out]
        command += ["--speed", "real", "--approval-timeout", 600, EXAMPLE]
        told = tmp_path / "told"
        with told.open("wb") as file:
            run = subprocess.Popen([str(each) for each in command], stdout=file, stderr=file)
        try:
            approve(told, lab)
            peaks: dict[str, int] = {}
            who = {"run": run.pid, "guard": guard.pid, "simulate": sim_lab.process.pid}
            end_s = time.monotonic() + GROWN_S_MAX
            while run.poll() is None and time.monotonic() < end_s:
                with suppress(IndexError):  # it ended while it was looked at
                    peaks = {name: peak_kb(pid) for name, pid in who.items()}
                time.sleep(1.0)
            assert run.poll() == 0, told.read_text("utf-8")
            assert guard.poll() is None, "it was there before the run and stays"
            truth = sim_lab.truth()
        finally:
            for each in (run, guard):
                if each.poll() is None:
                    each.terminate()
                each.communicate(timeout=30.0)
    print(peaks)  # noqa: T201 - the measured table
    answer = json.loads((out / "answer.json").read_text("utf-8"))
    assert answer["type"] == "task_completed"
    assert answer["payload"]["execution_summary"]["risk_events"] == []
    assert (out / "report.html").exists()
    assert not truth["furnace_heating"]
    assert not truth["laser_on"]
    assert {"latch.json", "guard.armed"}.isdisjoint(each.name for each in state_dir.iterdir())
    assert verify_file(out / "journal.sqlite").ok
    assert all(peaks[name] < PEAK_KB_MAX[name] for name in peaks), peaks
