"""Simulated instruments on real wires, for lines whose ports belong to the guard process."""

import asyncio
import fcntl
import os
import re
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commands import stated
from guard_rig import BOUND_S
from labharness.core.clock import Chance, Clock, PacedLoop, run
from labharness.lab import LabPlan, read_lab
from labharness.lab.wiring.simulated_lab import SimulatedLab

NEAR = "spectrometer"


class RemotePlant:
    """The short line's plant and instruments, each bus behind a pseudo-terminal."""

    def __init__(self, plan: LabPlan, folder: Path) -> None:
        clock = Clock(asyncio.get_running_loop())
        self.simulated = SimulatedLab(plan.file, clock, Chance(1))
        self.paths: dict[str, str] = {}
        self._descriptors: dict[str, tuple[int, int]] = {}
        for name in self.simulated.buses:
            if name != NEAR:
                self.paths[name] = str(folder / f"tty-{name}")
                self.plug_in(name)

    def plug_in(self, name: str) -> None:
        """Put a port where its path leads: a new pseudo-terminal."""
        master, slave = os.openpty()
        tty.setraw(slave)
        path = Path(self.paths[name])
        path.unlink(missing_ok=True)
        path.symlink_to(os.ttyname(slave))
        self._descriptors[name] = (master, slave)

        def pass_on() -> None:
            with suppress(OSError):  # nobody has opened the other end
                data = os.read(master, 4096)
                self.simulated.buses[name].transmit(data, lambda reply: _write(master, reply))

        asyncio.get_running_loop().add_reader(master, pass_on)

    def pull_out(self, name: str) -> None:
        """Hang a port up."""
        for each in self._descriptors.pop(name):
            asyncio.get_running_loop().remove_reader(each)
            os.close(each)

    def unlock(self) -> None:
        """Let others than root open all ports after a kill, as real ones that nobody holds."""
        for _, slave in self._descriptors.values():
            fcntl.ioctl(slave, termios.TIOCNXCL)

    def close(self) -> None:
        for name in tuple(self._descriptors):
            self.pull_out(name)


def _write(master: int, data: bytes) -> None:
    with suppress(OSError):  # a reply that was under way when the test ended
        os.write(master, data)


def quick(text: str) -> str:
    """Leave out what takes the spectrometer many seconds to prepare."""
    return re.sub(r"prepare = \[\n.*mono_open.*\n\]\n", "", text)


def real(folder: Path, paths: dict[str, str]) -> LabPlan:
    """Return the lab file with each port but one on its pseudo-terminal."""
    text = (folder / "lab.toml").read_text("utf-8")
    for name, path in paths.items():
        there = f'name = "{name}"\nlink = "loopback"\n'
        assert there in text
        here = f'name = "{name}"\nlink = "serial"\npath = "{path}"\n'
        if f"{there}baud" not in text:
            here += "baud = 115200\n"
        text = text.replace(there, here)
    (folder / "real.toml").write_text(stated(text), "utf-8")
    return read_lab(folder / "real.toml")


@contextmanager
def served(plan: LabPlan, folder: Path) -> Iterator[LabPlan]:
    """Serve the far plant from a thread, for what runs a loop of its own."""
    paths: dict[str, str] = {}
    begun, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        far = RemotePlant(plan, folder)
        paths.update(far.paths)
        begun.set()
        while not stop.is_set():  # noqa: ASYNC110 - the test is in another thread
            await asyncio.sleep(0.02)
        far.close()

    thread = threading.Thread(target=lambda: run(serve(), PacedLoop(1.0)))
    thread.start()
    assert begun.wait(BOUND_S)
    try:
        yield real(folder, paths)
    finally:
        stop.set()
        thread.join(BOUND_S)
