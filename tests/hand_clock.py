"""A clock that a test moves by hand, for a simulator that has no loop."""

from types import SimpleNamespace


class Clock:
    """A loop that only knows the time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, *_: object) -> object:
        return SimpleNamespace(cancel=lambda: None)
