"""The counters of a service."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

LINE_STATES: Final = ("idle", "running", "latched", "down")
"""The states of a line, as a service sees it: its owner has no run, has one, or does not answer."""


@dataclass(slots=True)
class Counts:
    """The numbers of one service since its start.

    Attributes:
        connected: Whether the broker is there.
        taken: Messages that were taken, by what they are.
        rejected: Submissions that were refused on receipt, and not kept as tasks.
        dead: Messages that went to the dead letters.
        sent: Messages that the broker confirmed and that reached a queue, by type.
        waiting: Messages that were read to be sent and still wait, as of the last look.
        spans: Spans of traces that a collector has taken (``sent``) or that were ``dropped``.
    """

    connected: bool = False
    taken: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    dead: int = 0
    sent: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    spans: Counter[str] = field(default_factory=lambda: Counter(sent=0, dropped=0))
