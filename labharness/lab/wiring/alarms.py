"""The alarms of a lab: wired to its line, looked at, and acted on from another terminal."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from labharness.core.clock import Clock, wall_clock_utc
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.lab.config.address import BadLabFile, LabAddress
from labharness.lab.config.lock import LineBusy, LineLock
from labharness.safety.alarm.board import Actor, Alarm, AlarmEvent, Board, Fact, expired, take
from labharness.safety.alarm.outlets import (
    AlarmFile,
    AlertChannel,
    AppriseChannels,
    BadAddress,
    Channels,
    NullSenders,
)

if TYPE_CHECKING:
    from labharness.lab.config.lab_plan import LabPlan
    from labharness.lab.wiring.lab import Lab
    from labharness.line import LineAlarms

FILE_NAME = "alarms.jsonl"
ALL = "all"


class NotDone(CodedError, RuntimeError, code="alarm_not_changed"):
    """The alarms were not changed; the message says why."""


def line_alarms(lab: "Lab") -> "LineAlarms":
    """Wire the alarms of an opened lab.

    Raises:
        BadLabFile: An alert cannot be sent as the lab file has it.
    """
    from labharness.line import LineAlarms

    plan, virtual = lab.plan, lab.clock.virtual
    return LineAlarms(
        line=lab.line,
        clock=lab.clock,
        file=AlarmFile(_path(plan)),
        channels=channels(plan),
        senders=NullSenders() if virtual else senders(plan),
        title=plan.file.lab.title,
        option=plan.option_anywhere,
    )


async def somebody_knows(alarms: "LineAlarms", clock: Clock, tell: Callable[[str], None]) -> None:
    """Go on calling people for a line left latched or not verified, until one acknowledges.

    The line has no owner meanwhile. At another speed than the real one it does not wait.
    """
    if clock.speed == 1.0:
        await alarms.answered(tell)


def channels(plan: "LabPlan") -> tuple[AlertChannel, ...]:
    """Return the recipients of alerts in the lab file."""
    return tuple(
        AlertChannel(
            name=row.name,
            severities=frozenset(row.severities),
            level=row.level,
            language=row.language,
        )
        for row in plan.file.alert
    )


def senders(plan: "LabPlan") -> Channels:
    """Return the senders of the recipients' messages.

    Raises:
        BadLabFile: apprise is not installed, or does not know an address.
    """
    if not plan.file.alert:
        return NullSenders()
    try:
        return AppriseChannels({row.name: row.url.get_secret_value() for row in plan.file.alert})
    except BadAddress as why:
        raise BadLabFile("pair", what=str(plan.path), why=str(why)) from None


def listed(place: LabAddress, now: datetime) -> tuple[Board, tuple[Alarm, ...], int]:
    """Return the board, the alarms that are still of interest, and how many lines are damaged.

    Raises:
        NotDone: The file cannot be read.
    """
    file = AlarmFile(_path(place))
    board, _ = _board(file, now)
    kept = [alarm for alarm in board.alarms.values() if alarm.state.retained]
    return board, tuple(sorted(kept, key=lambda alarm: alarm.gravity)), file.damaged


def do(place: LabAddress, act: Fact) -> tuple[str, ...]:
    """Act on one alarm, or acknowledge `ALL`; return the alarms that were changed.

    To acknowledge a first-out also acknowledges the alarms that followed it. A process that owns
    the line sees it with its next poll.

    Raises:
        NotDone: There is no such alarm, or its state, its severity or the role forbids it, or the
            name misleads.
    """
    if misleads := bad_name(act.who):
        raise NotDone(misleads)
    file, name = AlarmFile(_path(place)), act.alarm
    board, ended = _board(file, act.at)
    names: Sequence[str] = (name,)
    if act.event is AlarmEvent.ACKNOWLEDGE:
        names = [each for each in _named(board, name) if not board.alarms[each].state.acked]
        if not names:
            if name != ALL and name not in board.alarms:
                raise NotDone(_unknown(board, name))
            raise NotDone("alarms.all_acknowledged", name=name)
    elif name not in board.alarms:
        raise NotDone(_unknown(board, name))
    facts = [replace(act, alarm=each) for each in names]
    for fact in facts:
        taken = take(board, fact)
        if taken.refusal:
            raise NotDone("pair", what=fact.alarm, why=taken.refusal)
        board = taken.board
    _append(file, [*ended, *facts])  # a shelf that ended unwatched would swallow the next one
    return tuple(names)


def reset_alarms(place: LabAddress, *, now: datetime, who: str, why: str) -> None:
    """Reset every latched alarm: the cause is gone, and a person resets the line.

    Raises:
        NotDone: The file cannot be read or written.
    """
    file = AlarmFile(_path(place))
    board, _ = _board(file, now)
    facts = []
    for alarm in board.alarms.values():
        if alarm.state.latched:
            gone = Fact(
                event=AlarmEvent.DEACTIVATE, alarm=alarm.name, at=now, why=Text("alarm.gone")
            )
            people = (
                Fact(event=event, alarm=alarm.name, at=now, role=Actor.OPERATOR, who=who, why=why)
                for event in (AlarmEvent.ACKNOWLEDGE, AlarmEvent.RESET)
            )
            for fact in (gone, *people):
                taken = take(board, fact)
                if not taken.refusal:
                    board = taken.board
                    facts.append(fact)
    if facts:
        _append(file, facts)


def channel_answers(place: LabAddress, channel: str) -> None:
    """Record that a channel of alert takes messages; an owner of the line finds that by itself."""
    from labharness.line.alarms import CHANNEL

    with suppress(LineBusy, OSError), LineLock(place.state_dir):
        _end(place, CHANNEL + channel, "it takes messages")


def line_is_verified(place: LabAddress, procedure: str) -> None:
    """Record that a line without an owner was made safe, and every step was verified."""
    from labharness.line.alarms import UNVERIFIED

    _end(place, UNVERIFIED, f"{procedure} is verified")


def _end(place: LabAddress, prefix: str, why: str) -> None:
    """Record that alarms are no longer active: an action has ended their cause.

    The line has no owner meanwhile. A file that cannot be written stays the same.
    """
    file, now = AlarmFile(_path(place)), wall_clock_utc()
    with suppress(NotDone):
        board, ended = _board(file, now)
        facts = [
            Fact(event=AlarmEvent.DEACTIVATE, alarm=alarm.name, at=now, why=why)
            for alarm in board.alarms.values()
            if alarm.state.active and not alarm.state.latched and _begins(alarm.name, prefix)
        ]
        if facts:
            _append(file, [*ended, *facts])


def _begins(name: str, prefix: str) -> bool:
    return name == prefix or (prefix.endswith("/") and name.startswith(prefix))


def _path(place: LabAddress) -> Path:
    return place.state_dir / FILE_NAME


def _board(file: AlarmFile, now: datetime) -> tuple[Board, tuple[Fact, ...]]:
    """Return the board as it is, and the ends of shelves that are not in the file."""
    board = Board()
    try:
        facts = file.look_at_all()
    except OSError as why:
        reason = why.strerror or str(why)
        raise NotDone("file.unreadable", path=str(file.path), why=reason) from None
    for fact in facts:
        board = take(board, fact).board
    ended = tuple(expired(board, now))
    for fact in ended:
        board = take(board, fact).board
    return board, ended


def _named(board: Board, name: str) -> Sequence[str]:
    if name == ALL:
        return tuple(board.alarms)
    group = board.group_of(name)
    if group is not None and group.first_out == name:
        return group.members
    return (name,) if name in board.alarms else ()


def _append(file: AlarmFile, facts: Sequence[Fact]) -> None:
    try:
        file.append(facts)
    except OSError as why:
        reason = why.strerror or str(why)
        raise NotDone("file.unwritable", path=str(file.path), why=reason) from None


def _unknown(board: Board, name: str) -> str:
    known = ", ".join(board.alarms) or "none"
    near = did_you_mean(name, list(board.alarms))
    return Text("alarms.unknown", name=name, hint=near, known=known)
