"""Whether the harness lives, as the guard sees it (sans I/O): heartbeats, and when one is overdue.

A heartbeat says when it was made, not when it was read: those that waited in a socket while the
harness stood still prove nothing about now.
"""

from dataclasses import dataclass

__all__ = ["HarnessWatch"]


@dataclass(slots=True)
class HarnessWatch:
    """Counts the silence of an armed harness.

    Attributes:
        silence_s_max: Longest silence that is borne.
        procedure: What to run when it is over; each heartbeat may name another: what is safe
            depends on the state of the line.
        heard_s: When the last heartbeat was made; ``inf`` while nothing is armed.
    """

    silence_s_max: float
    procedure: str
    heard_s: float = float("inf")

    @property
    def due_s(self) -> float:
        """When the harness counts as lost, unless a heartbeat comes."""
        return self.heard_s + self.silence_s_max

    def begin(self, now: float) -> None:
        """Watch from now on."""
        self.heard_s = now

    def end(self) -> None:
        """Watch nobody: nothing is armed."""
        self.heard_s = float("inf")

    def heartbeat(self, made_s: float, now: float, procedure: str) -> float:
        """Take a heartbeat; one from the future counts as made now.

        Returns:
            The silence before it (s), where it was longer than is borne: harness and guard may
            have stood still together, with the machine. Such a heartbeat is not taken. Otherwise 0.
        """
        if self.heard_s != float("inf"):
            fresh_s = max(self.heard_s, min(made_s, now))
            if fresh_s > self.due_s:
                return fresh_s - self.heard_s
            self.heard_s = fresh_s
        self.procedure = procedure
        return 0.0

    def overdue(self, now: float) -> bool:
        """Return whether the silence has lasted too long."""
        return now > self.due_s
