"""What must be so: bounds on readings, and the proofs that the tube is purged and tight."""

import math
from dataclasses import dataclass

__all__ = ["Bound", "Condition", "EnvelopeInvalid", "LeakTight", "PurgedOf", "positive"]


class EnvelopeInvalid(ValueError):
    """The envelope contradicts itself or names what does not exist."""


def positive(value: float, what: str) -> None:
    """Raise ``EnvelopeInvalid`` unless a number is positive and finite; NaN is neither."""
    if not 0 < value < math.inf:
        raise EnvelopeInvalid(f"{what} is {value}, which is not positive and finite")


@dataclass(frozen=True, slots=True)
class Bound:
    """A reading of ``channel`` is within ``low`` to ``high``, both included.

    As a requirement it takes a fresh reading; as what is forbidden, a fresh reading that excludes
    it. A bound may state both ends: a temperature band.
    """

    channel: str
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high or (math.isinf(self.low) and math.isinf(self.high)):
            raise EnvelopeInvalid(f"{self.channel}: {self.low} to {self.high} bounds nothing")

    def holds(self, value: float) -> bool:
        """Return whether it holds for one value."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{self.channel} at least {self.low:g}"
        if self.low == -math.inf:
            return f"{self.channel} at most {self.high:g}"
        return f"{self.channel} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class PurgedOf:
    """The tube was purged since ``contaminant`` was in it: by volumes, or by pump and backfill.

    Oxygen is not measured: that air is out of the tube is *inferred* from this proof.

    Attributes:
        contaminant: What is out.
        volumes: Tube volumes that must have passed as measured inert flow; the cycles of the
            line's ``Backfill`` are proof too.
    """

    contaminant: str
    volumes: float

    def __post_init__(self) -> None:
        positive(self.volumes, f"purged of {self.contaminant!r}: volumes")

    def __str__(self) -> str:
        inferred = ", from which oxygen is inferred" if self.contaminant == "air" else ""
        return f"tube purged of {self.contaminant} by {self.volumes:g} volumes{inferred}"


@dataclass(frozen=True, slots=True)
class LeakTight:
    """The tube passed the line's ``LeakCheck`` since ``contaminant`` was in it (it was open)."""

    contaminant: str

    def __str__(self) -> str:
        return f"tube leak-checked since it was open to {self.contaminant}"


Condition = Bound | PurgedOf | LeakTight
