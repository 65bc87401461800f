"""The Keithley 2400 driver and its simulator on a diode: no reading while the output is off."""

import math
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faced import answer
from hand_clock import Clock
from labharness.core.vocabulary import BadReply, DeviceFault, Nothing, Request, Until
from labharness.faces.testing.conformance import check_driver, check_obedience, check_simulator
from labharness.faces.testing.pairs import exchange, read, write
from labharness.instruments.driver import Identity, Query, Scan
from labharness.instruments.driver.driver import is_written
from labharness.instruments.simulation import LoopEnvironment
from labharness_drivers.keithley_2400 import Keithley2400
from labharness_simulators.keithley_2400 import Simulator
from labharness_simulators.plant.diode import Diode, DiodeBench


def pair(**bench: float) -> tuple[Keithley2400, Simulator, Diode]:
    clock: Any = Clock()
    diode = DiodeBench(None, **bench).diode
    return Keithley2400(), Simulator(LoopEnvironment(clock), diode, random.Random(1)), diode


def scan(name: str) -> Scan:
    return next(each for each in Keithley2400().scans() if each.name == name)


def query(name: str) -> Query:
    return next(each for each in Keithley2400().queries() if each.name == name)


def errors(face: Simulator) -> str:
    return answer(face, b":SYST:ERR?\n").decode().strip()


def test_the_lines_are_the_manuals() -> None:
    driver = Keithley2400()
    assert driver.write("output", 1)[0].frame == b":OUTP 1;:OUTP?\n"
    assert driver.write("voltage", -0.65)[0].frame == b":SOUR:VOLT -0.6500;:SOUR:VOLT?\n"
    assert driver.write("compliance", 1e-3)[0].frame == (
        b":SENS:CURR:PROT 0.001000;:SENS:CURR:PROT?\n"
    )
    assert [each.request.frame for each in driver.scans()] == [
        b":OUTP?\n",
        b":SOUR:VOLT?\n",
        b":SENS:CURR:PROT?\n",
        b":SENS:CURR:PROT:TRIP?\n",
        b":READ?\n",
        b":SOUR:CLE:AUTO?\n",
    ]
    assert [each.name for each in driver.queries()] == ["elements", "function", "error"]


def test_a_reading_gives_voltage_and_current_of_the_manuals_own_string() -> None:
    whole = b"+1.000206E+00,+1.000000E-04,+1.000236E+04,+7.282600E+01,+4.813200E+04\n"
    assert scan("reading").decode(whole) == (1.000206, 1.0e-4)
    assert scan("reading").channels == ("terminal_voltage", "current")


@pytest.mark.parametrize("reading", [b"+9.900000E+37,+1.0E-4\n", b"+1.0E+0,+9.910000E+37\n"])
def test_an_overflow_and_what_is_no_number_are_device_faults(reading: bytes) -> None:
    with pytest.raises(DeviceFault, match="overflow"):
        scan("reading").decode(reading)


def test_a_reading_is_asked_for_while_the_output_is_on_alone() -> None:
    only = scan("reading").only_while
    assert only is not None
    assert (only.channel, only.values) == ("output", (1.0,))
    driver, face, _ = pair()
    assert "current" not in read(driver, face)
    write(driver, face, "output", 1)
    assert "current" in read(driver, face)


def test_a_reading_with_the_output_off_is_met_with_silence_and_an_error() -> None:
    _, face, diode = pair()
    assert face.receive(b":READ?\n") is None
    assert errors(face) == '+803,"Not permitted with OUTPUT off"'
    assert errors(face) == '0,"No error"'
    assert not diode.on


def test_a_diode_conducts_one_way_and_its_compliance_limits_it() -> None:
    driver, face, diode = pair()
    for channel, value in (("compliance", 0.01), ("voltage", 0.6), ("output", 1)):
        write(driver, face, channel, value)
    found = read(driver, face)
    assert found["terminal_voltage"] == 0.6
    assert 1e-4 < found["current"] < 0.01
    assert found["in_compliance"] == 0
    write(driver, face, "voltage", 5.0)
    found = read(driver, face)
    assert (found["current"], found["in_compliance"]) == (0.01, 1)
    assert 0.6 < found["terminal_voltage"] < 0.8
    write(driver, face, "voltage", -5.0)
    assert read(driver, face)["current"] == pytest.approx(-2.52e-9, rel=1e-3)
    write(driver, face, "output", 0)
    assert (diode.current_a, diode.voltage_v) == (0.0, 0.0)


@given(st.floats(-0.5, 0.9))
@settings(deadline=None, max_examples=100)
def test_the_current_solves_shockleys_equation_with_the_series_resistance(voltage_v: float) -> None:
    _, _, diode = pair()
    current_a = diode.current_at(voltage_v)
    thermal_v = 1.752 * 1.380649e-23 * 298.15 / 1.602176634e-19
    junction_v = voltage_v - current_a * 0.568
    expected_a = 2.52e-9 * math.expm1(junction_v / thermal_v)
    assert current_a == pytest.approx(expected_a, rel=1e-6, abs=1e-18)


def test_a_decade_of_current_takes_the_slope_that_the_ideality_says() -> None:
    _, _, diode = pair(series_ohm=1e-6, ideality=1.0)
    step_v = diode.voltage_at(1e-4) - diode.voltage_at(1e-5)
    assert step_v == pytest.approx(0.0592, abs=2e-4)  # kT/q ln 10 at 25 degC


@pytest.mark.parametrize(("fault", "current_a"), [("open_circuit", 0.0), ("shorted", 0.3 / 0.568)])
def test_a_broken_diode_is_open_or_a_resistor(fault: str, current_a: float) -> None:
    _, _, diode = pair()
    setattr(diode.faults, fault, True)
    assert diode.current_at(0.3) == pytest.approx(current_a)


@pytest.mark.parametrize(("channel", "value"), [("voltage", -12.3456), ("compliance", 0.0105)])
def test_each_command_is_answered_with_what_is_set_now(channel: str, value: float) -> None:
    driver, face, _ = pair()
    assert check_obedience(driver, face, channel, value) == ()
    write(driver, face, channel, value)
    assert read(driver, face)[channel] == value
    shown = driver.shown(channel, value)
    assert shown is not None
    assert exchange(face, shown) == f"{value:.6E}\n".encode()


@given(st.floats(-210, 210))
@settings(deadline=None, max_examples=60)
def test_every_voltage_is_shown_as_it_was_set(value: float) -> None:
    assume(value == 0 or abs(value) >= 1e-4)  # smaller is refused
    driver, face, _ = pair()
    face.receive(b":SOUR:VOLT 1\n" if value < 0.5 else b":SOUR:VOLT 0\n")  # a refusal shows this
    assert check_obedience(driver, face, "voltage", value) == ()
    write(driver, face, "voltage", value)
    back = read(driver, face)["voltage"]
    assert abs(back - value) <= driver.channels["voltage"].resolution


@pytest.mark.parametrize(
    ("line", "start"),
    [
        (b"OUTP?\n", b"0"),  # SCPI-1999 6.2.4: a first header needs no colon
        (b":SOUR:FUNC VOLT;:SOUR:FUNC?\n", b"VOLT"),
        (b':SENS:FUNC "CURR";FUNC?\n', b'"CURR:DC"'),
        (b":SENS:CURR:RANG 10E-3;RANG?;RANG:AUTO?\n", b"1.000000E-02;0"),
        (b":SENS:CURR:NPLC 0.1;NPLC?\n", b"1.000000E-01"),
        (b":SOUR:VOLT:RANG 20;RANG?;MODE FIX;MODE?\n", b"2.000000E+01;FIX"),
        (b"SOUR:VOLT 1mV;:SOUR:VOLT?\n", b"1.000000E-03"),
        (b"sens:curr:prot 10 mA;prot?\n", b"1.000000E-02"),
        (b":SOUR:VOLT MAX;VOLT?;VOLT? MIN\n", b"2.100000E+02;-2.100000E+02"),
        (b"*ESR?;*STB?\n", b"0;0"),
        (b":NONE;*ESR?;*STB?;*CLS;*STB?\n", b"32;4;0"),
        (b":OUTP ON;:INIT;:FETC?\n", b"+0.000000E+00"),
        (b":TRIG:COUN 2;:ARM:COUN 1;:FORM:ELEM CURR;:OUTP 1;:READ?\n", b"+0.000000E+00,+0.000"),
        (b":SOUR:FUNC CURR;CURR 1E-3;:SENS:VOLT:PROT 2;:OUTP 1;:SENS:VOLT:PROT:TRIP?\n", b"0"),
    ],
)
def test_it_is_plain_scpi(line: bytes, start: bytes) -> None:
    _, face, _ = pair()
    assert answer(face, line).startswith(start)
    if b":NONE" not in line:
        assert errors(face) == '0,"No error"'


def test_a_source_of_current_holds_it_until_its_voltage_is_reached() -> None:
    _, face, diode = pair()
    face.receive(b":SOUR:FUNC CURR;CURR 1E-3;:SENS:VOLT:PROT 2;:OUTP 1\n")
    assert diode.current_a == 1e-3
    assert diode.voltage_v == pytest.approx(0.58, abs=0.01)
    diode.faults.open_circuit = True
    assert answer(face, b":SENS:VOLT:PROT:TRIP?;:READ?\n").startswith(b"1;+2.0")


def test_a_command_that_had_no_effect_does_not_pass_for_obedience() -> None:
    driver, face, _ = pair()
    (request,) = driver.write("output", 1)
    assert face.refusal(request.frame) == b"0\n"
    assert face.refusal(b":OUTP?\n") is None
    assert not isinstance(request.reply, Nothing)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b":SOUR:LIST:VOLT 1\n", '-113,"Undefined header"'),
        (b":SOUR:VOLT 211\n", '-222,"Parameter data out of range"'),
        (b":SOUR:VOLT ten\n", '-104,"Data type error"'),
        (b":OUTP maybe\n", '-222,"Parameter data out of range"'),
        (b":FORM:ELEM WEATHER\n", '-222,"Parameter data out of range"'),
    ],
)
def test_what_the_instrument_does_not_take_is_in_its_queue(line: bytes, error: str) -> None:
    driver, face, diode = pair()
    assert face.receive(line) is None
    assert (diode.on, diode.source_v) == (False, 0.0)
    assert query("error").decode(exchange(face, query("error").request)) == error
    assert errors(face) == '0,"No error"'
    assert driver.expects(Identity("2400")) == ""


def test_long_and_short_headers_and_case_are_one() -> None:
    _, face, diode = pair()
    assert face.receive(b":source:voltage:level 1.5;:outp:stat on\n") is None
    assert (diode.source_v, diode.on) == (1.5, True)
    assert face.receive(b"*RST;:OUTPut1:STATe?;:SOUR1:VOLT?\n") == b"0;0.000000E+00\n"
    assert face.receive(b":SOURCES:VOLT 1\n") is None
    assert errors(face) == '-113,"Undefined header"'
    assert errors(face) == '0,"No error"'


def test_an_instrument_whose_readings_turn_the_output_on_is_a_fault() -> None:
    driver, face, diode = pair()
    face.receive(b":SOUR:CLE:AUTO ON\n")
    auto = scan("auto_off")
    with pytest.raises(DeviceFault, match="turn the output on"):
        auto.decode(exchange(face, auto.request))
    assert "auto_off" in driver.proves
    assert face.receive(b":READ?\n") is not None
    assert not diode.on


@pytest.mark.parametrize("line", [b":FORM:ELEM CURR,VOLT,TIME\n", b"*RST\n"])
def test_readings_come_with_the_voltage_first(line: bytes) -> None:
    _, face, _ = pair()
    face.receive(line)
    said = query("elements").decode(exchange(face, query("elements").request))
    assert str(said).startswith("VOLT,CURR")


def test_readings_without_a_voltage_are_refused() -> None:
    _, face, _ = pair()
    face.receive(b":FORM:ELEM CURR\n")
    with pytest.raises(DeviceFault, match="VOLT,CURR"):
        query("elements").decode(exchange(face, query("elements").request))
    with pytest.raises(DeviceFault, match="sources a voltage"):
        query("function").decode(b"CURR\n")


@pytest.mark.parametrize(
    "line", [b":MEAS?\n", b":meas:curr?\n", b"*TST?\n", b":OUTP 1\n", b"*RST\n"]
)
def test_what_turns_the_output_on_is_no_read(line: bytes) -> None:
    grammar = Keithley2400().write_grammar
    assert is_written(Request(line, Until(b"\n"), 1.0), grammar)
    assert not is_written(scan("reading").request, grammar)


def test_it_says_who_it_is_and_a_2410_is_noticed() -> None:
    driver, face, _ = pair()
    identity: Any = driver.identify().decode(exchange(face, driver.identify().request))
    assert (identity.model, identity.serial) == ("2400", "1234567")
    assert identity.firmware == "C30   Mar 17 2006 09:29:29/A02  /K/J"
    assert driver.expects(identity) == ""
    assert "2410" in driver.expects(Identity("2410"))
    with pytest.raises(BadReply, match="no model"):
        driver.identify().decode(b"TEKTRONIX,DMM\n")


def test_driver_and_simulator_keep_to_what_is_asked_of_every_kind() -> None:
    driver, face, _ = pair()
    assert check_driver(driver) == ()
    assert check_simulator(driver, face, wait=lambda seconds: None) == ()
