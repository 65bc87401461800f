"""How long a line is held, and when that is too long."""

from collections.abc import Callable

__all__ = ["HOLD_S_MAX", "Hold", "HoldTooLong"]

HOLD_S_MAX = 3600.0  # a hold is a pause to think in; after it the run ends and is made safe


class HoldTooLong(RuntimeError):
    """The line was held for longer than is allowed."""


class Hold:
    """The clock of a line's holds.

    Args:
        now_s: Lab time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._ended_s = 0.0
        self._since_s: float | None = None

    @property
    def on(self) -> bool:
        """Whether the line is held."""
        return self._since_s is not None

    def begin(self) -> None:
        """The line is held from now on."""
        self._since_s = self._now_s()

    def end(self) -> None:
        """The line is let go."""
        self._ended_s = self.total_s()
        self._since_s = None

    def said(self) -> str:
        """Say that the line is held, and what ends that if nobody does."""
        minutes = HOLD_S_MAX / 60
        return (
            f"held; unless it is resumed within {minutes:g} min, it ends and the line is made safe"
        )

    def total_s(self) -> float:
        """Return the lab time for which the line has been held so far."""
        return self._ended_s + self._this_s()

    def check(self) -> None:
        """Raise ``HoldTooLong`` if the hold has lasted for longer than is allowed."""
        if self._this_s() > HOLD_S_MAX:
            raise HoldTooLong(f"the line was held for {HOLD_S_MAX:g} s, the longest allowed")

    def _this_s(self) -> float:
        return 0.0 if self._since_s is None else self._now_s() - self._since_s
