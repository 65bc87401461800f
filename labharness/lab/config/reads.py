"""Proves that the reads of a lab's drivers write nothing, before any of them is sent.

A read leaves its port without a permit, so a driver's word for it is not enough. On Modbus the
frame itself is asked (functions 1 to 4); elsewhere the grammars of writes, which the drivers of the
port state; and on every port no read may be a frame that anything on the port can write.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from labharness.core.vocabulary import Program, Protocol, Request, Segment, same_frame
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.driver import Driver
from labharness.instruments.driver.reads import is_written, reads_of, shown, unproven
from labharness.line import Instrument
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Envelope

CHOICES_MAX = 256  # a range of whole numbers up to this long is tried number by number

_Write = tuple[str, Request]  # its effect, and its frame


def unproven_reads(
    instruments: Sequence[Instrument],
    envelope: Envelope,
    procedures: Mapping[str, Sequence[SafeFrame]],
    real_ports: Sequence[str],
) -> Iterator[str]:
    """Return the faults in the reads of a lab's drivers, port by port.

    Args:
        instruments: The line's.
        envelope: The settable channels and their limits.
        procedures: The frames that make safe.
        real_ports: Ports on which a driver that can set something is refused unless it states its
            grammar of writes.
    """
    for port in dict.fromkeys(each.port for each in instruments):
        here = [each for each in instruments if each.port == port]
        bad = [why for each in here for why in _bad_grammar(each, port in real_ports)]
        yield from bad
        if bad:
            continue
        writes = [one for each in here for one in _writes(each, envelope)]
        writes += [one for name, frames in procedures.items() for one in _safe(name, frames, port)]
        for each in here:
            yield from _not_in_its_grammar(each, envelope)
            yield from _reads(each, here, writes)


def port_protocol(instruments: Sequence[Instrument]) -> Protocol:
    """Return the protocol of a port: text, unless all its instruments speak one Modbus."""
    spoken = {each.driver.protocol for each in instruments}
    return spoken.pop() if len(spoken) == 1 else Protocol.TEXT


def _reads(
    instrument: Instrument, here: Sequence[Instrument], writes: Sequence[_Write]
) -> Iterator[str]:
    drivers = [(each.name, each.driver) for each in here]
    # The protocol of its own driver is checked, and the one that all on the port share.
    protocols = dict.fromkeys((instrument.driver.protocol, port_protocol(here)))
    for what, request in reads_of(instrument.driver):
        whys = [why for each in protocols if (why := unproven(request, each, drivers))]
        does = [doing for doing, each in writes if same_frame(request, each)]
        if does:
            whys.append(Text("reads.frame", does=does[0]))
        if whys:
            who = Text("reads.of", name=instrument.name, kind=instrument.kind, what=what)
            yield Text("reads.no_read", who=who, request=shown(request), known=several(*whys))


def _bad_grammar(instrument: Instrument, real: bool) -> Iterator[str]:
    driver = instrument.driver
    who = Text("reads.instrument", name=instrument.name, kind=instrument.kind)
    for each in driver.write_grammar:
        try:
            re.compile(each, re.DOTALL).fullmatch(b"")
        except (re.error, TypeError) as why:
            yield Text("reads.grammar", who=who, each=repr(each), why=str(why))
    settable = [name for name, each in driver.channels.items() if each.settable]
    silent = driver.protocol == Protocol.TEXT and not driver.write_grammar
    if silent and settable and real:
        yield Text("reads.no_grammar", who=who, known=", ".join(settable))


def _not_in_its_grammar(instrument: Instrument, envelope: Envelope) -> Iterator[str]:
    """Check a grammar against the driver's writes: one that does not cover them proves nothing."""
    driver = instrument.driver
    if not driver.write_grammar:
        return
    for doing, request in _writes(instrument, envelope):
        if not is_written(request, driver.write_grammar):
            who = Text("reads.instrument", name=instrument.name, kind=instrument.kind)
            yield Text("reads.not_in_grammar", who=who, request=shown(request), doing=doing)
            return


def _writes(instrument: Instrument, envelope: Envelope) -> Iterator[_Write]:
    """Return the frames that an instrument's driver writes, with the effect of each."""
    driver = instrument.driver
    for name, limit in envelope.limits.items():
        owner, channel = split_channel(name)
        if owner != instrument.name:
            continue
        values = {limit.low, limit.high, 0.0, 1.0, *limit.always_safe}
        values |= {value for each, value in instrument.prepare if each == channel}
        values |= {
            step.value
            for procedure in envelope.procedures.values()
            for step in procedure.steps
            if step.channel == name
        }
        if limit.unit == "" and limit.high - limit.low <= CHOICES_MAX:
            values |= {float(each) for each in range(round(limit.low), round(limit.high) + 1)}
        for value in sorted(values):
            with suppress(ValueError):  # a value that does not fit the wire is never written
                for request in driver.write(channel, value):
                    yield _sets(name, value, limit.unit), request
    yield from _blocks(instrument.name, driver, envelope)


def _sets(channel: str, value: float, unit: str) -> Text:
    return Text("reads.sets", channel=channel, value=value, unit=f" {unit}".rstrip())


def _blocks(name: str, driver: Driver, envelope: Envelope) -> Iterator[_Write]:
    """Return the blocks of a stored program: the empty one, and one up to the envelope's limits."""
    programmer = driver.programmer
    if programmer is None:
        return
    target = envelope.limits[f"{name}.{programmer.setpoint}"]
    rate = envelope.limits[f"{name}.{programmer.rate}"]
    ends = {(each, to) for each in (target.low, target.high) for to in (rate.low, rate.high)}
    blocks = [programmer.empty]
    for target_c, rate_c_per_min in sorted(ends):
        ramp = Segment(target_c, rate_c_per_min=max(rate_c_per_min, 0.0))
        with suppress(ValueError):
            blocks += programmer.blocks(Program((ramp, Segment(dwell_s=60.0))))
    for block in blocks:
        yield Text("reads.stores", block=block.name, name=name), block.write


def _safe(name: str, frames: Sequence[SafeFrame], port: str) -> Iterator[_Write]:
    for each in frames:
        if each.port == port:
            does = _sets(each.channel, each.value, each.unit)
            yield Text("reads.in_procedure", does=does, name=name), each.request
