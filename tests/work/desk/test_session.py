"""A session changes as its table allows, and what it is can be read at any time."""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.core.clock import utc_text
from labharness.core.vocabulary.texts import Text
from labharness.journal.null_journal import NullJournal
from labharness.protocols.hcp.session import STATES, IllegalTransition, next_state
from labharness.work.admission.token import Scope, issue
from labharness.work.desk.session import Session

IGNORED_MAX = 20  # as promised, not as imported

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


class Kept(NullJournal):
    """Keeps records in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[str, Mapping[str, Any]]] = []

    def append(self, kind: str, body: Mapping[str, object], at_s: float) -> int:
        self.records.append((kind, body))
        return super().append(kind, body, at_s)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        return [body for each, body in self.records if each == kind]


def session(journal: Kept) -> Session:
    """Return a session whose clock goes on by a second whenever it is looked at."""
    ticks, ids = itertools.count(), itertools.count()
    clock = SimpleNamespace(
        now_s=lambda: 0.0,
        utc=lambda: BEGUN + timedelta(seconds=next(ticks)),
        metadata=dict,
        stands=False,
    )
    return Session(
        "s",
        journal,  # type: ignore[arg-type]  # the part of one that a session uses
        clock,  # type: ignore[arg-type]  # the part of one that a session uses
        lambda: f"m-{next(ids)}",
        lambda kind, data: None,
    )


@given(st.lists(st.sampled_from(STATES), max_size=8))
def test_events_are_numbered_without_gap_and_a_refused_change_is_recorded_and_is_none(
    walk: list[str],
) -> None:
    journal = Kept()
    found = session(journal)
    refused = 0
    for to in walk:
        before = found.state
        try:
            next_state(before, to)
        except IllegalTransition:
            with pytest.raises(IllegalTransition):
                found.become(to, "why")
            refused += 1
            record = journal.of("transition_refused")[-1]
            assert (record["from_state"], record["to_state"]) == (before, to)
            assert f"from {before} to {to}" in record["why"]
            assert found.state == before
        else:
            found.become(to, "why")
    events = journal.of("event")
    assert [each["sequence"] for each in events] == list(range(1, len(events) + 1))
    assert len({each["message_id"] for each in events}) == len(events)
    assert len(journal.of("transition_refused")) == refused
    changed = [each["data"] for each in events if each["event_type"] == "state_changed"]
    assert all(set(each) == {"from_state", "to_state", "reason"} for each in changed)
    closed = [each["data"] for each in events if each["event_type"] == "session_closed"]
    assert closed == ([{"final_state": found.state, "reason": "why"}] if found.closed else [])


def test_a_session_has_the_properties_of_layer_two_and_never_its_token() -> None:
    found = session(Kept())
    found.metadata["source_message_id"] = "msg-001"
    before = found.properties()
    assert list(before) == [
        *("session_id", "state", "created_at", "updated_at"),
        *("session_token", "risk_level", "metadata"),
    ]
    assert (before["state"], before["risk_level"]) == ("PENDING", None)
    assert before["created_at"] == before["updated_at"] == utc_text(BEGUN)
    found.scope = Scope("s", "R3", "T2", "e", None)
    token, found.token = issue(bytes, found.scope, running_at=BEGUN, max_duration_s=60.0)
    found.become("RUNNING", "accepted")
    now = found.properties()
    assert (now["state"], now["risk_level"]) == ("RUNNING", "R3")
    assert now["created_at"] == before["created_at"] < now["updated_at"]
    expires_at = utc_text(BEGUN + timedelta(seconds=60))
    assert now["metadata"] == {"source_message_id": "msg-001", "token_expires_at": expires_at}
    assert token not in str(now)


def test_names_of_a_higher_minor_version_are_warned_of_up_to_a_bound() -> None:
    journal = Kept()
    session(journal).warn_of_ignored([f"payload.x{n}" for n in range(IGNORED_MAX + 5)])
    told = [each["data"] for each in journal.of("event")]
    assert len(told) == IGNORED_MAX
    assert told[0]["code"] == "name_ignored"
    assert "payload.x0 is not known in HCP 1.0" in told[0]["message"]


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "ABORTING"])
def test_a_token_is_good_while_its_session_runs_or_is_held_and_ends_with_its_work(end: str) -> None:
    found = session(Kept())
    found.scope = Scope("s", "R3", "T2", "e", None)
    _, found.token = issue(bytes, found.scope, running_at=BEGUN, max_duration_s=60.0)
    now = BEGUN + timedelta(seconds=1)
    for state in ("RUNNING", "PAUSED", "RUNNING"):
        found.become(state, "why")
        assert found.authorises(now)
        assert found.beyond("furnace") == ""
    scope, found.scope = found.scope, None
    assert found.beyond("furnace") == Text("token.void")
    found.scope = scope
    found.become(end, "why")
    assert not found.authorises(now)
    assert not found.authorises(BEGUN)
