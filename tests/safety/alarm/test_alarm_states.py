"""Every state of an alarm: what each event does, to whom it is allowed, and to which alarms."""

import itertools
from itertools import product

import pytest

from commands import ROOT
from labharness.safety.alarm.board import (
    TABLE,
    Actor,
    AlarmEvent,
    Severity,
    Shelving,
    State,
    change,
)

BOTH = (False, True)
STATES = [
    State(
        active=active,
        acked=acked,
        latched=latched,
        shelving=shelving,
        suppressed=suppressed,
        out_of_service=out_of_service,
    )
    for active, acked, latched, shelving, suppressed, out_of_service in product(
        BOTH, BOTH, BOTH, Shelving, BOTH, BOTH
    )
]
PEOPLE = {Actor.OPERATOR, Actor.MAINTAINER}
NEVER_HIDDEN = {Severity.CRITICAL, Severity.TRIP}
HIDES = {
    AlarmEvent.TIMED_SHELVE,
    AlarmEvent.ONE_SHOT_SHELVE,
    AlarmEvent.SUPPRESS,
    AlarmEvent.REMOVE_FROM_SERVICE,
}


def expected(state: State, severity: Severity, event: AlarmEvent, role: Actor) -> State | None:
    """What OPC UA Part 9 and our own rule make of it, told again without a table."""
    active, acked, latched = state.active, state.acked, state.latched
    shelving, suppressed, out = state.shelving, state.suppressed, state.out_of_service
    ok = False
    if event is AlarmEvent.ACTIVATE:
        ok = role is Actor.SYSTEM and not active
        active, acked, latched = True, False, latched or severity is Severity.TRIP
    elif event is AlarmEvent.DEACTIVATE:
        ok = role is Actor.SYSTEM and active
        active = False
        if shelving is Shelving.ONE_SHOT:
            shelving = Shelving.UNSHELVED
    elif event is AlarmEvent.ACKNOWLEDGE:
        ok = role in PEOPLE and not acked
        acked = True
    elif event is AlarmEvent.RESET:
        ok = role in PEOPLE and latched and acked and not active
        latched = False
    elif severity not in NEVER_HIDDEN:
        if event in (AlarmEvent.TIMED_SHELVE, AlarmEvent.ONE_SHOT_SHELVE):
            to = Shelving.TIMED if event is AlarmEvent.TIMED_SHELVE else Shelving.ONE_SHOT
            ok = role in PEOPLE and shelving is not to
            shelving = to
        elif event is AlarmEvent.UNSHELVE:
            ok = shelving is not Shelving.UNSHELVED
            shelving = Shelving.UNSHELVED
        elif event in (AlarmEvent.SUPPRESS, AlarmEvent.UNSUPPRESS):
            to_be = event is AlarmEvent.SUPPRESS
            ok = role is Actor.MAINTAINER and suppressed is not to_be
            suppressed = to_be
        else:
            to_be = event is AlarmEvent.REMOVE_FROM_SERVICE
            ok = role is Actor.MAINTAINER and out is not to_be
            out = to_be
    if not ok:
        return None
    return State(
        active=active,
        acked=acked,
        latched=latched,
        shelving=shelving,
        suppressed=suppressed,
        out_of_service=out,
    )


@pytest.mark.promise(21)
def test_every_event_by_every_role_on_every_state_does_what_part_9_says() -> None:
    taken = 0
    for state, severity, event, role in product(STATES, Severity, AlarmEvent, Actor):
        found = change(state, severity, event, role)
        wanted = expected(state, severity, event, role)
        if wanted is None:
            assert isinstance(found, str), (state, severity, event, role, found)
            assert found.startswith(f"{event}: ")
        else:
            assert found == wanted, (state, severity, event, role)
            taken += 1
    assert len(STATES) * len(Severity) * len(AlarmEvent) * len(Actor) == 12_672
    assert taken == 2_144


@pytest.mark.promise(21)
@pytest.mark.parametrize("severity", sorted(NEVER_HIDDEN))
@pytest.mark.parametrize("role", list(Actor))
def test_a_trip_alarm_cannot_be_shelved_suppressed_or_taken_out_of_service(
    severity: Severity, role: Actor
) -> None:
    for state, event in product(STATES, HIDES):
        found = change(state, severity, event, role)
        assert isinstance(found, str)
        assert "never for an alarm of severity" in found


def test_a_latched_alarm_is_reset_only_when_its_cause_is_gone_and_somebody_knows() -> None:
    for state, role in product(STATES, Actor):
        if not isinstance(change(state, Severity.TRIP, AlarmEvent.RESET, role), str):
            assert state.latched
            assert not state.active
            assert state.acked
            assert role in PEOPLE


def test_no_state_has_two_rows_that_fit_and_differ() -> None:
    for state, severity, event in product(STATES, Severity, AlarmEvent):
        fitting = [
            row
            for row in TABLE
            if row.event is event and severity in row.severities and row.fits(state)
        ]
        assert len(fitting) <= 1, (state, severity, event)


def test_the_table_in_the_reference_is_the_table_in_force() -> None:
    page = (ROOT / "docs" / "reference" / "alarms.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [documented(number) for number in range(len(TABLE))]


def documented(number: int) -> str:
    row = TABLE[number]
    cells = (
        f"`{row.event}`",
        words(row.when),
        words(row.then),
        ", ".join(each for each in Actor if each in row.roles),
        "all"
        if row.severities == set(Severity)
        else ", ".join(each for each in Severity if each in row.severities),
    )
    return f"| {' | '.join(cells)} |"


def words(part: object) -> str:
    assert isinstance(part, dict)
    said = []
    for name, value in part.items():
        if isinstance(value, bool):
            said.append(("" if value else "not ") + name)
        else:
            said.append(str(value))
    return ", ".join(said)


def test_who_is_called_and_what_a_list_shows_of_every_state() -> None:
    flags = ("active", "acked", "latched", "suppressed", "out_of_service")
    for values in itertools.product((False, True), repeat=len(flags)):
        for shelving in Shelving:
            so = dict(zip(flags, values, strict=True))
            state = State(shelving=shelving, **so)
            silenced = so["suppressed"] or so["out_of_service"] or shelving != "unshelved"
            assert state.suppressed_or_shelved is silenced
            assert state.calls is (so["active"] and not so["acked"] and not silenced)
            shows = so["active"] or not so["acked"] or so["latched"] or silenced
            assert state.retained is shows
