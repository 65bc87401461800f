"""Serves a simulated lab to other processes, on real links, with a lab file that leads there."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, Clock, PacedLoop, wall_clock_utc
from labharness.core.clock import run as run_on
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.instruments.link.identity import LinkAddress
from labharness.instruments.simulation import JsonFace
from labharness.instruments.simulation.control import SimulationControl
from labharness.instruments.simulation.conversation import ByteLog, Outlet
from labharness.instruments.simulation.served import CannotServe, PtyPort, ServedPort, TcpPort
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import LineBusy, LineLock
from labharness.lab.config.served_file import (
    check_target,
    served_hazards,
    served_hazards_path,
    served_text,
)
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness.safety.guard.port_records import clear_ports

SPEED_MAX = 10_000.0  # the plant's step is a second: beyond it a computer only falls behind
CONTROL_NAME = "control"
LAB_NAME = "lab.toml"
OWN_NAMES = (CONTROL_NAME, LAB_NAME, "line.lock")
STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

Tell = Callable[[Mapping[str, Any]], None]


class BadFolder(CodedError, ValueError, code="bad_served_folder", usage=True):
    """The folder cannot be served from; the message says why."""


def serve(
    plan: LabPlan,
    *,
    speed: float,
    seed: int,
    folder: Path,
    write_lab: Path | None,
    ready: Tell,
    tcp: Mapping[str, int] | None = None,
) -> None:
    """Serve every loopback port of a lab until a client asks to quit.

    Args:
        plan: The lab's files.
        speed: Lab seconds a second, of the plant and of the wires.
        seed: Of the plant's scatter and noise.
        folder: The folder for the paths of the serial ports, the control port's address and the lab
            file of the other side.
        write_lab: Another path for the lab file.
        ready: Called once, when every link is open, with the addresses.
        tcp: Numbers for ports that are served on TCP; the system gives the others theirs.

    Raises:
        BadLabFile: The lab has no port to serve, or not on the TCP port that was asked for.
        BadFolder: Another process serves from there, or it cannot be written.
        CannotServe: A link cannot be opened.
    """
    if not any(row.link == "loopback" for row in plan.file.port):
        raise BadLabFile("simulate.nothing", path=str(plan.path))
    numbers = dict(tcp or {})
    _served_on_tcp(plan, numbers)
    target = folder / LAB_NAME if write_lab is None else write_lab
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = LineLock(folder)
    except LineBusy:
        raise BadFolder("simulate.another", folder=str(folder)) from None
    except OSError as why:
        raise BadFolder("simulate.folder", folder=str(folder), why=why.strerror) from None
    with lock:
        check_target(target, plan.path)
        check_target(served_hazards_path(target), plan.path)
        loop = PacedLoop(speed, fine=True)
        serving = _Serving(plan, loop, Chance(seed), folder.absolute(), target, numbers)
        run_on(serving.run(ready), loop)


def _served_on_tcp(plan: LabPlan, numbers: Mapping[str, int]) -> None:
    """Refuse a number for a port that is not there, or not served on TCP, or has another's."""
    served = [row.name for row in plan.file.port if row.link == "loopback" and not row.baud]
    for name, number in numbers.items():
        if name not in served:
            known = ", ".join(served) or "none"
            raise BadLabFile("simulate.not_tcp", path=str(plan.path), name=name, known=known)
        others = [each for each in numbers if numbers[each] == number and each != name]
        if others:
            here, other = str(plan.path), others[0]
            raise BadLabFile(
                "simulate.same_number", path=here, name=name, other=other, number=number
            )


@dataclass(eq=False)
class _Serving:
    """One served lab; its fields are as `serve` takes them."""

    plan: LabPlan
    loop: PacedLoop
    chance: Chance
    folder: Path
    target: Path
    numbers: Mapping[str, int]

    def __post_init__(self) -> None:
        self._log = ByteLog()
        self._ports: dict[str, ServedPort] = {}
        self._stop = asyncio.Event()

    async def run(self, ready: Tell) -> None:
        """Open everything, say so, and wait for the end."""
        sim_lab = SimulatedLab(self.plan.file, Clock(self.loop), self.chance, wire_time=False)
        for name in sim_lab.framings:
            self._ports[name] = self._port(sim_lab, name)
        self._control = SimulationControl(sim_lab, self._log, self.status, self._stop.set)
        for each in STOP_SIGNALS:
            with suppress(NotImplementedError):  # Windows has none
                self.loop.add_signal_handler(each, self._stop.set)
        said = self.folder / CONTROL_NAME
        try:
            for port in self._ports.values():
                await port.open()
            clear_ports(self._given())  # their numbers were another's: nothing latched is of these
            await self._control.open()
            if self.plan.hazards.proof:
                tested = served_hazards(self.plan, wall_clock_utc().date())
                self._write(served_hazards_path(self.target), tested)
            ports = {name: port.address for name, port in self._ports.items()}
            text = served_text(self.plan, self._control.address, ports, self.target)
            self._write(self.target, text)
            self._write(said, self._control.address + "\n")
            ready(self.status())
            await self._stop.wait()
        finally:
            for port in self._ports.values():
                port.close()
            self._control.close()
            said.unlink(missing_ok=True)

    def _given(self) -> list[LinkAddress]:
        """Name the ports whose numbers the system has just given."""
        found = []
        for name, port in self._ports.items():
            if port.address.startswith("ws://"):
                found.append(LinkAddress(port=name, url=port.address))
            elif isinstance(port, TcpPort):
                host, _, number = port.address.rpartition(":")
                found.append(LinkAddress(port=name, host=host, tcp_port=int(number)))
        return found

    def status(self) -> dict[str, Any]:
        """Return the address of each port."""
        return {
            "lab": self.plan.file.lab.id,
            "pid": os.getpid(),
            "speed": self.loop.speed,
            "lab_time_s": self.loop.time(),
            "folder": str(self.folder),
            "control": self._control.address,
            "lab_file": str(self.target.absolute()),
            "ports": {name: port.address for name, port in self._ports.items()},
        }

    def _port(self, sim_lab: SimulatedLab, name: str) -> ServedPort:
        (row,) = (each for each in self.plan.file.port if each.name == name)
        if row.baud and (Path(name).name != name or name in OWN_NAMES):
            raise CannotServe(Text("simulate.port_name", name=name, taken=", ".join(OWN_NAMES)))
        face = sim_lab.framings[name]
        outlet = Outlet(
            name=name,
            bus=sim_lab.buses[name],
            face=face,
            baud=row.baud,
            speed=self.loop.speed,
            log=self._log,
        )
        if row.baud:
            return PtyPort(outlet, self.folder / name)
        if isinstance(face, JsonFace):
            from labharness.instruments.simulation.served_websocket import WebSocketPort

            return WebSocketPort(outlet, self.numbers.get(name, 0))
        return TcpPort(outlet, self.numbers.get(name, 0))

    def _write(self, path: Path, text: str) -> None:
        try:
            path.touch(mode=0o600)  # an alert's address may hold a secret
            path.write_text(text, "utf-8")
        except OSError as why:
            raise BadFolder("pair", what=str(path), why=why.strerror) from None
