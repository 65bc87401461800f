"""A house says today what it said before: facts, orders, words to people, messages to callers."""

import json
from pathlib import Path

import pytest

from house_walk import EVENTS, SEEDS, TRANSCRIPT, walk
from labharness.core.vocabulary.texts import coded


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_a_walk_through_what_happens_to_a_house_makes_what_its_transcript_says(
    tmp_path: Path, number: int
) -> None:
    written = TRANSCRIPT.read_text("utf-8").splitlines()[number * EVENTS : (number + 1) * EVENTS]
    made = list(walk(tmp_path, SEEDS[number]))
    for at, ((line, told), was) in enumerate(zip(made, written, strict=False), 1):
        assert line == was, f"line {at} now has {json.dumps(coded(told), default=str)}"
    assert len(made) == len(written)
