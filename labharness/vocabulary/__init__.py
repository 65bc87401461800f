"""The nouns everybody shares: frozen values, standard library only."""

from labharness.vocabulary.commands import (
    OPERATOR,
    Allowed,
    Command,
    Ending,
    Outcome,
    Reading,
    Refused,
    Verdict,
)
from labharness.vocabulary.requests import (
    BadReply,
    DeviceFault,
    Exactly,
    LengthAt,
    Lines,
    Message,
    Nothing,
    Quiet,
    ReplyRule,
    Request,
    Rtu,
    Transaction,
    Until,
    crc16_modbus,
)
from labharness.vocabulary.shares import share_text
from labharness.vocabulary.trips import Cause, Trip

__all__ = [
    "OPERATOR",
    "Allowed",
    "BadReply",
    "Cause",
    "Command",
    "DeviceFault",
    "Ending",
    "Exactly",
    "LengthAt",
    "Lines",
    "Message",
    "Nothing",
    "Outcome",
    "Quiet",
    "Reading",
    "Refused",
    "ReplyRule",
    "Request",
    "Rtu",
    "Transaction",
    "Trip",
    "Until",
    "Verdict",
    "crc16_modbus",
    "share_text",
]
