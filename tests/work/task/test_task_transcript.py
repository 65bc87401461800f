"""The control plane of tasks says today what it said before, byte for byte."""

import json

from labharness.core.vocabulary.texts import coded
from labharness.work.task.commands import COMMANDS, REFUSALS
from task_walk import TRANSCRIPT, walks

ELSEWHERE = {"jobs_full"}  # by `test_task_jobs`


def test_a_walk_through_all_commands_makes_the_facts_and_events_of_its_transcript() -> None:
    written = TRANSCRIPT.read_text("utf-8").splitlines()
    made = list(walks())
    for number, ((line, told), was) in enumerate(zip(made, written, strict=False), 1):
        assert line == was, f"line {number} now has {json.dumps(coded(told), default=str)}"
    assert len(made) == len(written)
    words = [line.split() for line in written]
    assert {each[-2] for each in words} >= REFUSALS - ELSEWHERE
    assert {each[0] for each in words if each[-2] == "taken"} == {*COMMANDS}
