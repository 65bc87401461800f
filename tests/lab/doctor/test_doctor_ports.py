"""The doctor looks at real ports, locks and folders, and leaves them as they are."""

import os
import socket
import subprocess
import sys
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands import edited_lab
from examined import findings, serial_lab
from guard_turns import guarding
from labharness.core.clock import utc_text, wall_clock_utc
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config.lock import LineLock
from labharness.lab.doctor.findings import examine
from labharness.lab.doctor.latch import OwnerFacts
from labharness.lab.doctor.machine import look
from labharness.safety.guard.process import LOCK_FILE

HOLDER = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_NOCTTY)
if "lock" in sys.argv:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals and permission bits")


@contextmanager
def terminal() -> Iterator[str]:
    master, slave = os.openpty()
    tty.setraw(slave)
    try:
        yield os.ttyname(slave)
    finally:
        os.close(slave)
        os.close(master)


@contextmanager
def another_process(*arguments: object) -> Iterator[int]:
    """Hold a file open in a process of its own."""
    held = subprocess.Popen(
        [sys.executable, "-c", HOLDER, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with held:
        try:
            if held.stdout is None or held.stdout.readline() != "held\n":
                raise RuntimeError("the file is not held")
            yield held.pid
        finally:
            held.kill()


def test_a_serial_port_that_is_free_opens_and_one_that_is_held_names_who_holds_it(
    tmp_path: Path, wires: list[Lab]
) -> None:
    with terminal() as path:
        plan = serial_lab(tmp_path, path)
        free = look(plan, tmp_path).serial[path]
        assert (free.exists, free.is_device, free.allowed, free.trouble) == (True, True, True, "")
        with another_process(path, "lock") as pid:
            held = look(plan, tmp_path).serial[path]
            assert held.trouble == "another process has locked it"
            assert f"process {pid} (" in held.held_by
        with another_process(path) as pid:
            assert f"process {pid} (" in look(plan, tmp_path).serial[path].held_by
    gone = look(plan, tmp_path).serial[path]
    assert not gone.exists
    assert wires == []


def test_a_tcp_port_is_reached_or_it_is_said_why_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        old = 'name = "vacuum"\nlink = "loopback"'
        new = f'name = "vacuum"\nlink = "tcp"\nhost = "127.0.0.1"\nport = {port}'
        plan = read_lab(edited_lab(tmp_path, old, new))
        assert look(plan, tmp_path).unreached == {"vacuum": ""}
    (why,) = look(plan, tmp_path).unreached.values()
    assert f"127.0.0.1:{port} does not open" in why
    found = [each for each in findings(plan, look(plan, tmp_path)) if each.about == "port vacuum"]
    assert "address" in found[0].fix


def test_while_another_process_owns_the_line_no_port_is_touched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, terminal() as path:
        port = server.getsockname()[1]
        old = 'name = "vacuum"\nlink = "loopback"'
        new = f'name = "vacuum"\nlink = "tcp"\nhost = "127.0.0.1"\nport = {port}'
        plan = read_lab(edited_lab(tmp_path, old, new))
        plan.state_dir.mkdir(parents=True)
        with another_process(plan.state_dir / "line.lock", "lock") as pid:
            seen = look(plan, tmp_path)
            checks = {each.about: each for each in examine(plan, seen)}
            assert seen.unreached == {}
            assert checks["port vacuum"].state == "unknown"
            assert f"process {pid} (" in checks["owner"].said
            assert checks["owner"].state == "ok"
            with another_process(path, "lock"):
                serial = serial_lab(tmp_path, path)
                seen = look(serial, tmp_path)
                assert seen.serial[path].trouble == ""
                (port,) = (each for each in examine(serial, seen) if path in each.said)
                assert port.state == "unknown"


def test_a_lock_file_that_was_left_behind_holds_nothing(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    short_plan.state_dir.mkdir(parents=True)
    LineLock(short_plan.state_dir).release()
    assert look(short_plan, tmp_path).owner == OwnerFacts(held=False, left_behind=True)


def test_the_doctor_makes_nothing(short_plan: LabPlan, tmp_path: Path) -> None:
    seen = look(short_plan, tmp_path / "runs")
    assert (seen.state.exists, seen.runs.exists) == (False, False)
    assert seen.runs.path == str(tmp_path)
    assert not short_plan.state_dir.exists()
    assert not (tmp_path / "runs").exists()
    short_plan.state_dir.mkdir(parents=True)
    look(short_plan, tmp_path)
    assert list(short_plan.state_dir.iterdir()) == []


@pytest.mark.promise(46)
def test_a_guard_that_tries_in_vain_is_found_by_port_and_since_when_until_it_has_made_safe(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    short_plan.state_dir.mkdir(parents=True, exist_ok=True)
    with guarding(short_plan.state_dir) as turn:
        harness = turn.comes()
        harness.arm()
        heat = turn.links["heat"]
        heat.lost = heat.refuses = "unplugged"
        heat.says(b"?")
        harness.socket.close()
        began = wall_clock_utc()
        for _ in range(200):
            turn.pass_(0.1)
            turn.answer("gas")
        left = [each.said for each in findings(short_plan, look(short_plan, tmp_path))]
        alone = f"so nothing tries again: labharness safe{short_plan.option}"
        assert sum(alone in each for each in left) == 2, (
            "the guard that wrote it is at work no more"
        )
        with another_process(str(short_plan.state_dir / LOCK_FILE), "lock"):
            seen = look(short_plan, tmp_path)
        found = [each for each in findings(short_plan, seen) if each.about == "guard"]
        channels = {each.said.split()[0] for each in found}
        assert channels == {"furnace.setpoint", "box.contactor"}, "those of the port that is away"
        for each in found:
            assert " on port heat has not been made safe since " in each.said
            assert "tries again every 1 s" in each.said
            since = each.said.partition(" since ")[2].partition(": ")[0]
            assert utc_text(began) <= since <= utc_text(wall_clock_utc())
        heat.lost = heat.refuses = ""
        while turn.guard._owes():
            turn.pass_(0.1)
            turn.answer()
        turn.pass_()
        assert look(short_plan, tmp_path).not_safe == ()
