"""What *off* means for an instrument: in which ways it adds energy, and what ends each."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["INERT", "Adds", "Off"]

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
        """Say what something does that adds this."""
        return {"heat": "heating", "gas": "flowing", "light": "shining", "current": "driven"}[self]

    @property
    def nothing(self) -> str:
        """Say what follows while it is off."""
        said = {"heat": "nothing heats", "gas": "nothing flows", "light": "nothing shines"}
        return said.get(self, "no current flows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """One way in which an instrument adds energy, and what ends it.

    Attributes:
        adds: What it adds.
        steps: Channel and value, in the order in which they have to be sent.
        source: Page of the document that says so.
        drives: The channels that say how much it adds.
        gas: Which gas, by its short name (``Ar``, ``H2``); ``""`` where it adds none.
    """

    adds: Adds
    steps: tuple[tuple[str, float], ...]
    source: str
    drives: tuple[str, ...] = ()
    gas: str = ""

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError("off takes at least one step: a channel and its value")
        if (self.adds is Adds.GAS) != bool(self.gas):
            raise ValueError(f"off of {self.adds.value}: gas is {self.gas!r}; gas alone names one")

    @property
    def inert(self) -> bool:
        """Whether what it adds can stay on in a safe state."""
        return self.gas in INERT
