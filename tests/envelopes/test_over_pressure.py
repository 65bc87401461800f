"""Too much pressure in a tube that nothing leaves: whatever else is wrong, no gas is let in.

The plant's own account of the pressure decides, not the gauge's.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.core.vocabulary import Cause, Command, Trip
from labharness.faces.testing.faults import simulated_of
from labharness.journal.null_journal import NullJournal
from labharness.lab import Lab, LabPlan
from labharness.line.trip_response import DownStage
from labharness.safety.guard import Latch
from labharness.work.desk.by_hand import ByHand, Nobody
from rig import plant_fault

ATM_PA = 101_325.0
TRIP_ATM = 1.15  # of the short line
PEAK_ATM_MAX = 1.25  # and a poll and the gauge's lag: all inert gas is 0.05 atm a second there
GAUGE_S = 5.0  # until the gauge shows what the tube was put under
LONG_S = 300.0  # all inert gas brings a blocked tube to 1.9 atm in this time
RELIEVED = (False, True, False, False, True, False, False, False)  # coils: no bypass, vent open
STOPPED_OTHERWISE = {
    "emergency stop": (Cause.EMERGENCY_STOP_LOOP, plant_fault("estop_open")),
    "gas leak": (Cause.GAS_LEAK, plant_fault("h2_detector_offset_ppm", 9000.0)),
}

block_outlet = plant_fault("outlet_blocked")


async def trip_of(lab: Lab, cause: Cause) -> None:
    async with asyncio.timeout(LONG_S):
        while lab.line.memory.trip is None or lab.line.memory.trip.cause is not cause:
            await lab.line.polled()


def plant(lab: Lab) -> Any:
    return simulated_of(lab).plant


def peak_atm(lab: Lab) -> float:
    peak: float = plant(lab).truth()["peak_pressure_pa"]
    return peak / ATM_PA


@pytest.mark.promise(15)
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("stop", STOPPED_OTHERWISE)
def test_a_tube_whose_outlet_clogs_is_relieved_whatever_else_trips_before_or_after(
    play: Callable[..., Any], short_plan: LabPlan, stop: str, first: bool
) -> None:
    cause, act = STOPPED_OTHERWISE[stop]

    async def work(lab: Lab) -> Lab:
        if first:
            act(lab)
            await trip_of(lab, cause)
        block_outlet(lab)
        await trip_of(lab, Cause.OVER_PRESSURE)
        if not first:
            act(lab)
        await asyncio.sleep(LONG_S)
        return lab

    lab = play(work)
    assert TRIP_ATM < peak_atm(lab) < PEAK_ATM_MAX
    done = lab.line.trip_response.verifications[-1]
    assert (done.procedure, done.complete) == ("relieve_pressure", True)
    latched = Latch(short_plan.state_dir / "latch.json").trip
    assert latched is not None
    assert latched.cause is (cause if first else Cause.OVER_PRESSURE), "the cause to clear"
    assert latched.procedure == "relieve_pressure", "what made the line safe"


@pytest.mark.promise(15)
def test_a_line_on_its_way_down_stays_relieved(play: Callable[..., Any]) -> None:
    async def work(lab: Lab) -> Lab:
        await lab.line.perform(Command("argon.setpoint", 90.0, "sccm"))
        simulated_of(lab).faces["argon"].setpoint_source = "A"  # deaf: no procedure is verified
        block_outlet(lab)
        while plant(lab).truth()["pressure_pa"] < (TRIP_ATM - 0.02) * ATM_PA:
            await lab.line.next_tick()
        reached = await lab.line.bring_down(DownStage.STOP)
        assert reached.stage is DownStage.TRIP
        assert [each.split(":")[0] for each in reached.passed] == ["stop"]
        await asyncio.sleep(LONG_S)
        return lab

    lab = play(work)
    assert [each.cause for each in lab.line.trip_response.trips] == [Cause.OVER_PRESSURE]
    assert TRIP_ATM < peak_atm(lab) < PEAK_ATM_MAX


def stopped(cause: Cause, procedure: str) -> Trip:
    return Trip(cause, procedure, "a.b", None, 1.0, "test")


@pytest.mark.promise(15)
@pytest.mark.parametrize(
    ("latched", "atm", "procedure"),
    [
        ((), 1.0, "immediate_shutdown"),
        ((), 1.16, "relieve_pressure"),
        ((stopped(Cause.OVER_PRESSURE, "relieve_pressure"),), 1.1, "relieve_pressure"),
        (
            (
                stopped(Cause.EMERGENCY_STOP_LOOP, "immediate_shutdown"),
                stopped(Cause.OVER_PRESSURE, "relieve_pressure"),
            ),
            1.1,
            "relieve_pressure",
        ),
        ((stopped(Cause.GAS_LEAK, "close_all_valves_and_alert"),), 1.16, "relieve_pressure"),
        ((stopped(Cause.GAS_LEAK, "close_all_valves_and_alert"),), 0.3, "hold_vacuum"),
        ((stopped(Cause.EMERGENCY_STOP_LOOP, "hold_vacuum"),), 1.0, "immediate_shutdown"),
        ((stopped(Cause.COMMUNICATION, ""),), 1.0, "immediate_shutdown"),
    ],
)
def test_a_line_that_nobody_owns_is_made_safe_as_the_gravest_cause_asks(
    short_plan: LabPlan, latched: tuple[Trip, ...], atm: float, procedure: str
) -> None:
    blocked = procedure == "relieve_pressure"
    short_plan.state_dir.mkdir(parents=True, exist_ok=True)
    for trip in latched:
        Latch(short_plan.state_dir / "latch.json").close(trip)

    loop = VirtualLoop()

    async def work() -> None:
        lab = Lab(short_plan, clock=Clock(loop), chance=Chance(1), journal=NullJournal())
        for link in lab.links.values():
            await link.open()
        tube = plant(lab)
        tube.faults.outlet_blocked = blocked
        tube.parts["relays"].coils[:] = RELIEVED
        tube.parts["relays"].coils[4] = procedure != "hold_vacuum"
        tube._gas.pressure_pa = tube._gas.air = atm * ATM_PA
        await asyncio.sleep(GAUGE_S)
        await lab.line.read_all(["gauge.pressure", "box.vent"], 1.0)
        done = await ByHand(lab.line, Nobody()).answer({"do": "safe", "by": "Ada"})
        assert (done["procedure"], done["unverified"]) == (procedure, [])
        await asyncio.sleep(LONG_S)
        if blocked:
            assert plant(lab).truth()["pressure_pa"] < (atm + 0.01) * ATM_PA
        await lab.line.close()

    run(work(), loop)
    kept = Latch(short_plan.state_dir / "latch.json").trip
    assert (None if kept is None else kept.procedure) == (procedure if latched else None)
    assert kept is None or kept.cause is latched[0].cause, "the cause to clear"
