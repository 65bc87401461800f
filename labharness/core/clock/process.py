"""Time for a process without a loop: the machine's own steady clock, and the calendar."""

import time
from datetime import UTC, datetime

__all__ = ["monotonic_ns", "pause", "steady_s", "utc_text", "wall_clock_utc"]


# the plain one stands still while the machine sleeps: what was read before would count as fresh
_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_s() -> float:
    """Seconds of the machine's steady clock, which all its processes share; sleep counts."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


def monotonic_ns() -> int:
    """Nanoseconds of the plain one, for logs of several processes that are compared."""
    return time.monotonic_ns()


def pause(seconds: float) -> None:
    """Wait, where there is no loop to wait on."""
    time.sleep(seconds)


def wall_clock_utc() -> datetime:
    """What the calendar says, for shells that run outside any loop."""
    return datetime.now(UTC)


def utc_text(moment: datetime) -> str:
    """Write a moment as HCP does: ISO 8601, UTC, milliseconds, ``Z``.

    Raises:
        ValueError: The moment has no time zone.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
