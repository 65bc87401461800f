"""Roads of the guard process that are lost: they are opened again, and hold up no other."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guard_rig import BOUND_S, READ, SAFE, SHUT, GuardBench, bench, until
from labharness.guard import SafeFrame
from labharness.guard.armed import ARMED_FILE, ArmedPort
from labharness.link import LinkLost
from labharness.link.descriptors import TcpRoad

FAR = ("far", "farther", "farthest")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[GuardBench]:
    with bench(tmp_path) as made:
        yield made


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


def test_roads_that_are_gone_hold_up_no_frame_of_the_others_and_are_opened_again(
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
        for host in hosts:
            host.leave(stack.enter_context(host.listener.accept()[0]))
        caller.say(do="arm", lost="stop")
        assert caller.hear("armed")["error"] == ""
        rig.devices.forget()
        began_s = time.monotonic()
        trip = {"cause": "gas_leak_detected", "procedure": "stop", "channel": "h2", "value": 9.0}
        caller.say(do="trip", trip={**trip, "at_s": 1.0, "detail": "leak"})
        for _ in range(5):
            caller.say(do="repeat", frames=[["stop", n] for n in range(4, 7)])
            caller.beat()
        until(rig.made_safe, "the procedure on the ports that answer")
        assert rig.safe_at_s() - began_s < 0.5
        caller.socket.close()  # it repeats by itself now
        assert hosts[0].come_back() is not None


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
        road = TcpRoad("midas.lab", 502)
        for _ in range(3):
            since_s = time.monotonic()
            with pytest.raises(LinkLost, match=r"midas.lab:502 .* name is not found within 0.1 s"):
                road.open(0.1)
            assert time.monotonic() - since_s < 1.0
        assert names.asked == 1, "a question that is not answered yet is not asked again"
        names.answers.set()
        for _ in range(2):
            road.open(BOUND_S)
            assert road.fileno() >= 0
            road.close()
        assert names.asked == 1, "what was found stays good while the instrument is away"
