"""Dangers into which a person at the terminal could once bring the line, command by command.

Each scene is what somebody might do by hand; none of its steps is odd by itself. What each row of
the envelope is for is said there; here it is asked for where it would hurt.
"""

import random
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from hands import NOT_ODD_S, asked, put, truth, until, wait
from labharness.faces.testing.bench import Bench
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, default_lab_path, read_lab
from labharness.line.command import NotOpened
from rig import SHORT_LINE, part, until_tripped

PURGED_VOLUMES = 5.05
TARGET_SETPOINT = 2  # register of a 2400, in tenths of a degree
TIGHT_SCCM = 0.059  # 1e-3 mbar L/s, the usual bound of a tube with O-rings
LEAK_SCCM = 20.0  # the envelope's own number: 300 times what its leak check passes
LINES = pytest.mark.parametrize(
    "path",
    [
        pytest.param(SHORT_LINE, id="short", marks=pytest.mark.soak),
        pytest.param(default_lab_path(), id="shipped"),
    ],
)
PA_MAX = 1.15 * 101_325
WATCHDOG, SOURCE = 514, 516  # registers of a BASIS 2
SET_UP_S = 30.0  # between two looks at them


@pytest.fixture
def path() -> Path:
    """The lab file, where a test names no other."""
    return SHORT_LINE


@pytest.fixture
def lab(simulated_lab: Bench, path: Path) -> AbstractAsyncContextManager[Lab]:
    return simulated_lab.on(read_lab(path)).running()


async def purge(lab: Lab) -> None:
    await put(lab, ("box.argon_valve", 1), ("box.vent", 1), ("argon.setpoint", 480))
    await until(lab, lambda: lab.line.volumes_purged("air") >= PURGED_VOLUMES)


async def shut_and_pump(lab: Lab) -> None:
    await put(lab, ("box.nitrogen_bypass_shut", 1), ("argon.setpoint", 0), ("box.argon_valve", 0))
    await put(lab, ("box.vent", 0), ("box.pump", 1), ("box.pump_isolation", 1))


async def evacuated(lab: Lab) -> None:
    """Leave a tube shut off, under vacuum, behind a gauge that stands still."""
    await purge(lab)
    await shut_and_pump(lab)
    await until(lab, lambda: lab.line.latest("gauge.pressure") <= 20)
    await put(lab, ("box.pump_isolation", 0), ("box.pump", 0))
    simulated_of(lab).plant.faults.lie("gauge", "stuck", 0.0, random.Random(1))


async def stays_whole(lab: Lab, for_s: float) -> None:
    """See that the tube is not filled beyond its limit, though nobody does anything any more."""
    end_s = lab.clock.now_s() + for_s
    while lab.clock.now_s() < end_s:
        await lab.line.polled()
        assert truth(lab)["pressure_pa"] <= PA_MAX


async def leak_check(lab: Lab) -> None:
    await purge(lab)
    await shut_and_pump(lab)
    await until(lab, lambda: lab.line.latest("gauge.pressure") <= 0.1)
    await put(lab, ("box.pump_isolation", 0))
    await wait(lab, 60)
    await put(lab, ("box.pump", 0))
    assert lab.line.memory.proofs.leak.tight


async def fill(lab: Lab) -> None:
    """Fill a tube that passed its leak check, and purge it once more."""
    await put(lab, ("box.argon_valve", 1), ("argon.setpoint", 100))
    await until(lab, lambda: lab.line.latest("gauge.pressure") >= 760)
    await purge(lab)


async def hydrogen(lab: Lab, for_s: float) -> None:
    """Let hydrogen through for a while, and shut it off again."""
    await put(lab, ("argon.setpoint", 85), ("box.hydrogen_valve", 1), ("hydrogen.setpoint", 50))
    await wait(lab, for_s)
    await put(lab, ("hydrogen.setpoint", 0), ("box.hydrogen_valve", 0))


def at_the_keys_of_the_furnace(lab: Lab, target_c: float) -> None:
    face: Any = simulated_of(lab).faces["furnace"]
    face.write_registers(6, TARGET_SETPOINT, [round(10 * target_c)])


def restarts_without(lab: Lab, register: int) -> None:
    face: Any = simulated_of(lab).faces["hydrogen"]
    face.write_registers(6, register, [0])


def at_the_keys_of_a_flow_controller(lab: Lab, name: str, sccm: float) -> None:
    face: Any = simulated_of(lab).faces[name]
    face.answer(f"{face.unit}S{sccm}")


async def test_a_furnace_is_not_heated_hot_without_argon_flowing(lab: Lab) -> None:
    """A proof once made says nothing of what a tube is swept with now."""
    await purge(lab)
    await put(lab, ("argon.setpoint", 0), ("box.argon_valve", 0))
    await put(lab, ("box.nitrogen_bypass_shut", 1))
    await put(lab, ("furnace.setpoint_rate", 20), ("box.furnace_contactor", 1))
    await wait(lab, 5)
    assert "argon.flow" in await asked(lab, "furnace.setpoint", 950)


@LINES
async def test_a_furnace_set_hot_at_its_own_keys_in_a_tube_that_is_not_purged_trips(
    lab: Lab,
) -> None:
    await put(lab, ("box.nitrogen_bypass_shut", 1))
    await put(lab, ("furnace.setpoint_rate", 20), ("box.furnace_contactor", 1))
    await put(lab, ("furnace.setpoint", 60))
    at_the_keys_of_the_furnace(lab, 900)
    assert await until_tripped(lab, 1800), truth(lab)["furnace_heater_c"]
    assert truth(lab)["furnace_heater_c"] < 250
    assert not truth(lab)["furnace_heating"]


@pytest.mark.thorough
async def test_argon_is_not_thinned_over_hydrogen_that_is_still_in_the_tube(lab: Lab) -> None:
    """Air that leaks in is kept harmless by what flows: less of it, and hydrogen burns in it."""
    await leak_check(lab)
    await fill(lab)
    await put(lab, ("furnace.setpoint_rate", 50), ("box.furnace_contactor", 1))
    await put(lab, ("furnace.setpoint", 800))
    await hydrogen(lab, 1000)
    assert "purged of hydrogen" in await asked(lab, "argon.setpoint", 20)
    simulated_of(lab).plant.faults.air_leak_sccm = LEAK_SCCM
    for _ in range(600):
        await lab.line.polled()
        now = truth(lab)
        assert now["h2_fraction"] <= 0.04 or now["o2_fraction"] <= 0.05


async def test_hydrogen_counts_as_in_the_tube_while_its_valve_is_open_whatever_its_meter_reads(
    lab: Lab,
) -> None:
    await leak_check(lab)
    await fill(lab)
    simulated_of(lab).plant.faults.lie("hydrogen", "off", 0.0, random.Random(1))
    await hydrogen(lab, 20)
    assert truth(lab)["h2_fraction"] > 0.05
    assert lab.line.volumes_purged("hydrogen") < 1
    for channel in ("argon.setpoint", "box.vent"):
        assert "purged of hydrogen" in await asked(lab, channel, 0)
    with pytest.raises(NotOpened, match="purged of hydrogen"):
        await lab.line.by_hand("load", nobody_is_asked)
    await put(lab, ("box.hydrogen_valve", 1), ("hydrogen.setpoint", 50))
    assert await until_tripped(lab, 40), "its meter reads nothing of what was set"


async def nobody_is_asked() -> None:
    raise AssertionError("somebody was asked to open the tube")


@pytest.mark.promise(10)
@pytest.mark.thorough
@LINES
@pytest.mark.parametrize("share", [0.5, 3.0])
async def test_a_leak_of_three_times_what_may_be_is_found_and_half_of_it_passes(
    lab: Lab, share: float
) -> None:
    await purge(lab)
    simulated_of(lab).plant.faults.air_leak_sccm = share * TIGHT_SCCM
    await shut_and_pump(lab)
    await until(lab, lambda: lab.line.latest("gauge.pressure") <= 0.1)
    await put(lab, ("box.pump_isolation", 0))
    await wait(lab, 60)
    assert lab.line.memory.proofs.leak.tight is (share < 1)


@pytest.mark.promise(10)
@pytest.mark.thorough
async def test_a_tube_that_its_leak_has_filled_is_no_purged_tube(lab: Lab) -> None:
    await purge(lab)
    simulated_of(lab).plant.faults.air_leak_sccm = LEAK_SCCM  # before any leak check
    await shut_and_pump(lab)
    await wait(lab, 60)
    await put(lab, ("box.pump_isolation", 0), ("box.pump", 0))
    await until(lab, lambda: lab.line.latest("gauge.pressure") >= 745)
    assert truth(lab)["o2_fraction"] > 0.1
    assert lab.line.volumes_purged("air") < 1
    await put(lab, ("box.vent", 1), ("box.argon_valve", 1), ("argon.setpoint", 20))
    await put(lab, ("sulfur.setpoint_rate", 60), ("box.sulfur_contactor", 1))
    await wait(lab, 5)
    assert "purged of air" in await asked(lab, "sulfur.setpoint", 250)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(SHORT_LINE, id="short"),
        pytest.param(default_lab_path(), id="shipped", marks=pytest.mark.soak),
    ],
)
async def test_a_tube_that_fills_by_a_leak_after_its_leak_check_is_neither_tight_nor_purged(
    lab: Lab,
) -> None:
    await leak_check(lab)
    await put(lab, ("box.argon_valve", 1))  # and the person is called away
    simulated_of(lab).plant.faults.air_leak_sccm = LEAK_SCCM  # a flange lets go
    await until(lab, lambda: lab.line.latest("gauge.pressure") >= 745, 3 * NOT_ODD_S)
    assert truth(lab)["o2_fraction"] > 0.1
    await put(lab, ("box.vent", 1), ("argon.setpoint", 85))
    await wait(lab, 5)
    assert await asked(lab, "box.hydrogen_valve", 1)
    assert await asked(lab, "hydrogen.setpoint", 50)
    assert not lab.line.memory.proofs.leak.tight
    assert lab.line.volumes_purged("air") < 1


async def test_more_hydrogen_than_may_be_set_trips(lab: Lab) -> None:
    await leak_check(lab)
    await fill(lab)
    await put(lab, ("argon.setpoint", 85), ("box.hydrogen_valve", 1))
    await put(lab, ("hydrogen.setpoint", 20))
    await wait(lab, 60)
    part(simulated_of(lab).plant, "hydrogen").setpoint_sccm = 100.0  # its valve, or another hand
    assert "hydrogen.flow" in await until_tripped(lab, 10)


@pytest.mark.promise(10)
@pytest.mark.thorough
@LINES
async def test_a_shut_tube_is_not_filled_with_nitrogen(lab: Lab) -> None:
    """No row looks for a pressure that rises with nitrogen, and the bypass has no meter at all."""
    await evacuated(lab)
    for channel, value in (("nitrogen.setpoint", 490), ("box.nitrogen_bypass_shut", 0)):
        assert "box.vent at least 1" in await asked(lab, channel, value)


@pytest.mark.promise(10)
@pytest.mark.thorough
@LINES
@pytest.mark.parametrize("sccm", [0.5, pytest.param(490.0, marks=pytest.mark.soak)])
async def test_nitrogen_set_at_its_own_keys_in_a_shut_tube_trips_and_stops(
    lab: Lab, sccm: float
) -> None:
    await evacuated(lab)
    at_the_keys_of_a_flow_controller(lab, "nitrogen", sccm)
    assert "nitrogen only into a vented tube" in await until_tripped(lab, 5)
    await stays_whole(lab, 1200)
    assert truth(lab)["nitrogen_sccm"] == 0


@pytest.mark.promise(10)
@pytest.mark.parametrize(
    ("channel", "value"), [("box.nitrogen_bypass_shut", 0), ("nitrogen.setpoint", 100)]
)
async def test_the_vent_is_not_shut_while_nitrogen_comes_in(
    lab: Lab, channel: str, value: float
) -> None:
    await purge(lab)
    await put(lab, ("box.nitrogen_bypass_shut", 1), ("argon.setpoint", 0))
    await put(lab, (channel, value))
    assert channel in await asked(lab, "box.vent", 0)


@pytest.mark.promise(10)
@pytest.mark.parametrize(
    ("register", "lost"), [(WATCHDOG, "watchdog_ms"), (SOURCE, "setpoint_source")]
)
async def test_hydrogen_takes_the_watchdog_of_its_controller(
    lab: Lab, register: int, lost: str
) -> None:
    """One that browns out for a moment on its serial line comes back without, and answers on."""
    await leak_check(lab)
    await fill(lab)
    restarts_without(lab, register)
    await wait(lab, SET_UP_S)
    await put(lab, ("argon.setpoint", 85))
    for channel in ("box.hydrogen_valve", "hydrogen.setpoint"):
        assert f"hydrogen.{lost}" in await asked(lab, channel, 1)


@pytest.mark.parametrize("register", [WATCHDOG, SOURCE])
async def test_hydrogen_that_flows_without_its_watchdog_trips(lab: Lab, register: int) -> None:
    await leak_check(lab)
    await fill(lab)
    await put(lab, ("argon.setpoint", 85), ("box.hydrogen_valve", 1))
    await put(lab, ("hydrogen.setpoint", 20))
    restarts_without(lab, register)
    lost = {WATCHDOG: "hydrogen.watchdog_ms", SOURCE: "hydrogen.setpoint_source"}[register]
    assert lost in await until_tripped(lab, SET_UP_S + 2)
    await stays_whole(lab, 10)
    assert truth(lab)["hydrogen_sccm"] == 0


@pytest.mark.promise(10)
@pytest.mark.thorough
@LINES
@pytest.mark.parametrize(
    "sccm", [5.05, *(pytest.param(sccm, marks=pytest.mark.soak) for sccm in (0.2, 4.0, 5.0, 9.5))]
)
async def test_a_trickle_of_argon_into_a_shut_tube_trips(lab: Lab, sccm: float) -> None:
    """So slow a rise drowns in the noise, of the gauge's reading or of the meter's at its bound."""
    await evacuated(lab)
    await put(lab, ("box.argon_valve", 1), ("argon.setpoint", sccm))
    assert "filled by a trickle" in await until_tripped(lab, 25)
    await stays_whole(lab, 1200)
    assert truth(lab)["inert_sccm"] == 0


@pytest.mark.parametrize("sccm", [10.0, 15.0])
async def test_a_slow_fill_by_argon_behind_a_stuck_gauge_trips_in_time(
    lab: Lab, sccm: float
) -> None:
    await evacuated(lab)
    await put(lab, ("box.argon_valve", 1), ("argon.setpoint", sccm))
    assert "its pressure rising" in await until_tripped(lab, 65)
    await stays_whole(lab, 60)


async def test_the_vent_is_not_shut_on_a_trickle_of_argon(lab: Lab) -> None:
    await purge(lab)
    await put(lab, ("box.nitrogen_bypass_shut", 1), ("argon.setpoint", 5))
    assert "argon.setpoint" in await asked(lab, "box.vent", 0)
