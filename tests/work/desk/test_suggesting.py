"""A run that failed says what would do, as a rejection does."""

import pytest

from labharness.core.vocabulary import Cause, Trip
from labharness.line import HoldTooLong, Tripped
from labharness.work.capability import NoAnswer
from labharness.work.desk.closing import suggestion
from labharness.work.plan import FailureKind, StepFailed

TRIP = Trip(
    cause=Cause.OVER_TEMPERATURE,
    procedure="immediate_shutdown",
    channel="furnace.temperature",
    value=960.0,
    at_s=1.0,
    detail="furnace.temperature is 960",
)
REFUSED = StepFailed("heat", "ramp", "too hot", FailureKind.REFUSED)


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Tripped(TRIP), "labharness reset --name NAME --reason REASON --lab my.toml"),
        (TimeoutError(), "constraints.max_duration"),
        (HoldTooLong("held"), "Submit the task again"),
        (REFUSED, "labharness envelope show"),
        (ConnectionError("gone"), "labharness lab check --connect --lab my.toml"),
        (ValueError("ours"), "labharness lab check --connect --lab my.toml"),
    ],
)
def test_every_end_has_a_suggestion(ended: BaseException, words: str) -> None:
    assert words in suggestion(ended, None, " --lab my.toml")


def test_the_capability_knows_best_what_its_own_answer_lacks_but_not_what_a_trip_needs() -> None:
    answer = NoAnswer("no film", {}, (), "Grow for longer")
    ended = StepFailed("answer", "analysis", "no film", FailureKind.EXECUTION)
    assert suggestion(ended, answer, "") == "Grow for longer"
    assert "labharness reset" in suggestion(Tripped(TRIP), answer, "")
