"""Computes the times on the wire of each port, and checks them against the envelope."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from labharness.core.vocabulary import Exactly, LengthAt, Request, Rtu
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Scan
from labharness.line.exchanges import READ_TRIES
from labharness.line.instrument import Instrument, PortTiming, step_frames
from labharness.line.poll import TICK_S
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Envelope

BITS_PER_CHARACTER = 10  # 8N1
REPLY_BYTES_ASSUMED = 64  # an ASCII reply whose rule sets no length
INSTRUMENT_S = 0.010  # typical turn-round of the instruments of this set at a single-word exchange


@dataclass(frozen=True, slots=True)
class PortCost:
    """Times on one port's wire.

    Attributes:
        poll_s: One poll of all its scans, answered in time.
        longest_s: The longest exchange that may be in flight: the largest time-out.
        safe_s: Frames of the longest procedure on this port, answered in time.
    """

    port: str
    poll_s: float
    longest_s: float
    safe_s: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, and its place.

    Attributes:
        paste: The lines of a file that mend it, with where they belong; ``""`` where there
            are none.
    """

    where: str
    what: str
    paste: str = ""

    def __str__(self) -> str:
        return Text("pair", what=self.where, why=self.what)


def exchange_s(request: Request, baud: int) -> float:
    """Compute the time one answered exchange takes on the wire."""
    rule = request.reply
    if isinstance(rule, Rtu):
        reply = 5 + rule.byte_count if rule.byte_count is not None else 4 + len(rule.echo)
    elif isinstance(rule, Exactly):
        reply = rule.count
    elif isinstance(rule, LengthAt):
        reply = max(rule.lengths)
    else:
        reply = min(REPLY_BYTES_ASSUMED, getattr(rule, "bytes_max", REPLY_BYTES_ASSUMED))
    wire_s = (len(request.frame) + reply) * BITS_PER_CHARACTER / baud if baud else 0.0
    return wire_s + INSTRUMENT_S + request.settle_s


def scanned(instruments: Iterable[Instrument]) -> Iterator[tuple[str, Instrument, Scan]]:
    """Return each channel that a scan reads, by its full name, with instrument and scan."""
    for each in instruments:
        for scan in each.driver.scans():
            for channel in scan.channels:
                yield f"{each.name}.{channel}", each, scan


def answer_s(period_s: float, request: Request) -> float:
    """Return the longest time between two readings of a scan of which one reply is lost."""
    return max(period_s, TICK_S) + request.timeout_s * (READ_TRIES + 1)


def port_costs(
    instruments: Sequence[Instrument],
    timings: Mapping[str, PortTiming],
    procedures: Mapping[str, tuple[SafeFrame, ...]],
) -> Iterator[PortCost]:
    """Compute the times on each port's wire."""
    steps = step_frames(instruments)
    for port, timing in timings.items():
        requests = [
            request
            for each in instruments
            if each.port == port
            for scan in each.driver.polled()
            if (each.polls or {}).get(scan.name, scan.period_s) is not None
            for request in scan.requests
        ]
        writes = [
            [frame.request for frame in frames if frame.port == port]
            for frames in procedures.values()
        ]
        step_s = max((exchange_s(each, timing.baud) for each in steps.get(port, ())), default=0.0)
        yield PortCost(
            port,
            sum(exchange_s(request, timing.baud) + step_s for request in requests),
            max((request.timeout_s for request in requests), default=0.0),
            max((sum(exchange_s(r, timing.baud) for r in each) for each in writes), default=0),
        )


def check_wires(
    envelope: Envelope,
    instruments: Sequence[Instrument],
    timings: Mapping[str, PortTiming],
    procedures: Mapping[str, tuple[SafeFrame, ...]],
) -> Iterator[Finding]:
    """Prove that polls fit, one lost reply makes no reading stale, and procedures are fast."""
    for cost in port_costs(instruments, timings, procedures):
        where = Text("doctor.port", name=cost.port)
        if cost.poll_s > TICK_S:
            yield Finding(where, Text("wires.poll", poll_s=cost.poll_s, tick_s=TICK_S))
        worst_s = cost.longest_s + cost.safe_s
        for procedure in envelope.procedures.values():
            name, most_s = procedure.name, procedure.wire_s_max
            if worst_s > most_s:
                what = Text("wires.procedure", name=name, worst_s=worst_s, wire_s_max=most_s)
                yield Finding(where, what)
    for channel, each, scan in scanned(instruments):
        watch = envelope.watches.get(channel)
        if watch is None:
            continue
        period_s = (each.polls or {}).get(scan.name, scan.period_s)
        if scan.only_while is not None:
            yield Finding(channel, Text("wires.only_while", otherwise=scan.only_while.otherwise))
        elif period_s is None:
            yield Finding(channel, Text("wires.unpolled"))
        elif watch.stale_s < (needed_s := answer_s(period_s, scan.request)):
            what = Text("wires.stale", stale_s=watch.stale_s, needed_s=needed_s)
            yield Finding(channel, what)
