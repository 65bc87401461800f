"""Value types that all rooms share: frozen, standard library only."""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.core.vocabulary.commands import (
        OPERATOR,
        Allowed,
        Command,
        Ending,
        Outcome,
        Refused,
        Verdict,
    )
    from labharness.core.vocabulary.frames import Protocol, same_frame, why_no_read
    from labharness.core.vocabulary.programs import BadProgram, Program, Segment, read_program
    from labharness.core.vocabulary.requests import (
        BadReply,
        Checked,
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
        Seal,
        Transaction,
        Until,
        crc16_modbus,
        disobeyed,
        unfinished,
    )
    from labharness.core.vocabulary.shares import share_text
    from labharness.core.vocabulary.texts import Text
    from labharness.core.vocabulary.trips import Cause, Trip

__getattr__ = on_demand(
    __name__, "texts", "trips", "shares", "requests", "frames", "commands", "programs"
)
