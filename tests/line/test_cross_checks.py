"""Faults that one reading hides: found by another, within the time that the envelope states."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from hands import put
from labharness.faces.testing.bench import Bench
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, default_lab_path, read_lab
from rig import until_tripped


async def in_argon(lab: Lab, sccm: float) -> None:
    """Let argon flow through a tube that counts as purged and leak-checked."""
    await put(lab, ("box.argon_valve", 1))
    await put(lab, ("argon.setpoint", sccm))
    for _ in range(3):
        await lab.line.next_tick()
    lab.line.memory.proofs.leak.tight = True
    for contaminant in lab.line.memory.proofs.purged.passed_cm3:
        lab.line.memory.proofs.purged.passed_cm3[contaminant] = 1e9


@pytest.mark.parametrize(
    ("heater", "to_c", "rate_c_per_min", "winding", "hottest_c"),
    [
        ("furnace", 735.0, 15.0, "furnace_heater_c", 950.0),
        ("sulfur", 200.0, 30.0, "sulfur_c", 444.6),  # it boils
    ],
)
async def test_a_stuck_thermocouple_is_found_where_the_output_is_limited_too(
    simulated_lab: Bench,
    heater: str,
    to_c: float,
    rate_c_per_min: float,
    winding: str,
    hottest_c: float,
) -> None:
    """At 94 % a heater never comes to the 95 % from which heat without rise is looked for."""
    async with simulated_lab.on(read_lab(default_lab_path()), seed=1).running() as lab:
        plant = simulated_of(lab).plant
        await in_argon(lab, 100)
        await put(lab, (f"{heater}.setpoint_rate", rate_c_per_min))
        await put(lab, (f"{heater}.output_high", 94))
        plant.faults.lie(heater, "stuck", 0.0, random.Random(1))
        await put(lab, (f"box.{heater}_contactor", 1))
        await put(lab, (f"{heater}.setpoint", to_c))
        said = await until_tripped(lab, 900)
        assert said.startswith(f"{heater} does not follow its setpoint")
        assert plant.truth()[winding] < hottest_c


async def test_a_hydrogen_detector_that_stands_still_closes_hydrogen(simulated_lab: Bench) -> None:
    async with simulated_lab.running() as lab:
        await in_argon(lab, 100)
        await put(lab, ("box.hydrogen_valve", 1))
        await put(lab, ("hydrogen.setpoint", 10))
        for _ in range(60):
            await lab.line.next_tick()
        face: Any = simulated_of(lab).faces["h2_detector"]
        words = face._block()
        face._block = lambda: list(words)
        since_s = lab.clock.now_s()
        said = await until_tripped(lab, 60)
        assert said.startswith("hydrogen detector stands still")
        assert lab.clock.now_s() - since_s < 22, "its found_s, one poll and the frames"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda faces: setattr(faces["gauge"], "status", "Z"), "pressure gauge says"),
        (lambda faces: faces["furnace"].write_registers(6, 273, [1]), "furnace.mode reads 1"),
        (lambda faces: setattr(faces["furnace"], "_status", lambda: 16), "furnace is driven by"),
        (lambda faces: faces["laser"].answer("p 0.05\r"), "laser brighter than may be set"),
    ],
    ids=[
        "gauge failed",
        "manual at its own keys",
        "manual by its status alone",
        "power at the laser's own keys",
    ],
)
async def test_what_is_done_at_an_instrument_itself_trips(
    simulated_lab: Bench, fault: Callable[[Any], None], words: str
) -> None:
    async with simulated_lab.running() as lab:
        await in_argon(lab, 100)
        await put(lab, ("furnace.setpoint_rate", 15))
        await put(lab, ("box.furnace_contactor", 1))
        await put(lab, ("furnace.setpoint", 60))
        while lab.line.latest("furnace.working_output") < 1:
            await lab.line.next_tick()
        await put(lab, ("laser.power", 0.0005))
        await put(lab, ("laser.emission", 1))
        fault(simulated_of(lab).faces)
        assert (await until_tripped(lab, 12)).startswith(words)
