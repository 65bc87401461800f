"""A bound on a reading, which most conditions are, and what an envelope that is wrong raises."""

import math
from dataclasses import dataclass

from labharness.core.vocabulary.texts import CodedError, Text


class EnvelopeInvalid(CodedError, ValueError, code="envelope_invalid"):
    """The envelope contradicts itself or names what does not exist."""


def positive(value: float, what: str) -> None:
    """Raise ``EnvelopeInvalid`` unless a number is positive and finite; NaN is neither."""
    if not 0 < value < math.inf:
        raise EnvelopeInvalid(f"{what} is {value}, which is not positive and finite")


@dataclass(frozen=True, slots=True)
class Bound:
    """A reading of ``channel`` is within ``low`` to ``high``, both included.

    A bound that is required takes a fresh reading within it. A state that is forbidden takes a
    fresh reading outside it. Both ends together make a band, of temperatures for instance.
    """

    channel: str
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high or (math.isinf(self.low) and math.isinf(self.high)):
            raise EnvelopeInvalid(f"{self.channel}: {self.low} to {self.high} bounds nothing")

    def holds(self, value: float) -> bool:
        """Return whether one value is within it; NaN never is."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return Text("bound.at_least", channel=self.channel, low=self.low)
        if self.low == -math.inf:
            return Text("bound.at_most", channel=self.channel, high=self.high)
        return Text("bound.between", channel=self.channel, low=self.low, high=self.high)
