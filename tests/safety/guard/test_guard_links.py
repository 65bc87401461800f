"""Links of the guard process that are lost: they are opened again, and hold up no other."""

import asyncio
import contextlib
import os
import selectors
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from guard_rig import BOUND_S, ON, READ, SAFE, SHUT, Away, Caller, GuardBench, until
from labharness.core.clock import PacedLoop, run
from labharness.instruments.link import LinkLost
from labharness.instruments.link.descriptors import TcpDescriptor, open_port
from labharness.instruments.link.tcp import TcpLink
from labharness.safety.guard import GuardCore, SafeFrame
from labharness.safety.guard.armed import ARMED_FILE, ArmedPort
from labharness.safety.guard.ports import Ports

FAR = ("far", "farther", "farthest")


class Host:
    """An instrument on TCP, which may leave the network: then whoever calls gets no answer."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self.listener = stack.enter_context(socket.socket())
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(1)
        self._waiting: list[socket.socket] = []

    def port(self, name: str) -> ArmedPort:
        host, number = self.listener.getsockname()
        return ArmedPort(name=name, link="tcp", host=host, tcp_port=number, reads=(READ,))

    def leave(self, made: socket.socket) -> None:
        for _ in range(4):  # more than it lets wait
            each = self._stack.enter_context(socket.socket())
            each.setblocking(False)
            each.connect_ex(self.listener.getsockname())
            self._waiting.append(each)
        made.close()

    def come_back(self) -> socket.socket:
        for each in self._waiting:
            each.close()
        while True:
            made = self._stack.enter_context(self.listener.accept()[0])
            made.settimeout(5.0)
            with contextlib.suppress(ConnectionError):
                if made.recv(1):
                    return made


@pytest.mark.promise(13)
def test_links_that_are_gone_hold_up_no_frame_of_the_others_and_are_opened_again(
    rig: GuardBench,
) -> None:
    with contextlib.ExitStack() as stack:
        hosts = [Host(stack) for _ in FAR]
        frames = tuple(
            SafeFrame(4 + n, name, SHUT[0], f"{name}.valve", 0.0) for n, name in enumerate(FAR)
        )
        ports = (*rig.armed.ports, *(h.port(n) for h, n in zip(hosts, FAR, strict=True)))
        armed = replace(rig.armed, ports=ports, procedures={"stop": (*SAFE, *frames), "vent": ()})
        (rig.state_dir / ARMED_FILE).write_text(armed.text(), encoding="utf-8")
        rig.start()
        caller = rig.call()
        caller.say(do="arm", lost="stop")
        assert caller.hear("armed")["error"] == ""
        for host in hosts:
            host.leave(stack.enter_context(host.listener.accept()[0]))
        for name in FAR:
            assert "closed" in caller.send(None, READ, name)["error"]  # and it is wanted now
        rig.devices.forget()
        began_s = time.monotonic()
        trip = {"cause": "gas_leak_detected", "procedure": "stop", "channel": "h2", "value": 9.0}
        caller.say(do="trip", trip={**trip, "at_s": 1.0, "detail": "leak"})
        for _ in range(5):
            caller.say(do="repeat", frames=[["stop", n] for n in range(4, 7)])
            caller.heartbeat()
        until(rig.made_safe, "the procedure on the ports that answer")
        assert rig.safe_at_s() - began_s < 0.9, "a link that is gone takes 1 s to open"
        caller.socket.close()  # it repeats by itself now
        assert hosts[0].come_back() is not None


class Gateway:
    """An instrument on TCP that answers each line, and hangs up when it is told to."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.made: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                made, _ = self.listener.accept()
            except OSError:
                return
            self.made.append(made)
            threading.Thread(target=self._answer, args=(made,), daemon=True).start()

    def _answer(self, made: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := made.recv(100):
                made.sendall(b"ok " + data)

    def hang_up(self) -> None:
        self.made[-1].shutdown(socket.SHUT_RDWR)
        self.made[-1].close()

    def port(self) -> ArmedPort:
        host, number = self.listener.getsockname()
        return ArmedPort(
            name="gas", link="tcp", host=host, tcp_port=number, exchange_s_max=0.5, reads=(READ,)
        )


@contextlib.contextmanager
def behind_gateway(rig: GuardBench) -> Iterator[tuple[Gateway, Caller]]:
    """A guard with its gas port behind a gateway, and a harness that has read there."""
    with contextlib.ExitStack() as stack:
        gateway = Gateway(stack)
        armed = replace(rig.armed, ports=(rig.armed.ports[0], gateway.port()))
        (rig.state_dir / ARMED_FILE).write_text(armed.text(), encoding="utf-8")
        rig.start()
        caller = rig.call()
        assert caller.send(None, READ, "gas")["error"] == ""
        yield gateway, caller


def test_a_link_that_was_closed_between_two_runs_is_open_for_the_next(rig: GuardBench) -> None:
    with behind_gateway(rig) as (gateway, caller):
        caller.leave()
        gateway.hang_up()
        time.sleep(0.2)
        later = rig.call()
        free = later.welcome["free"]
        while "gas" not in free:  # a harness asks for no port that is being opened
            free = later.hear("free")["free"]
        assert later.send(None, READ, "gas")["error"] == ""
        later.leave()


def test_a_link_that_closes_while_it_is_read_is_opened_again_once_a_second(rig: GuardBench) -> None:
    with behind_gateway(rig) as (gateway, caller):
        for _ in range(2):
            gateway.hang_up()
            until(lambda: caller.send(None, READ, "gas")["error"] != "", "the end of the link")
            until(lambda: caller.send(None, READ, "gas")["error"] == "", "the link again")
        before = len(gateway.made)
        gateway.hang_up()
        end_s = time.monotonic() + 0.6
        while time.monotonic() < end_s:
            caller.send(None, READ, "gas")
            time.sleep(0.01)
        assert len(gateway.made) <= before + 1
        caller.leave()


@pytest.mark.promise(5)
def test_what_was_permitted_before_a_link_was_lost_is_void_on_the_next(rig: GuardBench) -> None:
    with behind_gateway(rig) as (gateway, caller):
        caller.arm()
        stale = caller.permit(ON, "gas")
        gateway.hang_up()
        lost = caller.hear("lost")
        assert lost["port"] == "gas"
        assert "closed by the other side" in lost["why"]
        caller.heartbeat()
        until(lambda: caller.send(None, READ, "gas")["error"] == "", "the link again")
        caller.heartbeat()
        assert "is of epoch" in caller.send(stale, ON, "gas")["error"]
        assert caller.send(caller.permit(ON, "gas"), ON, "gas")["error"] == ""
        caller.leave()


@pytest.mark.parametrize("call", ["tcflush", "tcsetattr", "tcgetattr"])
def test_an_adapter_that_goes_while_it_is_opened_is_a_link_that_is_lost(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*asked: object) -> None:
        raise termios.error(5, "Input/output error")

    master, slave = os.openpty()
    monkeypatch.setattr(termios, call, gone)
    with pytest.raises(LinkLost, match="does not open"):
        open_port(os.ttyname(slave), 9600, "N", 1)
    os.close(master)
    os.close(slave)


def test_nothing_that_opening_a_link_does_ends_the_guard() -> None:
    class Broken(Away):
        def open(self, within_s: float) -> None:
            raise ZeroDivisionError("a driver of the system's")

    core = GuardCore({"gas": (READ.frame,)}, {})
    ports = Ports(core, {"gas": Broken()}, selectors.DefaultSelector(), time.monotonic)
    told: list[str] = []
    ports.tell = lambda what, **said: told.append(said.get("error", what))
    ports.send("gas", READ, None, 1)
    while "free" not in told:
        ports.reopen()
    assert told == ["the link is away", "free"]


def test_a_harness_is_told_of_a_quiet_that_ends_with_late_bytes() -> None:
    class Pair:
        name = "pair"

        def __init__(self) -> None:
            self.near, self.far = socket.socketpair()

        def open(self, within_s: float) -> None:
            """It is open."""

        def fileno(self) -> int:
            return self.near.fileno()

        def read(self) -> bytes:
            return self.near.recv(100)

        def write(self, data: bytes) -> None:
            """Nobody answers in time."""

        def close(self) -> None:
            self.near.close()
            self.far.close()

    now_s = 0.0
    told: list[str] = []
    pair = Pair()
    selector = selectors.DefaultSelector()
    ports = Ports(GuardCore({"gas": (READ.frame,)}, {}), {"gas": pair}, selector, lambda: now_s)
    ports.tell = lambda what, **said: told.append(said.get("error", what))
    ports.watch()
    ports.send("gas", READ, None, 1)
    now_s = READ.timeout_s
    ports.expire(now_s)
    now_s = 2 * READ.timeout_s + 0.05
    pair.far.send(b"late\r")  # read in the turn in which the quiet has just ended
    for key, _ in selector.select(0):
        key.data()
    ports.expire(now_s)
    free_and_no_more = ["free", "free"]  # the late bytes begin a quiet of their own
    assert told == [f"no reply within {READ.timeout_s:g} s", *free_and_no_more]
    ports.close()


def test_bytes_that_a_host_does_not_confirm_end_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is None:
        pytest.skip("this system has no such bound")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        descriptor = TcpDescriptor(*listener.getsockname())
        descriptor.open(BOUND_S)
        with socket.socket(fileno=os.dup(descriptor.fileno())) as made:
            assert made.getsockopt(socket.IPPROTO_TCP, option) == 2000
        descriptor.close()

        async def main() -> None:
            link = TcpLink(*listener.getsockname())
            await link.open()
            assert link.transport is not None
            made = link.transport.get_extra_info("socket")
            assert made.getsockopt(socket.IPPROTO_TCP, option) == 2000
            link.close()

        run(main(), PacedLoop(1.0))

        def refuse(made: socket.socket, *option: object) -> None:
            raise OSError(22, "Invalid argument")  # as it is where the far end has just gone

        monkeypatch.setattr(socket.socket, "setsockopt", refuse)
        with pytest.raises(LinkLost, match="Invalid argument"):
            descriptor.open(BOUND_S)


OUTAGE = r"""
import fcntl, selectors, socket, struct, threading, time
from labharness.safety.guard.core import GuardCore, SafeFrame
from labharness.safety.guard.ports import Ports
from labharness.instruments.link.descriptors import TcpDescriptor
from labharness.core.vocabulary import Request, Until

def cable(up):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        row = fcntl.ioctl(made, 0x8913, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", row)[1]
        flags = flags | 1 if up else flags & ~1
        fcntl.ioctl(made, 0x8914, struct.pack("16sh14x", b"lo", flags))

heard = []

def serve(server):
    while True:
        made, _ = server.accept()
        threading.Thread(target=answer, args=(made,), daemon=True).start()

def answer(made):
    while data := made.recv(4096):
        heard.append(data)
        made.sendall(b"ok\r")

def spin(seconds, done=lambda: False):
    end = time.monotonic() + seconds
    again = 0.0
    while time.monotonic() < end and not done():
        for key, _ in selector.select(0.01):
            key.data()
        ports.expire(time.monotonic())
        if ports.duty.left(reading=False) and not ports.busy and time.monotonic() > again:
            again = time.monotonic() + 1.0
            ports.insist(reading=False)
        if ports.may_reopen:
            ports.reopen()

cable(True)
server = socket.create_server(("127.0.0.1", 5020))
threading.Thread(target=serve, args=(server,), daemon=True).start()
descriptor = TcpDescriptor("127.0.0.1", 5020)
descriptor.open(1.0)
safe = SafeFrame(0, "gas", Request(b"off\r", Until(b"\r"), 0.3), "hydrogen.setpoint", 0.0)
core = GuardCore({"gas": ()}, {"stop": (safe,)})
core.arm()
selector = selectors.DefaultSelector()
ports = Ports(core, {"gas": descriptor}, selector, time.monotonic)
ports.on_safe = ports.on_lost = ports.tell = lambda *told, **said: None
ports.watch()
cable(False)
on = Request(b"on\r", Until(b"\r"), 0.3)
ports.send("gas", on, core.permit("gas", on.frame, time.monotonic()), 1)
spin(0.5)
ports.trip("stop")
spin(9.0)
cable(True)
since = time.monotonic()
spin(30.0, lambda: b"off\r" in b"".join(heard))
print(round(time.monotonic() - since, 2), b"".join(heard).replace(b"\r", b" ").decode())
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
def test_after_an_outage_no_safe_frame_waits_behind_a_stale_one() -> None:
    apart = ["unshare", "-rn"]
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network of our own here")
    done = subprocess.run(
        [*apart, sys.executable, "-c", OUTAGE], check=True, capture_output=True, timeout=60
    )
    took_s, heard = done.stdout.decode().split(" ", 1)
    assert "on" not in heard.split(), "a frame of another time was delivered"
    assert float(took_s) < 3.0


class NameServer:
    """A name server that answers when it is let, and counts who asks it."""

    def __init__(self, listener: socket.socket) -> None:
        self._there = listener.getsockname()
        self._look_up = socket.getaddrinfo
        self.asked = 0
        self.answers = threading.Event()

    def getaddrinfo(self, host: str, *rest: Any, **kind: Any) -> list[Any]:
        if host == "midas.lab":
            self.asked += 1
            assert self.answers.wait(BOUND_S)
            host = self._there[0]
            rest = (self._there[1],)
        return list(self._look_up(host, *rest, **kind))


def test_a_name_server_that_takes_its_time_holds_no_guard_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        names = NameServer(listener)
        monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
        descriptor = TcpDescriptor("midas.lab", 502)
        for _ in range(3):
            since_s = time.monotonic()
            with pytest.raises(LinkLost, match=r"midas.lab:502 .* name is not found within 0.1 s"):
                descriptor.open(0.1)
            assert time.monotonic() - since_s < 1.0
        assert names.asked == 1, "a question that is not answered yet is not asked again"
        names.answers.set()
        for _ in range(2):
            descriptor.open(BOUND_S)
            assert descriptor.fileno() >= 0
            descriptor.close()
        assert names.asked == 1, "what was found stays good while the instrument is away"


# ---- a socket that has met itself


def met_itself() -> socket.socket:
    """Connect a socket to its own port, as happens by chance where nobody listens there."""
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.connect(made.getsockname())
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="not every system lets a socket do this")
def test_a_connection_to_itself_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    met = met_itself()
    monkeypatch.setattr(socket, "create_connection", lambda address, timeout: met)
    descriptor = TcpDescriptor("127.0.0.1", met.getsockname()[1])
    with pytest.raises(LinkLost, match=r"does not open: .*itself"):
        descriptor.open(1.0)
    assert descriptor.fileno() == met.fileno() == -1, "it would answer each write with its echo"


@pytest.mark.skipif(sys.platform != "linux", reason="not every system lets a socket do this")
def test_a_connection_to_itself_is_no_link_on_the_loop_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met = met_itself()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        connect = loop.create_connection
        monkeypatch.setattr(
            loop, "create_connection", lambda protocol, *address: connect(protocol, sock=met)
        )
        link = TcpLink("127.0.0.1", met.getsockname()[1])
        with pytest.raises(LinkLost, match=r"does not open: .*itself"):
            await link.open()
        with pytest.raises(LinkLost, match="is closed"):
            link.write(b"?")
        await asyncio.sleep(0)

    run(main(), PacedLoop(1.0))
    assert met.fileno() == -1
