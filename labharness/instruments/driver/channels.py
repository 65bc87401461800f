"""The declarations of a driver: channels, scans and queries; a table, not a program."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from labharness.core.vocabulary import Request

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
