"""What a caller's words name is held against what was found, and obeyed by nobody."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.analysis.layers import POSTERIOR_MIN, SHARE_CLAIMED
from labharness.work.capability.cvd.answer import SURE, WHOLE, met, named

FILM: dict[str, Any] = {
    "claim": "film",
    "headline": "monolayer on at least 75 % of the film",
    "of_film": {},
}
MIXED: dict[str, Any] = {"claim": "mixed", "headline": "mixed: 53 % one layer, 41 % two"}


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
    assert met(text, MIXED, 1, 0.9) == {"words": "", "met": None, "said": ""}


@given(st.text(max_size=300))
def test_any_text_at_all_is_read_or_passed_over(text: str) -> None:
    found = named(text)
    assert found is None or set(found[1]) <= {1, 2, 3, 4, 5}


def share(**high: float) -> dict[str, dict[str, float]]:
    return {name[1:]: {"high": value} for name, value in high.items()}


def test_a_mixed_film_does_not_meet_the_word_monolayer_though_most_of_it_is_one() -> None:
    good = met("grow monolayer MoS2", FILM, 1, 0.9)
    assert good == {"words": "monolayer", "met": True, "said": ""}
    bad = met("grow monolayer MoS2", {**MIXED, "of_film": share(c1=0.8, c2=0.6)}, 1, 0.9)
    assert bad["met"] is False
    assert bad["said"] == (
        'the intent says "monolayer", and that was not met: mixed: 53 % one layer, 41 % two'
    )
    other = met("grow monolayer MoS2", {**FILM, "headline": "bilayer"}, 2, 0.9)
    assert other["met"] is False


@pytest.mark.parametrize(
    ("kind", "layers", "confidence", "high", "shown"),
    [
        ("mainly", 1, 0.9, 0.95, None),  # pure as far as was seen, and too few spots to say so
        ("mainly", 1, 0.9, 0.7, False),
        ("place", 2, 0.5, 0.9, None),  # one spot, which may be either
        ("place", 2, 0.9, 0.9, False),
        ("mainly", 2, 0.9, 0.2, False),
    ],
)
def test_what_the_spots_neither_show_nor_exclude_is_neither_met_nor_not_met(
    kind: str, layers: int, confidence: float, high: float, shown: bool | None
) -> None:
    film = {"claim": kind, "headline": "mainly monolayer", "of_film": share(c1=high)}
    found = met("grow monolayer MoS2", film, layers, confidence)
    assert found["met"] is shown
    assert ("not met" in found["said"]) is (shown is False)
    if shown is None:
        assert found["said"] == (
            'the intent says "monolayer"; whether the film is so was not shown: mainly monolayer'
        )


def test_a_share_and_a_probability_are_those_of_the_analysis() -> None:
    assert (WHOLE, SURE) == (SHARE_CLAIMED, POSTERIOR_MIN)
