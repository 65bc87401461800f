"""A house says today what it said before: facts, orders, words to people, messages to callers."""

import json
from pathlib import Path

from house_walk import TRANSCRIPT, walks
from labharness.core.vocabulary.texts import coded


def test_a_walk_through_what_happens_to_a_house_makes_what_its_transcript_says(
    tmp_path: Path,
) -> None:
    written = TRANSCRIPT.read_text("utf-8").splitlines()
    made = list(walks(tmp_path))
    for number, ((line, told), was) in enumerate(zip(made, written, strict=False), 1):
        assert line == was, f"line {number} now has {json.dumps(coded(told), default=str)}"
    assert len(made) == len(written)
