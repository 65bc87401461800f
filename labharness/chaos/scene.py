"""The referee's knowledge beside the plant: the harness, the guard, and the faults."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Scene:
    """The referee's knowledge beside the plant.

    Attributes:
        harness: ``alive``, ``killed``, ``paused`` or ``gone`` (its run has ended).
        latched: Nothing may be energised before a reset.
        blind: Masks of the line, by name.
        cut: Ports that are cut now.
        deaf: Ports on which a frame may be lost or refused now.
        disturbed: Ports that were deaf since the last mending.
        guarded: A guard is alone with the line and makes it safe, or has reported it safe.
        used: Something was energised since this harness began.
        stopped: A stop was requested.
        silent: Heaters whose thermocouple gives no signal now.
        watched: Ports whose silence must be noticed.
        forgiven: By total of the plant, what was added to it while the line was blind to that.
    """

    harness: str = "gone"
    latched: bool = False
    blind: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    deaf: set[str] = field(default_factory=set)
    disturbed: set[str] = field(default_factory=set)
    guarded: bool = False
    used: bool = False
    silent: set[str] = field(default_factory=set)
    stopped: bool = False
    watched: frozenset[str] = frozenset()
    forgiven: dict[str, float] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Return the names by which conditions know this."""
        return {
            "harness": self.harness,
            "latched": self.latched,
            "blind": self.blind,
            "deaf": self.deaf,
            "disturbed": self.disturbed,
            "guarded": self.guarded,
            "used": self.used,
            "silent": self.silent,
            "stopped": self.stopped,
            "watched_port_cut": bool(self.cut & self.watched),
        }
