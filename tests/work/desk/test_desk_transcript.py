"""The desk writes and answers today what it did before, whatever persons ask meanwhile."""

import json
from pathlib import Path

import pytest

from desk_walk import WALKS, transcript, transcript_of
from labharness.core.vocabulary.texts import coded


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_of_persons_over_a_run_is_recorded_and_answered_as_its_transcript_says(
    tmp_path: Path, walk: str
) -> None:
    written = transcript_of(walk).read_text("utf-8").splitlines()
    made = transcript(tmp_path, walk)
    for number, ((line, told), was) in enumerate(zip(made, written, strict=False), 1):
        assert line == was, f"line {number} now has {json.dumps(coded(told), default=str)}"
    assert len(made) == len(written)
