"""Compiles the arming of the guard process from a lab's files, and writes it as armed.json."""

import sys
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from labharness.core.files.durable import write_durably
from labharness.core.vocabulary import Cause, Request
from labharness.core.vocabulary.channels import split_channel
from labharness.instruments.driver.driver import reads_of
from labharness.lab.config.lab_file import PortRow
from labharness.lab.config.proven import port_protocol
from labharness.line import Instrument
from labharness.line.instrument import step_frames
from labharness.safety.guard import SafeFrame
from labharness.safety.guard.armed import ARMED_FILE, Armed, ArmedPort
from labharness.safety.kernel import Envelope

if TYPE_CHECKING:
    from labharness.lab.config.lab_plan import LabPlan

GUARDED = ("serial", "tcp")  # links that the guard process takes
SILENCE_S_MAX = 0.5  # five heartbeats


def armed_of(
    plan: "LabPlan", procedures: Mapping[str, tuple[SafeFrame, ...]], safe_table: str
) -> Armed | None:
    """Compile the arming of a lab; ``None`` where the guard process has no port."""
    rows = [row for row in plan.file.port if row.link in GUARDED]
    if not rows:
        return None
    return Armed(
        lab=plan.file.lab.id,
        lab_digest=plan.lab_digest,
        envelope_digest=plan.envelope_digest,
        silence_s_max=SILENCE_S_MAX,
        safe_table=safe_table,
        lost=plan.envelope.procedure_of[Cause.COMMUNICATION],
        ports=tuple(_port(row, plan) for row in rows),
        procedures=frames_on({row.name for row in rows}, procedures),
    )


def frames_on(
    ports: Container[str], procedures: Mapping[str, tuple[SafeFrame, ...]]
) -> dict[str, tuple[SafeFrame, ...]]:
    """Return the frames of each procedure that go to these ports."""
    return {
        name: tuple(frame for frame in frames if frame.port in ports)
        for name, frames in procedures.items()
    }


def write_armed(state_dir: Path, armed: Armed) -> Path:
    """Write armed.json; raises ``OSError``."""
    state_dir.mkdir(parents=True, exist_ok=True)
    path = state_dir / ARMED_FILE
    write_durably(path, armed.text())
    return path


def guard_command(lab_file: Path) -> tuple[str, ...]:
    """Return the command that starts the guard process of a lab for one run."""
    guard = (sys.executable, "-m", "labharness.faces.cli", "guard")
    return (*guard, str(lab_file.resolve()), "--once")


def _port(row: PortRow, plan: "LabPlan") -> ArmedPort:
    here = [each for each in plan.instruments if each.port == row.name]
    reads = [request for each in here for _, request in reads_of(each.driver)]
    writes = [request for each in here for request in _writes(each, plan.envelope)]
    longest_s = max((each.timeout_s + each.settle_s for each in (*reads, *writes)), default=0.0)
    return ArmedPort(
        name=row.name,
        link=row.link,
        path=row.path or "",
        baud=row.baud,
        parity=row.parity,
        stop_bits=row.stop_bits,
        echoes=row.echo,
        host=row.host or "",
        tcp_port=row.port or 0,
        protocol=port_protocol(here),
        exchange_s_max=longest_s,
        reads=tuple({request.frame: request for request in reads}.values()),
        steps=step_frames(here).get(row.name, ()),
    )


def _writes(instrument: Instrument, envelope: Envelope) -> tuple[Request, ...]:
    """Return a write of each channel that the envelope lets be set, for its time-out alone."""
    found: list[Request] = []
    for name, limit in envelope.limits.items():
        owner, channel = split_channel(name)
        if owner == instrument.name:
            with suppress(ValueError):  # the wire may not carry the least value allowed
                found += instrument.driver.write(channel, limit.low)
    return tuple(found)
