"""The declarations of a driver: channels, scans, programs, ways to add energy, and reads."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

import labharness.core.vocabulary.requests as requests
from labharness.core.vocabulary import DeviceFault, Program, Protocol, Request, why_no_read
from labharness.core.vocabulary.texts import Text


def kept(what: str, value: float, written: float, step: float) -> None:
    """Refuse to write a value that is not zero as zero, which most often means *off*.

    Args:
        what: Name of the setting, with its unit if it is known.
        value: The value that was asked for, and judged.
        written: The value on the wire.
        step: Step of the encoding.

    Raises:
        ValueError: It would be written as zero.
    """
    if value != 0 and written == 0:
        near = math.copysign(step, value)
        raise ValueError(
            f"{what}: asked {value:g}, which would be written as 0; it takes steps of {step:g}, "
            f"so 0 or {near:g}"
        )


INERT = frozenset({"Ar", "He", "Kr", "N2", "Ne", "Xe"})
"""Gases that neither burn nor feed a fire at the temperatures of a furnace. Any other counts as
reactive: what is not on this list has to be shut off."""


class Adds(StrEnum):
    """The kinds of energy that an instrument adds to a line while it is on."""

    HEAT = "heat"
    GAS = "gas"
    LIGHT = "light"
    CURRENT = "current"

    @property
    def doing(self) -> str:
        """Return what something does that adds this."""
        return {"heat": "heating", "gas": "flowing", "light": "shining", "current": "driven"}[self]

    @property
    def nothing(self) -> str:
        """Return what follows while it is off."""
        said = {"heat": "nothing heats", "gas": "nothing flows", "light": "nothing shines"}
        return said.get(self, "no current flows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dark:
    """A reading of an instrument that is off.

    Attributes:
        channel: The channel that is read.
        at_most: Its highest reading then, in the channel's unit.
        within_s: Longest time to get there after its off was verified, s.
        before_relay: Whether it shows the input of a relay (a controller's output): with the
            relay off it proves nothing.
    """

    channel: str
    at_most: float
    within_s: float
    before_relay: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cools:
    """The course of a temperature without heat.

    Attributes:
        channel: The temperature.
        lag_s: Time after which it no longer rises, from its verified off, s.
        over_s: Time for which it is watched from then on, s.
        rise_max: Largest rise in that time by noise, in the channel's unit.
        above: Temperature below which a rise does no harm, in the channel's unit.
        unit: That unit; filled in from the channel.
    """

    channel: str
    lag_s: float
    over_s: float
    rise_max: float
    above: float
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """One way in which an instrument adds energy, and its end.

    Attributes:
        adds: Kind of the energy.
        steps: Channel and value, in the order in which they have to be sent.
        source: Page of the document that says so.
        drives: The channels that set the amount.
        gas: The gas, by its short name (``Ar``, ``H2``); ``""`` if it adds none.
        dark: Reading that shows that it is off; ``None`` if there is none.
        cools: Course of its temperature then, on a usual line; an envelope may state another.
    """

    adds: Adds
    steps: tuple[tuple[str, float], ...]
    source: str
    drives: tuple[str, ...] = ()
    gas: str = ""
    dark: Dark | None = None
    cools: Cools | None = None

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError("off takes at least one step: a channel and its value")
        if (self.adds is Adds.GAS) != bool(self.gas):
            raise ValueError(f"off of {self.adds.value}: gas is {self.gas!r}; gas alone names one")

    @property
    def inert(self) -> bool:
        """Whether what it adds can stay on in a safe state."""
        return self.gas in INERT


def flowing(gas: str, full_scale_sccm: float, source: str) -> tuple[Off, ...]:
    """Return the way in which a mass flow controller adds gas, by ``setpoint`` and ``flow``.

    At rest its meter may read 2 % of full scale, which is ten times its zero error.
    """
    dark = Dark(channel="flow", at_most=0.02 * full_scale_sccm, within_s=5.0)
    steps = (("setpoint", 0.0),)
    return (
        Off(adds=Adds.GAS, gas=gas, steps=steps, source=source, drives=("setpoint",), dark=dark),
    )


CONTACT = (0.0, 1.0)
"""The values that a contact, a flag or a bit can show."""


@dataclass(frozen=True, slots=True)
class While:
    """A condition for a channel to act, to answer or to be sound: a value of another channel.

    Attributes:
        channel: Another channel of the instrument.
        values: Values of that channel; with any of them it does.
        otherwise: Words for any other value: ``the controller is in manual``.
        set_by: The channel that sets it, to the same values; ``""`` where it is set itself.
    """

    channel: str
    values: tuple[float, ...]
    otherwise: str
    set_by: str = ""

    @property
    def setter(self) -> str:
        """The channel to set, so that it has another value."""
        return self.set_by or self.channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One quantity of an instrument.

    Attributes:
        unit: Unit of every value of this channel; ``""`` for a bare number.
        doc: One sentence starting *Measure* or *Control*.
        source: Page of the document that the driver's module docstring names.
        settable: Whether a command may set it.
        readback: Channel that shows what a command did; ``None`` where nothing can show it,
            and then a command ends as ``unconfirmed``.
        resolution: Largest difference between a value set and its read-back that still agrees.
        settle_s: How long the read-back may take to agree (a monochromator moves, a relay does
            not).
        on_comm_loss: Action of the instrument itself when no frame comes any more:
            ``safe(<seconds>)``, ``hold`` or ``unknown``.
        acts_while: Condition for it to act; ``None`` if there is none.
        sound_while: Condition for its readings to be worth anything (its sensor is whole); ``None``
            if there is none. Read with any other value it is spoilt, which is told, and no number.
        own: Values that it also takes without being told (a watchdog shuts, a program ends);
            ``None`` for any (a loop drives its output). Any other value that its read-back shows
            unasked was set by another person or program.
        wired: Whether it switches a part of the line that only the envelope knows.
        shows: Lowest and highest value that its instrument can show: 0 and 1 of a contact. A bound
            of an envelope beyond them is an error when a lab is read, because it never holds.
    """

    unit: str
    doc: str
    source: str
    settable: bool = False
    readback: str | None = None
    resolution: float = 0.0
    settle_s: float = 0.0
    on_comm_loss: str = "hold"
    acts_while: While | None = None
    sound_while: While | None = None
    own: tuple[float, ...] | None = ()
    wired: bool = False
    shows: tuple[float, float] = (-math.inf, math.inf)

    _VERBS: ClassVar[tuple[str, ...]] = ("Measure", "Control")

    def __post_init__(self) -> None:
        if not self.doc.startswith(self._VERBS):
            raise ValueError(f"a channel's doc starts with Measure or Control: {self.doc!r}")
        if self.readback is not None and not self.settable:
            raise ValueError("only a channel that can be set has a read-back")


@dataclass(frozen=True, slots=True)
class Scan:
    """One frame that reads many channels at once.

    Attributes:
        name: Its name within the instrument.
        request: The frame; it must read and nothing else.
        channels: The channels it yields, in order.
        decode: Turns a complete reply into one value per channel, in each channel's unit;
            raises ``BadReply`` or ``DeviceFault``. The reply alone decides: one that is the same
            as the last is not decoded again.
        period_s: How often the line polls it; ``None`` for a scan that is only read on demand.
        only_while: The only state in which the instrument answers it; in others it is not asked.
        before: Requests that are sent before it, in order, on a port that is kept: an instrument
            that acknowledges the question, and is then asked for its answer (ENQ). A reply that is
            not ``obeyed`` is a refusal.
    """

    name: str
    request: Request
    channels: tuple[str, ...]
    decode: Callable[[bytes], tuple[float, ...]]
    period_s: float | None = 1.0
    only_while: While | None = None
    before: tuple[Request, ...] = ()

    @property
    def requests(self) -> tuple[Request, ...]:
        """All its requests, in order; the reply to the last is decoded."""
        return (*self.before, self.request)


@dataclass(frozen=True, slots=True)
class Query:
    """One exact frame that reads something other than a number: an identity, a spectrum.

    Attributes:
        name: Its name within the instrument.
        request: The frame.
        decode: Turns a complete reply into what it says.
        before: As in ``Scan``.
    """

    name: str
    request: Request
    decode: Callable[[bytes], object]
    before: tuple[Request, ...] = ()

    @property
    def requests(self) -> tuple[Request, ...]:
        """All its requests, in order; the reply to the last is decoded."""
        return (*self.before, self.request)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity that an instrument tells; ``""`` for a part that it does not tell."""

    model: str
    firmware: str = ""
    serial: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


SHOWN_BYTES_MAX = 60


def is_written(request: Request, grammar: Iterable[bytes]) -> bool:
    """Return whether a frame is one of those that write, by a driver's grammar of them."""
    return any(re.fullmatch(each, request.frame, re.DOTALL) for each in grammar)


def shown(request: Request) -> str:
    """Write a frame for a person: as text where it is text, else its bytes."""
    frame = request.frame
    text = frame.decode("latin-1")
    if text.rstrip("\r\n").isascii() and text.rstrip("\r\n").isprintable():
        return repr(text[:SHOWN_BYTES_MAX])
    return frame[:SHOWN_BYTES_MAX].hex(" ")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a stored program that is written by one frame and read back by one.

    Attributes:
        name: Its name in messages.
        write: The frame that stores it.
        read: One of the driver's ``queries``; what it decodes to is compared with ``holds``.
        holds: The read-back of an instrument that has it.
    """

    name: str
    write: Request
    read: Query
    holds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programmer:
    """The programmer of an instrument that has one.

    Attributes:
        setpoint: Channel that a segment's target is judged as.
        rate: Channel that a ramp's rate is judged as.
        status: Channel that starts, holds and resets, and shows what it does.
        number: Channel that says which of the stored programs is run.
        slot: The one that this driver may write.
        reset: Value of ``status`` for no program.
        run: Value for a running one.
        hold: Value for one that stands still.
        complete: Value for one that ended and was not reset.
        empty: The program's first block as one that ends at once: while a program is written,
            no person can start half of it.
        blocks: Returns a program's blocks in the order in which they are written, the first segment
            last. Raises ``ValueError`` for one that the instrument cannot hold exactly.
    """

    setpoint: str
    rate: str
    status: str
    number: str
    slot: int
    reset: float
    run: float
    hold: float
    complete: float
    empty: Block
    blocks: Callable[[Program], tuple[Block, ...]]


Exchange = Generator[Request, bytes, None]
PROOF_S = 60.0  # the settings of an instrument are read at least so often


class Driver(ABC):
    """One kind of instrument, at one address of a port.

    A subclass is constructed with keyword settings from the lab file (an address, decimals, full
    scale), declares ``channels`` and answers ``scans``, ``queries`` and ``write``. It must be
    pure: the same arguments give the same frames.

    Attributes:
        channels: Every quantity, by name.
        renamed: For a channel that the lab file named, its name in the kind's envelope.
        baud: Speed the instrument leaves the factory with; 0 where there is no serial line.
        unverified: Facts of this driver without a manual (marked D or K); ``""`` when there are
            none. A lab that loads it on a real link is warned.
        protocol: Protocol of its frames. On Modbus a frame itself says whether it reads.
        write_grammar: Forms of the instrument's writing frames, if it does not speak Modbus:
            regular expressions over whole frames. A command's frame matches one of them, and no
            read of its port does. State all frames that the instrument would
            obey, not only those that this driver sends.
        programmer: Its programmer; ``None`` if it runs no programs.
        proves: Scans and queries whose replies are refused where the instrument is set otherwise
            than the lab file says: another gas, full scale or unit. They are read with the
            identity and each minute; while one is refused, no reading of the instrument counts.
        off: The ways in which it adds energy, each with its end; ``()`` if it adds none. While
            it is ``None`` the driver does not say, and a line on which it can be set is not armed.
    """

    channels: Mapping[str, Channel] = {}
    renamed: Mapping[str, str] = {}
    baud: ClassVar[int] = 9600
    unverified: ClassVar[str] = ""
    write_grammar: tuple[bytes, ...] = ()
    programmer: Programmer | None = None
    proves: ClassVar[tuple[str, ...]] = ()
    off: tuple[Off, ...] | None = None

    @property
    def protocol(self) -> Protocol:
        """Return how its frames are built."""
        return Protocol.TEXT

    @abstractmethod
    def scans(self) -> tuple[Scan, ...]:
        """Return the frames that read channels."""

    def queries(self) -> tuple[Query, ...]:
        """Return the exact frames that read anything else."""
        return ()

    def polled(self) -> tuple[Scan, ...]:
        """Return the scans that a line polls: those of the driver, and all that ``proves`` names.

        A setting can be changed at the instrument's front panel, so each is read every minute.
        """
        proofs = [_proof(each) for each in self.queries() if each.name in self.proves]
        return (*[self._often(each) for each in self.scans()], *proofs)

    def _often(self, scan: Scan) -> Scan:
        if scan.name not in self.proves:
            return scan
        return replace(scan, period_s=min(scan.period_s or PROOF_S, PROOF_S))

    @abstractmethod
    def identify(self) -> Query:
        """Return the frame that asks for the identity; it decodes to an ``Identity``."""

    def steps(self) -> tuple[Request, ...]:
        """Return the reads that prove its port in step after each reply.

        Their replies can be those to no other question: ``obeyed`` is their form, or they are
        always the same, as an identity is. ``()`` where every reply carries an address, a number or
        an echo of its question.
        """
        asks = self.identify().request
        numbered = requests.Rtu | requests.LengthAt | requests.Message
        return () if isinstance(asks.reply, numbered) else (asks,)

    @abstractmethod
    def expects(self, identity: Identity) -> str:
        """Return what is wrong with this identity for this driver; ``""`` when nothing is."""

    @abstractmethod
    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Return the frames that set ``channel`` to ``value``, in order.

        Each states in ``obeyed`` which reply means that the instrument did it: without that no
        procedure can use the channel. A frame that is not answered (``Nothing``) states none.

        Raises:
            ValueError: The channel cannot be set, or the value does not fit the wire's encoding
                (refused, never clipped).
        """

    def sent(self, channel: str, value: float) -> float:
        """Return the value that the frames of ``write`` carry: the nearest step of the encoding.

        The gate judges this value beside the one that was asked.

        Raises:
            ValueError: As ``write``.
        """
        return value

    def accept(self, channel: str, reply: bytes) -> None:
        """Check one reply to ``write``; raise ``DeviceFault`` when the instrument refused."""
        return  # the reply rule has checked its form; an instrument that cannot refuse adds nothing

    def shown(self, channel: str, value: float) -> Request | None:
        """Return the read that shows ``channel`` at ``value``, for a guard that is alone.

        Its ``obeyed`` matches those replies, and no other. ``None`` where no single read shows it.
        """
        return None

    def encode(self, channel: str, value: float) -> Exchange:
        """Yield each frame of a command and take its reply; the shell does the sending."""
        for request in self.write(channel, value):
            reply = yield request
            self.accept(channel, reply)

    def settable(self, channel: str) -> Channel:
        """Return a channel that can be set.

        Raises:
            ValueError: It cannot; the message names those that can.
        """
        spec = self.channels.get(channel)
        if spec is None or not spec.settable:
            known = ", ".join(name for name, each in self.channels.items() if each.settable)
            raise ValueError(Text("channel.not_settable", channel=channel, known=known))
        return spec


def _proof(query: Query) -> Scan:
    """Return a query as a scan of no channel: its reply is checked, and kept nowhere."""

    def checked(reply: bytes) -> tuple[float, ...]:
        query.decode(reply)
        return ()

    return Scan(query.name, query.request, (), checked, PROOF_S, before=query.before)


def fault(channel: str, said: str) -> DeviceFault:
    """Make the error for an instrument that answered with a refusal."""
    return DeviceFault(f"{channel}: the instrument answered {said}")


def reads_of(driver: Driver) -> Iterator[tuple[str, Request]]:
    """Return all frames that a driver calls reads, each with its name there."""
    yield from (("identity", each) for each in driver.identify().requests)
    for scan in driver.scans():
        yield from ((f"scan {scan.name!r}", each) for each in scan.requests)
    for query in driver.queries():
        yield from ((f"query {query.name!r}", each) for each in query.requests)


def unproven_read(
    request: Request, protocol: Protocol, drivers: Iterable[tuple[str, Driver]]
) -> str:
    """Return the reason why a request may set something on its port; ``""`` if it cannot.

    Args:
        request: A frame that a driver calls a read.
        protocol: Protocol of the port.
        drivers: All drivers on the port, each with its name.
    """
    why = why_no_read(request, protocol)
    if why:
        return why
    for name, driver in drivers:
        if is_written(request, driver.write_grammar):
            return f"{name} takes a frame like it as a command, by its grammar of what writes"
    return ""
