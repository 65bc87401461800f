"""A flight polls what moves as often as the tube is looked at, and what stays as it is rarely."""

import pytest

from commands import planned
from labharness.lab import LabPlan, default_lab_path, read_lab
from labharness.lab.wiring.coarse_polls import coarse_polls

TUBE_S = 10.0  # of the shipped tube
STATES_S = 60.0


def polled_s(plan: LabPlan, name: str, channel: str) -> float | None:
    instrument = plan.by_name[name]
    (scan,) = [each for each in instrument.driver.scans() if channel in each.channels]
    return (instrument.polls or {})[scan.name]


@pytest.mark.parametrize("hydrogen_sccm", [0.0, 10.0])
def test_a_flow_that_the_plan_does_not_set_is_read_as_a_state_is(hydrogen_sccm: float) -> None:
    plan = read_lab(default_lab_path())
    recipe = {"hydrogen_sccm": hydrogen_sccm} if hydrogen_sccm else {}
    polls, _, _ = coarse_polls(plan, planned(plan, recipe=recipe))
    assert polled_s(polls, "argon", "flow") == TUBE_S
    assert polled_s(polls, "gauge", "pressure") == TUBE_S
    assert polled_s(polls, "nitrogen", "flow") == STATES_S
    hydrogen_s = polled_s(polls, "hydrogen", "flow")
    assert hydrogen_s is not None
    assert (hydrogen_s < TUBE_S) is (hydrogen_sccm > 0)
    assert (hydrogen_s == STATES_S) is (hydrogen_sccm == 0)


def test_a_reading_is_stale_after_as_many_polls_as_on_the_line() -> None:
    plan = read_lab(default_lab_path())
    flight = coarse_polls(plan, planned(plan))[0].envelope.watches
    for channel, watch in plan.envelope.watches.items():
        assert flight[channel].stale_s / watch.stale_s in (TUBE_S, 20.0, STATES_S, 240.0), channel
