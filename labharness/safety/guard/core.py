"""The guard's core: it decides which bytes may leave which port, and when (sans I/O).

Rule 1: a frame leaves a port for one of three reasons only: it stands in the port's exact
set of reads; it carries a permit for this frame, this port, this epoch, once, not expired; or it
belongs to a procedure.
Rule 2: nothing in this file sends, waits, or knows what time it is: callers say ``now``.
Rule 3: a procedure is never refused, and waits only for the exchange that is already on the wire.

The exchange on one port is in ``port.py``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from labharness.core.errors import LabError
from labharness.core.vocabulary import Request
from labharness.safety.guard.port import IDLE, SENT, Port, SafeFrame

PERMIT_S_MAX = 2.0  # a permit older than this is void, whatever its epoch
PERMITS_MAX = 64  # outstanding at once; the line has one writer, so a few is all there ever are


class NotPermitted(LabError, PermissionError, code="not_permitted"):
    """A frame may not leave; nothing was sent."""


class Source(StrEnum):
    """Why a frame left."""

    READ = "read"
    PERMIT = "permit"
    PROCEDURE = "procedure"


READ, PERMIT, PROCEDURE = Source.READ, Source.PERMIT, Source.PROCEDURE


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave for one frame, on one port, in one epoch, once."""

    number: int
    port: str
    frame: bytes
    epoch: int
    expires_s: float


@dataclass(frozen=True, slots=True)
class Sent:
    """One frame that left, for the byte log."""

    port: str
    frame: bytes
    source: Source


class GuardCore:
    """All ports of a line, the epoch, the permits, the procedures and the latch.

    Args:
        reads: For each port the exact set of frames that read.
        procedures: For each procedure its frames, in order of hazard.
        steps: For each port the reads that prove it in step, if its replies do not say whose answer
            they are.
        echoes: The ports whose adapter gives back what is sent.
    """

    def __init__(
        self,
        reads: Mapping[str, Iterable[bytes]],
        procedures: Mapping[str, tuple[SafeFrame, ...]],
        steps: Mapping[str, tuple[Request, ...]] | None = None,
        echoes: Iterable[str] = (),
    ) -> None:
        given_back = frozenset(echoes)
        self.ports = {
            name: Port(name, frozenset(frames), (steps or {}).get(name, ()), name in given_back)
            for name, frames in reads.items()
        }
        for port in self.ports.values():
            for step in port.steps:
                if step.frame not in port.reads:
                    told = step.frame[:40].hex(" ")
                    raise ValueError(f"port {port.name}: the step {told} is none of its reads")
        self.procedures = dict(procedures)
        self._waves = {name: _by_port(frames) for name, frames in procedures.items()}
        self.epoch = 0
        self.armed = False
        self.latched = False
        self.log: list[Sent] | None = None
        self._permits: dict[int, Permit] = {}
        self.permit_count = 0

    def new_epoch(self) -> None:
        """Void every permit: something changed that a verdict may have rested on."""
        self.epoch += 1
        self._permits.clear()

    def arm(self) -> None:
        """Let permits be made; refused while latched."""
        if self.latched:
            raise NotPermitted("the line is latched: it takes a reset by a named person")
        self.new_epoch()
        self.armed = True

    def disarm(self) -> None:
        """Make the line read-only again."""
        self.new_epoch()
        self.armed = False

    def permit(self, port: str, frame: bytes, now: float) -> Permit:
        """Make a permit for a frame that the kernel has just allowed."""
        self._make_space(port, now)
        self.permit_count += 1
        permit = Permit(self.permit_count, port, frame, self.epoch, now + PERMIT_S_MAX)
        self._permits[permit.number] = permit
        return permit

    def admit(self, permit: Permit, now: float) -> None:
        """Take a permit that was made elsewhere, after its seal was found to fit.

        Numbers only rise, so that no permit is taken twice. Epoch, expiry, port and frame are
        checked when it is used.

        Raises:
            NotPermitted: No permit could be made here now, or this one is old or too long-lived.
        """
        self._make_space(permit.port, now)
        if permit.number <= self.permit_count:
            raise NotPermitted(f"permit {permit.number} was seen before")
        if not permit.expires_s <= now + PERMIT_S_MAX:
            raise NotPermitted(f"permit {permit.number} is to live longer than {PERMIT_S_MAX:g} s")
        self.permit_count = permit.number
        self._permits[permit.number] = permit

    def send(self, port_name: str, request: Request, now: float, permit: Permit | None) -> bytes:
        """Return the bytes to hand over for this request.

        Raises:
            NotPermitted: The frame is not a read of this port and its permit does not hold, or the
                port is in an exchange.
        """
        port = self.ports[port_name]
        if port.state is not IDLE or port.safe:
            raise NotPermitted(f"port {port_name} is in an exchange")
        if permit is None:
            if request.frame not in port.reads:
                raise NotPermitted(
                    f"{request.frame[:40].hex(' ')} is not a read of port {port_name} "
                    "and carries no permit"
                )
            source = READ
        else:
            self._use(permit, port_name, request.frame, now)
            source = PERMIT
        frame = port.put(request, None, now)
        if self.log is not None:
            self.log.append(Sent(port_name, frame, source))
        return frame

    def trip(self, procedure: str) -> tuple[str, ...]:
        """Void every permit, latch, and queue the procedure's frames on their ports.

        Returns:
            The ports with frames to send, the most hazardous first. A more severe procedure that
            follows replaces what still waits.
        """
        self.new_epoch()
        self.latched = True
        return self._queue(self._waves[procedure])

    def queue(self, frames: Iterable[SafeFrame]) -> tuple[str, ...]:
        """Queue single frames of a procedure: a retry, or without a trip."""
        return self._queue(_by_port(frames))

    def send_safe(self, port_name: str, now: float) -> bytes | None:
        """Return the next waiting frame of a procedure, unless an exchange is on the wire."""
        port = self.ports[port_name]
        if port.state is SENT or not port.safe:
            return None
        safe = port.safe.popleft()
        frame = port.put(safe.request, safe, now)
        if self.log is not None:
            self.log.append(Sent(port_name, frame, PROCEDURE))
        return frame

    def prove(self, port_name: str, now: float) -> bytes | None:
        """Return the read that is to show whether a port is in step, if one is due."""
        frame = self.ports[port_name].prove(now)
        if frame is not None and self.log is not None:
            self.log.append(Sent(port_name, frame, READ))
        return frame

    def reset(self) -> None:
        """Open the latch, which starts nothing; the line has checked the person and the cause."""
        self.latched = self.armed = False
        self.new_epoch()

    def _queue(self, waves: Mapping[str, Sequence[SafeFrame]]) -> tuple[str, ...]:
        for name, waiting in waves.items():
            port = self.ports[name]
            port.safe.clear()
            port.safe.extend(waiting)
        return tuple(waves)

    def _make_space(self, port: str, now: float) -> None:
        if self.latched or not self.armed:
            why = "latched" if self.latched else "not armed"
            raise NotPermitted(f"no permit for port {port}: the line is {why}")
        if len(self._permits) >= PERMITS_MAX:
            live = {n: each for n, each in self._permits.items() if now <= each.expires_s}
            self._permits = live
        if len(self._permits) >= PERMITS_MAX:
            raise NotPermitted(f"{PERMITS_MAX} permits are outstanding already")

    def _use(self, permit: Permit, port_name: str, frame: bytes, now: float) -> None:
        known = self._permits.pop(permit.number, None)
        if known != permit:
            raise NotPermitted(f"permit {permit.number} is unknown, used, or void")
        if permit.port != port_name or permit.frame != frame:
            raise NotPermitted(f"permit {permit.number} is for another frame or port")
        if permit.epoch != self.epoch:
            raise NotPermitted(f"permit {permit.number} is of epoch {permit.epoch}")
        if not now <= permit.expires_s:
            raise NotPermitted(f"permit {permit.number} has expired")


def _by_port(frames: Iterable[SafeFrame]) -> dict[str, list[SafeFrame]]:
    """Return the frames of each port by hazard, the port of the most hazardous one first."""
    order: dict[str, list[SafeFrame]] = {}
    for frame in sorted(frames, key=lambda each: each.step):
        order.setdefault(frame.port, []).append(frame)
    return order
