"""What tests of one end of the guard process play the other end with: no process, no port."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import guard_rig
import labharness.safety.guard.remote as remote_module
from labharness.instruments.link import LinkLost
from labharness.safety.guard import SafeFrame
from labharness.safety.guard.armed import Armed, ArmedPort, arming_digest
from labharness.safety.guard.messages import line_of
from labharness.safety.guard.remote import RemoteGuard
from labharness.safety.guard.remote_parts import Stream

REPLY_S = 0.3  # in a time that no machine holds up
READ, ON = (replace(each, timeout_s=REPLY_S) for each in (guard_rig.READ, guard_rig.ON))
SHUT = [replace(each, timeout_s=REPLY_S) for each in guard_rig.SHUT]
SAFE = tuple(
    replace(each, request=replace(each.request, timeout_s=REPLY_S)) for each in guard_rig.SAFE[:3]
)
LAST = SafeFrame(0, "gas", SHUT[3], "argon.setpoint", 100.0, "sccm")
ARMED = Armed(
    lab="bench",
    lab_digest="sha256:0",
    envelope_digest="sha256:1",
    silence_s_max=0.5,
    safe_table="stop",
    lost="stop",
    ports=tuple(
        ArmedPort(
            name=name,
            link="serial",
            path=f"/dev/no-such-{name}",
            baud=9600,
            exchange_s_max=0.5,
            reads=(READ,),
        )
        for name in ("heat", "gas")
    ),
    procedures={"stop": SAFE, "vent": (LAST,)},
)
KEY = bytes(range(32))
MACHINE_S = 5000.0
GONE = "the guard process is gone; nothing can be written until it is back"
WHOLE_SEND = {"do": "send", "port": "heat", "number": 1, "permit": None, "frame": READ.frame.hex()}

Ends = list[tuple[bytes | None, str]]
MOVES = ("arm", "disarm", "epoch", "trip", "reset")


class Started:
    """Stands for the process that a harness starts.

    Attributes:
        at_s: When it was started, each time.
        lives: Whether it runs.
        says: What it complains of.
        ended: How often it was ended.
        waited_s: How long it was waited for when the harness left.
    """

    def __init__(self) -> None:
        self.at_s: list[float] = []
        self.lives = False
        self.says = ""
        self.ended = 0
        self.waited_s: list[float] = []
        self.begins: Callable[[], None] = lambda: None

    def start(self) -> None:
        self.at_s.append(asyncio.get_running_loop().time())
        self.begins()

    def running(self) -> bool:
        return self.lives

    def complaint(self) -> str:
        return self.says

    def end(self) -> None:
        self.ended += 1

    def leave(self, within_s: float) -> None:
        self.waited_s.append(within_s)


class Descriptor:
    """A link as a test plays it.

    Attributes:
        wrote: What it was given to send.
        lost: Why it takes and gives nothing any more; ``""`` while it does.
        refuses: Why it does not open.
        within_s: How long it was given to open, each time.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.wrote: list[bytes] = []
        self.lost = ""
        self.refuses = ""
        self.within_s: list[float] = []
        self._near, self._remote = socket.socketpair()
        self._near.setblocking(False)
        self._open = False
        self._seen = 0

    def open(self, within_s: float) -> None:
        self.within_s.append(within_s)
        if self.refuses:
            raise LinkLost(self.refuses)
        self._open = True

    def fileno(self) -> int:
        return self._near.fileno() if self._open else -1

    def read(self) -> bytes:
        data = self._near.recv(65_536)
        if self.lost:
            raise LinkLost(self.lost)
        return data

    def write(self, data: bytes) -> None:
        if self.lost or not self._open:
            raise LinkLost(self.lost or "it is closed")
        self.wrote.append(data)

    def close(self) -> None:
        self._open = False

    def says(self, data: bytes) -> None:
        """Have an instrument send something."""
        self._remote.send(data)

    def taken(self) -> list[bytes]:
        """Return what was sent since the last time."""
        fresh, self._seen = self.wrote[self._seen :], len(self.wrote)
        return fresh

    def end(self) -> None:
        self._near.close()
        self._remote.close()


class Remote:
    """The guard process as a test plays it: what it hears, and what it says.

    Attributes:
        said: What the harness said, in order.
        status: How things stand; sent with each message.
        welcome: What else it says to who comes.
        serves: Whether it is at its door.
        called: When somebody came, and to which path.
    """

    def __init__(self, armed: Armed) -> None:
        self.said: list[dict[str, Any]] = []
        self.status: dict[str, Any] = {"epoch": 0, "moves": 0, "armed": False, "latched": False}
        self.status |= {"write_error": "", "free": ["heat", "gas"], "shut": {}, "heard": 0}
        self.welcome: dict[str, Any] = {"digest": arming_digest(armed.text()), "key": KEY.hex()}
        self.welcome |= {"permits": 0, "trip": None, "log": []}
        self.greets = "welcome"
        self.serves = True
        self.called: list[tuple[float, str]] = []
        self.closed: list[str] = []
        self.heard_count = self.moves_count = 0
        self._stream: Stream

    async def connect(self, make: Callable[[], Stream], path: str) -> None:
        """Let a harness in, and greet it in the loop's next turn."""
        loop = asyncio.get_running_loop()
        self.called.append((loop.time(), path))
        if not self.serves:
            raise ConnectionRefusedError(111, "nobody is there")
        self.heard_count = self.moves_count = 0
        self._stream = make()
        self._stream.connection_made(_Wire(self, self._stream))
        if self.greets:
            more = self.welcome if self.greets == "welcome" else {}
            loop.call_soon(self.tell, self.greets, more)

    def tell(self, what: str, more: dict[str, Any] | None = None, /, **status: Any) -> None:
        """Say something, and from now on how things stand."""
        self.status |= status
        message = {"say": what} | (self.status if what != "busy" else {}) | (more or {})
        self._stream.data_received(line_of(message))

    def heard(self, **status: Any) -> None:
        """Say that all was taken that was said so far."""
        self.tell("status", None, heard=self.heard_count, moves=self.moves_count, **status)

    def hear(self, message: dict[str, Any]) -> None:
        """Take what the harness says."""
        self.said.append(message)
        self.heard_count += 1
        self.moves_count += message["do"] in MOVES

    def hang_up(self) -> None:
        self._stream.connection_lost(None)

    def take(self) -> list[dict[str, Any]]:
        """Return what was said since the last time."""
        said, self.said = self.said[:], []
        return said


class _Wire:
    """The harness's transport."""

    def __init__(self, far: Remote, stream: Stream) -> None:
        self._remote = far
        self._stream = stream
        self._open = True

    def write(self, data: bytes) -> None:
        assert data.endswith(b"\n")
        for line in data.splitlines():
            self._remote.hear(json.loads(line))

    def close(self, how: str = "closed") -> None:
        self._remote.closed.append(how)
        if self._open:
            self._open = False
            asyncio.get_running_loop().call_soon(self._stream.connection_lost, None)

    def abort(self) -> None:
        self.close("aborted")


@asynccontextmanager
async def talking(
    folder: Path, far: Remote, child: Started, *, opened: bool = True
) -> AsyncIterator[RemoteGuard]:
    """Have a harness's end, with its state in a folder, talk with a guard that a test plays.

    Args:
        folder: The state directory.
        far: The guard.
        child: The process that it seems to be.
        opened: Whether they have met before.
    """
    guard = RemoteGuard(ARMED, folder, ("guard",))
    loop: Any = asyncio.get_running_loop()
    loop.create_unix_connection = far.connect
    guard._child = child  # type: ignore[assignment]  # it stands for one
    with patch.object(remote_module, "steady_s", steady_s):
        if opened:
            await guard.open()
        yield guard
        guard.close()


def steady_s() -> float:
    """Return the machine's time: it is not the loop's."""
    return asyncio.get_running_loop().time() + MACHINE_S


def ask(guard: RemoteGuard, port: str = "heat") -> Ends:
    """Begin a read; return the list in which its end will stand."""
    ends: Ends = []
    guard.exchange(port, READ, None, lambda reply, error: ends.append((reply, error)))
    return ends


async def armed(guard: RemoteGuard, far: Remote) -> None:
    """Arm, and have the guard say that it is."""
    arming = asyncio.ensure_future(guard.arm())
    await asyncio.sleep(0)
    counted = {"moves": far.moves_count, "heard": far.heard_count}
    far.tell("armed", {"error": ""}, armed=True, epoch=1, **counted)
    await arming
    far.take()
