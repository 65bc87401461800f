"""The alarms of a lab as one value, changed by facts; a fact may call people.

A fact that is not allowed changes nothing and returns the reason. So the same facts in the same
order make the same board for every reader. The states of one alarm and the table of its changes
are those of OPC UA Part 9 (OPC 10000-9, 1.05, clauses 5.7 and 5.8). ConfirmedState, which is
optional there, is not offered: a trip is confirmed by its reset.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from labharness.core.vocabulary.texts import Text


class Severity(StrEnum):
    """The gravity of an alarm. The order of the members is their rank, the gravest first."""

    CRITICAL = "critical"  # the line is not known to be safe, or would not stay so
    TRIP = "trip"  # the line was made safe and is latched
    FAULT = "fault"  # something that is to warn or record does not
    WARNING = "warning"


class Actor(StrEnum):
    """The role of the person or program that changes an alarm."""

    SYSTEM = "system"
    OPERATOR = "operator"
    MAINTAINER = "maintainer"


class Shelving(StrEnum):
    """ShelvingState: an operator does not want to hear of an alarm for a while."""

    UNSHELVED = "unshelved"
    ONE_SHOT = "one_shot_shelved"  # until the alarm is no longer active
    TIMED = "timed_shelved"


class AlarmEvent(StrEnum):
    """An event of an alarm: the methods of Part 9, and the change of its cause."""

    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    ACKNOWLEDGE = "acknowledge"
    RESET = "reset"
    TIMED_SHELVE = "timed_shelve"
    ONE_SHOT_SHELVE = "one_shot_shelve"
    UNSHELVE = "unshelve"
    SUPPRESS = "suppress"
    UNSUPPRESS = "unsuppress"
    REMOVE_FROM_SERVICE = "remove_from_service"
    PLACE_IN_SERVICE = "place_in_service"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """ActiveState, AckedState, LatchedState, ShelvingState, SuppressedState, OutOfServiceState."""

    active: bool = False
    acked: bool = True
    latched: bool = False
    shelving: Shelving = Shelving.UNSHELVED
    suppressed: bool = False
    out_of_service: bool = False

    @property
    def suppressed_or_shelved(self) -> bool:
        """Whether it calls no person (SuppressedOrShelved of Part 9)."""
        return self.suppressed or self.out_of_service or self.shelving is not Shelving.UNSHELVED

    @property
    def retained(self) -> bool:
        """Whether it is still of interest (Retain of Part 9): a list shows it."""
        return self.active or not self.acked or self.latched or self.suppressed_or_shelved

    @property
    def calls(self) -> bool:
        """Whether it is active, unacknowledged and not silenced."""
        return self.active and not self.acked and not self.suppressed_or_shelved


ALL: Final = frozenset(Severity)
HIDEABLE: Final = frozenset({Severity.FAULT, Severity.WARNING})
"""The severities that may be shelved, suppressed or taken out of service: no trip, none worse."""

TRIP: Final = frozenset({Severity.TRIP})
SYSTEM: Final = frozenset({Actor.SYSTEM})
PEOPLE: Final = frozenset({Actor.OPERATOR, Actor.MAINTAINER})
MAINTAINER: Final = frozenset({Actor.MAINTAINER})
NO_SHELF, ONE_SHOT, TIMED = Shelving


@dataclass(frozen=True, slots=True)
class Row:
    """One change that is allowed.

    Attributes:
        event: The event.
        roles: The roles that may cause it.
        when: Values that the state must have before.
        then: Values of the state after it; all others stay.
        severities: The severities of alarms that it is for.
    """

    event: AlarmEvent
    roles: frozenset[Actor]
    when: Mapping[str, object]
    then: Mapping[str, Any]
    severities: frozenset[Severity] = field(default=ALL)

    def fits(self, state: State) -> bool:
        """Return whether the state is one this row begins from."""
        return all(getattr(state, name) == value for name, value in self.when.items())


_NEW: Final = {"active": True, "acked": False}
_OVER: Final = {"active": False, "acked": True}

TABLE: Final = (
    Row(AlarmEvent.ACTIVATE, SYSTEM, {"active": False}, _NEW, ALL - TRIP),
    Row(AlarmEvent.ACTIVATE, SYSTEM, {"active": False}, {**_NEW, "latched": True}, TRIP),
    *(
        Row(AlarmEvent.DEACTIVATE, SYSTEM, {"active": True, "shelving": each}, then)
        for each, then in (
            (NO_SHELF, {"active": False}),
            (TIMED, {"active": False}),
            (ONE_SHOT, {"active": False, "shelving": NO_SHELF}),
        )
    ),
    Row(AlarmEvent.ACKNOWLEDGE, PEOPLE, {"acked": False}, {"acked": True}),
    Row(AlarmEvent.RESET, PEOPLE, {"latched": True, **_OVER}, {"latched": False}),
    *(
        Row(event, roles, {"shelving": each}, {"shelving": to}, HIDEABLE)
        for event, roles, to in (
            (AlarmEvent.TIMED_SHELVE, PEOPLE, TIMED),
            (AlarmEvent.ONE_SHOT_SHELVE, PEOPLE, ONE_SHOT),
            (AlarmEvent.UNSHELVE, frozenset(Actor), NO_SHELF),
        )
        for each in Shelving
        if each is not to
    ),
    *(
        Row(event, MAINTAINER, {name: not to}, {name: to}, HIDEABLE)
        for event, name, to in (
            (AlarmEvent.SUPPRESS, "suppressed", True),
            (AlarmEvent.UNSUPPRESS, "suppressed", False),
            (AlarmEvent.REMOVE_FROM_SERVICE, "out_of_service", True),
            (AlarmEvent.PLACE_IN_SERVICE, "out_of_service", False),
        )
    ),
)
"""All changes that are allowed; a missing row is a refusal."""


def change(state: State, severity: Severity, event: AlarmEvent, role: Actor) -> State | str:
    """Return the state after an event, or the reason why it is refused.

    Args:
        state: The state before.
        severity: Severity of the alarm.
        event: The event.
        role: The role that causes it.
    """
    rows = [row for row in TABLE if row.event is event]
    if not any(severity in row.severities for row in rows):
        allowed = [each for each in Severity if each in HIDEABLE]
        return Text("alarm.severity", event=event, severity=severity, allowed=allowed)
    if not any(role in row.roles for row in rows):
        roles = [each for each in Actor if any(each in row.roles for row in rows)]
        return Text("alarm.role", event=event, role=role, roles=roles)
    for row in rows:
        if severity in row.severities and role in row.roles and row.fits(state):
            return replace(state, **row.then)
    return Text("alarm.state", event=event, state=described(state))


def described(state: State) -> Text:
    """Return a state in words."""
    words = [
        "active" if state.active else "inactive",
        "acknowledged" if state.acked else "unacknowledged",
        "latched" if state.latched else "",
        "" if state.shelving is Shelving.UNSHELVED else state.shelving.value,
        "suppressed" if state.suppressed else "",
        "out_of_service" if state.out_of_service else "",
    ]
    return Text("items", parts=[word for word in words if word])


SHELVED_MAX: Final = timedelta(hours=8)
"""MaxTimeShelved: one shift. A one-shot shelf ends then too (Part 9, 5.8.17.1)."""

GROUP_WINDOW: Final = timedelta(minutes=10)
"""An alarm within this time after a first-out counts as its consequence. It is also the window in
which ISA-18.2 counts a flood."""

CALLS_MAX: Final = 8
"""Calls of one group in any window; with two escalations these are the ten that are not a flood."""

HOUSE: Final = "house"
"""The source of faults outside the line, for example of a dead channel of alert."""

HOUSE_CALLS_MAX: Final = 4
"""Calls of one group of the house: a fault of the line that calls twice, a network that takes the
channels with it, and two escalations of both are ten as well."""

ESCALATE_AFTER: Final = timedelta(minutes=5)
"""Unacknowledged for this long, a group is told to the next recipients as well."""

LEVEL_MAX: Final = 3
"""The last level of recipients; those of level 0 are told at once."""

GROUPS_MAX: Final = 50
"""Groups that are remembered; the oldest goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One event of one alarm, as it is kept on disk.

    Attributes:
        event: The event.
        alarm: The alarm's name.
        at: World time.
        role: The role of the person or program that did it.
        who: A person's name, or ``labharness``.
        why: The reason given, or the observation.
        severity: Severity of the alarm; it counts in its first fact.
        source: ``line``, or ``HOUSE`` for a fault outside the line; a group has one source.
        rank: Place among alarms of one severity, the gravest first.
        shelve_s: Length of a shelf; 0 for the longest allowed.
    """

    event: AlarmEvent
    alarm: str
    at: datetime
    role: Actor = Actor.SYSTEM
    who: str = "labharness"
    why: str = ""
    severity: Severity = Severity.WARNING
    source: str = "line"
    rank: int = 0
    shelve_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One alarm as it stands.

    Attributes:
        detail: The observation when it last became active.
        since: The time of that.
        until: The end of its shelf.
    """

    name: str
    severity: Severity
    source: str
    rank: int
    state: State = field(default_factory=State)
    detail: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def gravity(self) -> tuple[int, int]:
        """Compares alarms: the smaller, the graver."""
        return list(Severity).index(self.severity), self.rank


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmGroup:
    """A first-out and the alarms that joined it.

    Attributes:
        members: Names, the first-out first.
        opened: Time of the first-out's call.
        calls: Time and member of each call to people.
        gravest: Gravity of the gravest member that called.
    """

    number: int
    source: str
    members: tuple[str, ...]
    opened: datetime
    calls: tuple[tuple[datetime, str], ...]
    gravest: tuple[int, int]

    @property
    def first_out(self) -> str:
        """The alarm that came first."""
        return self.members[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All alarms, and the groups of this watch, the newest last."""

    alarms: Mapping[str, Alarm] = field(default_factory=dict)
    groups: tuple[AlarmGroup, ...] = ()
    opened: int = 0

    def group_of(self, name: str) -> AlarmGroup | None:
        """Return the newest group an alarm is in."""
        return next((each for each in reversed(self.groups) if name in each.members), None)

    def calling(self, group: AlarmGroup) -> tuple[tuple[datetime, str], ...]:
        """Return the unacknowledged calls of a group."""
        return tuple(
            (at, name)
            for at, name in group.calls
            if not self.alarms[name].state.acked
            and not self.alarms[name].state.suppressed_or_shelved
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of a fact.

    Attributes:
        board: The board after it.
        refusal: Reason why the fact changes nothing; ``""`` when it was taken.
        call: The group that calls people because of it, if any.
    """

    board: Board
    refusal: str = ""
    call: AlarmGroup | None = None


def take(board: Board, fact: Fact) -> Taken:
    """Return the board after a fact."""
    alarm = board.alarms.get(fact.alarm)
    if alarm is None:
        if fact.event is not AlarmEvent.ACTIVATE:
            return Taken(board, Text("alarm.unknown", event=fact.event, alarm=fact.alarm))
        alarm = Alarm(name=fact.alarm, severity=fact.severity, source=fact.source, rank=fact.rank)
    if fact.role is not Actor.SYSTEM and not (fact.who.strip() and fact.why.strip()):
        return Taken(board, Text("alarm.unsigned", event=fact.event))
    if not 0 <= fact.shelve_s <= SHELVED_MAX.total_seconds():
        asked_min, most_min = fact.shelve_s / 60, SHELVED_MAX.total_seconds() / 60
        why = Text("alarm.shelf", event=fact.event, asked_min=asked_min, most_min=most_min)
        return Taken(board, why)
    changed = change(alarm.state, alarm.severity, fact.event, fact.role)
    if isinstance(changed, str):
        return Taken(board, changed)
    before = alarm.state
    alarm = replace(alarm, state=changed)
    if fact.event is AlarmEvent.ACTIVATE:
        alarm = replace(alarm, detail=fact.why, since=fact.at)
    shelved_s = fact.shelve_s or SHELVED_MAX.total_seconds()
    shelved = changed.shelving is not Shelving.UNSHELVED
    if fact.event in (AlarmEvent.TIMED_SHELVE, AlarmEvent.ONE_SHOT_SHELVE):
        alarm = replace(alarm, until=fact.at + timedelta(seconds=shelved_s))
    elif not shelved:
        alarm = replace(alarm, until=None)
    board = replace(board, alarms={**board.alarms, alarm.name: alarm})
    if fact.event is AlarmEvent.RESET:  # an alarm after a reset is another fault
        groups = tuple(each for each in board.groups if alarm.name not in each.members)
        return Taken(replace(board, groups=groups))
    if changed.calls and not before.calls:
        return _grouped(board, alarm, fact.at, known=before.acked)
    return Taken(board)


def _grouped(board: Board, alarm: Alarm, at: datetime, *, known: bool) -> Taken:
    """Join the open group, silently unless this is graver than all it called for; or open one.

    An alarm of the house is never the consequence of another: each calls when it joins.
    """
    newest = next((each for each in reversed(board.groups) if each.source == alarm.source), None)
    if newest is None or not _open(board, newest, at):
        group = AlarmGroup(
            number=board.opened + 1,
            source=alarm.source,
            members=(alarm.name,),
            opened=at,
            calls=((at, alarm.name),),
            gravest=alarm.gravity,
        )
        groups = (*board.groups, group)[-GROUPS_MAX:]
        return Taken(replace(board, groups=groups, opened=group.number), call=group)
    joined = () if alarm.name in newest.members else (alarm.name,)
    group = replace(newest, members=newest.members + joined)
    recent = sum(abs(at - each) < GROUP_WINDOW for each, _ in group.calls)
    calls = alarm.gravity < group.gravest and recent < CALLS_MAX
    if alarm.source == HOUSE:
        calls = bool(joined) and recent < HOUSE_CALLS_MAX
    if calls:
        gravest = min(alarm.gravity, group.gravest)
        group = replace(group, calls=(*group.calls, (at, alarm.name)), gravest=gravest)
    elif known:  # once acknowledged, it stays so until the next fault
        others = tuple(each for each in group.calls if each[1] != alarm.name)
        group = replace(group, calls=others)
    groups = tuple(group if each is newest else each for each in board.groups)
    return Taken(replace(board, groups=groups), call=group if calls else None)


def _open(board: Board, group: AlarmGroup, at: datetime) -> bool:
    """Return whether an alarm now is a consequence: soon after, or while a trip stands.

    A warning may stand for a day; an alarm hours after it is another fault.
    """
    latched = any(board.alarms[name].state.latched for name in group.members)
    return latched or timedelta() <= at - group.opened < GROUP_WINDOW


def expired(board: Board, now: datetime) -> Iterator[Fact]:
    """Return the ends of shelves whose time is over, or lies further off than any may."""
    for alarm in board.alarms.values():
        if alarm.until is not None and not timedelta() < alarm.until - now <= SHELVED_MAX:
            over = Text("alarm.shelf_over")
            yield Fact(event=AlarmEvent.UNSHELVE, alarm=alarm.name, at=now, why=over)


def left_over(board: Board, now: datetime) -> tuple[Fact, ...]:
    """Return the facts by which a new process ends the alarms of its predecessor.

    It has seen no cause yet, so no alarm is active unless it latches.
    """
    return tuple(
        Fact(event=AlarmEvent.DEACTIVATE, alarm=alarm.name, at=now, why=Text("alarm.new_watch"))
        for alarm in board.alarms.values()
        if alarm.state.active and not alarm.state.latched
    )


def watch_anew(board: Board) -> Board:
    """Return the board without groups: a process reports only what it sees itself."""
    return replace(board, groups=(), opened=0)


def level_due(board: Board, group: AlarmGroup, waited_s: Mapping[str, float]) -> int:
    """Return the level of recipients that must know of a group by now.

    Args:
        board: All alarms.
        group: One of its groups.
        waited_s: Time for which each of its alarms has called, by a clock that is never set: a
            calendar that is set back would delay the call of the next level.
    """
    longest = longest_s(board, group, waited_s)
    return min(LEVEL_MAX, int(longest // ESCALATE_AFTER.total_seconds()))


def longest_s(board: Board, group: AlarmGroup, waited_s: Mapping[str, float]) -> float:
    """Return how long the unacknowledged alarms of a group have called, as `level_due` does."""
    return max((waited_s.get(name, 0.0) for _, name in board.calling(group)), default=0.0)
