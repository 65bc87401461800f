"""Commands to an instrument, the kernel's verdict on them, and their outcome."""

from dataclasses import dataclass
from enum import StrEnum

from labharness.core.vocabulary.texts import Said, Text

OPERATOR = "operator"  # owns the channels that no wire sets: a person opens these valves by hand


@dataclass(frozen=True, slots=True)
class Command:
    """A request to set one channel; nothing has been sent yet.

    Attributes:
        channel: Instrument and channel joined by a dot, e.g. ``furnace.setpoint``.
        value: The value wanted, in ``unit``.
        unit: Unit of ``value``; ``""`` for a bare number. A command in another unit than the
            envelope's is refused, never converted.
    """

    channel: str
    value: float
    unit: str

    @property
    def text(self) -> Text:
        """The command in words."""
        return self.said.text

    @property
    def said(self) -> Said:
        """The command as a text that is not made yet."""
        unit = f" {self.unit}" if self.unit else ""
        return Said("asked", channel=self.channel, value=self.value, unit=unit)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The kernel lets this command pass, under this epoch only."""

    command: Command


@dataclass(frozen=True, slots=True)
class Refused:
    """The kernel refuses a command.

    Attributes:
        command: The refused command.
        rule: Name of the envelope's row, or of the built-in rule, that refused it.
        why: The requested value, the allowed ones, and the unit.
    """

    command: Command
    rule: str
    why: Said

    @property
    def reason(self) -> Text:
        """The reason in one sentence."""
        return self.why.text


Verdict = Allowed | Refused


class Ending(StrEnum):
    """The end of a physical command (law 7). Only ``CONFIRMED`` confirms it."""

    REFUSED = "refused"
    CONFIRMED = "confirmed"
    MISMATCH = "mismatch"
    UNCONFIRMED = "unconfirmed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one command: its ending, the value read back, and one sentence about it.

    Attributes:
        warning: Why a confirmed value has no effect in the present state of the line, or ``""``.
    """

    command: Command
    ending: Ending
    read_back: float | None = None
    detail: str = ""
    warning: str = ""
