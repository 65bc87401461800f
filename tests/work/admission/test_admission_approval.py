"""Approvals and tokens: what they cover, and that nothing else passes."""

import dataclasses
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary.digests import digest_of
from labharness.protocols.hcp.terms import RiskLevel
from labharness.work.admission.approval import (
    Approved,
    BadApproval,
    NotApproved,
    PersonalApproval,
    RequestFacts,
    StandingApproval,
    plan_digest,
    public_key_of,
    read_approval,
    sign,
    verify,
    verify_personal,
    write_approval,
)

PRIVATE = bytes(range(32))
PUBLIC = public_key_of(PRIVATE)
NOW = datetime(2025, 1, 15, 8, 30, tzinfo=UTC)
UNSIGNED = StandingApproval(
    id="simulated-mos2",
    capability="cvd-material-synthesis",
    risk_max="R3",
    input_limits={"temperature_c_max": 780.0},
    gases_allowed=("argon",),
    envelope_digest=digest_of(b"envelope"),
    lab_digest=digest_of(b"lab"),
    given_by='Dr. Õ "quoted"',
    reason="No hardware\x7f is behind any link",
    until="2026-01-01T00:00:00Z",
    links="loopback",
)
APPROVAL = sign(UNSIGNED, PRIVATE)
FACTS = RequestFacts(
    requester="harness-alpha-001",
    capability="cvd-material-synthesis",
    risk_level="R3",
    quantities={"temperature_c_max": 750.0},
    gases=("argon",),
    envelope_digest=digest_of(b"envelope"),
    lab_digest=digest_of(b"lab"),
    link_kinds=("loopback", "loopback"),
)


def test_a_standing_approval_covers_what_it_names() -> None:
    verdict = verify(APPROVAL, FACTS, PUBLIC, NOW)
    assert verdict == Approved((UNSIGNED.given_by,), UNSIGNED.reason)


def test_an_approval_file_reads_back_as_it_was_written() -> None:
    assert read_approval(write_approval(APPROVAL)) == APPROVAL


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"requester": ' dr. õ "Quoted"'}, "cannot approve"),
        ({"requester": "Dr. O quoted"}, "cannot approve"),
        ({"requester": "harness\u200b"}, "ZERO WIDTH SPACE"),
        ({"link_kinds": ("loopback", "tcp")}, "loopback"),
        ({"link_kinds": ()}, "none stated"),
        ({"envelope_digest": digest_of(b"envelopf")}, "envelope"),
        ({"lab_digest": digest_of(b"laB")}, "lab file"),
        ({"capability": "raman-characterization"}, "covers cvd"),
        ({"risk_level": "R4"}, "up to R3"),
        ({"gases": ("argon", "hydrogen")}, "not hydrogen"),
        ({"quantities": {"temperature_c_max": 780.1}}, "approved up to 780"),
        ({"quantities": {"temperature_c_max": float("nan")}}, "are not two numbers"),
        ({"quantities": {}}, "does not say its temperature_c_max"),
        (
            {"quantities": {"temperature_c_max": 750.0, "pressure_atm_max": 1.0}},
            "no limit for pressure_atm_max",
        ),
    ],
)
def test_whatever_the_approval_does_not_name_is_refused(changes: dict[str, Any], says: str) -> None:
    verdict = verify(APPROVAL, replace(FACTS, **changes), PUBLIC, NOW)
    assert isinstance(verdict, NotApproved)
    assert says in verdict.reason
    assert not verdict.expired


def test_an_approval_ends_when_it_says() -> None:
    until = datetime(2026, 1, 1, tzinfo=UTC)
    assert isinstance(verify(APPROVAL, FACTS, PUBLIC, until - timedelta(seconds=1)), Approved)
    late = verify(APPROVAL, FACTS, PUBLIC, until)
    assert isinstance(late, NotApproved)
    assert late.expired


CHANGES: dict[str, Any] = {
    "id": "other",
    "capability": "other",
    "risk_max": "R4",
    "input_limits": {"temperature_c_max": 781.0},
    "gases_allowed": ("argon", "hydrogen"),
    "envelope_digest": digest_of(b"x"),
    "lab_digest": digest_of(b"x"),
    "given_by": "somebody",
    "reason": "other",
    "until": "2036-01-01T00:00:00Z",
    "links": "tcp",
    "signature": "",
}


@pytest.mark.parametrize("name", [one.name for one in dataclasses.fields(StandingApproval)])
def test_a_change_of_any_field_voids_the_signature(name: str) -> None:
    changed = replace(APPROVAL, **{name: CHANGES[name]})
    verdict = verify(changed, FACTS, PUBLIC, NOW)
    assert isinstance(verdict, NotApproved)
    assert "signature" in verdict.reason


@given(st.integers(0, 511))
@settings(deadline=None, max_examples=60)
def test_one_bit_of_the_signature_voids_it(bit: int) -> None:
    raw = bytearray.fromhex(APPROVAL.signature)
    raw[bit // 8] ^= 1 << bit % 8
    verdict = verify(replace(APPROVAL, signature=raw.hex()), FACTS, PUBLIC, NOW)
    assert isinstance(verdict, NotApproved)


def test_another_key_does_not_count() -> None:
    other = public_key_of(bytes(32))
    assert isinstance(verify(APPROVAL, FACTS, other, NOW), NotApproved)
    assert isinstance(verify(APPROVAL, FACTS, b"short", NOW), NotApproved)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('links = "loopback"', 'links = "tcp"', "links"),
        ('risk_max = "R3"', "risk_max = 3", "risk_max"),
        ('risk_max = "R3"', 'risk_max = "R3"\nextra = 1', "extra"),
        (" = 780.0", ' = "780"', "temperature_c_max"),
        ("until = ", "until_ = ", "until"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "no time zone"),
        ("2026-01-01T00:00:00Z", "for ever", "until"),
        ("[input_limits]", "[input_limits", "approval file"),
        (
            "until = ",
            "until = " + "[" * 9000,
            "approval file is not TOML that can be read: it is nested too deep",
        ),
    ],
)
def test_an_approval_file_with_an_unknown_key_or_value_is_an_error(
    old: str, new: str, where: str
) -> None:
    with pytest.raises(BadApproval, match=where):
        read_approval(write_approval(APPROVAL).replace(old, new))


DIGEST = plan_digest(b"plan", b"envelope", b"lab")
ANNA = PersonalApproval("Anna", "seen", DIGEST)


@given(st.integers(0, 2), st.integers(0, 31), st.tuples(*[st.binary(min_size=4, max_size=4)] * 3))
@settings(deadline=None, max_examples=60)
def test_one_changed_bit_of_plan_envelope_or_lab_voids_a_persons_approval(
    part: int, bit: int, seen: tuple[bytes, bytes, bytes]
) -> None:
    changed = [bytearray(one) for one in seen]
    changed[part][bit // 8] ^= 1 << bit % 8
    anna = PersonalApproval("Anna", "seen", plan_digest(*seen))
    digest = plan_digest(*(bytes(one) for one in changed))
    verdict = verify_personal([anna], digest=digest, requester="x", risk_level="R3")
    assert isinstance(verdict, NotApproved)


def test_no_byte_moves_unseen_from_plan_to_envelope() -> None:
    assert plan_digest(b"ab", b"c", b"") != plan_digest(b"a", b"bc", b"")


def counted(approvals: list[PersonalApproval], requester: str, level: RiskLevel) -> object:
    return verify_personal(approvals, digest=DIGEST, requester=requester, risk_level=level)


def test_a_person_approves_for_others_only() -> None:
    assert counted([ANNA], "bert", "R4") == Approved(("Anna",), "seen")
    assert isinstance(counted([ANNA], " ANNA ", "R4"), NotApproved)
    silent = replace(ANNA, reason=" ")
    assert isinstance(counted([silent], "bert", "R4"), NotApproved)


def test_r5_takes_two_different_persons() -> None:
    twice = [ANNA, replace(ANNA, name="anna ")]
    assert isinstance(counted(twice, "bert", "R5"), NotApproved)
    assert isinstance(counted([ANNA, replace(ANNA, name="Carl")], "bert", "R5"), Approved)
