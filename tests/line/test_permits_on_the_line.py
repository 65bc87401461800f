"""A permit rests on what was so when it was made: what changes that voids it before it is used."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.lab import Lab, LabPlan
from labharness.safety.guard import NotPermitted
from labharness.safety.kernel import Mode
from rig import SAFE_TABLE, plant_fault

Change = Callable[[Lab], Awaitable[None]]


async def nothing_changes(lab: Lab) -> None:
    """Let one poll pass."""
    await lab.line.next_tick()


async def the_lid_is_opened(lab: Lab) -> None:
    """Open the cold tube, and let one poll see it: nothing trips, and interlocks turn false."""
    plant_fault("lid_open", True)(lab)
    await lab.line.next_tick()
    assert lab.line.memory.trip is None


async def the_line_is_made_safe(lab: Lab) -> None:
    """Call to make safe without a trip: what was allowed before is not what is wanted after."""
    making = asyncio.create_task(lab.line.trip_response.make_safe(SAFE_TABLE))
    await asyncio.sleep(0)
    assert not making.done()


@pytest.mark.promise(5)
@pytest.mark.parametrize(
    ("change", "passes"),
    [(nothing_changes, True), (the_lid_is_opened, False), (the_line_is_made_safe, False)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_permit_ends_with_what_it_rested_on(
    short_plan: LabPlan,
    simulated_lab: Bench,
    virtual_time: VirtualTime,
    change: Change,
    passes: bool,
) -> None:
    async def play() -> None:
        async with simulated_lab.on(short_plan).opened() as lab:
            await lab.line.arm(SAFE_TABLE)
            lab.line.start()
            assert lab.line.memory.mode is Mode.RUNNING
            furnace = lab.line.instruments["furnace"]
            (request,) = furnace.driver.write("setpoint", 50.0)
            await lab.line.next_tick()
            permit = lab.guard.permit(furnace.port, request)
            await change(lab)
            free: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            lab.guard.when_free(furnace.port, lambda: free.set_result(None))
            await free
            if passes:
                lab.guard.exchange(furnace.port, request, permit, lambda reply, error: None)
                return
            with pytest.raises(NotPermitted, match="void"):
                lab.guard.exchange(furnace.port, request, permit, lambda reply, error: None)
            lab.guard.release(furnace.port)

    virtual_time.run(play())
