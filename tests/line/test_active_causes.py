"""What stands in the way of a reset, by fresh readings: an old one is no cause for ever."""

import pytest

from labharness.core.vocabulary import Cause, Trip
from labharness.lab import LabPlan
from labharness.line.hindrances import active_trips, causes_of, stop_procedure
from labharness.safety.kernel import Memory

DETECTOR = "h2_detector.concentration"
LEAK = Trip(Cause.GAS_LEAK, "close_all_valves_and_alert", DETECTOR, 5000.0, 0.0, "leak")


@pytest.fixture
def leaking(short_plan: LabPlan) -> Memory:
    """Return a line whose detector read 5000 ppm at 0 s, and nothing since."""
    memory = Memory(short_plan.envelope)
    track = memory.track(DETECTOR)
    track.value, track.at_s = 5000.0, 0.0
    return memory


def test_a_fresh_reading_that_trips_stands(leaking: Memory) -> None:
    stale_s = leaking.track(DETECTOR).stale_s
    assert active_trips(leaking, stale_s) == (
        "hydrogen in the room: h2_detector.concentration is 5000 ppm",
    )
    assert stop_procedure(leaking, None, stale_s) == "close_all_valves_and_alert"


@pytest.mark.promise(14)
def test_a_reading_that_is_stale_is_no_cause_and_is_told_as_not_known(
    leaking: Memory, short_plan: LabPlan
) -> None:
    late_s = leaking.track(DETECTOR).stale_s + 0.01
    assert active_trips(leaking, late_s) == ()
    assert stop_procedure(leaking, None, late_s) == "immediate_shutdown"
    instruments = {each.name: each for each in short_plan.instruments}
    found = causes_of(LEAK, leaking, instruments, late_s)
    assert f"not known: {DETECTOR} was not read" in found
