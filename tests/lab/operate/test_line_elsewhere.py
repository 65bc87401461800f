"""A copy of a lab file, another shell: what is driven or latched elsewhere is shut to them.

The instruments stand behind pseudo-terminals of a plant in this process, and each command that
drives them is a process of its own.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands import COMMAND, say
from guard_rig import until
from labharness.journal.reading import read
from labharness.lab import LabPlan, read_lab
from labharness.lab.operate.idle_line import make_safe, reset
from labharness.safety.guard import Latch
from platforms import unix
from real_wires import quick, served
from rig import approved_copy

pytestmark = unix

BOUND_S = 60.0


def copied(plan: LabPlan, folder: Path) -> LabPlan:
    """Return a copy of a lab file, with another id and another state directory."""
    text = plan.path.read_text("utf-8").replace('id = "short-line"', 'id = "copy"')
    text = text.replace(str(plan.state_dir), str(folder / "state of the copy"))
    (folder / "copy.toml").write_text(text, "utf-8")
    found = read_lab(folder / "copy.toml")
    assert found.state_dir != plan.state_dir
    return found


@contextmanager
def driven(plan: LabPlan, out: Path) -> "Iterator[subprocess.Popen[str]]":
    """Have a process of its own drive a line, from when its first value is set."""
    words = ("set", "argon.setpoint", "300", "sccm", "--attend", "--lab", plan.path, "--out", out)
    process = subprocess.Popen(
        [str(each) for each in (*COMMAND, *words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert "confirmed" in told, told + process.communicate(timeout=BOUND_S)[0]
        yield process
    finally:
        process.kill()
        process.communicate()


def attend(plan: LabPlan, out: Path) -> tuple[object, ...]:
    words = ("set", "argon.setpoint", 300, "sccm", "--attend", "--for", 5)
    return (*words, "--lab", plan.path, "--out", out)


@pytest.mark.promise(36)
@pytest.mark.calm  # five commands and a guard's start; none of their bounds is below two seconds
def test_what_is_driven_elsewhere_is_refused_by_name_and_made_safe_by_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        copy = copied(plan, tmp_path)
        with driven(plan, tmp_path / "driven") as owner:
            monkeypatch.setenv("LABHARNESS_STATE", str(tmp_path / "another shell"))
            for words in (
                attend(copy, tmp_path / "out"),
                ("set", "argon.setpoint", 20, "sccm", "--lab", copy.path),
                ("arm", copy.path),
                ("reset", "--name", "Ada", "--reason", "aired", "--lab", copy.path),
                ("read", "argon.flow", "--lab", copy.path),
                ("stop", "--lab", copy.path),
            ):
                said = say(*words)
                assert said.code == 1, said
                (line,) = said.err.splitlines()
                assert f"process {owner.pid} of " in line
                assert f"--lab {plan.path}" in line
            said = say("safe", "--lab", copy.path)
            assert (said.code, said.out.splitlines()[0]) == (
                0,
                "immediate_shutdown: every step verified",
            )
            assert "the line is latched" in said.out
            told, _ = owner.communicate(timeout=BOUND_S)
            assert "in its safe state, verified" in told
        refused = say(*attend(copy, tmp_path / "late"))
        assert refused.code == 1
        assert "is latched on this machine by the lab of" in refused.err
        assert f"labharness reset --name NAME --reason REASON --lab {plan.path}" in refused.err
        said = say("reset", "--name", "Ada", "--reason", "aired", "--lab", copy.path)
        assert (said.code, str(plan.path) in said.err) == (1, True), said
        assert make_safe(copy, "Ada", "found it so")["unverified"] == []
        reset(plan, "Ada", "line inspected")
        assert Latch(copy.state_dir / "latch.json", copy.port_latch()).trip is None


@pytest.mark.promise(14)
def test_a_line_whose_harness_and_guard_were_killed_is_left_armed_for_every_lab_file(
    tmp_path: Path,
) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        copy = copied(plan, tmp_path)
        with driven(plan, tmp_path / "driven") as owner:
            guards = subprocess.run(
                ["pgrep", "-P", str(owner.pid)], capture_output=True, encoding="utf-8", check=True
            ).stdout.split()
            for pid in (*map(int, guards), owner.pid):
                os.kill(pid, 9)
            owner.wait(BOUND_S)
        refused = say(*attend(copy, tmp_path / "late"))
        assert refused.code == 1
        assert "left armed" in refused.err
        assert str(plan.path) in refused.err


@pytest.mark.promise(36)
def test_a_guard_that_somebody_keeps_makes_its_ports_safe_for_who_comes_by_a_copy(
    tmp_path: Path,
) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        copy = copied(plan, tmp_path)
        assert say("arm", plan.path).code == 0
        guard = subprocess.Popen([*COMMAND, "guard", str(plan.path)])
        try:
            until((plan.state_dir / "guard.sock").exists, "the guard")
            said = say("safe", "--lab", copy.path)
            assert (said.code, said.out.splitlines()[0]) == (
                0,
                "immediate_shutdown: every step verified",
            )
            assert f"the guard of {plan.path} has the ports" in said.err
            assert not (copy.state_dir / "armed.json").exists()
        finally:
            guard.terminate()
            guard.wait(BOUND_S)


@pytest.mark.promise(36)
@pytest.mark.parametrize(
    "taken",
    [
        *(pytest.param(each, marks=pytest.mark.soak) for each in ("the folder", "the socket")),
        pytest.param("another in its place", marks=pytest.mark.thorough),
    ],
)
def test_an_owner_that_finds_its_door_taken_away_makes_the_line_safe_and_says_so(
    tmp_path: Path, taken: str
) -> None:
    with served(approved_copy(tmp_path, edit=quick), tmp_path) as plan:
        with driven(plan, tmp_path / "driven") as owner:
            if taken == "the socket":
                (plan.state_dir / "control.sock").unlink()
            else:
                plan.state_dir.rename(tmp_path / "moved away")
            if taken == "another in its place":
                plan.state_dir.mkdir()
            since_s = time.monotonic()
            told, _ = owner.communicate(timeout=BOUND_S)
            assert time.monotonic() - since_s < BOUND_S
        assert "under its owner" in told
        assert "in its safe state, verified" in told
        assert "LATCHED" in told
        trips = [r.body for r in read(tmp_path / "driven" / "journal.sqlite") if r.kind == "trip"]
        assert "under its owner" in str(trips[0])
        refused = say(*attend(plan, tmp_path / "late"))
        assert refused.code == 1
        assert "under its owner" in refused.err + refused.out
        said = say("doctor", "--lab", plan.path)
        assert "latched" in said.out
        reset(plan, "Ada", "the folder is back")
        assert Latch(plan.state_dir / "latch.json", plan.port_latch()).trip is None
