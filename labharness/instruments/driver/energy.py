"""What *off* means for an instrument: in which ways it adds energy, and what ends each."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["INERT", "Adds", "Cools", "Dark", "Off", "flowing"]

INERT = frozenset({"Ar", "He", "Kr", "N2", "Ne", "Xe"})
"""Gases that neither burn nor feed a fire at the temperatures of a furnace. Any other counts as
reactive: what is not on this list has to be shut off."""


class Adds(StrEnum):
    """What an instrument adds to a line while it is on."""

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
    """What an instrument measures once it is off.

    Attributes:
        channel: What is measured.
        at_most: The most it then reads, in the channel's unit.
        within_s: How long that may take after its off was verified, s.
        before_relay: Whether it shows what is given to a relay (a controller's output): with the
            relay off it says nothing.
    """

    channel: str
    at_most: float
    within_s: float
    before_relay: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cools:
    """How a temperature goes once nothing heats.

    Attributes:
        channel: The temperature.
        lag_s: By then it has ceased to rise, s after its off was verified.
        over_s: For so long it is watched from then on, s.
        rise_max: What it may rise in that time by noise, degC.
        above: At less than this a rise harms nobody, degC.
    """

    channel: str
    lag_s: float
    over_s: float
    rise_max: float
    above: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """One way in which an instrument adds energy, and what ends it.

    Attributes:
        adds: What it adds.
        steps: Channel and value, in the order in which they have to be sent.
        source: Page of the document that says so.
        drives: The channels that say how much it adds.
        gas: Which gas, by its short name (``Ar``, ``H2``); ``""`` where it adds none.
        dark: What shows that it is off; ``None`` where nothing does.
        cools: How its temperature goes then, on a usual line; a line's envelope may say else.
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
    """Return how a mass flow controller adds its gas: its channels are ``setpoint`` and ``flow``.

    At rest its meter may read 2 % of full scale, which is ten times its zero error.
    """
    dark = Dark(channel="flow", at_most=0.02 * full_scale_sccm, within_s=5.0)
    steps = (("setpoint", 0.0),)
    return (
        Off(adds=Adds.GAS, gas=gas, steps=steps, source=source, drives=("setpoint",), dark=dark),
    )
