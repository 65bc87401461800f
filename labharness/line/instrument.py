"""The instruments of a line: their ports, scans and preparation, and the relays that feed them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labharness.core.vocabulary import Command, Request
from labharness.core.vocabulary.channels import split_channel
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Adds, Channel, Cools, Driver, Identity, Query, Scan
from labharness.instruments.driver.driver import reads_of
from labharness.journal import Journal
from labharness.safety.kernel import Envelope, Memory, Track


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A relay, and the instruments that get power or gas through it.

    Attributes:
        channel: The relay.
        source: The document that says so.
        off: Its value while nothing passes; ``None`` where it feeds nothing that adds energy.
        feeds: Instruments whose heat, gas or light comes through it.
        adds: Energy that it adds without an instrument behind it (a lamp, a heating tape).
    """

    channel: str
    source: str
    off: float | None = None
    feeds: tuple[str, ...] = ()
    adds: Adds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """One instrument of a line.

    Attributes:
        name: Its name on this line; channels are called ``name.channel``.
        kind: The driver's kind.
        driver: Frames and decoders.
        port: The port it listens on.
        prepare: Channel and value pairs to set, in order, when the line is armed.
        polls: Poll period by scan name, where it is not the driver's; ``None`` is on demand only.
        fed_by: Relays through which its power or its gas comes.
        cools: The course of its temperatures once it is off, on this line.
        firmware: Its firmware in the lab file; ``""`` if not stated.
        serial: Its serial number in the lab file; ``""`` if not stated.
    """

    name: str
    kind: str
    driver: Driver
    port: str
    prepare: tuple[tuple[str, float], ...] = ()
    polls: Mapping[str, float | None] | None = None
    fed_by: tuple[Contact, ...] = ()
    cools: tuple[Cools, ...] = ()
    firmware: str = ""
    serial: str = ""

    def wrong_in(self, identity: Identity) -> str:
        """Return how it differs from what driver and lab file expect; ``""`` if it does not."""
        wrong = [self.driver.expects(identity)]
        for what, stated, found in (
            ("firmware", self.firmware, identity.firmware),
            ("serial number", self.serial, identity.serial),
        ):
            if stated and found != stated:
                said = f"{what} {found!r}" if found else f"no {what}"
                wrong.append(f"it tells {said}, the lab file says {stated!r}")
        return "; ".join(filter(None, wrong))


@dataclass(frozen=True, slots=True, kw_only=True)
class PortTiming:
    """The timing of the wire of one port.

    Attributes:
        link: Kind of the link.
        baud: Line speed; 0 where wire time does not count.
    """

    link: str
    baud: int


@dataclass(frozen=True, slots=True, eq=False)
class BoundScan:
    """A scan of one instrument, with the tracks its values go to and the stream they are kept in.

    Attributes:
        ticks: Polled every this many seconds of the line's tick; 0 for on demand only.
        state: Shows whether the instrument answers it now; ``None`` if it always does.
        proves: Whether it shows that the instrument is set as the lab file says.
    """

    instrument: str
    port: str
    scan: Scan
    tracks: tuple[Track, ...]
    channels: tuple[str, ...]
    stream: int
    ticks: int
    state: Track | None = None
    proves: bool = False

    @property
    def answers(self) -> bool:
        """Return whether the instrument is in the state in which it answers."""
        only = self.scan.only_while
        return self.state is None or only is None or self.state.value in only.values


def bind(
    instrument: Instrument, memory: Memory, journal: Journal, tick_s: float
) -> tuple[BoundScan, ...]:
    """Tie every scan of an instrument to memory and journal."""
    bound = []
    for scan in instrument.driver.polled():
        names = tuple(f"{instrument.name}.{channel}" for channel in scan.channels)
        only = scan.only_while
        period_s = (instrument.polls or {}).get(scan.name, scan.period_s)
        bound.append(
            BoundScan(
                instrument=instrument.name,
                port=instrument.port,
                scan=scan,
                tracks=tuple(memory.track(name) for name in names),
                channels=names,
                stream=journal.stream(f"{instrument.name}.{scan.name}", scan.channels)
                if names
                else -1,
                ticks=0 if period_s is None else max(1, round(period_s / tick_s)),
                state=memory.track(f"{instrument.name}.{only.channel}") if only else None,
                proves=scan.name in instrument.driver.proves,
            )
        )
    return tuple(bound)


def read_frames(instruments: tuple[Instrument, ...]) -> dict[str, set[bytes]]:
    """Compile the exact set of frames that read, for each port."""
    reads: dict[str, set[bytes]] = {}
    for instrument in instruments:
        frames = reads.setdefault(instrument.port, set())
        frames.update(request.frame for _, request in reads_of(instrument.driver))
    return reads


def step_frames(instruments: Iterable[Instrument]) -> dict[str, tuple[Request, ...]]:
    """Return the reads that prove each port in step, where one is needed."""
    steps: dict[str, tuple[Request, ...]] = {}
    for instrument in instruments:
        steps[instrument.port] = (*steps.get(instrument.port, ()), *instrument.driver.steps())
    return steps


def prepare_commands(instrument: Instrument, envelope: Envelope) -> tuple[Command, ...]:
    """Turn the lab file's ``prepare`` into commands, in the unit of the envelope."""
    commands = []
    for channel, value in instrument.prepare:
        name = f"{instrument.name}.{channel}"
        limit = envelope.limits.get(name)
        commands.append(Command(name, value, limit.unit if limit is not None else ""))
    return tuple(commands)


def channel_of(instruments: Mapping[str, Instrument], name: str) -> tuple[Instrument, str, Channel]:
    """Find a channel by its full name.

    Raises:
        LookupError: No such instrument or channel; says which there are.
    """
    owner, channel = split_channel(name)
    instrument = instruments.get(owner)
    if instrument is None:
        raise LookupError(Text("channel.no_instrument", name=owner, known=", ".join(instruments)))
    spec = instrument.driver.channels.get(channel)
    if spec is None:
        known = ", ".join(instrument.driver.channels)
        raise LookupError(
            Text("channel.none", name=owner, kind=instrument.kind, channel=channel, known=known)
        )
    return instrument, channel, spec


def spoilt(instruments: Mapping[str, Instrument], memory: Memory, name: str) -> str:
    """Return why the readings of a channel are worth nothing now; ``""`` if they are sound."""
    owner, channel = split_channel(name)
    spec = instruments[owner].driver.channels.get(channel) if owner in instruments else None
    sound = None if spec is None else spec.sound_while
    if sound is None:
        return ""
    shown = memory.track(f"{owner}.{sound.channel}").value
    return sound.otherwise if shown == shown and shown not in sound.values else ""


def query_of(instrument: Instrument, name: str) -> Query:
    """Find a query of an instrument by its name.

    Raises:
        LookupError: No such query.
    """
    if name == "identity":
        return instrument.driver.identify()
    for query in instrument.driver.queries():
        if query.name == name:
            return query
    raise LookupError(f"{instrument.name} ({instrument.kind}) has no query {name!r}")
