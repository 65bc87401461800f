"""The meaning of *off*: the ways in which an instrument adds energy, and the end of each."""

from dataclasses import dataclass
from enum import StrEnum

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
