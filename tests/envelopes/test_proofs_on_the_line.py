"""The proofs on the plant: what takes them back, what does not, and what never makes one."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hands import put, wait
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab
from rig import Injection, Run, approved_copy, submission

GASES = ("argon", "nitrogen", "hydrogen", "hydrogen sulfide")
SHUT = (
    ("box.nitrogen_bypass_shut", 1),
    ("argon.setpoint", 0),
    ("box.argon_valve", 0),
    ("box.vent", 0),
)


def flushed_of_hydrogen(lab: Lab) -> None:
    """Leave the tube as a flush does: argon is not stopped over hydrogen."""
    lab.line.memory.proofs.purged.passed_cm3["hydrogen"] = 1e9


async def checked(lab: Lab, for_s: float) -> None:
    """Evacuate a shut tube, isolate it, and wait."""
    await put(lab, ("box.pump", 1), ("box.pump_isolation", 1))
    await wait(lab, 3.0)
    while lab.line.latest("gauge.pressure") > 0.9:
        await lab.line.next_tick()
    await put(lab, ("box.pump_isolation", 0))
    await wait(lab, for_s)


@pytest.mark.parametrize("sccm", [1.0, 5.0, 20.0])
def test_a_leak_that_a_second_check_finds_takes_back_what_the_first_one_proved(
    play: Callable[..., Any], sccm: float
) -> None:
    async def found(lab: Lab) -> tuple[bool, bool]:
        flushed_of_hydrogen(lab)
        await put(lab, *SHUT)
        await checked(lab, 75.0)
        first = lab.line.memory.proofs.leak.tight
        simulated_of(lab).plant.faults.air_leak_sccm = sccm
        await checked(lab, 12.0)
        return first, lab.line.memory.proofs.leak.tight

    assert play(found) == (True, False)


@pytest.mark.thorough
@pytest.mark.parametrize("hydrogen_sccm", [pytest.param(0, marks=pytest.mark.soak), 10])
def test_nothing_in_a_whole_growth_takes_back_its_leak_check(
    run_task: Run, tmp_path: Path, hydrogen_sccm: float
) -> None:
    seen: list[bool] = []

    def spy(lab: Lab) -> None:
        if not lab.line.memory.tracks["box.lid_shut"].unconfirmed:
            seen.append(lab.line.memory.proofs.leak.tight)
            lab.clock.loop.call_later(0.3, spy, lab)

    plan = approved_copy(tmp_path, gases=GASES)
    asked = submission(recipe={"hydrogen_sccm": hydrogen_sccm, "argon_sccm": 100})
    ran = run_task(plan, asked, inject=(Injection("leak_check", 0.1, spy),))
    assert ran.lab.line.memory.trip is None, ran.body  # whatever film has grown
    assert any(seen), "the leak check is passed"
    passed = seen.index(True)
    assert all(seen[passed:]), "until a person is asked to open the lid"
    assert len(seen) - passed > 1000


@pytest.mark.promise(10)
@pytest.mark.parametrize("meter", ["nitrogen", "argon"])
def test_a_meter_that_reads_garbage_proves_no_purge_while_nothing_flows(
    play: Callable[..., Any], meter: str
) -> None:
    async def found(lab: Lab) -> tuple[float, float]:
        faults = simulated_of(lab).plant.faults
        flushed_of_hydrogen(lab)
        await put(lab, ("box.nitrogen_bypass_shut", 1), ("argon.setpoint", 0))
        await wait(lab, 3.0)
        before = lab.line.volumes_purged("air")
        faults.lie(meter, "garbage", 400.0, random.Random(1))
        await wait(lab, 600.0)
        return before, lab.line.volumes_purged("air")

    before, after = play(found)
    assert after == before
