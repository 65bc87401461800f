"""The composition root: wires a lab's line behind its gate, over real links or a simulated lab."""

from collections.abc import Callable, Mapping

from labharness.core.clock import Chance, Clock
from labharness.core.vocabulary.hours import ALWAYS
from labharness.instruments.link import Link, LoopbackLink
from labharness.journal import Journal
from labharness.lab.config.lab_file import BadLabFile, PortRow
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.arming import armed_of, frames_on, guard_command
from labharness.lab.wiring.operators import ServedOperator, SimulatedOperator
from labharness.lab.wiring.simulated_lab import STEP_S, SimulatedLab
from labharness.line import Line
from labharness.line.instrument import read_frames, step_frames
from labharness.line.poll import TICK_S
from labharness.safety.guard import Guard, GuardCore, Latch, SafeFrame
from labharness.safety.guard.armed import Armed
from labharness.safety.guard.shell import LoopGuard
from labharness.work.plan import Operator


class Lab:
    """One opened lab: its line behind the gate, and where there is one its simulated lab.

    Attributes:
        guard: The guard on this loop; ``line.guard`` has the ports of the guard process too.

    Args:
        plan: Its files, read.
        clock: The run's time.
        chance: The run's seed.
        journal: The journal of the run's facts.
        operator: The operator of manual steps, where the lab file names a person.
        tick_s: Poll period of the line.
        nominal: A plant without scatter and noise, stepped as coarsely as it is polled; every
            port is a loopback to it, whatever link the file names.
        sim_lab: The simulated lab, where it was there before this harness and outlives it.
        latch: Reads the latch from its path, and from the records of the real ports.
    """

    def __init__(
        self,
        plan: LabPlan,
        *,
        clock: Clock,
        chance: Chance,
        journal: Journal,
        operator: Operator | None = None,
        tick_s: float = TICK_S,
        nominal: bool = False,
        sim_lab: SimulatedLab | None = None,
        latch: Callable[..., Latch] = Latch,
    ) -> None:
        plan = plan.with_file(plan.file.on_loopbacks()) if nominal else plan
        file = plan.file
        self.plan = plan
        self.clock = clock
        self.nominal = nominal
        self.simulated = sim_lab
        if sim_lab is None and any(row.link == "loopback" for row in file.port):
            step_s = tick_s if nominal else STEP_S
            self.simulated = SimulatedLab(file, clock, chance, step_s=step_s, nominal=nominal)
        plan.make_state_dir()
        procedures = plan.procedures()
        armed = None if nominal else armed_of(plan, procedures, plan.safe_procedure)
        far = () if armed is None else tuple(port.name for port in armed.ports)
        buses = {} if self.simulated is None else self.simulated.buses
        self.links: dict[str, Link] = {
            row.name: LoopbackLink(buses[row.name]) if row.link == "loopback" else real_link(row)
            for row in file.port
            if row.name not in far
        }
        ports = None if nominal else plan.port_latch()
        self.guard = self._near_guard(procedures, latch(plan.state_dir / "latch.json", ports=ports))
        whole = self._whole_guard(armed, procedures)
        self.line = Line(
            envelope=plan.envelope,
            instruments=plan.instruments,
            guard=whole,
            links=self.links,
            journal=journal,
            clock=clock,
            tick_s=tick_s,
            attended=plan.file.lab.attended == ALWAYS,
            room=plan.room,
            cold=plan.cold,
        )
        self.operator = operator or self._own_operator()

    def _near_guard(
        self, procedures: Mapping[str, tuple[SafeFrame, ...]], latch: Latch
    ) -> LoopGuard:
        """Return the guard of the ports that stay in this process."""
        near = dict(self.links)
        found = read_frames(self.plan.instruments)
        reads = {port: frames for port, frames in found.items() if port in near}
        echoes = [row.name for row in self.plan.file.port if row.echo]
        core = GuardCore(
            reads, frames_on(near, procedures), step_frames(self.plan.instruments), echoes
        )
        return LoopGuard(core, near, latch)

    def _whole_guard(
        self, armed: Armed | None, procedures: Mapping[str, tuple[SafeFrame, ...]]
    ) -> Guard:
        """Return the line its guard: the guard process for the ports that it can hold."""
        if armed is None:
            return self.guard
        from labharness.safety.guard.remote import RemoteGuard, SplitGuard

        near = tuple(self.links)
        latch = self.plan.port_latch(near)
        remote = RemoteGuard(armed, self.plan.state_dir, guard_command(self.plan.path), latch)
        self.links |= {port.name: remote.link(port.name) for port in armed.ports}
        return SplitGuard(remote, self.guard, procedures) if near else remote

    def _own_operator(self) -> Operator:
        row = self.plan.file.operator
        if row.control is not None:
            return ServedOperator(row.control, row.delay_s)
        if row.kind != "simulated" or self.simulated is None:
            raise BadLabFile("operator.nobody", path=str(self.plan.path), kind=row.kind)
        return SimulatedOperator(self.simulated, row.delay_s)


def real_link(row: PortRow) -> Link:
    """Return the link of a port that leads to a real instrument; it is not open.

    Raises:
        ImportError: The package of this kind of link is not installed.
        ValueError: The address is none.
    """
    if row.link == "serial":
        from labharness.instruments.link.serial_port import SerialLink

        return SerialLink(str(row.path), row.baud, row.parity, row.stop_bits)
    if row.link == "tcp":
        from labharness.instruments.link.tcp import TcpLink

        return TcpLink(str(row.host), int(row.port or 0))
    if row.link == "visa":
        from labharness.instruments.link.visa import VisaLink

        return VisaLink(str(row.resource))
    from labharness.instruments.link.websocket import WebSocketLink

    return WebSocketLink(str(row.url))
