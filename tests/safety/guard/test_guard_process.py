"""The guard as a real process, its devices on pseudo-terminals: what it refuses, and what it does.

Timed promises are in ``test_guard_kills.py``.
"""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guard_rig import BOUND_S, READ, SAFE_FRAMES, GuardBench, until
from labharness.core.clock import steady_s
from labharness.instruments.link import LinkLost, local
from labharness.instruments.link.descriptors import open_port
from labharness.safety.guard.armed import ARMED_FILE, ArmedPort

FORBIDDEN = ("asyncio", "numpy", "pydantic", "sqlite3", "msgspec", "simpy", "pymodbus")
OURS = {
    "core.clock",
    "core.errors",
    "core.files",
    "core.on_demand",
    "core.operations",
    "core.texts",
    "core.vocabulary",
    "faces.cli",
    "instruments.link",
    "lab.config",  # the address of a lab alone
    "safety.guard",
}


# ---- what it is


def imported(said: bytes) -> set[str]:
    lines = [line for line in said.decode().splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines[1:]}


def test_the_guard_process_imports_nothing_but_the_standard_library_and_pyserial(
    rig: GuardBench,
) -> None:
    guard = rig.start(PYTHONPROFILEIMPORTTIME="1")
    caller = rig.armed_by()
    caller.socket.close()
    until(rig.made_safe, "all that it ever does")
    guard.send_signal(signal.SIGTERM)
    _, said = guard.communicate(timeout=BOUND_S)
    bare = [sys.executable, "-X", "importtime", "-c", "pass"]
    usual = subprocess.run(bare, capture_output=True, check=True).stderr
    loaded = imported(said) - imported(usual)
    assert {name for name in loaded if name.split(".")[0] in FORBIDDEN} == set()
    known = {*sys.stdlib_module_names, "labharness", "serial", "_distutils_hack"}
    known |= {"org"}  # the standard library's copy asks for Jython's and goes on without
    assert {name for name in loaded if name.split(".")[0] not in known} == set()
    rooms = {
        ".".join(name.split(".")[1:3])
        for name in loaded
        if name.count(".") > 1 and name.startswith("labharness.")
    }
    assert rooms == OURS
    of_config = {name for name in loaded if name.startswith("labharness.lab.config.")}
    assert of_config == {"labharness.lab.config.address"}


def test_its_socket_is_for_its_user_alone_and_for_one_harness(rig: GuardBench) -> None:
    rig.start()
    first = rig.call()
    assert stat.S_IMODE((rig.state_dir / local.GUARD).stat().st_mode) == 0o600
    second = rig.call()
    assert second.welcome["say"] == "busy"
    assert second.socket.recv(1) == b""
    first.leave()
    third = rig.call()
    assert third.welcome["say"] == "welcome"
    assert third.key != first.key, "a key is for one connection"
    for each in (second, third):
        each.socket.close()


def test_a_second_guard_of_a_lab_is_refused(rig: GuardBench) -> None:
    rig.start()
    rig.call().leave()
    other = subprocess.run(
        [sys.executable, "-m", "labharness.faces.cli", "guard", str(rig.lab_file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND_S,
    )
    assert other.returncode == 64
    assert "another guard serves this lab already" in other.stderr


@pytest.mark.promise(4)
def test_its_ports_are_its_own(rig: GuardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.start()
    rig.call().leave()
    with pytest.raises(LinkLost, match="does not open"):
        open_port(rig.devices.of["heat"].path, 9600, "N", 1)
    import fcntl
    import termios

    asked: list[int] = []
    ioctl = fcntl.ioctl

    def record(descriptor: int, request: int, *rest: Any) -> Any:
        asked.append(request)
        return ioctl(descriptor, request, *rest)

    rig.kill()
    monkeypatch.setattr(fcntl, "ioctl", record)
    open_port(rig.devices.of["heat"].path, 9600, "N", 1).close()
    assert termios.TIOCEXCL in asked, "flock alone lets in who does not ask"


def point(path: Path, elsewhere: str) -> None:
    path.unlink()
    path.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda rig: (rig.state_dir / ARMED_FILE).unlink(), "arm the lab first"),
        (lambda rig: (rig.state_dir / ARMED_FILE).write_text("{}"), "has no 'format'"),
        (lambda rig: (rig.state_dir / ARMED_FILE).write_bytes(b"\xff{}"), "is not text in UTF-8"),
        (lambda rig: rig.lab_file.write_bytes(b"\xff"), "is not UTF-8 text"),
        (lambda rig: point(rig.state_dir / ARMED_FILE, "/dev/zero"), "a pipe or a device"),
        (lambda rig: point(rig.lab_file, "/dev/zero"), "a pipe or a device"),
        (lambda rig: rig.lab_file.write_text("[lab]\n"), "lab.id: it is missing"),
        (lambda rig: rig.lab_file.unlink(), "No such file"),
        (
            lambda rig: (rig.state_dir / ARMED_FILE).write_text(
                re.sub(r"/dev/pts/\d+", "/dev/no-such-port", rig.armed.text())
            ),
            "port heat: serial /dev/no-such-port does not open",
        ),
        (lambda rig: (rig.state_dir / local.GUARD).mkdir(), "guard.sock cannot be made"),
    ],
    ids=[
        "no arming",
        "bad arming",
        "arming that is no text",
        "lab file that is no text",
        "arming without an end",
        "lab file without an end",
        "bad lab file",
        "no lab file",
        "no port at all",
        "no place for its socket",
    ],
)
def test_what_keeps_it_from_beginning_is_said_in_one_line(
    rig: GuardBench, spoil: Any, says: str
) -> None:
    spoil(rig)
    guard = rig.start()
    _, error = guard.communicate(timeout=BOUND_S)
    assert guard.returncode == 64
    assert says in error.decode()
    assert error.decode().count("\n") == 1
    assert not (rig.state_dir / local.GUARD).is_socket()


def test_systemd_is_told_that_it_is_ready_and_that_its_loop_lives(
    rig: GuardBench, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(BOUND_S)
        guard = rig.start(NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="100000")
        said = [systemd.recv(64) for _ in range(4)]
        assert said == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1", b"WATCHDOG=1"]
        guard.send_signal(signal.SIGTERM)
        while systemd.recv(64) != b"STOPPING=1":
            pass
        assert guard.wait(BOUND_S) == 0


def test_a_port_that_does_not_open_keeps_no_other_back_and_the_line_from_being_armed(
    rig: GuardBench, tmp_path: Path
) -> None:
    adapter = tmp_path / "adapter"
    text = rig.armed.text().replace(rig.devices.of["gas"].path, str(adapter))
    (rig.state_dir / ARMED_FILE).write_text(text, encoding="utf-8")
    rig.start()
    caller = rig.call()
    shut = caller.welcome["shut"]
    while shut == {"gas": ""}:  # it is tried again for whoever comes
        shut = caller.hear()["shut"]
    assert shut == {"gas": f"serial {adapter} does not open: No such file or directory"}
    assert caller.send(None, READ, "heat")["error"] == ""
    caller.say(do="arm", lost="stop")
    assert caller.hear("armed")["error"] == "not all ports are open: gas"
    assert "not armed" in caller.send(caller.permit())["error"]
    caller.say(do="repeat", frames=[["stop", n] for n in range(4)])
    until(lambda: rig.frames("heat")[-2:] == SAFE_FRAMES["heat"], "the port that is there")
    adapter.symlink_to(rig.devices.of["gas"].path)
    caller.leave()
    later = rig.call()
    shut = later.welcome["shut"]
    while shut:
        shut = later.hear()["shut"]
    later.say(do="arm", lost="stop")
    assert later.hear("armed")["error"] == ""


# ---- a harness that is lost


@pytest.mark.parametrize(
    "last",
    [
        b'{"do":"send","port":"heat","number":1,"permit":nu',
        b"no json\n",
        b'{"do":"bye","retire":false}\n',
    ],
    ids=["cut short", "no json", "left armed"],
)
def test_a_harness_that_leaves_an_armed_line_is_made_safe_after(
    rig: GuardBench, last: bytes
) -> None:
    rig.start()
    caller = rig.armed_by()
    rig.devices.forget()
    caller.socket.sendall(last)
    caller.socket.shutdown(socket.SHUT_WR)
    until(rig.made_safe, "the procedure")
    assert rig.frames("heat") == SAFE_FRAMES["heat"]
    until(lambda: (rig.state_dir / "latch.json").exists(), "the latch")
    latch = json.loads((rig.state_dir / "latch.json").read_text("utf-8"))
    assert (latch["cause"], latch["channel"]) == ("communication", "harness")
    caller.socket.close()
    later = rig.call()
    assert later.welcome["latched"] is True
    assert later.welcome["armed"] is False
    assert "tripped by itself" in [each["what"] for each in later.welcome["log"]]
    later.arm()
    assert "latched" in later.send(later.permit())["error"]
    later.say(do="imported")
    later.leave(reset=True)
    again = rig.call()
    assert "tripped by itself" not in [each["what"] for each in again.welcome["log"]]
    assert again.welcome["trip"] is None
    again.arm()
    assert again.send(again.permit())["error"] == "", "after a reset it is armed like any other"
    again.socket.close()


@pytest.mark.promise(20)
@pytest.mark.parametrize("retire", [False, True], ids=["goes on", "makes place for another"])
def test_what_a_guard_did_alone_stays_until_a_harness_has_it(
    rig: GuardBench, *, retire: bool
) -> None:
    alone = rig.start()
    lost = rig.call()
    lost.arm()
    lost.socket.close()
    until(rig.made_safe, "the procedure")
    looks = rig.call()  # it has no journal, or other files
    looks.say(do="bye", retire=retire)
    looks.socket.close()
    if retire:
        alone.communicate(timeout=BOUND_S)
        rig.start()
    keeps = rig.call()
    assert "tripped by itself" in [each["what"] for each in keeps.welcome["log"]]
    keeps.say(do="imported")
    keeps.leave()
    assert rig.call().welcome["log"] == []


@pytest.mark.promise(1)
def test_the_end_of_a_socket_is_heeded_before_any_silence(rig: GuardBench) -> None:
    patient = replace(rig.armed, silence_s_max=5.0)
    (rig.state_dir / ARMED_FILE).write_text(patient.text(), encoding="utf-8")
    rig.start()
    caller = rig.armed_by()
    rig.devices.forget()
    caller.socket.close()
    until(rig.made_safe, "the procedure", within_s=3.0)


@pytest.mark.promise(2)
def test_heartbeats_that_waited_in_the_socket_prove_nothing(rig: GuardBench) -> None:
    rig.start()
    caller = rig.armed_by()
    rig.devices.forget()
    born_s = steady_s()
    while steady_s() < born_s + 1.0 and not rig.made_safe():
        caller.say(do="heartbeat", made_s=born_s, lost="stop")
        time.sleep(0.05)
    assert rig.made_safe(), "old heartbeats kept a harness alive"
    caller.socket.close()


def test_a_guard_sleeps_when_nothing_is_due(rig: GuardBench) -> None:
    guard = rig.start()
    caller = rig.armed_by()
    caller.socket.close()
    until(rig.made_safe, "the procedure")
    later = rig.call()
    later.say(do="reset")
    later.arm()

    def used_s() -> float:
        fields = Path(f"/proc/{guard.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before_s = used_s()
    for _ in range(10):
        later.heartbeat()
        time.sleep(0.1)
    assert used_s() - before_s < 0.25, "it spins"


# ---- a guard that was lost


@pytest.mark.promise(3)
@pytest.mark.parametrize("left", ["armed", "latched", "unreadable", "unreadable mark"])
def test_a_guard_that_comes_back_begins_with_the_safe_table(rig: GuardBench, left: str) -> None:
    rig.start()
    caller = rig.armed_by()
    if left == "latched":
        trip = {"cause": "gas_leak_detected", "procedure": "stop", "channel": "h2", "value": 9.0}
        caller.say(do="trip", trip={**trip, "at_s": 1.0, "detail": "leak"})
        caller.say(do="disarm")
        until(rig.made_safe, "the trip")
    rig.kill()
    caller.socket.close()
    if left == "unreadable":
        (rig.state_dir / "latch.json").write_text("{", encoding="utf-8")
    if left == "unreadable mark":
        (rig.state_dir / "guard.armed").write_bytes(b"\xff\x00")
    rig.devices.forget()
    rig.start()
    back = rig.call()
    assert back.welcome["latched"] is True
    until(rig.made_safe, "the safe table")
    assert rig.frames("heat") == SAFE_FRAMES["heat"], "and nothing before it"
    back.arm()
    assert "latched" in back.send(back.permit())["error"]
    back.say(do="reset")
    error = back.hear("reset")["error"]
    assert ("cannot be read" in error) is (left == "unreadable")
    if left == "unreadable":
        (rig.state_dir / "latch.json").unlink()  # as it says that a person shall
        back.leave(reset=True)
        back = rig.call()
    back.arm()
    assert back.send(back.permit())["error"] == "", "after a reset it is armed like any other"
    back.socket.close()


@pytest.mark.promise(3)
def test_an_address_that_does_not_answer_holds_up_no_safe_table_on_another(
    rig: GuardBench,
) -> None:
    with socket.socket() as listener, contextlib.ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):  # more than it lets wait: whoever comes now gets no answer at all
            each = waiting.enter_context(socket.socket())
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        host, number = listener.getsockname()
        tcp = ArmedPort(name="far", link="tcp", host=host, tcp_port=number, reads=(READ,))
        ports = (tcp, replace(tcp, name="farther"), *rig.armed.ports)
        armed = replace(rig.armed, ports=ports)
        (rig.state_dir / ARMED_FILE).write_text(armed.text(), encoding="utf-8")
        (rig.state_dir / "guard.armed").write_text("stop\n", encoding="utf-8")
        began_s = time.monotonic()
        rig.start()
        until(rig.made_safe, "the safe table")
        assert rig.safe_at_s() - began_s < 3.0


@pytest.mark.promise(12)
def test_a_guard_for_one_run_ends_with_it_when_its_work_is_done(rig: GuardBench) -> None:
    guard = rig.start("--once")
    caller = rig.armed_by()
    rig.devices.forget()
    rig.devices.of["gas"].mute = True
    caller.socket.close()
    until(lambda: len(rig.frames("gas")) == 2, "the first wave")
    time.sleep(0.5)
    assert guard.poll() is None, "it left with frames that nobody answered"
    rig.devices.of["gas"].mute = False
    assert guard.wait(BOUND_S) == 0
    assert rig.made_safe()
    assert not (rig.state_dir / "guard.armed").exists()


@pytest.mark.promise(12)
def test_a_mark_that_does_not_go_neither_holds_up_nor_ends_the_guard(rig: GuardBench) -> None:
    guard = rig.start()
    caller = rig.armed_by()
    trip = {"cause": "gas_leak_detected", "procedure": "stop", "channel": "h2", "value": 9.0}
    caller.say(do="trip", trip={**trip, "at_s": 1.0, "detail": "leak"})
    until(rig.made_safe, "the trip")
    (rig.state_dir / "guard.armed").unlink()
    (rig.state_dir / "guard.armed").mkdir()  # as a disk does that has become read-only since
    rig.devices.forget()
    caller.socket.close()
    until(rig.made_safe, "the procedure of the loss")
    time.sleep(0.3)  # the last answer is heard, and the armed marker is to go
    assert guard.poll() is None, "it died of it"
    rig.call().socket.close()
