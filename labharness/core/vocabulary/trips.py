"""What goes wrong with a line: causes, and the trip that answers one."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Cause", "Trip"]


class Cause(StrEnum):
    """Why a line trips. The order of the members is their rank: the first is the most severe.

    Too much pressure comes first. Every other cause is answered with inert gas into the tube, which
    bursts one whose outlet is blocked; the answer to this one takes heat and hydrogen off as well.
    """

    OVER_PRESSURE = "over_pressure"
    GAS_LEAK = "gas_leak_detected"
    EMERGENCY_STOP_LOOP = "emergency_stop_loop"
    SENSOR_BREAK = "sensor_break"  # before what a broken sensor makes a controller read
    OVER_TEMPERATURE = "over_temperature"
    OVER_FLOW = "over_flow"
    INTERLOCK_LOST = "interlock_lost"
    COMMUNICATION = "communication"
    JOURNAL_LOST = "journal_lost"
    STOP_REQUEST = "stop_request"

    @property
    def rank(self) -> int:
        """Severity: 0 is the most severe."""
        return list(Cause).index(self)

    def overrules(self, in_force: "Cause | None") -> bool:
        """Return whether a trip of this cause runs its procedure though another is in force."""
        return in_force is None or self.rank < in_force.rank


@dataclass(frozen=True, slots=True)
class Trip:
    """One cause, seen at one channel, and the procedure that answers it.

    Attributes:
        cause: Why.
        procedure: Name of the procedure in the line's envelope.
        channel: Where it was seen.
        value: What was seen there; ``None`` when silence is the cause.
        at_s: Lab time.
        detail: One sentence with the value, the limit and the unit.
    """

    cause: Cause
    procedure: str
    channel: str
    value: float | None
    at_s: float
    detail: str
