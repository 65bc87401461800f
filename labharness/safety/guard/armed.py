"""armed.json: everything that the guard process knows of a lab; it is read strictly.

It holds the frames that each port may send without a permit, the frames of each procedure with
their meaning, how each port is opened, and how long the harness may be silent. A person who can
write this file decides what is safe. It lies in the lab's state directory and takes the same care
as the lab file.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import labharness.safety.guard.messages as messages
from labharness.core.errors import LabError
from labharness.core.files.named import open_named
from labharness.core.vocabulary import Protocol, Request, same_frame, why_no_read
from labharness.instruments.link.identity import LinkAddress
from labharness.safety.guard.core import GuardCore
from labharness.safety.guard.messages import BadFields, Fields
from labharness.safety.guard.port import LEARNT_AFTER, SafeFrame

ARMED_FILE = "armed.json"
FILE_BYTES_MAX = 16 * 1024 * 1024  # a thousand times what a lab file has
FORMAT = 3
SILENCE_S_RANGE = (0.2, 5.0)
PROCEDURE_FRAMES_MAX = 256
PARITIES, STOP_BITS = ("N", "E", "O"), (1, 2)
HEAD = messages.kinds_of(
    "lab text, lab_digest text, envelope_digest text, silence_s_max number, safe_table text, "
    "lost text"
)
SERIAL, TCP = (
    messages.kinds_of(
        f"name text, link text, {own}, protocol protocol, exchange_s_max seconds, reads requests, "
        "steps requests"
    )
    for own in (
        "path text, baud whole, parity text, stop_bits whole, echoes flag",
        "host text, tcp_port whole",
    )
)
LINKS = {"serial": SERIAL, "tcp": TCP}
"""The fields of a port, by its link."""


class BadArming(LabError, ValueError, code="bad_arming", usage=True):
    """armed.json is missing or wrong; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedPort:
    """One port: its link, and the frames that may leave it without a permit.

    Attributes:
        name: The port's name.
        link: ``serial`` or ``tcp``.
        path: Device node of a serial port; ``""`` on TCP.
        baud: Its speed (baud).
        parity: ``N``, ``E`` or ``O``.
        stop_bits: 1 or 2.
        echoes: Whether its adapter gives back what is sent.
        host: Name or address on TCP; ``""`` on a serial port.
        tcp_port: TCP port.
        protocol: Its protocol; a read on Modbus must be a reading function by its own frame.
        exchange_s_max: A request with a longer time-out is refused: a procedure waits for it (s).
        reads: The exact set of requests that read.
        steps: Those of them that prove the port in step; ``()`` where each reply shows whose answer
            it is.
    """

    name: str
    link: str
    path: str = ""
    baud: int = 0
    parity: str = "N"
    stop_bits: int = 1
    echoes: bool = False
    host: str = ""
    tcp_port: int = 0
    protocol: Protocol = Protocol.TEXT
    exchange_s_max: float = 1.0
    reads: tuple[Request, ...] = ()
    steps: tuple[Request, ...] = ()

    @property
    def proof_s(self) -> float:
        """Return how much longer an exchange may take where a step follows it (s)."""
        return (1 + LEARNT_AFTER) * max((step.timeout_s for step in self.steps), default=0.0)

    @property
    def address(self) -> LinkAddress:
        """The name of this port for its lock and its latch on this machine."""
        return LinkAddress(port=self.name, path=self.path, host=self.host, tcp_port=self.tcp_port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """The contents of armed.json.

    Attributes:
        lab: The lab's id.
        lab_digest: Digest of its lab file.
        envelope_digest: Digest of its envelope.
        silence_s_max: The harness is lost after this long without a heartbeat (s).
        safe_table: Procedure that a guard begins with after a crash.
        lost: Procedure for a lost harness, unless its last heartbeat named another.
        ports: The ports.
        procedures: Each procedure's frames on these ports, in order of hazard.
    """

    lab: str
    lab_digest: str
    envelope_digest: str
    silence_s_max: float
    safe_table: str
    lost: str
    ports: tuple[ArmedPort, ...]
    procedures: Mapping[str, tuple[SafeFrame, ...]]

    def text(self) -> str:
        """Write it as armed.json."""
        body = {
            "format": FORMAT,
            **messages.written(HEAD, self),
            "ports": [messages.written(LINKS[port.link], port) for port in self.ports],
            "procedures": {
                name: [messages.write_safe(safe) for safe in frames]
                for name, frames in self.procedures.items()
            },
        }
        return json.dumps(body, indent=1, ensure_ascii=False) + "\n"

    def core(self) -> GuardCore:
        """Make the guard's core for these ports."""
        reads = {port.name: [request.frame for request in port.reads] for port in self.ports}
        steps = {port.name: port.steps for port in self.ports}
        echoes = [port.name for port in self.ports if port.echoes]
        return GuardCore(reads, self.procedures, steps, echoes)


def arming_digest(text: str) -> str:
    """Return the digest by which guard and harness know that they hold the same arming."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_armed(text: str) -> Armed:
    """Read armed.json.

    Raises:
        BadArming: The text is not an arming of this format.
    """
    try:
        fields = Fields(json.loads(text), ARMED_FILE)
        found = fields.whole("format")
        if found != FORMAT:
            raise BadFields(f"{ARMED_FILE} is of format {found}, this guard reads {FORMAT}")
        ports = tuple(_read_port(each, number) for number, each in enumerate(fields.items("ports")))
        table = fields.inside("procedures")
        names = [port.name for port in ports]
        procedures = {name: _read_procedure(table, name, names) for name in table.names()}
        _only_reads(ports, procedures)
        named = {name: fields.one_of(name, procedures) for name in ("safe_table", "lost")}
        armed = Armed(
            ports=ports, procedures=procedures, **messages.read_all(HEAD, fields, **named)
        )
        silence_s, (low, high) = armed.silence_s_max, SILENCE_S_RANGE
        if not low <= silence_s <= high:
            raise BadFields(f"silence_s_max is {silence_s:g} s, allowed {low:g} to {high:g} s")
    except (BadFields, json.JSONDecodeError, RecursionError) as why:
        raise BadArming(str(why)) from None
    if not ports or len(set(names)) != len(names):
        raise BadArming(
            f"{ARMED_FILE}: ports {', '.join(names) or 'none'}; each once, at least one"
        )
    return armed


def read_whole(path: Path) -> str:
    """Read a file that a person or the harness wrote.

    Raises:
        BadArming: The file is too long or not a text.
        OSError: The file cannot be read.
    """
    with open_named(path) as file:
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise BadArming(f"it is longer than {FILE_BYTES_MAX} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as why:
        raise BadArming(f"it is not text in UTF-8: {why.reason} at byte {why.start}") from None


def _only_reads(
    ports: tuple[ArmedPort, ...], procedures: Mapping[str, tuple[SafeFrame, ...]]
) -> None:
    """Refuse frames that cannot be reads: a read leaves without a permit.

    This process has no drivers, so it does not know the grammars of text protocols; the harness
    checks them where it reads the lab's files.
    """
    safe = [each for frames in procedures.values() for each in frames]
    for port in ports:
        for request in (*port.reads, *port.steps):
            why = why_no_read(request, port.protocol)
            sets = [e for e in safe if e.port == port.name and same_frame(request, e.request)]
            if not why and sets:
                why = f"it is a frame that sets {sets[0].channel} to {sets[0].value:g}"
            if why:
                raise BadFields(
                    f"{ARMED_FILE}, port {port.name}: {request.frame.hex(' ')} is not a read: {why}"
                )


def _read_port(value: object, number: int) -> ArmedPort:
    fields = Fields(value, f"{ARMED_FILE}, port {number + 1}")
    link = fields.one_of("link", LINKS)
    port = ArmedPort(**messages.read_all(LINKS[link], fields, link=link))
    where = f"{ARMED_FILE}, port {port.name}"
    if port.stop_bits not in STOP_BITS:
        raise BadFields(f"{where}: stop_bits is {port.stop_bits}, allowed 1 or 2")
    if port.parity not in PARITIES:
        raise BadFields(f"{where}: parity {port.parity!r} is none of {', '.join(PARITIES)}")
    return port


def _read_procedure(table: Fields, name: str, ports: list[str]) -> tuple[SafeFrame, ...]:
    where = f"{ARMED_FILE}, procedure {name}"
    values = table.items(name)
    if len(values) > PROCEDURE_FRAMES_MAX:
        raise BadFields(f"{where}: {len(values)} frames, allowed {PROCEDURE_FRAMES_MAX}")
    frames = tuple(messages.read_safe(Fields(each, where)) for each in values)
    for frame in frames:
        if frame.port not in ports:
            raise BadFields(f"{where}: no port {frame.port!r}; there are {', '.join(ports)}")
    return frames
