"""The Alicat BASIS 2 driver, its simulator, and the watchdog between them."""

import random
import struct
from types import SimpleNamespace
from typing import Any

import pytest
import simpy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary import DeviceFault, crc16_modbus
from labharness.faces.testing.pairs import exchange, framed, read, write
from labharness.instruments.driver import Identity
from labharness_drivers.alicat_basis2 import AlicatBasis2
from labharness_simulators.alicat_basis2 import Simulator

MS = 1000  # the world's clock counts microseconds


def pair(**changes: object) -> tuple[AlicatBasis2, Simulator, Any, Any]:
    part: Any = SimpleNamespace(
        setpoint_sccm=0.0,
        flow_sccm=4.96,
        full_scale_sccm=100.0,
        gas="H2",
        gas_temperature_c=23.45,
        valve_drive_percent=31.5,
    )
    env: Any = simpy.Environment()
    vars(part).update(changes)
    return AlicatBasis2(gas=6), Simulator(env, part, random.Random(1), gas=6), part, env


def test_a_setpoint_of_500_and_a_watchdog_of_2_s_are_the_worked_frames() -> None:
    driver = AlicatBasis2(full_scale_sccm=500.0, decimals=1)
    assert driver.write("setpoint", 500.0)[0].frame == bytes.fromhex(
        "01 10 08 05 00 02 04 00 07 A1 20 9D D9"
    )
    assert driver.write("watchdog_ms", 2000)[0].frame == bytes.fromhex("01 06 02 02 07 D0 2A 1E")


def test_one_frame_reads_flow_temperature_setpoint_valve_and_status() -> None:
    scan = AlicatBasis2().scans()[0]
    assert scan.request.frame == bytes.fromhex("01 03 08 35 00 07 16 66")
    reply = framed("01 03 0E 00 09 FF 38 01 F4 00 00 00 00 01 F4 0C 4E")
    assert scan.decode(reply) == (1, 0, 0, 1, -2.0, 5.0, 5.0, 31.5)


def test_the_pair_agrees_about_setpoint_and_measurements() -> None:
    driver, face, part, _ = pair()
    write(driver, face, "setpoint", 12.34)
    assert part.setpoint_sccm == 12.34
    found = read(driver, face)
    assert found["setpoint_active"] == 12.34
    assert (found["flow"], found["gas_temperature"], found["valve_drive"]) == (4.96, 23.45, 31.5)
    assert (found["gas"], found["setpoint_source"], found["mass_over_range"]) == (6, 2, 0)


def test_silence_shuts_the_valve_when_the_watchdog_is_armed() -> None:
    driver, face, part, env = pair()
    write(driver, face, "watchdog_ms", 5000)
    write(driver, face, "setpoint", 50.0)
    env.run(until=5000 * MS)
    assert part.setpoint_sccm == 50.0
    env.run(until=5001 * MS)
    assert part.setpoint_sccm == 0.0
    assert read(driver, face)["setpoint_active"] == 0.0


def test_polling_feeds_the_watchdog_and_a_foreign_frame_does_not() -> None:
    driver, face, part, env = pair()
    write(driver, face, "watchdog_ms", 1000)
    write(driver, face, "setpoint", 50.0)
    for second in range(1, 20):
        env.run(until=second * 900 * MS)
        read(driver, face)
    assert part.setpoint_sccm == 50.0
    for tick in range(1, 4):
        env.run(until=(19 * 900 + tick * 400) * MS)
        assert face.receive(AlicatBasis2(unit=2).scans()[0].request.frame) is None
    assert part.setpoint_sccm == 0.0


@pytest.mark.parametrize(("watchdog_ms", "source"), [(0, 2), (5000, 1)])
def test_without_a_time_or_with_another_source_the_watchdog_sleeps(
    watchdog_ms: int, source: int
) -> None:
    driver, face, part, env = pair()
    write(driver, face, "watchdog_ms", watchdog_ms)
    write(driver, face, "setpoint_source", source)
    write(driver, face, "setpoint", 50.0)
    env.run(until=60_000 * MS)
    assert part.setpoint_sccm == 50.0


def test_a_late_frame_finds_the_setpoint_forced_to_zero_even_before_the_watch_runs() -> None:
    driver, face, part, env = pair()
    write(driver, face, "watchdog_ms", 5000)
    write(driver, face, "setpoint", 50.0)
    write(driver, face, "watchdog_ms", 500)
    env.run(until=600 * MS)
    assert read(driver, face)["setpoint_active"] == 0.0
    assert part.setpoint_sccm == 0.0


def test_the_analog_source_ignores_a_digital_setpoint_without_a_word() -> None:
    driver, face, part, _ = pair()
    write(driver, face, "setpoint_source", 0)
    write(driver, face, "setpoint", 50.0)
    assert part.setpoint_sccm == 0.0
    assert read(driver, face)["setpoint_active"] == 0.0


def test_the_instrument_clips_and_still_echoes_what_was_asked() -> None:
    _, face, part, _ = pair()
    asked = framed("01 06 02 02 FF FF")
    assert face.receive(asked) == asked
    assert face.receive(framed("01 03 02 02 00 01")) == framed("01 03 02 13 88")
    face.receive(framed("01 10 08 05 00 02 04 00 07 A1 20"))
    assert part.setpoint_sccm == pytest.approx(102.5)


def test_a_setpoint_takes_effect_with_its_low_word() -> None:
    _, face, part, _ = pair()
    face.receive(framed("01 06 08 06 27 10"))
    assert part.setpoint_sccm == 10.0
    face.receive(framed("01 06 08 05 00 01"))
    assert part.setpoint_sccm == 10.0


def test_undefined_registers_and_functions_are_refused_or_zero() -> None:
    _, face, _, _ = pair()
    assert face.receive(framed("01 03 0F 00 00 01")) == framed("01 83 02")
    assert face.receive(framed("01 04 08 35 00 01")) == framed("01 84 01")
    assert face.receive(framed("01 03 08 38 00 01")) == framed("01 83 02")
    assert face.receive(framed("01 03 02 02 FF FF")) == framed("01 83 03")


def test_another_gas_than_the_lab_file_says_is_a_fault() -> None:
    driver, face, _, _ = pair(gas="Ar")
    scan = driver.scans()[2]
    with pytest.raises(DeviceFault, match=r"1 \(Ar\); the lab file says 6 \(H2\)"):
        scan.decode(exchange(face, scan.request))


def test_it_says_its_firmware_and_serial_number() -> None:
    driver, face, _, _ = pair()
    query = driver.identify()
    identity = query.decode(exchange(face, query.request))
    assert identity == Identity("Alicat BASIS 2", "2.1.3", "SIM000000001")
    assert driver.expects(Identity("Alicat BASIS 2", "2.1.3")) != ""


def test_only_a_stated_watchdog_declares_the_setpoint_safe() -> None:
    assert AlicatBasis2().channels["setpoint"].on_comm_loss == "hold"
    assert AlicatBasis2(watchdog_ms=5000).channels["setpoint"].on_comm_loss == "safe(5)"


STATUS_BITS = ("mass_over_range", "temperature_over_range", "total_over_range", "valve_held")


@pytest.mark.parametrize("bit", range(4))
def test_each_bit_of_the_status_word_is_its_own_channel(bit: int) -> None:
    driver = AlicatBasis2(unit=1)
    scan = driver.scans()[0]
    body = bytes([1, 3, 14]) + struct.pack(">7H", 1 << bit, 0, 0, 0, 0, 0, 0)
    reply = body + crc16_modbus(body).to_bytes(2, "little")
    seen = dict(zip(scan.channels, scan.decode(reply), strict=True))
    assert [name for name in STATUS_BITS if seen[name]] == [STATUS_BITS[bit]]


@settings(deadline=None, max_examples=60)
@given(st.floats(0.0, 100.0))
def test_every_setpoint_is_read_back_within_its_resolution(setpoint_sccm: float) -> None:
    assume(setpoint_sccm == 0 or setpoint_sccm >= 0.001)  # smaller is refused
    driver, face, _, _ = pair()
    write(driver, face, "setpoint", setpoint_sccm)
    resolution = driver.channels["setpoint"].resolution
    assert abs(read(driver, face)["setpoint_active"] - setpoint_sccm) <= resolution
