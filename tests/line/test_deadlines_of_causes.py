"""From a sensor that shows a limit passed to the procedure on the wire: lab time, at any moment."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from labharness.core.vocabulary import Cause
from labharness.faces.testing.bench import Bench
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab
from labharness.safety.guard import Source

POLL_S, PROMPT_S = 1.0, 0.250
GRAIN_S = 0.01
AFTER_S = (0.0, 0.3, 0.5, 0.7, 0.95)  # within a poll


def reads(sensor: str, times: float) -> Callable[[Lab], None]:
    """Let a sensor show so many times what is so."""
    return lambda lab: simulated_of(lab).plant.faults.lie(sensor, "wrong", times, Random(1))


def hydrogen(lab: Lab) -> None:
    simulated_of(lab).plant.faults.h2_detector_offset_ppm = 9000.0


CAUSES = {
    Cause.OVER_TEMPERATURE: reads("furnace", 44.0),  # of 25 °C
    Cause.OVER_PRESSURE: reads("gauge", 1.3),  # of one atmosphere
    Cause.GAS_LEAK: hydrogen,
}


@pytest.mark.promise(11)
@pytest.mark.parametrize("cause", CAUSES, ids=str)
async def test_a_limit_that_is_passed_trips_within_a_poll_and_a_quarter_second(
    simulated_lab: Bench, cause: Cause
) -> None:
    for after_s in AFTER_S:
        async with simulated_lab.running() as lab:
            await asyncio.sleep(after_s)
            began_s = lab.clock.now_s()
            log = lab.guard.core.log
            assert log is not None
            before = len(log)
            CAUSES[cause](lab)
            while all(each.source is not Source.PROCEDURE for each in log[before:]):
                await asyncio.sleep(GRAIN_S)
                took_s = lab.clock.now_s() - began_s
                assert took_s <= POLL_S + PROMPT_S, f"{after_s:g} s into a poll"
            assert [each.cause for each in lab.line.trip_response.trips] == [cause]
            await lab.line.trip_response.verified()
            lab.guard.latch.open()
