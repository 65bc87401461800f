"""The table of session states."""

import itertools

import pytest

from labharness.protocols.hcp.session import (
    INITIAL,
    STATES,
    TERMINAL,
    IllegalTransition,
    next_state,
)

ALLOWED = {
    ("PENDING", "RUNNING"),
    ("PENDING", "REJECTED"),
    ("RUNNING", "PAUSED"),
    ("RUNNING", "ABORTING"),
    ("RUNNING", "COMPLETED"),
    ("RUNNING", "FAILED"),
    ("PAUSED", "RUNNING"),
    ("PAUSED", "ABORTING"),
    ("ABORTING", "ABORTED"),
}


@pytest.mark.parametrize(("state", "to"), list(itertools.product(STATES, STATES)))
def test_the_table_allows_what_hcp_allows_and_nothing_else(state: str, to: str) -> None:
    if (state, to) in ALLOWED:
        assert next_state(state, to) == to
    else:
        with pytest.raises(IllegalTransition, match=f"from {state} to {to}"):
            next_state(state, to)


def test_the_table_is_closed_and_every_state_is_reached() -> None:
    reached = {INITIAL} | {to for _, to in ALLOWED}
    assert reached == set(STATES)
    assert {"REJECTED", "ABORTED", "COMPLETED", "FAILED"} == TERMINAL


@pytest.mark.parametrize(("state", "to"), [("running", "PAUSED"), ("", "RUNNING")])
def test_an_unknown_state_is_named(state: str, to: str) -> None:
    with pytest.raises(IllegalTransition, match="is not a session state"):
        next_state(state, to)
