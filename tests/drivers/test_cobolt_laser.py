"""The Cobolt laser driver and its simulator: light on, light off, how much."""

import math
import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faced import exchange
from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.instruments.driver import Identity, Scan
from labharness_drivers.cobolt_laser import CoboltLaser
from labharness_simulators.cobolt_laser import Simulator


class Beam:
    """A laser whose enclosure may be open."""

    def __init__(self) -> None:
        self.on, self.power_w, self.hours, self.shut = False, 0.0, 12.5, True

    @property
    def output_w(self) -> float:
        return self.power_w if self.on and self.shut else 0.0

    @property
    def interlock_open(self) -> bool:
        return not self.shut


def laser() -> tuple[Simulator, Beam]:
    part = Beam()
    env: Any = SimpleNamespace(now=0)
    the_part: Any = part
    return Simulator(env, the_part, random.Random(1), max_power_w=0.1), part


def scan(name: str) -> Scan:
    return next(each for each in CoboltLaser().scans() if each.name == name)


def read(name: str, face: Simulator) -> float:
    return scan(name).decode(exchange(scan(name).request, face))[0]


def command(channel: str, value: float, face: Simulator) -> None:
    driver = CoboltLaser()
    for request in driver.write(channel, value):
        driver.accept(channel, exchange(request, face))


def test_the_frames_are_the_ones_that_the_published_driver_sends() -> None:
    driver = CoboltLaser()
    assert driver.write("emission", 1)[0].frame == b"l1\r"
    assert driver.write("emission", 0)[0].frame == b"l0\r"
    assert driver.write("power", 0.0003)[0].frame == b"@cobasp 0.000300\r"
    assert [each.request.frame for each in driver.scans()] == [
        b"l?\r",
        b"pa?\r",
        b"p?\r",
        b"f?\r",
        b"ilk?\r",
        b"hrs?\r",
    ]


def test_a_third_of_a_milliwatt_comes_out_of_the_laser_and_reads_back() -> None:
    face, part = laser()
    command("power", 0.0003, face)
    assert read("output_power", face) == 0.0
    command("emission", 1, face)
    assert part.output_w == 0.0003
    assert read("emission", face) == 1.0
    assert read("output_power", face) == read("power", face) == 0.0003
    command("emission", 0, face)
    assert (read("emission", face), part.output_w) == (0.0, 0.0)


@given(st.floats(0, 0.1))
@settings(max_examples=50, deadline=None)
def test_every_power_in_range_reads_back_within_the_resolution(power_w: float) -> None:
    assume(power_w == 0 or power_w >= 1e-6)  # smaller is refused
    face, _ = laser()
    command("power", power_w, face)
    assert abs(read("power", face) - power_w) <= CoboltLaser().channels["power"].resolution


def test_an_open_enclosure_keeps_the_beam_dark_and_shows_as_interlock_and_fault() -> None:
    face, part = laser()
    part.shut = False
    command("power", 0.001, face)
    command("emission", 1, face)
    assert read("output_power", face) == 0.0
    assert (read("interlock", face), read("fault", face)) == (1.0, 3.0)
    part.shut = True
    assert (read("interlock", face), read("fault", face)) == (0.0, 0.0)


def test_an_idle_laser_tells_its_open_interlock_too() -> None:
    face, part = laser()
    part.shut = False
    assert (read("interlock", face), read("fault", face)) == (1.0, 0.0)


def test_the_drive_current_of_a_lit_laser_is_not_taken_for_its_interlock() -> None:
    face, _ = laser()
    assert face.receive(b"i?\r") == b"0.000\r\n"
    command("power", 0.05, face)
    command("emission", 1, face)
    assert face.receive(b"i?\r") == b"1.500\r\n"
    assert read("interlock", face) == 0.0
    with pytest.raises(BadReply, match="is not a whole number of 0 to 1"):
        scan("interlock").decode(b"1.823\r\n")


def test_what_usual_clients_send_first_is_answered() -> None:
    face, part = laser()
    for line, said in [
        (b"gsn?", b"12345"),
        (b"glm?", b"0532-04-01-0100-700"),
        (b"gfv?", b"9.001"),
        (b"gom?", b"0"),
        (b"@cobas?", b"0"),
        (b"@cobas 1", b"OK"),
        (b"@cobas?", b"1"),
        (b"@cobasdr 1", b"OK"),
        (b"@cobasdr?", b"1"),
        (b"@cobasks?", b"1"),
        (b"cp", b"OK"),
        (b"gmlp?", b"100.0"),
        (b"@cob1", b"OK"),
        (b"l?", b"1"),
        (b"gom?", b"4"),
        (b"@cob0", b"OK"),
        (b"l?", b"0"),
        (b"ci", b"Syntax error: illegal command"),
        (b"slc 100", b"Syntax error: illegal command"),
    ]:
        assert face.receive(line + b"\r") == said + b"\r\n", line
    assert not part.on


def test_a_syntax_error_is_a_device_fault_for_reads_and_writes_alike() -> None:
    face, part = laser()
    reply = face.receive(b"@cobasp 0.5\r")
    assert reply == b"Syntax error: illegal command\r\n"
    assert part.power_w == 0.0
    with pytest.raises(DeviceFault):
        CoboltLaser().accept("power", reply)
    with pytest.raises(DeviceFault):
        scan("power").decode(reply)
    with pytest.raises(DeviceFault):
        CoboltLaser().identify().decode(reply)


@pytest.mark.parametrize("reply", [b"0.1\r\n", b"\r\n", b"ok\r\n", b"OKOK\r\n"])
def test_a_write_is_accepted_by_ok_alone(reply: bytes) -> None:
    with pytest.raises(BadReply):
        CoboltLaser().accept("emission", reply)


@pytest.mark.parametrize("reply", [b"OK\r\n", b"0.5\r\n", b"-1\r\n", b"nan\r\n", b"1 1\r\n"])
def test_emission_is_a_whole_number_or_nothing(reply: bytes) -> None:
    with pytest.raises(BadReply):
        scan("emission").decode(reply)


def test_a_reply_without_its_line_feed_is_waited_for() -> None:
    assert scan("power").request.reply.take(b"0.0500\r", 0) == 0


def test_reading_changes_nothing() -> None:
    face, part = laser()
    command("power", 0.002, face)
    for each in CoboltLaser().scans():
        exchange(each.request, face)
    assert (part.on, part.power_w) == (False, 0.002)


def test_it_says_its_serial_number() -> None:
    face, _ = laser()
    query = CoboltLaser().identify()
    identity = query.decode(exchange(query.request, face))
    assert isinstance(identity, Identity)
    assert identity.serial == "12345"
    assert CoboltLaser().expects(identity) == ""
    assert CoboltLaser().expects(Identity("Cobolt")) != ""


@pytest.mark.parametrize("max_power_w", [0, -1, 11, math.nan])
def test_a_highest_power_that_no_laser_has_is_refused(max_power_w: float) -> None:
    with pytest.raises(ValueError, match="max_power_w"):
        CoboltLaser(max_power_w=max_power_w)
