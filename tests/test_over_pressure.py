"""Too much pressure in a tube that nothing leaves: whatever else is wrong, no gas is let in.

The plant's own account of the pressure decides, not the gauge's.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from labharness.clock import Chance, Clock, VirtualLoop, run
from labharness.journal.forgetful import Forgetful
from labharness.lab import Lab, LabPlan
from labharness.lab.reading import SAFE_TABLE
from labharness.vocabulary import Cause
from rig import plant_fault

ATM_PA = 101_325.0
TRIP_ATM = 1.15  # of the short line
PEAK_ATM_MAX = 1.25  # and a poll and the gauge's lag: all inert gas is 0.05 atm a second there
LONG_S = 300.0  # all inert gas brings a blocked tube to 1.9 atm in this time
STOPPED_OTHERWISE = {
    "emergency stop": (Cause.EMERGENCY_STOP_LOOP, plant_fault("estop_open")),
    "gas leak": (Cause.GAS_LEAK, plant_fault("h2_detector_offset_ppm", 9000.0)),
}
Work = Callable[[Lab], Awaitable[None]]

block_outlet = plant_fault("outlet_blocked")


def with_lab(plan: LabPlan, work: Work) -> Lab:
    """Do ``work`` on a lab of its own, and close its line."""
    loop = VirtualLoop()
    labs: list[Lab] = []

    async def main() -> None:
        lab = Lab(plan, clock=Clock(loop), chance=Chance(1), journal=Forgetful())
        labs.append(lab)
        try:
            await work(lab)
        finally:
            await lab.line.close()

    run(main(), loop)
    return labs[0]


async def started(lab: Lab) -> None:
    """Arm and start: all inert gas flows, through an open vent."""
    await lab.line.open()
    await lab.line.arm(SAFE_TABLE)
    lab.line.start()


async def trip_of(lab: Lab, cause: Cause) -> None:
    async with asyncio.timeout(LONG_S):
        while lab.line.memory.trip is None or lab.line.memory.trip.cause is not cause:
            await lab.line.polled()


def plant(lab: Lab) -> Any:
    assert lab.simulated is not None
    return lab.simulated.plant


def peak_atm(lab: Lab) -> float:
    peak: float = plant(lab).truth()["peak_pressure_pa"]
    return peak / ATM_PA


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("stop", STOPPED_OTHERWISE)
def test_a_tube_whose_outlet_clogs_is_relieved_whatever_else_trips_before_or_after(
    short_plan: LabPlan, stop: str, first: bool
) -> None:
    cause, act = STOPPED_OTHERWISE[stop]

    async def work(lab: Lab) -> None:
        await started(lab)
        if first:
            act(lab)
            await trip_of(lab, cause)
        block_outlet(lab)
        await trip_of(lab, Cause.OVER_PRESSURE)
        if not first:
            act(lab)
        await asyncio.sleep(LONG_S)

    lab = with_lab(short_plan, work)
    assert TRIP_ATM < peak_atm(lab) < PEAK_ATM_MAX
    done = lab.line.safing.verifications[-1]
    assert (done.procedure, done.complete) == ("relieve_pressure", True)
