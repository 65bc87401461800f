"""Alarm states, first-out grouping, shelving, and the channels by which people are told."""

from labharness.safety.alarm.board import (
    ESCALATE_AFTER,
    HOUSE,
    LEVEL_MAX,
    SHELVED_MAX,
    Alarm,
    AlarmGroup,
    Board,
    Fact,
    expired,
    left_over,
    level_due,
    longest_s,
    take,
    watch_anew,
)
from labharness.safety.alarm.channels import (
    ALERT_S_MAX,
    AlertChannel,
    AppriseChannels,
    BadAddress,
    Channels,
    NullSenders,
    recipients,
    strange_addresses,
)
from labharness.safety.alarm.file import AlarmFile
from labharness.safety.alarm.states import Actor, AlarmEvent, Severity, Shelving, State, described
from labharness.safety.alarm.waiting import still_to_call

__all__ = [
    "ALERT_S_MAX",
    "ESCALATE_AFTER",
    "HOUSE",
    "LEVEL_MAX",
    "SHELVED_MAX",
    "Actor",
    "Alarm",
    "AlarmEvent",
    "AlarmFile",
    "AlarmGroup",
    "AlertChannel",
    "AppriseChannels",
    "BadAddress",
    "Board",
    "Channels",
    "Fact",
    "NullSenders",
    "Severity",
    "Shelving",
    "State",
    "described",
    "expired",
    "left_over",
    "level_due",
    "longest_s",
    "recipients",
    "still_to_call",
    "strange_addresses",
    "take",
    "watch_anew",
]
