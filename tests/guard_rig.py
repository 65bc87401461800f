"""What tests of the guard process share: devices on pseudo-terminals, a guard, and who calls it."""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labharness.core.clock import steady_s
from labharness.core.vocabulary import Request, Until
from labharness.core.vocabulary.texts import revived
from labharness.instruments.link import LinkLost, local
from labharness.safety.guard import Permit, SafeFrame
from labharness.safety.guard.armed import ARMED_FILE, Armed, ArmedPort, read_armed
from labharness.safety.guard.messages import LineSplitter, seal, write_request

HERE = Path(__file__).parent
BAUD = 9600
LATENCY_S = 0.010
REPLY_S = 0.45  # a machine that stands still for 0.3 s is no instrument that does not answer
READ = Request(b"read\r", Until(b"\r"), REPLY_S)
ON = Request(b"heat on\r", Until(b"\r"), REPLY_S)
SHUT = [
    Request(b"shut%d\r" % number, Until(b"\r"), REPLY_S, obeyed=b"ok shut%d\r" % number)
    for number in range(4)
]
SAFE = (
    SafeFrame(0, "heat", SHUT[0], "furnace.setpoint", 0.0, "degC"),
    SafeFrame(1, "gas", SHUT[1], "hydrogen.setpoint", 0.0, "sccm"),
    SafeFrame(2, "heat", SHUT[2], "box.contactor", 0.0, ""),
    SafeFrame(3, "gas", SHUT[3], "argon.setpoint", 100.0, "sccm"),
)
SAFE_FRAMES = {port: [f.request.frame for f in SAFE if f.port == port] for port in ("heat", "gas")}
BOUND_S = 10.0


@dataclass
class Device:
    """An instrument at the far end of a pseudo-terminal that answers each line, in wire time.

    Attributes:
        heard: Each whole frame, and when its last byte was read (CLOCK_MONOTONIC).
        mute: Nothing is answered.
        stray: A line that comes by itself before the next answer, once.
        says: What it answers to a frame, instead of that it obeys, so often in all.
    """

    port: str
    mute: bool = False
    stray: bytes = b""
    says: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)
    heard: list[tuple[float, bytes]] = field(default_factory=list)
    _begun: bytes = b""
    _free_s: float = 0.0

    def __post_init__(self) -> None:
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)

    def unlock(self) -> None:
        """Let others than root open it after a kill, as a real port that nobody holds any more."""
        with suppress(OSError):  # it was released
            fcntl.ioctl(self._slave, termios.TIOCNXCL)

    def release(self) -> None:
        """Let go of our own end, so that hanging up is seen."""
        os.close(self._slave)

    def read(self) -> list[tuple[float, bytes]]:
        """Take bytes; return the answers that are due, and when."""
        now = time.monotonic()
        *whole, self._begun = (self._begun + os.read(self.master, 4096)).split(b"\r")
        answers = []
        for frame in whole:
            self.heard.append((now, frame + b"\r"))
            said, times = self.says.get(frame + b"\r", (b"", 0))
            reply = said if times else b"ok " + frame + b"\r"
            self.says[frame + b"\r"] = (said, max(times - 1, 0))
            wire_s = (len(frame) + 1 + len(reply)) * 10 / BAUD
            if self.stray:
                answers.append((now, self.stray))
                self.stray = b""
            self._free_s = max(self._free_s, now) + wire_s + LATENCY_S  # one after the other
            answers.append((self._free_s, reply))
        return [] if self.mute else answers


class Away:
    """A link on which nobody is."""

    name = "the link"

    def open(self, within_s: float) -> None:
        raise LinkLost("the link is away")

    def fileno(self) -> int:
        return -1

    def read(self) -> bytes:
        return b""

    def write(self, data: bytes) -> None:
        raise LinkLost("the link is away")

    def close(self) -> None:
        """Nothing is open."""


class Devices:
    """All devices, in one thread."""

    def __init__(self, *ports: str) -> None:
        self.of = {port: Device(port) for port in ports}
        self._stop_r, self._stop_w = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        masters = {device.master: device for device in self.of.values()}
        due: list[tuple[float, int, bytes]] = []
        while True:
            nap_s = max(0.0, min([at for at, *_ in due], default=1e9) - time.monotonic())
            ready, _, _ = select.select([self._stop_r, *masters], [], [], min(nap_s, 1.0))
            if self._stop_r in ready:
                return
            for master in ready:
                due += [(at, master, reply) for at, reply in masters[master].read()]
            for each in [each for each in due if each[0] <= time.monotonic()]:
                os.write(each[1], each[2])
                due.remove(each)

    def forget(self) -> None:
        for device in self.of.values():
            device.heard.clear()

    def close(self) -> None:
        os.write(self._stop_w, b"x")
        self._thread.join(BOUND_S)
        for device in self.of.values():
            device.release()
            os.close(device.master)
        os.close(self._stop_r)
        os.close(self._stop_w)


def until(done: Callable[[], bool], what: str, within_s: float = BOUND_S) -> None:
    end_s = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < end_s, f"{what}: not within {within_s} s"
        time.sleep(0.001)


def arming(
    devices: Devices, *, silence_s_max: float = 0.5, steps: tuple[Request, ...] = ()
) -> Armed:
    ports = tuple(
        ArmedPort(
            name=name,
            link="serial",
            path=device.path,
            baud=BAUD,
            exchange_s_max=0.5,
            reads=(READ, *steps),
            steps=steps,
        )
        for name, device in devices.of.items()
    )
    return Armed(
        lab="bench",
        lab_digest="sha256:0",
        envelope_digest="sha256:1",
        silence_s_max=silence_s_max,
        safe_table="stop",
        lost="stop",
        ports=ports,
        procedures={"stop": SAFE, "vent": (SAFE[1],)},
    )


class Caller:
    """A harness with no manners: says what it is told to, over a blocking socket."""

    def __init__(self, state_dir: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(BOUND_S)
        until(lambda: self._reach(state_dir / local.GUARD), "the guard's socket")
        self._lines = LineSplitter()
        self._left: list[dict[str, Any]] = []
        self._moves = 0
        self.welcome = self.hear()
        self.key = bytes.fromhex(self.welcome.get("key", ""))
        self.number = self.welcome.get("permits", 0)
        self.epoch = self.welcome.get("epoch", 0)

    def _reach(self, path: Path) -> bool:
        try:
            self.socket.connect(str(path))
        except OSError:
            return False
        return True

    def say(self, **message: object) -> None:
        self._moves += str(message.get("do")) in ("arm", "disarm", "epoch", "trip", "reset")
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self, what: str = "") -> dict[str, Any]:
        """Return the next message, or the next of one kind."""
        while True:
            while not self._left:
                data = self.socket.recv(1 << 16)
                assert data, "the guard hung up"
                found = [json.dumps(each) for each in self._lines.feed(data) if each]
                self._left += [json.loads(each, object_hook=revived) for each in found]
            message = self._left.pop(0)
            self.epoch = message.get("epoch", 0)
            if not what or message["say"] == what:
                return message

    def permit(self, frame: Request = ON, port: str = "heat", **changes: Any) -> dict[str, Any]:
        """Make a permit as the guard wants it, or with something changed after it was sealed."""
        self.number += 1
        expires_us = int((steady_s() + 1.9) * 1e6)
        made = Permit(self.number, port, frame.frame, self.epoch, expires_us / 1e6)
        made = Permit(**{**{k: getattr(made, k) for k in Permit.__slots__}, **changes})
        return {
            "number": made.number,
            "epoch": made.epoch,
            "expires_us": round(made.expires_s * 1e6),
            "seal": seal(self.key, made, frame).hex(),
        }

    def send(
        self, permit: Mapping[str, Any] | None, request: Request = ON, port: str = "heat"
    ) -> dict[str, Any]:
        """Ask for one frame; return the end of its exchange."""
        more = {"frame": request.frame.hex()}
        if permit is not None:
            more = {"request": write_request(request)}  # type: ignore[dict-item]  # texts and objects
        self.say(do="send", port=port, number=7, permit=permit, **more)
        return self.hear("ended")

    def arm(self) -> None:
        """Arm, and learn the epoch."""
        self.say(do="arm", lost="stop")
        self.say(do="repeat", frames=[["vent", 0]])
        while self.hear("safe")["moves"] < self._moves:
            pass

    def heartbeat(self) -> None:
        self.say(do="heartbeat", made_s=steady_s(), lost="stop")

    def leave(self, *, reset: bool = False) -> None:
        if reset:
            self.say(do="reset")
            assert self.hear("reset")["error"] == ""
        self.say(do="bye", retire=False)
        self.socket.close()


class StillDisk:
    """A disk that can stand still at one file of a bench: ``still_disk.py`` waits there.

    Args:
        folder: The state directory.
        file: Its name.
    """

    def __init__(self, folder: Path, file: str) -> None:
        self.file = file
        self._still = folder / f"{file}.still"
        self._waiting = folder / f"{file}.waiting"

    def stop(self) -> None:
        self._still.touch()

    def go_on(self) -> None:
        self._still.unlink()

    def holds_up_the_guard(self) -> bool:
        """Return whether the guard has come to that file, and waits."""
        return self._waiting.exists()


class GuardBench:
    """Two devices, a state directory, and guard processes that come and go.

    Args:
        folder: Where the state directory is made.
        devices: Those of another bench, where two labs lead to the same.
    """

    def __init__(self, folder: Path, devices: "Devices | None" = None) -> None:
        self.state_dir = folder / "state"
        self.state_dir.mkdir(parents=True)
        self.lab_file = folder / "lab.toml"
        self.lab_file.write_text(
            f'[lab]\nid = "bench"\nstate_dir = "{self.state_dir}"\n', encoding="utf-8"
        )
        self._are_ours = devices is None
        self.devices = devices or Devices("heat", "gas")
        self.armed = arming(self.devices)
        (self.state_dir / ARMED_FILE).write_text(self.armed.text(), encoding="utf-8")
        self.guard: subprocess.Popen[bytes] | None = None
        self._callers: list[Caller] = []

    def start(
        self, *options: str, disk: "StillDisk | None" = None, **env: str
    ) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "labharness.faces.cli", "guard"]
        if disk is not None:
            command = [sys.executable, str(HERE / "still_disk.py"), disk.file]
        command += [str(self.lab_file), *options]
        self.guard = subprocess.Popen(
            command, env={**os.environ, **env}, stderr=subprocess.PIPE, start_new_session=True
        )
        return self.guard

    def kill(self) -> None:
        assert self.guard is not None
        self.guard.kill()
        self.guard.communicate()
        self.guard = None
        self.unlock()

    def unlock(self) -> None:
        """Let others than root open all ports after a kill."""
        for device in self.devices.of.values():
            device.unlock()

    def call(self) -> Caller:
        self._callers.append(Caller(self.state_dir))
        return self._callers[-1]

    def armed_by(self) -> Caller:
        """Have the line armed by a caller."""
        caller = self.call()
        caller.arm()
        return caller

    def frames(self, port: str) -> list[bytes]:
        return [frame for _, frame in self.devices.of[port].heard]

    def made_safe(self) -> bool:
        """Return whether each port has heard all its safe frames, in order, and last."""
        return all(self.frames(port)[-2:] == SAFE_FRAMES[port] for port in self.devices.of)

    def safe_at_s(self) -> float:
        """When the last safe byte was read at a device."""
        return max(device.heard[-1][0] for device in self.devices.of.values())

    def close(self) -> None:
        for caller in self._callers:
            caller.socket.close()
        if self.guard is not None:
            self.kill()
        if self._are_ours:
            self.devices.close()

    @contextmanager
    def harness(self, *options: str) -> "Iterator[subprocess.Popen[bytes]]":
        """Run a real harness loop in a process of its own until it energises; kill it after."""
        command = [sys.executable, str(HERE / "guard_harness.py"), str(self.state_dir), *options]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert child.stdout is not None
            said = child.stdout.readline()
            assert said == b"energised\n", said
            yield child
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            child.communicate()


@contextmanager
def bench(folder: Path) -> Iterator[GuardBench]:
    made = GuardBench(folder)
    try:
        yield made
    finally:
        made.close()


__all__ = ["read_armed"]  # passed on
