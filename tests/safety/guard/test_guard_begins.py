"""How a guard begins: the process that is started, its links, its socket, its rank."""

import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guard_stubs import ARMED, Descriptor
from labharness.safety.guard import process, remote_parts
from labharness.safety.guard.armed import ArmedPort
from labharness.safety.guard.process import CannotGuard
from labharness.safety.guard.remote_parts import Child
from platforms import unix

pytestmark = unix

BOUND_S = 5.0


# ---- the process


def shell(text: str, log: Path) -> Child:
    return Child(("/bin/sh", "-c", text), log)


def wait_for(child: Child) -> None:
    until_s = time.monotonic() + BOUND_S
    while child.running():
        assert time.monotonic() < until_s
        time.sleep(0.005)


def test_a_process_is_started_in_a_session_of_its_own_and_its_last_word_is_kept(
    tmp_path: Path,
) -> None:
    log = tmp_path / "guard.log"
    log.write_text("of an earlier run\n", encoding="utf-8")
    child = shell("echo one; echo two $(cut -d' ' -f6 /proc/$$/stat) $$ >&2", log)
    assert (child.running(), child.complaint()) == (False, "")
    child.end()
    child.start()
    wait_for(child)
    assert child.pid is None
    word, sid, pid = child.complaint().split()
    assert (word, sid) == ("two", pid)
    assert "earlier" not in log.read_text("utf-8")
    log.unlink()
    before = len(os.listdir("/proc/self/fd"))
    child.start()
    assert len(os.listdir("/proc/self/fd")) == before
    wait_for(child)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_process_that_says_nothing_or_too_much(tmp_path: Path) -> None:
    quiet = shell("exit 3", tmp_path / "quiet.log")
    quiet.start()
    wait_for(quiet)
    assert quiet.complaint() == ""
    (tmp_path / "quiet.log").unlink()
    assert quiet.complaint() == ""
    loud = shell("printf %05000d 7", tmp_path / "loud.log")
    loud.start()
    wait_for(loud)
    assert len(loud.complaint()) == 2000
    pipe = tmp_path / "pipe.log"
    os.mkfifo(pipe)
    mute = shell("echo lost", pipe)
    mute.start()
    wait_for(mute)
    assert mute.complaint() == ""


def test_a_process_that_has_work_left_is_waited_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    naps: list[float] = []

    def pause(seconds: float) -> None:
        naps.append(seconds)
        now[0] += 0.5

    monkeypatch.setattr(remote_parts, "steady_s", lambda: now[0])
    monkeypatch.setattr(remote_parts, "pause", pause)
    child = shell("exec sleep 60", tmp_path / "guard.log")
    child.start()
    pid = child.pid
    assert pid is not None
    child.leave(2.0)
    assert naps == [0.005] * 4
    assert child.running()
    child.end()
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert not child.running(), "somebody else buried it"
    child.leave(2.0)
    assert len(naps) == 4


# ---- starting


PORTS = ARMED.ports


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Descriptor]]:
    """Return what stands for a serial or a TCP link, by its address."""
    made: dict[str, Descriptor] = {}

    def link(*address: object) -> Descriptor:
        name = " ".join(map(str, address))
        made[name] = made.get(name) or Descriptor(name)
        made[name].refuses = "unplugged" if "refuses" in name else ""
        return made[name]

    monkeypatch.setattr(process, "SerialDescriptor", link)
    monkeypatch.setattr(process, "TcpDescriptor", link)
    yield made
    for each in made.values():
        each.end()


def test_each_link_is_opened_as_it_was_armed(links: dict[str, Descriptor]) -> None:
    far = ArmedPort(name="far", link="tcp", host="10.0.0.7", tcp_port=502)
    odd = replace(PORTS[0], parity="E", stop_bits=2)
    opened = process._open_links((odd, far), owed=False)
    assert opened["heat"] is links["/dev/no-such-heat 9600 E 2"]
    assert opened["far"] is links["10.0.0.7 502"]
    assert [each.within_s for each in links.values() if each.within_s] == [[3.0], [3.0]]
    process._open_links((odd, far), owed=True)
    assert [each.within_s for each in links.values() if each.within_s] == [[3.0, 0.2]] * 2


@pytest.mark.parametrize("owed", [False, True])
def test_a_guard_begins_with_whatever_opens_and_with_nothing_where_it_owes(
    links: dict[str, Descriptor], *, owed: bool
) -> None:
    dead = tuple(replace(port, path=f"/dev/refuses-{port.name}") for port in PORTS)
    opened = process._open_links((dead[0], PORTS[1]), owed=owed)
    assert [link.fileno() >= 0 for link in opened.values()] == [False, True]
    if owed:
        assert len(process._open_links(dead, owed=owed)) == 2
    else:
        with pytest.raises(CannotGuard, match=r"^port heat: unplugged; port gas: unplugged$"):
            process._open_links(dead, owed=owed)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_driver_of_the_systems_that_raises_what_it_likes_ends_no_guard(
    links: dict[str, Descriptor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(link: Descriptor, within_s: float) -> None:
        raise ArithmeticError

    monkeypatch.setattr(Descriptor, "open", breaks)
    with pytest.raises(
        CannotGuard, match=r"^port heat: it does not open; port gas: it does not open$"
    ):
        process._open_links(PORTS, owed=False)


def test_a_guards_socket_is_its_own_and_takes_the_place_of_one_that_died(tmp_path: Path) -> None:
    path = tmp_path / "guard.sock"
    path.touch()
    mask = os.umask(0o022)
    try:
        with process._listen(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
            for each in waiting:
                each.setblocking(False)
                each.connect(str(path))
                each.close()
        assert os.umask(0o022) == 0o022, "the mask is as it was"
    finally:
        os.umask(mask)
    path.unlink()
    path.mkdir()
    with pytest.raises(CannotGuard, match=r"^its socket \S+ cannot be made: Is a directory$"):
        process._listen(path)


@pytest.mark.parametrize("length", [100, 101])
def test_a_path_that_no_socket_takes_is_refused_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, length: int
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("x" * length)
    if length == 100:
        process._listen(path).close()
        assert path.exists()
        return
    with pytest.raises(CannotGuard, match="name a shorter state_dir"):
        process._listen(path)


def test_who_has_a_port_is_told_as_far_as_it_is_known() -> None:
    assert str(process._in_use("heat", {"pid": 7, "state_dir": "/srv/a"})) == (
        "port heat is in use on this machine: process 7, lab with its state in /srv/a"
    )
    unknown = str(process._in_use("heat", {}))
    assert "process of another account, lab with its state in unknown" in unknown


def test_the_guard_asks_for_the_lowest_place_before_all_ordinary_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int, int]] = []

    def ask(pid: int, policy: int, param: Any) -> None:
        asked.append((pid, policy, param.sched_priority))
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", ask)
    process._go_first()
    assert asked == [(0, os.SCHED_FIFO, 1)] * (sys.platform == "linux")
