"""Proves that every procedure of an envelope switches off every energy source.

A procedure is proven without a plant: its last value of each channel is held against what the
drivers declare as *off*, in their order, and against the relays that feed them. A line that has two
ways to switch one thing off has both so that one may fail: each procedure has to take both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.driver import Adds, Off
from labharness.lab.config.wires import Finding
from labharness.line import Contact, Instrument
from labharness.safety.kernel import Envelope, Procedure, Step

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
    sources = tuple(_sources(instruments, contacts))
    return (
        *_undeclared(instruments, contacts),
        *(
            finding
            for procedure in envelope.procedures.values()
            for source in sources
            for finding in _left_on(procedure, source)
        ),
    )


def _undeclared(
    instruments: Sequence[Instrument], contacts: Sequence[Contact]
) -> Iterator[Finding]:
    described = {each.channel for each in contacts}
    for each in instruments:
        settable = [name for name, spec in each.driver.channels.items() if spec.settable]
        if settable and each.driver.off is None:
            what = Text("proven.undeclared", kind=each.kind, known=", ".join(settable))
            yield Finding(
                Text("lab.instrument", name=each.name),
                what,
                Text("proven.paste_off"),
            )
        for name in settable:
            channel = f"{each.name}.{name}"
            if each.driver.channels[name].wired and channel not in described:
                yield Finding(
                    channel,
                    Text("proven.wired"),
                    f'[[contact]]\nchannel = "{channel}"\n'
                    "off = 0 # these two lines only where power or gas passes to an instrument\n"
                    'feeds = ["INSTRUMENT"]\nsource = "WIRING DIAGRAM"',
                )


def _sources(instruments: Sequence[Instrument], contacts: Sequence[Contact]) -> Iterator[_Source]:
    for each in instruments:
        fed = tuple(
            ((contact.channel, contact.off),)
            for contact in contacts
            if each.name in contact.feeds and contact.off is not None
        )
        for off in each.driver.off or ():
            if not off.inert:
                own = _own(each, off)
                channels = frozenset(f"{each.name}.{name}" for name in each.driver.channels)
                yield _Source(each.name, off.adds, off.gas, (*fed, own), channels)
    for contact in contacts:
        if contact.adds is not None and contact.off is not None:
            way = ((contact.channel, contact.off),)
            yield _Source(contact.channel, contact.adds, "", (way,))


def _own(instrument: Instrument, off: Off) -> Way:
    return tuple((f"{instrument.name}.{channel}", value) for channel, value in off.steps)


def _left_on(procedure: Procedure, source: _Source) -> Iterator[Finding]:
    missing = [way for way in source.ways if not _takes(procedure.steps, way)]
    if not missing:
        return
    where = Text("proven.procedure", name=procedure.name)
    lines = "\n".join(f'    ["{channel}", {value:g}],' for way in missing for channel, value in way)
    paste = Text("proven.paste_steps", name=procedure.name, lines=lines)
    said = several(*(_why(procedure.steps, way) for way in missing))
    if len(missing) == len(source.ways):
        what = Text(
            "proven.left_on",
            source=str(source),
            doing=source.adds.doing,
            said=said,
            besides=_besides(procedure.steps, source),
        )
        yield Finding(where, what, paste)
    else:
        ways = len(source.ways)
        what = Text(
            "proven.ways", ways=ways - len(missing), ways2=ways, source=str(source), said=said
        )
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
