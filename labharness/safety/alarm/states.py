"""One alarm: the states of OPC UA Part 9, and the table of the changes that are allowed.

Names and meanings are those of OPC 10000-9 (1.05), clauses 5.7 and 5.8. ConfirmedState, which is
optional there, is not offered: a trip is confirmed by its reset.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

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

SYSTEM: Final = frozenset({Actor.SYSTEM})
PEOPLE: Final = frozenset({Actor.OPERATOR, Actor.MAINTAINER})
MAINTAINER: Final = frozenset({Actor.MAINTAINER})


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
    then: Mapping[str, object]
    severities: frozenset[Severity] = field(default=ALL)

    def fits(self, state: State) -> bool:
        """Return whether the state is one this row begins from."""
        return all(getattr(state, name) == value for name, value in self.when.items())


_NEW: Final = {"active": True, "acked": False}

TABLE: Final = (
    Row(AlarmEvent.ACTIVATE, SYSTEM, {"active": False}, _NEW, ALL - {Severity.TRIP}),
    Row(
        AlarmEvent.ACTIVATE,
        SYSTEM,
        {"active": False},
        {**_NEW, "latched": True},
        frozenset({Severity.TRIP}),
    ),
    *(
        Row(AlarmEvent.DEACTIVATE, SYSTEM, {"active": True, "shelving": each}, {"active": False})
        for each in (Shelving.UNSHELVED, Shelving.TIMED)
    ),
    Row(
        AlarmEvent.DEACTIVATE,
        SYSTEM,
        {"active": True, "shelving": Shelving.ONE_SHOT},
        {"active": False, "shelving": Shelving.UNSHELVED},
    ),
    Row(AlarmEvent.ACKNOWLEDGE, PEOPLE, {"acked": False}, {"acked": True}),
    Row(
        AlarmEvent.RESET,
        PEOPLE,
        {"latched": True, "active": False, "acked": True},
        {"latched": False},
    ),
    *(
        Row(event, PEOPLE, {"shelving": each}, {"shelving": to}, HIDEABLE)
        for event, to in (
            (AlarmEvent.TIMED_SHELVE, Shelving.TIMED),
            (AlarmEvent.ONE_SHOT_SHELVE, Shelving.ONE_SHOT),
        )
        for each in Shelving
        if each is not to
    ),
    *(
        Row(
            AlarmEvent.UNSHELVE,
            frozenset(Actor),
            {"shelving": each},
            {"shelving": Shelving.UNSHELVED},
            HIDEABLE,
        )
        for each in (Shelving.TIMED, Shelving.ONE_SHOT)
    ),
    Row(AlarmEvent.SUPPRESS, MAINTAINER, {"suppressed": False}, {"suppressed": True}, HIDEABLE),
    Row(AlarmEvent.UNSUPPRESS, MAINTAINER, {"suppressed": True}, {"suppressed": False}, HIDEABLE),
    Row(
        AlarmEvent.REMOVE_FROM_SERVICE,
        MAINTAINER,
        {"out_of_service": False},
        {"out_of_service": True},
        HIDEABLE,
    ),
    Row(
        AlarmEvent.PLACE_IN_SERVICE,
        MAINTAINER,
        {"out_of_service": True},
        {"out_of_service": False},
        HIDEABLE,
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
            return replace(state, **dict(row.then))  # type: ignore[arg-type]  # the table's names are State's
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
