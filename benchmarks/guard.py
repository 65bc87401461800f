"""The guard process: what a command costs through its socket, and how soon a trip's bytes are out.

Eight instruments stand behind TCP in a process of their own, answer at once and say when a safe
frame came, so that what is left is software. Bare blocking sockets are the measure of a trip.
"""

import asyncio
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from labharness.clock import PacedLoop, run
from labharness.guard import Guard, Latch, SafeFrame
from labharness.guard.armed import Armed, ArmedPort
from labharness.guard.remote import RemoteGuard
from labharness.guard.shell import LoopGuard
from labharness.line.exchanges import Exchanges
from labharness.link.tcp import TcpLink
from labharness.vocabulary import Cause, Request, Trip, Until

COMMANDS = 1000
TRIPS = 100
PORTS = 8
ON = Request(b"on\r", Until(b"\r"), 0.5)
OFF = Request(b"off\r", Until(b"\r"), 0.5)
TRIP = Trip(Cause.STOP_REQUEST, "stop", "benchmark", None, 0.0, "benchmark")


def instruments() -> None:
    """Serve ``PORTS`` ports until standard input ends: echo, and print when each OFF came."""
    selector = selectors.DefaultSelector()
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(PORTS)]
    for listener in listeners:
        selector.register(listener, selectors.EVENT_READ, True)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    print(*(listener.getsockname()[1] for listener in listeners), flush=True)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                return
            there = key.fileobj
            if not isinstance(there, socket.socket):
                continue
            if key.data:
                made, _ = there.accept()
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(made, selectors.EVENT_READ, False)
                continue
            data = there.recv(4096)
            came_s = time.monotonic()
            if not data:
                selector.unregister(there)
                there.close()
                continue
            there.send(data)
            if data == OFF.frame:
                print(came_s, flush=True)


class Bench:
    """Instruments in a process, and guards for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, __file__, "instruments"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ports = [int(each) for each in self._line().split()]
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

    def last_off_s(self) -> float:
        """Wait for all safe frames of one trip; give when the last one came."""
        return max(float(self._line()) for _ in range(PORTS))

    def bare(self) -> list[float]:
        """Give the seconds from the first send to the last arrival over blocking sockets."""
        roads = [socket.create_connection(("127.0.0.1", port)) for port in self.ports]
        took = []
        for _ in range(TRIPS):
            began = time.monotonic()
            for road in roads:
                road.sendall(OFF.frame)
            took.append(self.last_off_s() - began)
            for road in roads:
                road.recv(64)
        for road in roads:
            road.close()
        return took

    async def near(self) -> Guard:
        """Open a guard on this loop."""
        links = {f"p{n}": TcpLink("127.0.0.1", port) for n, port in enumerate(self.ports)}
        guard = LoopGuard(self.armed.core(), links, Latch(self.folder / "near.json"))
        for link in links.values():
            await link.open()
        return guard

    async def far(self) -> Guard:
        """Open a guard process."""
        lab = self.folder / "lab.toml"
        lab.write_text(f'[lab]\nid = "b"\nstate_dir = "{self.folder}"\n', "utf-8")
        command = (sys.executable, "-m", "labharness.cli", "guard", str(lab), "--once")
        guard = RemoteGuard(self.armed, self.folder, command)
        began_s = time.monotonic()
        await guard.open()
        opened_s = time.monotonic() - began_s
        print(f"guard process: open after {opened_s * 1e3:.0f} ms, {resident(guard._child.pid)}")
        return guard

    async def trips(self, guard: Guard, *, busy: bool) -> list[float]:
        """Give the seconds from each trip to the arrival of its last byte."""
        took = []
        for _ in range(TRIPS):
            stop = threading.Event()
            neighbour = threading.Thread(target=spin, args=(stop,))
            if busy:
                neighbour.start()
                await asyncio.sleep(0.01)
            began = time.monotonic()
            guard.trip(TRIP)
            stop.set()
            took.append(self.last_off_s() - began)
            if busy:
                neighbour.join()
            await asyncio.sleep(0.005)
            await guard.reset()
        return took


def resident(pid: int | None) -> str:
    """Give the memory that a process holds, where the system says it."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((" ".join(line.split()) for line in lines if line.startswith("VmRSS")), "")


def spin(stop: threading.Event) -> None:
    """Be a busy neighbour in the same interpreter."""
    while not stop.is_set():
        pass


async def commands(guard: Guard) -> list[float]:
    """Give the seconds that each permitted exchange took."""
    exchanges = Exchanges(guard, asyncio.get_running_loop())
    guard.arm()
    took = []
    for _ in range(COMMANDS):
        guard.beat("stop")
        began = time.perf_counter()
        async with exchanges.lease("p0") as lease:
            await lease.send(ON, command=True)
        took.append(time.perf_counter() - began)
    guard.disarm()
    return took


async def measure(bench: Bench) -> None:
    """Print the table."""
    bare_s = bench.bare()
    show("trip, bare blocking sockets", bare_s, bare_s)
    opens: tuple[tuple[str, Callable[[], Awaitable[Guard]]], ...] = (
        ("guard on the loop", bench.near),
        ("guard process", bench.far),
    )
    for name, open_guard in opens:
        guard = await open_guard()
        show(f"permitted exchange, {name}", await commands(guard), None)
        show(f"trip, {name}", await bench.trips(guard, busy=False), bare_s)
        show(f"trip, {name}, busy thread", await bench.trips(guard, busy=True), bare_s)
        guard.close()


def show(name: str, took_s: list[float], bare_s: list[float] | None) -> None:
    p99_s = sorted(took_s)[int(0.99 * len(took_s))]
    ratio = "" if bare_s is None else f"{median(took_s) / median(bare_s):6.2f} x bare"
    print(f"{name:40} median {median(took_s) * 1e6:7.0f} us  p99 {p99_s * 1e6:7.0f} us  {ratio}")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        run(measure(bench), PacedLoop(1.0))
        bench.process.communicate("")
    return 0


if __name__ == "__main__":
    if "instruments" in sys.argv:
        instruments()
    else:
        sys.exit(main())
