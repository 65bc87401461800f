"""Real harnesses killed in the middle of an upload: the guard's process, real ports, real bytes."""

import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pymodbus.client import ModbusSerialClient

from commands import COMMAND, say, spawn
from guard_rig import until
from labharness.instruments.link.conversation import LineControl, NoOwner
from labharness.lab import read_lab
from platforms import unix
from programmed import programmed
from real_wires import quick
from served import Served

STORES = bytes.fromhex("01 10 20")  # function 16 into the stored programs from 2088h on
RESETS = bytes.fromhex("01 06 00 17 00 01")
END = 0
SEGMENT_1, STATUS = 8336, 23

pytestmark = [pytest.mark.calm, unix]


def warm(number: int) -> dict[str, object]:
    """A program within what may be touched, so that a tube full of air may have it."""
    ramp = {"ramp_to_c": 40 + number, "at_c_per_min": 1 + number}
    dwell = {"dwell_min": 1 + number}
    return {"segment": [ramp, *(each for _ in range(4) for each in (dwell, ramp))]}


def upload(state_dir: Path, number: int, answers: list[dict[str, object]]) -> None:
    try:
        with LineControl(state_dir) as owner:
            asked = {"do": "program", "act": "upload", "instrument": "furnace", "by": "Ada"}
            answers.append(owner.ask(**asked, program=warm(number)))
    except NoOwner:
        answers.append({"ok": False})


def heard(served: Served, since: int) -> bytes:
    """All bytes that reached the heaters' controllers from a row of the log on."""
    return b"".join(data for _, _, what, data in served.log("heat", since) if what == "heard")


@contextmanager
def attended(lab: Path, out: Path, state_dir: Path) -> Iterator[None]:
    """A harness that drives the line, in a process of its own; killed at the end of the block."""
    asked = ("set", "furnace.setpoint_rate", "50", "degC/min", "--attend")
    command = [*COMMAND, *asked, "--lab", str(lab), "--out", str(out)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert owner.stdout is not None
        said = owner.stdout.readline()
        assert said.startswith(b"furnace.setpoint_rate confirmed"), said
        with LineControl(state_dir) as door:
            for valve in ("box.argon_valve", "box.vent"):
                door.ask(do="set", channel=valve, value=1, unit="", by="Ada")
        yield
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.communicate()


def press_run(served: Served) -> tuple[int, int, int]:
    """Start what is stored at the instrument itself.

    Returns:
        What ran before, the stored program's first segment, and what runs a moment later.
    """
    client = ModbusSerialClient(served.status["ports"]["heat"], baudrate=19200, timeout=1)
    until(client.connect, "the port, which the guard leaves when the reset has been answered")
    try:

        def word(address: int) -> int:
            found = client.read_holding_registers(address, count=1, device_id=1)
            return int(found.registers[0])

        before, first = word(STATUS), word(SEGMENT_1)
        client.write_register(STATUS, 2, device_id=1)
        time.sleep(0.5)
        return before, first, word(STATUS)
    finally:
        client.close()  # type: ignore[no-untyped-call]  # pymodbus leaves it so


def kills(tmp_path: Path, count: int, seed: int) -> None:
    programmed(tmp_path, quick)
    chance = random.Random(seed)
    with Served(tmp_path / "served", lab=tmp_path / "lab.toml") as served:
        lab = read_lab(served.lab_file)
        for number in range(1, count + 1):
            answers: list[dict[str, object]] = []
            asking = threading.Thread(target=upload, args=(lab.state_dir, number, answers))
            with attended(served.lab_file, tmp_path / f"run{number}", lab.state_dir):
                reset = ("program", "reset", "furnace", "--name", "Ada", "--lab", served.lab_file)
                assert say(*reset).out == "furnace: reset confirmed\n"
                since = served.ask("bytes", since=0)["count"]
                asking.start()
                frames = chance.randint(1, 8)  # of twelve
                until(lambda: heard(served, since).count(STORES) >= frames, "upload")  # noqa: B023 - it is asked at once
            asking.join()
            assert answers == [{"ok": False}], "it was killed before its upload ended"
            until(lambda: RESETS in heard(served, since), "the reset of the program")  # noqa: B023 - as above
            unlatch = ("reset", "--name", "Ada", "--reason", "test", "--lab", served.lab_file)
            until(lambda: spawn(*unlatch).code == 0, "the latch")  # noqa: B023 - as above
            assert heard(served, since).rpartition(STORES)[2].count(RESETS) >= 1, "reset comes last"
        assert press_run(served) == (1, END, 1)


@pytest.mark.promise(1)
def test_a_harness_killed_in_an_upload_leaves_no_program_that_runs(tmp_path: Path) -> None:
    kills(tmp_path, 1, 1)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_harnesses_killed_in_an_upload_one_after_the_other_leave_none(tmp_path: Path) -> None:
    kills(tmp_path, 10, 2)
