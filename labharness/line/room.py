"""The pressure of the room that a line's pressures are stated against, and what belies it."""

from dataclasses import dataclass

from labharness.safety.kernel import Bound, Memory

__all__ = ["Room"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is known of the room.

    Attributes:
        ambient: Its pressure, in the gauge's unit; ``None`` where nobody knows it.
        channel: The gauge that shows it while the tube is open to it; ``""`` for none.
        during: While all of these hold, the tube is cold and open to the room.
        differ_max: How far the gauge may be from it then.
    """

    ambient: float | None
    channel: str = ""
    during: tuple[Bound, ...] = ()
    differ_max: float = 0.0

    def hindrance(self, memory: Memory, now: float) -> str:
        """Return why no line may be armed by this pressure; ``""`` for no reason."""
        if self.ambient is None:
            return (
                "the pressure of the room is not known, against which the envelope states others: "
                "give ambient_torr in the lab file"
            )
        if not self.channel or not all(memory.holds(each, now) for each in self.during):
            return ""
        track = memory.tracks[self.channel]
        if not track.fresh(now) or abs(track.value - self.ambient) <= self.differ_max:
            return ""
        return (
            f"the room has {self.ambient:g} by the lab file (ambient_torr), and {self.channel} "
            f"reads {track.value:g} in a cold tube that is open to it, more than "
            f"{self.differ_max:g} away"
        )
