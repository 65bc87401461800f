"""Names that look like another's: the same person where they are compared, refused where given."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import say
from labharness.core.vocabulary.persons import bad_name, same_person
from labharness.lab import LabPlan
from labharness.protocols.hcp.terms import RiskLevel
from labharness.work.admission.approval import (
    Approved,
    NotApproved,
    PersonalApproval,
    verify_personal,
)
from labharness.work.admission.callers import BadCallers, read_callers
from rig import SHORT_LINE

# Cyrillic letters that look Latin, as their code points: a small a, e, o, p, c and a capital A
a, e, o, p, c, capital_a = "\u0430", "\u0435", "\u043e", "\u0440", "\u0441", "\u0410"

ONE_PERSON = [
    ("Ada Lovelace", "ada  LOVELACE "),
    ("Ada Lovelace", "Ada-Lovelace"),
    ("Jörg Müller", "Jo\u0308rg Mu\u0308ller"),
    ("Jörg", "Jorg"),
    ("Straße", "STRASSE"),
    ("harness-alpha-001", "\uff48arness\u2010alpha\u20110\uff101"),
    ("Fiona IV", "\ufb01ona \u2163"),
    ("ape", a + p + e),
    ("cope", c + o + p + e),
    ("BOB", "\u0412\u041e\u0412"),
    ("KATE", "\u039a\u0391\u03a4\u0395"),
    ("Alice", "AIice"),
    ("Bo", "B0"),
    ("Carney", "Camey"),
    ("\u529b", "\u30ab"),
    ("\u041a\u0410\u0422", "\u043a\u0430\u0442"),
]

GOOD = [
    "Ada Lovelace",
    "O'Neil",
    "Dr. Õ",
    "Nguyễn Thị Hạnh",
    "Ñandú",
    "Kɔfi",
    "Анна Петрова",
    "Γιώργος",
    "佐々木 太郎",
    "李伟",
    "李伟 (Li Wei)",
    "김철수",
    "नरेंद्र",
    "محمد",
    "harness-alpha-001",
]

BAD = [
    (capital_a + "da", "mixes letters of several scripts (Cyrillic, Latin)"),
    ("Ada " + "\u041f\u0435\u0442\u0440", "several scripts"),
    ("A\u4e28ice", "several scripts"),
    ("\u039ann \u0410", "several scripts"),
    ("Ann\u200b", "U+200B (ZERO WIDTH SPACE)"),
    ("A\u00adnn", "U+00AD (SOFT HYPHEN)"),
    ("\u202eann", "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
    ("Ann\ufe0f", "U+FE0F (VARIATION SELECTOR-16)"),
    ("Ann\u034f", "COMBINING GRAPHEME JOINER"),
    ("Ann\u3164", "FILLER"),
    ("Ann\u2800", "BRAILLE PATTERN BLANK"),
    ("Ann\n", "U+000A"),
    ("Ann\x7f", "U+007F"),
    ("Ann\ud800", "U+D800"),
    ("\u0251nn", "LATIN SMALL LETTER ALPHA"),
    ("\u13aann", "CHEROKEE"),
    ("\U0001f170nn", "U+1F170"),
    ("", "has no letter"),
    (" - ", "has no letter"),
    ("x" * 501, "at most 500 characters"),
]


@pytest.mark.promise(24)
@pytest.mark.parametrize(("one", "other"), ONE_PERSON)
def test_names_that_a_reader_takes_for_one_are_one(one: str, other: str) -> None:
    assert same_person(one, other)
    assert same_person(other, one)


def test_names_that_a_reader_tells_apart_are_two() -> None:
    people = [
        "Ada",
        "Adam",
        "Bob",
        "Grace",
        "harness-alpha-001",
        "harness-alpha-002",
        "李伟",
        "李明",
    ]
    assert [
        (one, other)
        for number, one in enumerate(people)
        for other in people[number + 1 :]
        if same_person(one, other)
    ] == []


@pytest.mark.parametrize("name", GOOD)
def test_a_name_as_people_write_it_is_taken(name: str) -> None:
    assert bad_name(name) == ""


@pytest.mark.promise(24)
@pytest.mark.parametrize(("name", "why"), BAD, ids=[ascii(each[0])[:30] for each in BAD])
def test_a_name_that_misleads_is_refused_in_one_sentence(name: str, why: str) -> None:
    said = bad_name(name)
    assert why in said
    assert said.isprintable()


@given(st.text(max_size=12))
@settings(deadline=None, max_examples=300)
def test_whatever_is_taken_is_seen_and_whoever_is_written_is_oneself(name: str) -> None:
    assert same_person(name, name)
    if not bad_name(name):
        assert any(each.isalpha() for each in unicodedata.normalize("NFKC", name))
        assert name.replace("\u3000", " ").replace("\xa0", " ").strip()


def decided(
    *approvers: str, requester: str, risk_level: RiskLevel = "R4"
) -> Approved | NotApproved:
    said = [PersonalApproval(each, "seen", "d") for each in approvers]
    return verify_personal(said, digest="d", requester=requester, risk_level=risk_level)


@pytest.mark.promise(24)
@pytest.mark.parametrize(("requester", "approver"), ONE_PERSON)
def test_nobody_agrees_to_the_own_plan_under_a_name_that_looks_like_the_own(
    requester: str, approver: str
) -> None:
    assert isinstance(decided(approver, requester=requester), NotApproved)
    both = decided(requester, approver, requester="Grace", risk_level="R5")
    assert isinstance(both, NotApproved), "R5 takes two persons"


@pytest.mark.parametrize("name", [each[0] for each in BAD])
def test_no_name_that_misleads_agrees_or_is_agreed_with(name: str) -> None:
    assert isinstance(decided(name, requester="Grace"), NotApproved)
    assert isinstance(decided("Ada", requester=name), NotApproved)
    assert isinstance(decided("Ada", requester="Grace"), Approved)


def test_a_caller_whose_id_misleads_is_no_caller() -> None:
    text = '[callers."{}"]\ncapabilities = []\nrisk_max = "R4"\ndata_class_max = "T2"\n'
    assert list(read_callers(text.format("visitor"))) == ["visitor"]
    with pytest.raises(BadCallers, match="several scripts"):
        read_callers(text.format("visit" + o + "r"))


@pytest.mark.promise(24)
@pytest.mark.parametrize(
    "words",
    [
        ("reset",),
        ("alarms", "ack", "all"),
        ("hazards", "proof", "nothing"),
        ("approvals", "approve", "000000000000"),
    ],
    ids=lambda words: words[0],
)
def test_whoever_answers_for_something_does_so_under_a_name_that_cannot_mislead(
    short_plan: LabPlan, words: tuple[str, ...]
) -> None:
    name = capital_a + "da"
    said = say(*words, "--name", name, "--reason", "why", "--lab", SHORT_LINE)
    assert said.code in (1, 64)
    assert said.err.count("\n") == 1
    assert "mixes letters" in said.err
