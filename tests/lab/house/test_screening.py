"""Only what the line cannot change is refused before a task has it."""

from typing import Any

import pytest

from labharness.lab import read_lab
from labharness.lab.house.screening import screened
from labharness.protocols.hcp.messages import ResumeFrom
from rig import SHORT_LINE, submission


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"caller_id": "stranger"}, "unauthorized"),
        ({"capability": "bake"}, "invalid_input"),
        ({"resume_from": ResumeFrom(session_id="s", checkpoint_id="c")}, "invalid_input"),
        ({"inputs": {"target_material": "MoS2", "temperature": 5000}}, "invalid_input"),
    ],
)
def test_a_task_is_refused_for_what_its_turn_cannot_change(
    changes: dict[str, Any], reason: str | None
) -> None:
    _, payload = submission()
    found = screened(read_lab(SHORT_LINE), payload.model_copy(update=changes))
    assert (None if found is None else found.reason_code) == reason
