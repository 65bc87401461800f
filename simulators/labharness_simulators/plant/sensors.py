"""Sensors that lie, in the seven ways that PX4 injects."""

import math
import random
from collections import deque
from enum import StrEnum

HISTORY_MAX = 1_000  # values remembered by a delayed sensor; it is read a few times a second
BLINK_S = 1.0  # period of an intermittent sensor


class SensorFaultKind(StrEnum):
    """The way in which a sensor lies; the same seven as in PX4, debug/failure_injection.md."""

    OFF = "off"
    STUCK = "stuck"
    GARBAGE = "garbage"
    WRONG = "wrong"
    SLOW = "slow"
    DELAYED = "delayed"
    INTERMITTENT = "intermittent"


class SensorFault:
    """One sensor that lies.

    Args:
        kind: the way in which it lies.
        amount: for `garbage` the greatest random value, for `wrong` the factor on the true value,
            for `slow` its time constant in s, for `delayed` the delay in s, for `intermittent` the
            share 0..1 of the time without a signal; the others take none.
        chance: source of the random values.

    Attributes:
        now_s: seconds from the plant's start, set by the plant.
    """

    __slots__ = ("_amount", "_blink", "_chance", "_history", "_kind", "_last", "_last_s", "now_s")

    def __init__(self, kind: SensorFaultKind, amount: float, chance: random.Random) -> None:
        self._kind = kind
        self._amount = amount
        self._chance = chance
        self._last = math.nan
        self._last_s = 0.0
        self._history: deque[tuple[float, float]] = deque(maxlen=HISTORY_MAX)
        self._blink = (-1, False)
        self.now_s = 0.0

    def silent(self) -> bool:
        """Return whether it gives no signal now."""
        if self._kind is SensorFaultKind.OFF:
            return True
        if self._kind is not SensorFaultKind.INTERMITTENT:
            return False
        blink = int(self.now_s / BLINK_S)
        if blink != self._blink[0]:
            self._blink = (blink, self._chance.random() < self._amount)
        return self._blink[1]

    def heard(self, value: float) -> float:
        """Return its reading of a true value; NaN without a signal."""
        kind = self._kind
        if self.silent():
            return math.nan
        if kind is SensorFaultKind.GARBAGE:
            return self._chance.uniform(0.0, self._amount)
        if kind is SensorFaultKind.WRONG:
            return value * self._amount
        if kind is SensorFaultKind.STUCK:
            if math.isnan(self._last):
                self._last = value
            return self._last
        if kind is SensorFaultKind.SLOW:
            return self._lagging(value)
        if kind is SensorFaultKind.DELAYED:
            return self._delayed(value)
        return value

    def _lagging(self, value: float) -> float:
        if math.isnan(self._last):
            self._last = value
        kept = math.exp(-max(0.0, self.now_s - self._last_s) / self._amount)
        self._last = value + (self._last - value) * kept
        self._last_s = self.now_s
        return self._last

    def _delayed(self, value: float) -> float:
        history = self._history
        history.append((self.now_s, value))
        while len(history) > 1 and history[1][0] <= self.now_s - self._amount:
            history.popleft()
        return history[0][1]
