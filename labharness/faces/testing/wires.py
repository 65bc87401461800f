"""Record every frame at the instruments' end of a test's wires, and prove each frame's source.

The proof compares the instruments' end of each simulated bus with the guard's log. Each frame that
was heard must have left as an exact read, under a permit or in a procedure. On wires without
injected faults both lists must be equal, in the same order.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple
from unittest.mock import patch

from labharness.core.errors import LabError
from labharness.core.vocabulary import Request
from labharness.instruments.driver.driver import reads_of
from labharness.instruments.simulation import SimulatedBus, WireRecord
from labharness.lab import Lab
from labharness.safety.guard import Sent, Source

TEXT_BYTES_MAX = 512  # of one frame in the text; a spectrum is 10 kB, and ``passed`` keeps it all


class WireProofFailed(LabError, AssertionError, code="wire_proof_failed"):
    """An instrument heard a frame that the guard did not let out in that role."""


class Passed(NamedTuple):
    """One frame on a wire.

    Attributes:
        lab: Number of the test's lab, from 0.
        at_s: Lab time since that lab's loop began.
        port: The port's name.
        heard: Whether it went to an instrument; else it came from one.
        data: Its bytes.
    """

    lab: int
    at_s: float
    port: str
    heard: bool
    data: bytes

    def __str__(self) -> str:
        """Return a line of the log: hex, and also text if the bytes are text."""
        shown = self.data[:TEXT_BYTES_MAX]
        left = len(self.data) - len(shown)
        more = f" and {left} bytes more" if left else ""
        spoken = shown.decode("ascii") if shown.isascii() else "\0"
        text = f"  {spoken!r}" if "".join(spoken.split()).isprintable() else ""
        arrow = ">" if self.heard else "<"
        return f"{self.at_s:14.6f} {self.port:12} {arrow} {shown.hex(' ').upper()}{more}{text}"


class WatchedLabs:
    """The labs built during the watch, with both ends of their wires recorded.

    Attributes:
        labs: The labs, in the order of building.
        flights: The labs of pre-flights; their wires are proven too.
        seeds: The seed of each lab that is or was in ``labs``; a test may remove some.
    """

    def __init__(self) -> None:
        self.labs: list[Lab] = []
        self.flights: list[Lab] = []
        self.seeds: dict[Lab, int | None] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record both ends of every wire of every lab that is built meanwhile."""
        build = Lab.__init__

        def recorded(lab: Lab, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Lab's own
            build(lab, *args, **options)
            if options.get("sim_lab") is not None:
                return  # its wires outlive this harness, and carry other harnesses' frames too
            lab.guard.core.log = []
            for bus in _buses(lab).values():
                bus.record = WireRecord()
            if lab.nominal:
                self.flights.append(lab)
            else:
                self.labs.append(lab)
                self.seeds[lab] = options["chance"].seed

        # commands build their labs themselves; all of them pass through the class
        with patch.object(Lab, "__init__", recorded):
            yield

    def prove(self) -> None:
        """Prove the wires of every lab.

        Raises:
            WireProofFailed: A frame has no source, or the two ends differ.
        """
        for lab in (*self.labs, *self.flights):
            prove_sources(lab)


class WireLog:
    """All frames at the instruments' end of a test's wires, without those of pre-flights.

    ``str()`` returns one line per frame: lab time in seconds, port, ``>`` to an instrument or ``<``
    from it, and the bytes.
    """

    def __init__(self, labs: Sequence[Lab]) -> None:
        self._labs = labs

    @property
    def passed(self) -> list[Passed]:
        """Every frame, lab by lab, in the order of time."""
        return [each for number in range(len(self._labs)) for each in self.of(number)]

    def of(self, number: int) -> list[Passed]:
        """Return the frames of one lab of the test, from 0, in the order of time."""
        found = [
            Passed(number, at_s, port, heard, data)
            for port, bus in _buses(self._labs[number]).items()
            if bus.record is not None
            for at_s, heard, data in bus.record.passed
        ]
        return sorted(found, key=lambda each: each.at_s)

    def heard(self, port: str | None = None) -> list[bytes]:
        """Return the frames that instruments heard, on one port or on all."""
        return [each.data for each in self._on(port) if each.heard]

    def said(self, port: str | None = None) -> list[bytes]:
        """Return the replies that came back, on one port or on all."""
        return [each.data for each in self._on(port) if not each.heard]

    def written(self, port: str | None = None) -> list[bytes]:
        """Return the frames that instruments heard and that are not exact reads: commands."""
        reads = [{name: _Reads(lab, name) for name in lab.guard.core.ports} for lab in self._labs]
        heard = (each for each in self._on(port) if each.heard)
        return [each.data for each in heard if not reads[each.lab][each.port].has(each.data)]

    def __str__(self) -> str:
        """Return the log, one frame a line."""
        return "".join(f"{each}\n" for each in self.passed)

    def _on(self, port: str | None) -> list[Passed]:
        ports = {name for lab in self._labs for name in lab.guard.core.ports}
        if port is not None and port not in ports:
            raise LookupError(f"no port {port!r}; this lab has {', '.join(sorted(ports))}")
        return [each for each in self.passed if port in (None, each.port)]


class _Reads:
    """The exact read frames of one port, with any transaction id."""

    def __init__(self, lab: Lab, port: str) -> None:
        self._frames = lab.guard.core.ports[port].reads
        self._blanks = [each for each in _requests(lab, port) if each.transaction is not None]

    def blanked(self, frame: bytes) -> bytes:
        """Return a frame with its transaction field blank again."""
        for request in self._blanks:
            blank = request.transaction
            if blank is not None:
                end = blank.offset + blank.size
                return frame[: blank.offset] + request.frame[blank.offset : end] + frame[end:]
        return frame

    def has(self, frame: bytes) -> bool:
        return self.blanked(frame) in self._frames


def prove_sources(lab: Lab) -> None:
    """Compare the frames that a lab's instruments heard with its guard's log, port by port.

    Raises:
        WireProofFailed: A frame has no source, or the two ends differ.
    """
    log = lab.guard.core.log or []
    for port, bus in _buses(lab).items():
        left = [sent for sent in log if sent.port == port]
        _prove_reasons(lab, port, left)
        heard = bus.record.frames if bus.record is not None else []
        frames = [sent.frame for sent in left]
        if bus.faults.injected:
            rest = iter(frames)
            stray = next((frame for frame in heard if frame not in rest), None)
        else:
            pairs = zip_longest(heard, frames)
            stray = next((there or here for there, here in pairs if there != here), None)
        if stray is not None:
            raise WireProofFailed(
                f"port {port!r}: the guard let out {len(left)} frames and the instruments heard "
                f"{len(heard)}; the first without its like is {stray.hex(' ').upper()} {stray!r}"
            )


def _prove_reasons(lab: Lab, port: str, left: Sequence[Sent]) -> None:
    reads = _Reads(lab, port)
    procedures = {
        safe.request.frame
        for frames in lab.guard.core.procedures.values()
        for safe in frames
        if safe.port == port
    }
    for sent in left:
        if sent.source is Source.PROCEDURE:
            right = reads.blanked(sent.frame) in procedures
        else:
            right = reads.has(sent.frame) is (sent.source is Source.READ)
        if not right:
            raise WireProofFailed(
                f"port {port!r}: {sent.frame.hex(' ').upper()} {sent.frame!r} left as "
                f"{sent.source.value} and is none"
            )


def _buses(lab: Lab) -> Mapping[str, SimulatedBus]:
    """Return a lab's simulated buses by port; none for real links."""
    sim_lab = lab.simulated
    return {} if sim_lab is None else sim_lab.buses


def _requests(lab: Lab, port: str) -> list[Request]:
    requests = []
    for instrument in lab.plan.instruments:
        if instrument.port == port:
            requests += [request for _, request in reads_of(instrument.driver)]
    return requests
