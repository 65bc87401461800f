"""Time without an event loop: the machine's steady clock, and the calendar."""

import time
from datetime import UTC, datetime

# CLOCK_MONOTONIC stands still while the machine sleeps: an old reading would then count as fresh.
_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_s() -> float:
    """Return the seconds of the machine's steady clock.

    All its processes share it; sleep counts.
    """
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


def monotonic_ns() -> int:
    """Return CLOCK_MONOTONIC in nanoseconds, to compare the logs of several processes."""
    return time.monotonic_ns()


def pause(seconds: float) -> None:
    """Sleep, in code without an event loop."""
    time.sleep(seconds)


def wall_clock_utc() -> datetime:
    """Return the calendar's time, for code outside any loop."""
    return datetime.now(UTC)


def utc_text(moment: datetime) -> str:
    """Write a moment as HCP does: ISO 8601, UTC, milliseconds, ``Z``.

    Raises:
        ValueError: The moment has no time zone.
    """
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
