"""The guard process turn by turn in the test's own process: clock, links and threads are ours."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from guard_stubs import ARMED, KEY, Descriptor
from labharness.core.vocabulary import Request
from labharness.core.vocabulary.texts import revived
from labharness.safety.guard import Permit, PortState, ports, service
from labharness.safety.guard.armed import Armed
from labharness.safety.guard.messages import LineSplitter, line_of, seal, write_request
from labharness.safety.guard.process import ProcessGuard

START_S = 1000.0
RESET = "labharness reset --lab bench.toml"


def last(heard: list[dict[str, Any]], what: str) -> dict[str, Any]:
    """Return the last message of a kind."""
    return [each for each in heard if each["say"] == what][-1]


def reason(procedure: str = "vent", cause: str = "gas_leak_detected") -> dict[str, Any]:
    """Write a trip as a harness does."""
    return {
        "cause": cause,
        "procedure": procedure,
        "channel": "h2.concentration",
        "value": 1200.0,
        "at_s": 1.0,
        "detail": "leak",
    }


class _AtOnce:
    """A thread that has done its work when it was started."""

    def __init__(self, target: Callable[..., None], args: Any = (), daemon: bool = False) -> None:
        assert daemon, "it must not keep the process alive"
        self._target, self._args = target, args

    def start(self) -> None:
        self._target(*self._args)

    def is_alive(self) -> bool:
        return False

    def join(self, within_s: float | None = None) -> None:
        """It has ended."""


class _Door:
    """The socket at which harnesses come."""

    def __init__(self) -> None:
        self.waiting: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, str]:
        if not self.waiting:
            raise BlockingIOError(11, "nobody is there")
        return self.waiting.pop(0), ""


class Harness:
    """Who comes, says what a test tells it to, and hears without waiting."""

    def __init__(self, turn: "Turn") -> None:
        self._turn = turn
        near, self.socket = socket.socketpair()
        self.socket.setblocking(False)
        self._lines = LineSplitter()
        self._permits = 0
        turn.door.waiting.append(near)
        turn.guard._greet()

    def say(self, **message: object) -> list[dict[str, Any]]:
        """Say something; return what is said in the guard's next turn."""
        self.socket.sendall(line_of(message))
        return self.hears()

    def hears(self) -> list[dict[str, Any]]:
        """Return what the guard has said by the end of its next turn."""
        self._turn.pass_()
        heard: list[dict[str, Any]] = []
        while True:
            try:
                data = self.socket.recv(1 << 20)
            except BlockingIOError:
                return heard
            if not data:
                return [*heard, {"say": "hung up"}]
            heard += [
                json.loads(json.dumps(each), object_hook=revived) for each in self._lines.feed(data)
            ]

    def arm(self) -> None:
        assert last(self.say(do="arm", lost="stop"), "armed")["error"] == ""

    def ask(self, request: Request, port: str = "heat", **more: Any) -> list[dict[str, Any]]:
        """Ask for a read."""
        frame = request.frame.hex()
        message = {"do": "send", "port": port, "number": 7, "permit": None, "frame": frame}
        return self.say(**{**message, **more})

    def permitted(self, request: Request, port: str = "heat", **changes: Any) -> dict[str, Any]:
        """Return the message that asks for a frame with a permit."""
        self._permits += 1
        epoch, expires_s = self._turn.guard.core.epoch, self._turn.now + 1.9
        permit = Permit(self._permits, port, request.frame, epoch, round(expires_s, 6))
        permit = replace(permit, **changes)
        sealed = {
            "number": permit.number,
            "epoch": permit.epoch,
            "expires_us": round(permit.expires_s * 1e6),
            "seal": seal(KEY, permit, request).hex(),
        }
        message = {"do": "send", "port": port, "number": 8, "permit": sealed}
        return {**message, "request": write_request(request)}


class Turn:
    """A guard whose turns a test takes.

    Attributes:
        now: The machine's time.
        links: As the test plays them, open.
        guard: The guard.
        door: Where harnesses come.
    """

    def __init__(self, folder: Path, *, once: bool, armed: Armed, closed: tuple[str, ...]) -> None:
        self.now = START_S
        self.folder = folder
        self.door = _Door()
        self.armed = armed
        self.links = {port.name: Descriptor(port.name) for port in armed.ports}
        for name in set(self.links) - set(closed):
            self.links[name].open(0.0)
        self.guard = self.made(once=once)
        self._harnesses: list[Harness] = []

    def made(self, *, once: bool = False) -> ProcessGuard:
        listener: Any = self.door
        return ProcessGuard(
            armed=self.armed,
            digest="sha256:armed",
            links=self.links,
            state_dir=self.folder,
            listener=listener,
            steady_s=lambda: self.now,
            entropy=lambda count: KEY[:count],
            once=once,
            reset=RESET,
        )

    def begin(self) -> None:
        """Do what the guard does before its first turn."""
        self.guard.ports.watch()
        self.guard._begin()

    def pass_(self, seconds: float = 0.0) -> None:
        """Let time pass, and the guard have a turn."""
        self.now = round(self.now + seconds, 6)
        for key, _ in self.guard._selector.select(0):
            key.data()
        self.guard._keep_time()

    def answer(self, *ports: str) -> None:
        """Have the frames on these ports obeyed, one after the other."""
        for name in ports or self.links:
            port, link = self.guard.core.ports[name], self.links[name]
            while port.state is PortState.SENT:
                link.says(b"ok " + link.wrote[-1])
                self.pass_()

    def comes(self) -> Harness:
        """Let a harness in."""
        self._harnesses.append(Harness(self))
        return self._harnesses[-1]

    def logged(self) -> list[str]:
        return [str(each["what"]) for each in self.guard.log.entries]

    def wrote(self) -> dict[str, list[bytes]]:
        """Return what each link was given since the last time."""
        return {name: link.taken() for name, link in self.links.items()}

    def close(self) -> None:
        for each in self._harnesses:
            each.socket.close()
        if self.guard._session is not None:
            self.guard._session.close()
        for link in self.links.values():
            link.end()
        self.guard._selector.close()


@contextmanager
def guarding(
    folder: Path, *, once: bool = False, armed: Armed = ARMED, closed: tuple[str, ...] = ()
) -> Iterator[Turn]:
    """Make a guard for links that a test plays; some may be closed."""
    ports_here = tuple(
        replace(each, path=each.path and f"{folder}/{each.name}") for each in armed.ports
    )
    with ExitStack() as kept:
        for module in (service, ports):
            kept.enter_context(patch.object(module, "Thread", _AtOnce))
        made = Turn(folder, once=once, armed=replace(armed, ports=ports_here), closed=closed)
        kept.callback(made.close)
        made.begin()
        yield made
