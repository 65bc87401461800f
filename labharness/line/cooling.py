"""Watching a line until it may be touched: polls and trips go on, and masking ends it."""

from collections.abc import Sequence

from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.channels import owner_of
from labharness.line.line import Line

__all__ = ["COLD_C", "COOL_WATCH_S_MAX", "watch_until_cold"]

COLD_C = 60.0  # a tube that may be touched
COOL_WATCH_S_MAX = 12 * 3600.0


async def watch_until_cold(line: Line) -> bool:
    """Go on polling, with trips in force, until everything that heats is cold.

    Returns:
        Whether it is; ``False`` after the longest watch, or as soon as a temperature is not heard
        or its sensor is broken: a watch that sees nothing is none.
    """
    hot = [channel for channel in line.envelope.watches if channel.endswith(".temperature")]
    until_s = line.clock.now_s() + COOL_WATCH_S_MAX
    while line.clock.now_s() < until_s:
        values = [line.latest(channel) for channel in hot]
        if all(value < COLD_C for value in values):
            return True
        if any(value != value for value in values) or _blind(line, hot):
            return False
        await line.polled()
    return False


def _blind(line: Line, channels: Sequence[str]) -> bool:
    """Return whether one of these channels' instruments knows that its sensor is broken."""
    owners = set(map(owner_of, channels))
    return any(
        row.cause is Cause.SENSOR_BREAK
        and owner_of(row.channel) in owners
        and not row.low <= line.latest(row.channel) <= row.high
        for row in line.envelope.trips
    )
