"""The desk writes and answers today what it did before, whatever persons ask meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest

import admission_walk
import closing_walk
from desk_walk import WALKS, transcript, transcript_of
from labharness.core.vocabulary.texts import coded


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_of_persons_over_a_run_is_recorded_and_answered_as_its_transcript_says(
    tmp_path: Path, walk: str
) -> None:
    compare(transcript(tmp_path, walk), transcript_of(walk))


@pytest.mark.parametrize("task", admission_walk.TASKS)
def test_what_is_decided_before_a_line_is_opened_is_what_the_transcript_says(task: str) -> None:
    compare([*admission_walk.transcript(task)], admission_walk.TRANSCRIPT, f"{task} ")


@pytest.mark.parametrize("case", closing_walk.CASES)
def test_a_session_is_closed_in_each_way_as_the_transcript_says(tmp_path: Path, case: str) -> None:
    compare([*closing_walk.transcript(tmp_path, case)], closing_walk.TRANSCRIPT, f"{case}, ")


def compare(made: list[tuple[str, list[Any]]], transcript: Path, of: str = "") -> None:
    whole = transcript.read_text("utf-8").splitlines()
    written = [each for each in whole if each.startswith(of)]
    for number, ((line, told), was) in enumerate(zip(made, written, strict=False), 1):
        assert line == was, f"line {number} now has {json.dumps(coded(told), default=str)}"
    assert len(made) == len(written)
