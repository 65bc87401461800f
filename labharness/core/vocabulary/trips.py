"""Causes of a trip, in order of severity, and the trip that answers one."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a line trips. The order of the members is their rank: the first is the most severe.

    Over-pressure comes first. Every other cause is answered with inert gas into the tube, which
    bursts a tube whose outlet is blocked. The answer to over-pressure also takes heat and hydrogen
    off.
    """

    OVER_PRESSURE = "over_pressure"
    GAS_LEAK = "gas_leak_detected"
    EMERGENCY_STOP_LOOP = "emergency_stop_loop"
    # before the causes that a controller with a broken sensor may report
    SENSOR_BREAK = "sensor_break"
    OVER_TEMPERATURE = "over_temperature"
    OVER_FLOW = "over_flow"
    INTERLOCK_LOST = "interlock_lost"
    COMMUNICATION = "communication"
    JOURNAL_LOST = "journal_lost"
    STOP_REQUEST = "stop_request"

    @property
    def rank(self) -> int:
        """Severity; 0 is the most severe."""
        return list(Cause).index(self)

    def overrules(self, in_force: "Cause | None") -> bool:
        """Return whether a trip of this cause runs its procedure while another one is in force."""
        return in_force is None or self.rank < in_force.rank


@dataclass(frozen=True, slots=True)
class Trip:
    """One cause, the channel that showed it, and the procedure that answers it.

    Attributes:
        cause: Why the line trips.
        procedure: Name of the procedure in the line's envelope.
        channel: Channel that showed the cause.
        value: Its value; ``None`` if silence is the cause.
        at_s: Lab time.
        detail: One sentence with the value, the limit and the unit.
    """

    cause: Cause
    procedure: str
    channel: str
    value: float | None
    at_s: float
    detail: str
