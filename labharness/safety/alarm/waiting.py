"""The calls that remain to be made after a line was left, by group and level."""

from collections.abc import Mapping, Sequence
from typing import Final

from labharness.safety.alarm.board import LEVEL_MAX, AlarmGroup, Board
from labharness.safety.alarm.channels import AlertChannel, recipients
from labharness.safety.alarm.states import Severity

GRAVE: Final = frozenset({Severity.CRITICAL, Severity.TRIP})
"""The line is latched or not verified safe, so a person has to know, even after it was left."""


def still_to_call(
    board: Board, channels: Sequence[AlertChannel], told: Mapping[int, int]
) -> tuple[AlarmGroup, int] | None:
    """Return a grave unacknowledged group and the next level to call for it.

    Args:
        board: All alarms.
        channels: All channels.
        told: The last level that was called for each group.
    """
    for group in board.groups:
        called = [board.alarms[name].severity for _, name in board.calling(group)]
        if not GRAVE.isdisjoint(called):
            for level in range(told[group.number] + 1, LEVEL_MAX + 1):
                if recipients(channels, called, level):
                    return group, level
    return None
