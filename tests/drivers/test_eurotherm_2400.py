"""The Eurotherm 2400 driver, its simulator, and the handbook's bytes."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.faces.testing.pairs import exchange, framed, read, write
from labharness_drivers.eurotherm_2400 import Eurotherm2400
from labharness_simulators.eurotherm_2400 import Simulator

FULL_POWER_C_PER_S = 0.9  # 2-inch furnace, 1200 W: about 45 degC/min at the thermocouple
LOSS_PER_S = 2.2e-4


def heater(**changes: object) -> SimpleNamespace:
    start = {"temperature_c": 25.0, "sensor_broken": False, "power_fraction": 0.0}
    return SimpleNamespace(**(start | {"controller": None} | changes))


def pair(**changes: object) -> tuple[Eurotherm2400, Simulator, SimpleNamespace]:
    part = heater(**changes)
    env: Any = SimpleNamespace(now=0)
    return Eurotherm2400(), Simulator(env, part, random.Random(1)), part


def run(part: SimpleNamespace, seconds: int) -> list[float]:
    trace = []
    for _ in range(seconds):
        part.controller(1.0)
        gain = FULL_POWER_C_PER_S * part.power_fraction
        part.temperature_c += gain - LOSS_PER_S * (part.temperature_c - 25.0)
        trace.append(part.temperature_c)
    return trace


def test_a_setpoint_of_800_is_the_handbooks_frame() -> None:
    (request,) = Eurotherm2400().write("setpoint", 800.0)
    assert request.frame == bytes.fromhex("01 06 00 02 1F 40 21 CA")


def test_one_frame_reads_the_whole_process() -> None:
    scan = Eurotherm2400().scans()[1]
    assert scan.request.frame == bytes.fromhex("01 03 00 01 00 05 D4 09")
    reply = framed("01 03 0A 1F 31 1F 40 00 FF FF 9C 1F 40")
    assert scan.request.reply.take(reply, 0) == len(reply)
    assert scan.decode(reply) == (798.5, 800.0, 25.5, -10.0, 800.0)


def test_the_status_word_tells_a_broken_thermocouple_from_a_failed_heater() -> None:
    status = Eurotherm2400().scans()[0]
    assert status.channels == ("alarm_1", "manual", "sensor_break", "loop_break", "heater_fail")
    assert status.decode(framed("01 03 04 00 20 04 20")) == (0, 0, 1, 0, 0)
    assert status.decode(framed("01 03 04 00 81 00 81")) == (1, 0, 0, 0, 1)
    assert status.decode(framed("01 03 04 00 10 00 10")) == (0, 1, 0, 0, 0)


def test_exception_03_is_the_instruments_refusal() -> None:
    driver = Eurotherm2400()
    (request,) = driver.write("setpoint", 800.0)
    refusal = bytes.fromhex("01 86 03 02 61")
    assert request.reply.take(refusal, 0) == len(refusal)
    with pytest.raises(DeviceFault, match="illegal data value"):
        driver.accept("setpoint", refusal)


def test_the_pair_agrees_about_every_settable_channel() -> None:
    driver, face, _ = pair()
    asked = {"mode": 1, "setpoint": 750.0, "setpoint_rate": 15.0, "output": 12.5}
    asked["output_high"] = 80.0
    for channel, value in asked.items():
        write(driver, face, channel, value)
    found = read(driver, face)
    assert {channel: found[channel] for channel in asked} == asked
    assert set(asked) == {name for name, each in driver.channels.items() if each.settable}


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_both_ends_scale_by_the_displays_decimals(decimals: int) -> None:
    driver = Eurotherm2400(unit=3, decimals=decimals)
    env: Any = SimpleNamespace(now=0)
    part = heater(temperature_c=251.0)
    face = Simulator(env, part, random.Random(1), unit=3, decimals=decimals, setpoint_high_c=300)
    write(driver, face, "setpoint", 123.0)
    found = read(driver, face)
    assert (found["temperature"], found["setpoint"]) == (251.0, 123.0)


def test_a_wrong_address_or_checksum_is_met_with_silence() -> None:
    _, face, _ = pair()
    (request,) = Eurotherm2400(unit=2).write("setpoint", 800.0)
    assert face.receive(request.frame) is None
    assert face.receive(bytes.fromhex("01 06 00 02 1F 40 21 CB")) is None


def test_a_reply_from_another_unit_is_bad() -> None:
    scan = Eurotherm2400(unit=2).scans()[3]
    with pytest.raises(BadReply, match="unit 1"):
        scan.request.reply.take(framed("01 03 02 00 00"), 0)


def test_an_output_in_automatic_and_a_setpoint_above_its_limit_are_refused() -> None:
    driver, face, part = pair()
    for channel, value in (("output", 50.0), ("setpoint", 1250.0)):
        with pytest.raises(DeviceFault, match="illegal data value"):
            write(driver, face, channel, value)
    assert part.power_fraction == 0.0
    assert read(driver, face)["setpoint"] == 0.0


def test_a_block_write_stops_at_a_read_only_register_and_keeps_what_came_before() -> None:
    driver, face, _ = pair()
    reply = face.receive(framed("01 10 00 02 00 03 06 03 E8 00 00 00 00"))
    assert reply == framed("01 90 03")  # register 3 is read-only in automatic
    assert read(driver, face)["setpoint"] == 100.0


def test_a_read_only_or_unconfigured_register_is_data_error_for_a_single_write() -> None:
    _, face, _ = pair()
    assert face.receive(framed("01 06 00 01 00 00")) == framed("01 86 03")
    assert face.receive(framed("01 06 03 E7 00 00")) == framed("01 86 03")
    assert face.receive(framed("01 10 03 E7 00 01 02 00 00")) == framed("01 10 03 E7 00 01")
    assert face.receive(framed("01 03 7F FF 00 01")) == framed("01 83 02")


def test_fast_status_answers_in_one_byte() -> None:
    _, face, part = pair()
    assert face.receive(framed("01 07")) == framed("01 07 00")
    part.sensor_broken = True  # reads over range, which is above alarm 1 as well
    assert face.receive(framed("01 07")) == framed("01 07 21")


def test_it_says_which_controller_it_is() -> None:
    driver, face, _ = pair()
    query = driver.identify()
    identity = query.decode(exchange(face, query.request))
    assert str(identity).startswith("Identity(model='Eurotherm 2408', firmware='3.04'")
    assert driver.expects(identity) == ""  # type: ignore[arg-type]  # an Identity


def test_a_2200_is_not_taken_for_a_2400() -> None:
    driver = Eurotherm2400()
    reply = framed("01 03 20" + " 00 00" * 15 + " 22 80")
    identity: Any = driver.identify().decode(reply)
    assert "2280h" in driver.expects(identity)


def test_a_step_to_750_settles_with_little_overshoot() -> None:
    driver, face, part = pair()
    write(driver, face, "setpoint", 750.0)
    trace = run(part, 3600)
    assert max(trace) < 753.0
    assert abs(trace[-1] - 750.0) < 1.0


def test_with_a_rate_the_working_setpoint_ramps_from_the_process_value() -> None:
    driver, face, part = pair(temperature_c=100.0)
    write(driver, face, "setpoint_rate", 15.0)
    write(driver, face, "setpoint", 400.0)
    run(part, 600)
    found = read(driver, face)
    assert found["working_setpoint"] == pytest.approx(250.0, abs=0.1)
    assert found["temperature"] == pytest.approx(250.0, abs=5.0)


def test_manual_mode_holds_the_output_and_takes_over_without_a_jump() -> None:
    driver, face, part = pair()
    write(driver, face, "setpoint", 750.0)
    run(part, 5)
    write(driver, face, "mode", 1)
    assert read(driver, face)["output"] == 100.0
    write(driver, face, "output", 0.0)
    assert part.power_fraction == 0.0
    write(driver, face, "output", 30.0)
    write(driver, face, "output_high", 20.0)
    assert part.power_fraction == 0.2
    assert read(driver, face)["working_output"] == 20.0


def test_a_broken_thermocouple_reads_over_range_and_stops_the_heat() -> None:
    driver, face, part = pair()
    write(driver, face, "setpoint", 750.0)
    run(part, 5)
    assert part.power_fraction == 1.0
    part.sensor_broken = True
    run(part, 1)
    found = read(driver, face)
    assert (found["sensor_break"], found["temperature"]) == (1.0, 1400.0)
    assert part.power_fraction == 0.0


@settings(deadline=None, max_examples=60)
@given(st.floats(0.0, 1200.0))
def test_every_setpoint_is_read_back_within_its_resolution(setpoint_c: float) -> None:
    assume(setpoint_c == 0 or setpoint_c >= 0.1)  # smaller is refused
    driver, face, _ = pair()
    write(driver, face, "setpoint", setpoint_c)
    resolution = driver.channels["setpoint"].resolution
    assert abs(read(driver, face)["setpoint"] - setpoint_c) <= resolution
