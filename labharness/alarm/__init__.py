"""Alarm states, first-out grouping, shelving, and the channels by which people are told."""

from labharness.alarm.board import (
    ESCALATE_AFTER,
    HOUSE,
    LEVEL_MAX,
    SHELVED_MAX,
    Alarm,
    Board,
    Fact,
    Group,
    expired,
    left_over,
    level_due,
    take,
    watch_anew,
)
from labharness.alarm.channels import (
    ALERT_S_MAX,
    AppriseChannels,
    BadAddress,
    Channel,
    Channels,
    OnPaper,
    recipients,
)
from labharness.alarm.file import AlarmFile
from labharness.alarm.states import Event, Role, Severity, Shelving, State, described

__all__ = [
    "ALERT_S_MAX",
    "ESCALATE_AFTER",
    "HOUSE",
    "LEVEL_MAX",
    "SHELVED_MAX",
    "Alarm",
    "AlarmFile",
    "AppriseChannels",
    "BadAddress",
    "Board",
    "Channel",
    "Channels",
    "Event",
    "Fact",
    "Group",
    "OnPaper",
    "Role",
    "Severity",
    "Shelving",
    "State",
    "described",
    "expired",
    "left_over",
    "level_due",
    "recipients",
    "take",
    "watch_anew",
]
