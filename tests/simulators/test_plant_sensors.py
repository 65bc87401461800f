"""Sensors that lie, contacts that stick, wires that disturb: each fault is what it is called."""

import asyncio
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from labharness.core.clock import VirtualLoop, run
from labharness.instruments.simulation import LineFace, LoopEnvironment, SimulatedBus
from labharness_simulators.plant import CvdTube, SensorFault, SensorFaultKind

HEATER, MINUTES = "furnace", 60


def lie(kind: str, amount: float = 0.0) -> SensorFault:
    return SensorFault(SensorFaultKind(kind), amount, random.Random(1))


def said(fault: SensorFault, values: list[float]) -> list[float]:
    """What it says of a value a second."""
    heard = []
    for second, value in enumerate(values):
        fault.now_s = float(second)
        heard.append(fault.heard(value))
    return heard


RISING = [10.0 * second for second in range(20)]


def test_a_sensor_that_is_off_gives_no_signal() -> None:
    assert all(math.isnan(value) for value in said(lie("off"), RISING))


def test_a_stuck_sensor_says_for_ever_what_it_said_first() -> None:
    assert said(lie("stuck"), RISING) == [0.0] * 20


def test_garbage_has_nothing_to_do_with_the_truth_and_stays_in_its_range() -> None:
    heard = said(lie("garbage", 500.0), RISING)
    assert len(set(heard)) == 20
    assert all(0 <= value <= 500 for value in heard)


def test_a_wrong_sensor_is_wrong_by_its_factor() -> None:
    assert said(lie("wrong", 0.5), RISING) == [value / 2 for value in RISING]


def test_a_slow_sensor_comes_after_with_its_time_constant() -> None:
    heard = said(lie("slow", 5.0), [0.0] + [100.0] * 30)
    assert heard[6] == pytest.approx(100 * (1 - math.exp(-6 / 5)), abs=1e-6)
    assert heard[-1] == pytest.approx(100, abs=1)


def test_a_delayed_sensor_says_what_was_so_that_long_ago() -> None:
    assert said(lie("delayed", 5.0), RISING)[5:] == RISING[:15]


def test_an_intermittent_sensor_is_away_for_its_share_of_the_time() -> None:
    heard = said(lie("intermittent", 0.5), [1.0] * 400)
    away = sum(math.isnan(value) for value in heard)
    assert 150 < away < 250
    assert {value for value in heard if value == value} == {1.0}


def test_an_open_thermocouple_breaks_its_controllers_sensor_and_a_dead_flow_reads_zero() -> None:
    plant: Any = CvdTube(None)
    plant.parts["relays"].coils[0] = True
    plant.parts["argon"].setpoint_sccm = 100.0
    plant.step(10.0)
    assert plant.parts["argon"].flow_sccm == pytest.approx(100, abs=1)
    for sensor in ("furnace", "argon", "gauge", "h2_detector"):
        plant.faults.lie(sensor, "off", 0.0, random.Random(1))
    assert plant.parts["furnace"].sensor_broken
    assert not plant.parts["sulfur"].sensor_broken
    assert plant.parts["argon"].flow_sccm == 0.0
    assert plant.parts["argon"].true_sccm > 99
    assert plant.parts["gauge"].pressure_torr == 0.0
    assert plant.parts["h2_detector"].concentration_ppm == 0.0


def test_a_contact_that_sticks_stays_as_it_was_whatever_its_coil_does() -> None:
    plant: Any = CvdTube(None)
    furnace, relays = plant.parts["furnace"], plant.parts["relays"]
    relays.coils[6] = True
    relays.stick(6)
    relays.coils[6] = False
    furnace.power_fraction = 1.0
    plant.step(MINUTES)
    assert plant.truth()["furnace_heating"]
    assert plant.truth()["furnace_heater_c"] > 50
    plant.faults.stuck.clear()
    assert not plant.truth()["furnace_heating"]


def test_a_flow_that_drifts_is_measured_as_it_was() -> None:
    plant: Any = CvdTube(None)
    plant.parts["relays"].coils[0] = True
    plant.parts["argon"].setpoint_sccm = 100.0
    plant.parts["argon"].drift = 1.3
    plant.step(10.0)
    assert plant.parts["argon"].flow_sccm == pytest.approx(100, abs=1)
    assert plant.truth()["argon_sccm"] == pytest.approx(130, abs=1)


def test_a_power_dip_drops_every_coil_and_the_laser() -> None:
    plant: Any = CvdTube(None)
    plant.parts["relays"].coils[:] = [True] * 8
    plant.parts["laser"].on = True
    plant.lose_power()
    assert plant.parts["relays"].coils == [False] * 8
    assert not plant.parts["laser"].on


class Echo(LineFace):
    """Answers each line with itself."""

    def answer(self, line: str) -> str:
        return line + "\r"


def exchanged(disturb: Callable[[SimulatedBus], None], lines: int = 50) -> list[bytes]:
    """What arrives of so many lines, one a second."""
    loop = VirtualLoop()
    arrived: list[bytes] = []

    async def main() -> None:
        env = LoopEnvironment(loop)
        bus = SimulatedBus(env, [Echo()], baud=9600, chance=random.Random(3))
        disturb(bus)
        for number in range(lines):
            bus.transmit(f"{number:02}\r".encode(), arrived.append)
            await asyncio.sleep(1.0)
        await asyncio.sleep(5.0)

    run(main(), loop)
    return [each.removesuffix(b"\r") for each in arrived]


ASKED = [f"{number:02}".encode() for number in range(50)]


def share(name: str, value: float, late_s_max: float = 0.3) -> Callable[[SimulatedBus], None]:
    def disturb(bus: SimulatedBus) -> None:
        setattr(bus.faults, name, value)
        bus.faults.late_s_max = late_s_max

    return disturb


def test_a_whole_bus_delivers_each_reply_once_and_in_order() -> None:
    assert exchanged(lambda bus: None) == ASKED


def test_a_lossy_bus_loses_frames_both_ways() -> None:
    arrived = exchanged(share("lost_share", 0.5))
    assert arrived == sorted(arrived)
    assert 5 < len(arrived) < 22  # a quarter survives both ways


def test_a_doubled_reply_arrives_twice() -> None:
    arrived = exchanged(share("doubled_share", 1.0))
    assert sorted(arrived) == sorted(ASKED * 2)


def test_a_foreign_reply_is_the_one_before_and_comes_first() -> None:
    arrived = exchanged(share("foreign_share", 1.0))
    assert arrived[:5] == [b"00", b"00", b"01", b"01", b"02"]


def test_a_reordered_reply_comes_after_the_next_one() -> None:
    arrived = exchanged(share("reordered_share", 0.5))
    assert sorted(arrived) == sorted(set(arrived))
    assert arrived != sorted(arrived)


def test_a_late_reply_comes_after_it_was_given_up() -> None:
    late = exchanged(share("late_share", 1.0, late_s_max=3.0))
    assert sorted(late) == ASKED
    assert late != ASKED


def test_a_garbled_reply_is_noise() -> None:
    assert not set(exchanged(share("garbled_share", 1.0))) & set(ASKED)
