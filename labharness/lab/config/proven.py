"""Proves that every procedure of an envelope switches off every energy source.

A procedure is proven without a plant: its last value of each channel is held against what the
drivers declare as *off*, in their order, and against the relays that feed them. A line that has two
ways to switch one thing off has both so that one may fail: each procedure has to take both.

Proves that the reads of a lab's drivers write nothing, before any of them is sent. A read leaves
its port without a permit, so a driver's word for it is not enough. On Modbus the frame itself is
asked (functions 1 to 4); elsewhere the grammars of writes, which the drivers of the port state; and
on every port no read may be a frame that anything on the port can write.

Names the energy sources of a line that may harm a person; they need hazards and callers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from labharness.core.vocabulary import Program, Protocol, Request, Segment, same_frame
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.driver import Adds, Driver, Off
from labharness.instruments.driver.driver import is_written, reads_of, shown, unproven_read
from labharness.lab.config.wires import Finding
from labharness.line import Contact, Instrument
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Envelope, Limit, Procedure, Step

EXTRA_LOW_V = 60.0
"""A direct voltage up to here is not hazardous live in normal condition and in a dry place: IEC
61010-1, clause 6.3.1, as a test house applies it to 61010-1 (N. Devine, emc-pstc list of the IEEE,
9 May 2000); the edition in force was not at hand. An alternating voltage must not be held against
this bound: its limit there is lower, 30 V r.m.s. and 42.4 V peak by common instrument manuals. The
one driver here that adds a current, the Keithley 2400, is a direct source."""


def harmful(
    instruments: Sequence[Instrument], contacts: Sequence[Contact], limits: Mapping[str, Limit]
) -> Iterator[str]:
    """Name each instrument and relay that may harm; one without a description may."""
    for each in instruments:
        unknown = each.driver.off is None and settable_of(each)
        if unknown or not all(is_harmless(each, off, limits) for off in each.driver.off or ()):
            yield each.name
        yield from undescribed(each, contacts)
    yield from (contact.channel for contact in contacts if contact.adds is not None)


def settable_of(instrument: Instrument) -> list[str]:
    """Return the channels of an instrument that can be set."""
    return [name for name, spec in instrument.driver.channels.items() if spec.settable]


def undescribed(instrument: Instrument, contacts: Sequence[Contact]) -> list[str]:
    """Return the relays of an instrument that no row describes."""
    described = {each.channel for each in contacts}
    relays = [name for name in settable_of(instrument) if instrument.driver.channels[name].wired]
    return [full for name in relays if (full := f"{instrument.name}.{name}") not in described]


def fed_by(instrument: Instrument, contacts: Sequence[Contact]) -> dict[str, float]:
    """Return the relays that feed an instrument, each with its value while nothing passes."""
    return {
        each.channel: each.off
        for each in contacts
        if instrument.name in each.feeds and each.off is not None
    }


def is_harmless(instrument: Instrument, off: Off, limits: Mapping[str, Limit]) -> bool:
    """Return whether an instrument adds an inert gas, or a current at extra-low voltage."""
    if off.adds is not Adds.CURRENT:
        return off.inert
    volts = [
        limits[channel]
        for name, spec in instrument.driver.channels.items()
        if spec.unit == "V" and (channel := f"{instrument.name}.{name}") in limits
    ]
    return bool(volts) and all(low.low >= -EXTRA_LOW_V and low.high <= EXTRA_LOW_V for low in volts)


Way = tuple[tuple[str, float], ...]  # channels and values, in order; then one thing is off


@dataclass(frozen=True, slots=True)
class _Source:
    """One thing that adds energy.

    Attributes:
        name: The instrument's, or the relay's that feeds it alone.
        adds: The kind of energy.
        gas: Its gas, if it adds one.
        ways: Each of the ways to switch it off.
        channels: Its own channels; a procedure may set any of them.
    """

    name: str
    adds: Adds
    gas: str
    ways: tuple[Way, ...]
    channels: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.name} ({self.gas})" if self.gas else self.name


def unproven(
    envelope: Envelope, instruments: Sequence[Instrument], contacts: Sequence[Contact]
) -> tuple[Finding, ...]:
    """Find sources that are not declared, and procedures that may end with one energised.

    Args:
        envelope: The envelope with the procedures.
        instruments: The line's, whose drivers declare their *off* values.
        contacts: The channels that its relays feed.
    """
    found = [*_undeclared(instruments, contacts)]
    sources = tuple(_sources(instruments, contacts))
    for procedure in envelope.procedures.values():
        for source in sources:
            found += _left_on(procedure, source)
    return tuple(found)


def _undeclared(
    instruments: Sequence[Instrument], contacts: Sequence[Contact]
) -> Iterator[Finding]:
    for each in instruments:
        settable = settable_of(each)
        if settable and each.driver.off is None:
            what = Text("proven.undeclared", kind=each.kind, known=", ".join(settable))
            where = Text("lab.instrument", name=each.name)
            yield Finding(where, what, Text("proven.paste_off"))
        for channel in undescribed(each, contacts):
            yield Finding(
                channel,
                Text("proven.wired"),
                f'[[contact]]\nchannel = "{channel}"\n'
                "off = 0 # these two lines only where power or gas passes to an instrument\n"
                'feeds = ["INSTRUMENT"]\nsource = "WIRING DIAGRAM"',
            )


def _sources(instruments: Sequence[Instrument], contacts: Sequence[Contact]) -> Iterator[_Source]:
    for each in instruments:
        fed = tuple((relay,) for relay in fed_by(each, contacts).items())
        for off in each.driver.off or ():
            if not off.inert:
                own = way_off(each, off)
                channels = frozenset(f"{each.name}.{name}" for name in each.driver.channels)
                yield _Source(each.name, off.adds, off.gas, (*fed, own), channels)
    for contact in contacts:
        if contact.adds is not None and contact.off is not None:
            way = ((contact.channel, contact.off),)
            yield _Source(contact.channel, contact.adds, "", (way,))


def way_off(instrument: Instrument, off: Off) -> Way:
    """Return the way to switch one thing off at the instrument itself."""
    return tuple((f"{instrument.name}.{channel}", value) for channel, value in off.steps)


def _left_on(procedure: Procedure, source: _Source) -> Iterator[Finding]:
    missing = [way for way in source.ways if not _takes(procedure.steps, way)]
    if not missing:
        return
    where = Text("proven.procedure", name=procedure.name)
    lines = "\n".join(f'    ["{channel}", {value:g}],' for way in missing for channel, value in way)
    paste = Text("proven.paste_steps", name=procedure.name, lines=lines)
    said = several(*(_why(procedure.steps, way) for way in missing))
    ways, taken = len(source.ways), len(source.ways) - len(missing)
    what = Text("proven.ways", ways=taken, ways2=ways, source=str(source), said=said)
    if not taken:
        doing, besides = source.adds.doing, _besides(procedure.steps, source)
        what = Text("proven.left_on", source=str(source), doing=doing, said=said, besides=besides)
    yield Finding(where, what, paste)


def _takes(steps: Sequence[Step], way: Way) -> bool:
    """Return whether steps end with all values of a way, sent in its order and undone by none.

    An optional step may not be carried out: it switches nothing off, and may switch on.
    """
    off = dict(way)
    ours = [(each, each.value == off[each.channel]) for each in steps if each.channel in off]
    undone = [at for at, (_, is_off) in enumerate(ours) if not is_off]
    last = ours[undone[-1] + 1 :] if undone else ours
    sent = iter([each.channel for each, _ in last if not each.optional])
    return all(channel in sent for channel, _ in way)  # of an iterator: in this order


def _why(steps: Sequence[Step], way: Way) -> str:
    wanted = ", ".join(f"{channel} = {value:g}" for channel, value in way)
    last = {each.channel: each for each in steps}
    for channel, value in way:
        step = last.get(channel)
        if step is None:
            return Text("proven.no_step", channel=channel, value=value)
        if step.value != value:
            return Text("proven.last_step", channel=channel, value=step.value, value2=value)
        if step.optional:
            return Text("proven.optional", channel=channel, value=value)
    return Text("proven.order", wanted=wanted)


def _besides(steps: Sequence[Step], source: _Source) -> str:
    """Name the steps that look as if they switched it off."""
    off = {channel for way in source.ways for channel, _ in way}
    others = [
        f"{each.channel} = {each.value:g}"
        for each in steps
        if each.channel in source.channels and each.channel not in off
    ]
    return Text("proven.alone", known=", ".join(dict.fromkeys(others))) if others else ""


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
        whys = [why for each in protocols if (why := unproven_read(request, each, drivers))]
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
    settable = settable_of(instrument)
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
