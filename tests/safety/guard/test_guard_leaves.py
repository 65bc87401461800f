"""A guard that is about to end: it is armed no more, and what is armed it makes safe first."""

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from guard_rig import BAUD, BOUND_S, READ, SAFE_FRAMES, GuardBench, bench, until
from labharness.core.clock import steady_s
from labharness.instruments.link import local
from labharness.instruments.link.descriptors import SerialDescriptor
from labharness.safety.guard.armed import ARMED_FILE
from labharness.safety.guard.process import ProcessGuard

LONG = replace(READ, timeout_s=4.0)  # a read that keeps a guard from ending at once
ANSWER = b"ok read\r"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[GuardBench]:
    with bench(tmp_path) as made:
        ports = tuple(replace(each, reads=(LONG,), exchange_s_max=5.0) for each in made.armed.ports)
        made.armed = replace(made.armed, ports=ports)
        (made.state_dir / ARMED_FILE).write_text(made.armed.text(), encoding="utf-8")
        made.devices.of["gas"].mute = True
        yield made


@pytest.mark.promise(3)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_guard_that_is_told_to_stop_is_not_armed_any_more(
    rig: GuardBench, number: signal.Signals
) -> None:
    guard = rig.start()
    caller = rig.call()
    caller.say(do="send", port="gas", number=3, permit=None, frame=READ.frame.hex())
    until(lambda: rig.frames("gas") == [READ.frame], "the read that is waited for")
    guard.send_signal(number)
    time.sleep(0.2)  # it is woken by it
    caller.say(do="arm", lost="stop")
    told = caller.hear("armed")
    assert (told["armed"], told["error"]) == (False, "the guard is leaving")
    assert "not armed" in caller.send(caller.permit())["error"]
    os.write(rig.devices.of["gas"].master, ANSWER)
    assert guard.wait(BOUND_S) == 0
    assert rig.frames("heat") == []
    assert not (rig.state_dir / "guard.armed").exists()


def test_no_key_of_its_terminal_makes_a_guard_stand_still(rig: GuardBench) -> None:
    guard = rig.start()
    rig.call().leave()
    status = Path(f"/proc/{guard.pid}/status").read_text("utf-8")
    ignored = int(re.findall(r"SigIgn:\s*(\w+)", status)[0], 16)
    stops = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
    assert [each for each in stops if not ignored >> (each - 1) & 1] == []


def test_a_guard_that_makes_place_for_another_lets_nobody_in(rig: GuardBench) -> None:
    guard = rig.start()
    caller = rig.call()
    caller.say(do="send", port="gas", number=3, permit=None, frame=READ.frame.hex())
    until(lambda: rig.frames("gas") == [READ.frame], "the read that is waited for")
    caller.say(do="bye", retire=True)
    assert caller.socket.recv(1) == b"", "it is heard"
    with socket.socket(socket.AF_UNIX) as other:
        other.settimeout(BOUND_S)
        other.connect(str(rig.state_dir / local.GUARD))
        assert other.recv(1) == b"", "it comes again, and finds the next guard"
    os.write(rig.devices.of["gas"].master, ANSWER)
    assert guard.wait(BOUND_S) == 0


@pytest.mark.promise(3)
def test_a_guard_that_ends_with_its_line_armed_makes_it_safe(
    rig: GuardBench, tmp_path: Path
) -> None:
    """Nothing that a harness may ask leads there; it is armed here by hand."""
    rig.devices.of["gas"].mute = False
    names = ("TERM", "INT", "HUP", "QUIT", "TSTP", "TTIN", "TTOU")
    numbers = [signal.Signals[f"SIG{name}"] for name in names]
    handlers = {each: signal.getsignal(each) for each in numbers}
    links = {
        name: SerialDescriptor(each.path, BAUD, "N", 1) for name, each in rig.devices.of.items()
    }
    for link in links.values():
        link.open(1.0)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "door"))
    listener.listen()
    guard = ProcessGuard(
        armed=rig.armed,
        digest="",
        links=links,
        state_dir=rig.state_dir,
        listener=listener,
        steady_s=steady_s,
        entropy=bytes,
        once=True,
    )
    guard._served = True  # and so it ends at once
    guard.core.arm()
    try:
        guard.run()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    until(lambda: {port: rig.frames(port) for port in links} == SAFE_FRAMES, "the procedure")
    assert (rig.state_dir / "latch.json").exists()
