"""The session token: no other text is it, and its scope covers an operation or says why not."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.protocols.hcp.terms import DATA_CLASSES, RISK_LEVELS
from labharness.work.admission import token as tokens

NOW = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
SCOPE = tokens.Scope("s-1", "R3", "T2", "sha256:e", ("furnace", "argon"))


def issued(**changes: object) -> tuple[str, tokens.TokenRecord]:
    fields: dict[str, Any] = {"running_at": NOW, "max_duration_s": 3600.0}
    entropy: Any = changes.pop("entropy", random.Random(7).randbytes)
    return tokens.issue(entropy, SCOPE, **{**fields, **changes})


def test_a_token_is_in_force_until_its_duration_is_over() -> None:
    _, record = issued()
    assert record.expires_at - record.issued_at == timedelta(hours=1)
    assert tokens.in_force(record, NOW)
    assert tokens.in_force(record, record.expires_at - timedelta(microseconds=1))
    assert not tokens.in_force(record, record.expires_at)
    assert not tokens.in_force(record, NOW - timedelta(seconds=1))
    assert not tokens.in_force(tokens.revoke(record), NOW)
    assert not tokens.in_force(None, NOW)


def test_a_token_is_not_in_its_record() -> None:
    token, record = issued()
    assert len(token) == 43
    assert token not in repr(record)


@pytest.mark.parametrize(
    "forge",
    [
        lambda token: "",
        lambda token: token[:-1],
        lambda token: token + "=",
        lambda token: token.swapcase(),
        lambda token: f" {token}",
        lambda token: "\ud800",
        lambda token: "é" * 43,
        lambda token: issued(entropy=random.Random(8).randbytes)[0],
    ],
)
def test_no_forgery_is_the_token(forge: Any) -> None:
    token, _ = issued()
    assert tokens.is_token(token, token)
    assert not tokens.is_token(forge(token), token)


def test_nothing_is_the_token_where_none_was_issued() -> None:
    assert not tokens.is_token("", "")


@given(st.text(max_size=50))
def test_no_text_but_the_token_is_it(text: str) -> None:
    token, _ = issued()
    assert tokens.is_token(text, token) == (text == token)


def test_what_was_approved_is_covered() -> None:
    assert not tokens.beyond(SCOPE, SCOPE)
    assert not tokens.beyond(replace(SCOPE, instruments=None), SCOPE)
    less = replace(SCOPE, risk_level="R1", data_classification="T1", instruments=("argon",))
    assert not tokens.beyond(SCOPE, less)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"session_id": "s-2"}, "another session"),
        ({"envelope_digest": "sha256:f"}, "envelope is not the one"),
        ({"risk_level": "R4"}, "risk_level R4 is above R3"),
        ({"data_classification": "T3"}, "data_classification T3 is above T2"),
        ({"instruments": ("furnace", "laser")}, "does not cover laser"),
        ({"instruments": None}, "does not cover all"),
    ],
)
def test_what_goes_beyond_is_named(changes: dict[str, Any], says: str) -> None:
    assert says in tokens.beyond(SCOPE, replace(SCOPE, **changes))


SCOPES = st.builds(
    tokens.Scope,
    session_id=st.sampled_from(["s-1", "s-2"]),
    risk_level=st.sampled_from(RISK_LEVELS),
    data_classification=st.sampled_from(DATA_CLASSES),
    envelope_digest=st.sampled_from(["sha256:e", "sha256:f"]),
    instruments=st.none() | st.lists(st.sampled_from("abc"), max_size=3).map(tuple),
)


@given(approved=SCOPES, middle=SCOPES, asked=SCOPES)
def test_what_is_covered_by_less_is_covered_by_more(
    approved: tokens.Scope, middle: tokens.Scope, asked: tokens.Scope
) -> None:
    if not tokens.beyond(approved, middle) and not tokens.beyond(middle, asked):
        assert not tokens.beyond(approved, asked)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"max_duration_s": 0.0}, "above 0 s"),
        ({"max_duration_s": float("nan")}, "above 0 s"),
        ({"running_at": datetime(2025, 1, 1)}, "no time zone"),
        ({"entropy": lambda count: bytes(count - 1)}, "bytes instead of"),
    ],
)
def test_a_token_without_an_end_is_not_issued(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        issued(**changes)
