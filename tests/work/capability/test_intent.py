"""What a caller's words name is held against what was found, and obeyed by nobody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.work.capability.cvd.intent import met, named

FILM = {"claim": "film", "headline": "monolayer on at least 75 % of the film"}
MIXED = {"claim": "mixed", "headline": "mixed: 53 % one layer, 41 % two"}


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("Synthesize monolayer MoS2 on SiO2/Si", (1,)),
        ("grow mono-layers", (1,)),
        ("Single-layer MoS2, please", (1,)),
        ("single layer", (1,)),
        ("1L MoS2", (1,)),
        ("a bilayer for twist studies", (2,)),
        ("few-layer film", (2, 3, 4, 5)),
        ("trilayer", (3,)),
        ("monolayer or bilayer", (1, 2)),
        ("生长单层 MoS2", (1,)),
    ],
)
def test_a_thickness_is_read_from_plain_words(text: str, classes: tuple[int, ...]) -> None:
    found = named(text)
    assert found is not None
    assert found[1] == classes


@pytest.mark.parametrize(
    "text",
    [
        "Grow MoS2 and take its Raman spectrum",
        "avoid monolayer growth",
        "a film that is not a monolayer",
        "without any bilayer islands",
        "thicker than a monolayer",
        "non-monolayer",
        "multilayer film",
        "a monolayer without bilayer islands",
        "避免单层",
        "",
    ],
)
def test_what_is_denied_compared_or_not_said_is_not_read(text: str) -> None:
    assert named(text) is None
    assert met(text, MIXED, 1) == {"words": "", "met": None, "said": ""}


@given(st.text(max_size=300))
def test_any_text_at_all_is_read_or_passed_over(text: str) -> None:
    found = named(text)
    assert found is None or set(found[1]) <= {1, 2, 3, 4, 5}


def test_a_mixed_film_does_not_meet_the_word_monolayer_though_most_of_it_is_one() -> None:
    good = met("grow monolayer MoS2", FILM, 1)
    assert good == {"words": "monolayer", "met": True, "said": ""}
    bad = met("grow monolayer MoS2", MIXED, 1)
    assert bad["met"] is False
    assert bad["said"] == (
        'the intent says "monolayer", and that was not met: mixed: 53 % one layer, 41 % two'
    )
    other = met("grow monolayer MoS2", {**FILM, "headline": "bilayer"}, 2)
    assert other["met"] is False
