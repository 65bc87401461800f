"""What is left to be called of, once a line was left: whom, and for which group."""

from collections.abc import Mapping, Sequence
from typing import Final

from labharness.safety.alarm.board import LEVEL_MAX, AlarmGroup, Board
from labharness.safety.alarm.channels import AlertChannel, recipients
from labharness.safety.alarm.states import Severity

__all__ = ["still_to_call"]

GRAVE: Final = frozenset({Severity.CRITICAL, Severity.TRIP})
"""The line is latched or not verified safe, so somebody has to know, though it was left."""


def still_to_call(
    board: Board, channels: Sequence[AlertChannel], told: Mapping[int, int]
) -> tuple[AlarmGroup, int] | None:
    """Return a grave group that nobody has acknowledged, and the next level that would hear of it.

    Args:
        board: All alarms.
        channels: All there are.
        told: The last level that each group was told to.
    """
    for group in board.groups:
        called = [board.alarms[name].severity for _, name in board.calling(group)]
        if not GRAVE.isdisjoint(called):
            for level in range(told[group.number] + 1, LEVEL_MAX + 1):
                if recipients(channels, called, level):
                    return group, level
    return None
