"""Measure the guard: the delay of a trip's bytes, and the cost of a command through its process.

Eight instruments stand behind TCP in a process of their own, answer at once, and say when a safe
frame was at their socket (the system's stamp) and when they had read it. Bare blocking sockets are
the measure; bare, loop and process take turns, each after the same pause.

Instruments have processors of their own. Where there are two or more, so have these: else the last
frames would wait for the processor on which the guard goes on to write its latch. With the argument
``shared`` they have not.
"""

import asyncio
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from labharness.core.clock import PacedLoop, run
from labharness.core.vocabulary import Cause, Request, Trip, Until
from labharness.instruments.link.tcp import TcpLink
from labharness.line.exchanges import Exchanges
from labharness.safety.guard import Guard, GuardCore, Latch, SafeFrame
from labharness.safety.guard.armed import Armed, ArmedPort
from labharness.safety.guard.remote import RemoteGuard
from labharness.safety.guard.shell import LoopGuard

COMMANDS = 1000
TRIPS = 200
BUSY_TRIPS = 100
CORE_TRIPS = 10_000
WARM_UP = 1000
PAUSE_S = 0.01
PORTS = 8
ON = Request(b"on\r", Until(b"\r"), 0.5)
OFF = Request(b"off\r", Until(b"\r"), 0.5, obeyed=b"off\r")
TRIP = Trip(Cause.STOP_REQUEST, "stop", "benchmark", None, 0.0, "benchmark")
STAMPS = getattr(socket, "SO_TIMESTAMPNS", 35) if sys.platform == "linux" else 0


# ---- the instruments


class Instruments:
    """Serves ``PORTS`` ports and one more, on which a cause is sent when standard input asks."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.came: list[tuple[float, float]] = []
        self.cause: socket.socket | None = None
        self.caused_s = 0.0
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(PORTS + 1)]
        for number, listener in enumerate(listeners):
            take = self.take_cause if number == PORTS else self.take
            self.selector.register(listener, selectors.EVENT_READ, take)
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)
        print(*(listener.getsockname()[1] for listener in listeners), flush=True)

    def run(self) -> None:
        """Serve until standard input ends."""
        while True:
            for key, _ in self.selector.select():
                if key.data is not None:
                    key.data(key.fileobj)
                elif not sys.stdin.readline():
                    return
                elif self.cause is not None:
                    time.sleep(PAUSE_S)  # until the harness is in its select again
                    self.caused_s = time.monotonic()
                    self.cause.send(b"!")

    def take_cause(self, listener: socket.socket) -> None:
        """Accept the connection on which a cause is sent."""
        self.cause, _ = listener.accept()
        self.cause.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def take(self, listener: socket.socket) -> None:
        """Accept the connection of a port."""
        made, _ = listener.accept()
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if STAMPS:
            made.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
        self.selector.register(made, selectors.EVENT_READ, self.answer)

    def answer(self, made: socket.socket) -> None:
        """Echo; after the last safe frame report when it arrived and when it was read."""
        data, told, _, _ = made.recvmsg(4096, 64)
        read_s = arrived_s = time.monotonic()
        for _, _, stamp in told:
            seconds, nanoseconds = struct.unpack("qq", stamp)
            arrived_s = read_s - (time.time() - seconds - nanoseconds * 1e-9)
        if not data:
            self.selector.unregister(made)
            made.close()
            return
        made.send(data)
        if data == OFF.frame:
            self.came.append((arrived_s, read_s))
            if len(self.came) == PORTS:
                print(self.caused_s, *map(max, zip(*self.came, strict=True)), flush=True)
                self.came.clear()


def keep_apart(*, last: bool) -> set[int]:
    """Stay on the last processor, or off it; where there is but one, do nothing.

    Returns:
        The processors there are.
    """
    if sys.platform != "linux":
        return set()
    mine = os.sched_getaffinity(0)
    if len(mine) > 1 and "shared" not in sys.argv:
        os.sched_setaffinity(0, {max(mine)} if last else mine - {max(mine)})
    return mine


# ---- the guards


class Bench:
    """Instruments in a process, and guards for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, __file__, "instruments", *sys.argv[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        *self.ports, self.cause_port = (int(each) for each in self._line().split())
        frames = tuple(SafeFrame(n, f"p{n}", OFF, f"c{n}", 0.0) for n in range(PORTS))
        self.armed = Armed(
            lab="benchmark",
            lab_digest="",
            envelope_digest="",
            silence_s_max=5.0,
            safe_table="stop",
            lost="stop",
            ports=tuple(
                ArmedPort(name=f"p{n}", link="tcp", host="127.0.0.1", tcp_port=port, reads=(ON,))
                for n, port in enumerate(self.ports)
            ),
            procedures={"stop": frames},
        )

    def _line(self) -> str:
        if self.process.stdout is None:
            raise RuntimeError("the instruments cannot be heard")
        return self.process.stdout.readline()

    def last_off_s(self) -> tuple[float, float, float]:
        """Wait for all safe frames of one trip.

        Returns:
            When their cause was told (the last that was), and when the last one arrived, and was
            read.
        """
        caused_s, arrived_s, read_s = map(float, self._line().split())
        return caused_s, arrived_s, read_s

    def cause(self) -> None:
        """Let an instrument report a cause soon."""
        if self.process.stdin is None:
            raise RuntimeError("the instruments cannot be told")
        self.process.stdin.write("cause\n")

    async def near(self) -> Guard:
        """Open a guard on this loop."""
        links = {f"p{n}": TcpLink("127.0.0.1", port) for n, port in enumerate(self.ports)}
        guard = LoopGuard(self.armed.core(), links, Latch(self.folder / "near.json"))
        for link in links.values():
            await link.open()
        return guard

    async def far(self) -> RemoteGuard:
        """Open a guard process."""
        lab = self.folder / "lab.toml"
        lab.write_text(f'[lab]\nid = "b"\nstate_dir = "{self.folder}"\n', "utf-8")
        command = (sys.executable, "-m", "labharness.faces.cli", "guard", str(lab), "--once")
        guard = RemoteGuard(self.armed, self.folder, command)
        began_s = time.monotonic()
        await guard.open()
        opened_s = time.monotonic() - began_s
        print(f"guard process: open after {opened_s * 1e3:.0f} ms, {resident(guard._child.pid)}")
        return guard

    async def in_turn(self, near: Guard, far: Guard) -> dict[str, list[tuple[float, float]]]:
        """Return for each way the seconds from each trip to its last byte's arrival and reading."""
        links = [socket.create_connection(("127.0.0.1", port)) for port in self.ports]
        for link in links:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def bare() -> None:
            for link in links:
                link.sendall(OFF.frame)

        ways: tuple[tuple[str, Callable[[], None], Guard | None], ...] = (
            ("bare blocking sockets", bare, None),
            ("guard on the loop", lambda: near.trip(TRIP), near),
            ("guard process", lambda: far.trip(TRIP), far),
        )
        took: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in ways}
        for _ in range(TRIPS):
            for name, trip, guard in ways:
                await asyncio.sleep(PAUSE_S)
                began_s = time.monotonic()
                trip()
                _, arrived_s, read_s = self.last_off_s()
                took[name].append((arrived_s - began_s, read_s - began_s))
                await asyncio.sleep(PAUSE_S)
                if guard is not None:
                    await guard.reset()
                else:
                    for link in links:
                        link.recv(64)
        for link in links:
            link.close()
        return took

    async def while_busy(self, guard: Guard) -> list[tuple[float, float]]:
        """Return the seconds from a cause, reported by an instrument, to the last safe frame.

        As on a line, the trip is called where the bytes are handed over, with no turn of the loop
        between.
        """
        loop = asyncio.get_running_loop()
        heard = Heard(lambda: guard.trip(TRIP))
        link, _ = await loop.create_connection(lambda: heard, "127.0.0.1", self.cause_port)
        took = []
        for _ in range(BUSY_TRIPS):
            with busy_thread():
                await asyncio.sleep(PAUSE_S)
                heard.tripped = loop.create_future()
                self.cause()
                await heard.tripped
                caused_s, arrived_s, read_s = self.last_off_s()
            took.append((arrived_s - caused_s, read_s - caused_s))
            await asyncio.sleep(PAUSE_S)
            await guard.reset()
        link.close()
        return took


class Heard(asyncio.Protocol):
    """Trips when anything is heard.

    Attributes:
        tripped: Done then.
    """

    def __init__(self, trip: Callable[[], None]) -> None:
        self._trip = trip
        self.tripped: asyncio.Future[None] = asyncio.Future()

    def data_received(self, data: bytes) -> None:
        """Trip, and say so afterwards."""
        self._trip()
        self.tripped.set_result(None)


def resident(pid: int | None) -> str:
    """Return the memory of a process, if the system reports it."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((" ".join(line.split()) for line in lines if line.startswith("VmRSS")), "")


@contextmanager
def busy_thread() -> Iterator[None]:
    """Run a busy thread in the same interpreter."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def commands(guard: Guard) -> list[float]:
    """Return the seconds that each permitted exchange took."""
    exchanges = Exchanges(guard, asyncio.get_running_loop())
    await guard.arm()
    took = []
    for _ in range(COMMANDS):
        guard.heartbeat("stop")
        began = time.perf_counter()
        async with exchanges.lease("p0") as lease:
            await lease.send(ON, command=True)
        took.append(time.perf_counter() - began)
    guard.disarm()
    return took


def in_process(core: GuardCore) -> list[float]:
    """Return the seconds of each trip until its first wave is in a sink."""
    sink: list[bytes | None] = []
    took = []
    for _ in range(WARM_UP + CORE_TRIPS):
        sink.clear()
        began = time.perf_counter()
        for name in core.trip("stop"):
            sink.append(core.send_safe(name, began))
        took.append(time.perf_counter() - began)
        for port in core.ports.values():
            port.feed(OFF.frame, began)
        core.reset()
    return took[WARM_UP:]


# ---- the table


async def measure(bench: Bench) -> None:
    """Print the table."""
    processors = keep_apart(last=False)
    show("trip in process: core to a sink", in_process(bench.armed.core()))
    far, near = await bench.far(), await bench.near()
    show("permitted exchange, guard on the loop", await commands(near))
    show("permitted exchange, guard process", await commands(far))
    took = await bench.in_turn(near, far)
    for number, what in enumerate(("at the instruments", "read by them")):
        bare_s = [each[number] for each in took["bare blocking sockets"]]
        for name, each in took.items():
            show(f"trip, last frame {what}, {name}", [one[number] for one in each], bare_s)
    if processors:  # a busy thread takes one of them
        for pid in (0, far._child.pid):
            os.sched_setaffinity(pid or 0, processors)
    ours_s = sys.getswitchinterval()
    for name, guard in (("guard process", far), ("guard on the loop", near)):
        for switch_s in (ours_s, 0.005):
            sys.setswitchinterval(switch_s)
            took_s = await bench.while_busy(guard)
            for number, what in enumerate(("at the instruments", "read by them")):
                busy = [each[number] for each in took_s]
                show(
                    f"busy thread ({switch_s * 1e3:g} ms), cause to last frame {what}, {name}", busy
                )
    near.close()
    far.close()


def show(name: str, took_s: list[float], bare_s: list[float] | None = None) -> None:
    """Print one row."""
    p99_s = sorted(took_s)[int(0.99 * (len(took_s) - 1))]
    ratio = "" if bare_s is None else f"{median(took_s) / median(bare_s):6.2f} x bare"
    times = [f"{each * 1e6:7.0f} us" for each in (median(took_s), p99_s, max(took_s))]
    print(f"{name:60} median{times[0]}  p99{times[1]}  max{times[2]}  {ratio}")


def main() -> int:
    """Measure once; the reader must know the other load of the machine."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        run(measure(bench), PacedLoop(1.0))
        bench.process.communicate("")
    return 0


if __name__ == "__main__":
    if "instruments" in sys.argv:
        keep_apart(last=True)
        Instruments().run()
    else:
        sys.exit(main())
