"""The Honeywell Midas driver and its simulator: read, never written."""

import math
import random
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faced import answer
from labharness.core.vocabulary import BadReply, DeviceFault, Request
from labharness_drivers.honeywell_midas import HoneywellMidas
from labharness_simulators.honeywell_midas import Simulator

TRANSACTION = 0x1234
# 40001 alarm 1 and heartbeat, gas 1, 100.5 ppm low word first, fault m10, ppm, -2 degC
BLOCK = "08 41 07 01 00 00 42 C9 00 65 00 0A 01 00 FF FE 22 38 00 2A 01 F4 00 00"


def reply_of(data: str, function: int = 3) -> bytes:
    body = bytes.fromhex(data)
    head = struct.pack(">HHHBBB", TRANSACTION, 0, 3 + len(body), 1, function, len(body))
    return head + body


def pair(**changes: object) -> tuple[HoneywellMidas, Simulator, Any, Any]:
    part: Any = SimpleNamespace(concentration_ppm=0.0, fault=0, state=1)
    vars(part).update(changes)
    env: Any = SimpleNamespace(now=0)
    return HoneywellMidas(), Simulator(env, part, random.Random(1)), part, env


def exchange(face: Simulator, request: Request) -> bytes:
    frame = TRANSACTION.to_bytes(2, "big") + request.frame[2:]
    reply = answer(face, frame)
    assert request.reply.take(reply, TRANSACTION) == len(reply)
    return reply


def read(driver: HoneywellMidas, face: Simulator) -> dict[str, float]:
    (scan,) = driver.scans()
    return dict(zip(scan.channels, scan.decode(exchange(face, scan.request)), strict=True))


def test_one_frame_reads_the_block_from_40001() -> None:
    (scan,) = HoneywellMidas().scans()
    assert scan.request.frame == bytes.fromhex("00 00 00 00 00 06 01 03 00 00 00 0C")
    values = dict(zip(scan.channels, scan.decode(reply_of(BLOCK)), strict=True))
    assert values["concentration"] == 100.5
    assert (values["state"], values["fault"], values["fault_number"]) == (1, 0, 10)
    assert (values["alarm_1"], values["alarm_2"], values["heartbeat"]) == (1, 0, 1)
    assert (values["temperature"], values["cell_life"], values["flow"]) == (-2, 8760, 500)
    assert values["heartbeat_counter"] == 42


def test_the_pair_agrees_about_gas_and_alarms() -> None:
    driver, face, part, _ = pair()
    assert read(driver, face)["alarm_1"] == 0.0
    part.concentration_ppm = 123.25
    found = read(driver, face)
    assert (found["concentration"], found["alarm_1"], found["alarm_2"]) == (123.25, 1, 0)
    part.concentration_ppm = 250.0
    assert read(driver, face)["alarm_2"] == 1.0
    part.state = 2
    found = read(driver, face)
    assert (found["state"], found["alarm_1"], found["alarm_2"]) == (2, 0, 0)


@pytest.mark.parametrize(("number", "kind"), [(0, 0), (10, 1), (50, 2)])
def test_a_fault_has_a_number_and_a_kind(number: int, kind: int) -> None:
    driver, face, _, _ = pair(fault=number)
    found = read(driver, face)
    assert (found["fault"], found["fault_number"]) == (kind, number)


def test_the_heartbeat_toggles_every_two_seconds() -> None:
    driver, face, _, env = pair()
    heartbeats = []
    for second in range(8):
        env.now = second * 1_000_000
        found = read(driver, face)
        heartbeats.append((found["heartbeat"], found["heartbeat_counter"]))
    assert heartbeats == [(0, 0), (0, 0), (1, 1), (1, 1), (0, 2), (0, 2), (1, 3), (1, 3)]


def test_another_unit_than_ppm_is_a_fault_and_never_a_number() -> None:
    (scan,) = HoneywellMidas().scans()
    in_percent = BLOCK.replace("01 00 FF FE", "04 00 FF FE")
    with pytest.raises(DeviceFault, match="another unit than ppm"):
        scan.decode(reply_of(in_percent))


def test_a_concentration_that_is_no_number_is_a_bad_reply() -> None:
    (scan,) = HoneywellMidas().scans()
    with pytest.raises(BadReply, match="concentration"):
        scan.decode(reply_of(BLOCK.replace("00 00 42 C9", "00 00 7F C0")))


def test_a_late_reply_is_thrown_away_and_a_short_one_is_bad() -> None:
    (scan,) = HoneywellMidas().scans()
    late = reply_of(BLOCK)
    assert scan.request.reply.take(late, TRANSACTION + 1) == -len(late)
    with pytest.raises(BadReply, match="expected one of"):
        scan.request.reply.take(reply_of("00 01"), TRANSACTION)
    empty = reply_of("")
    assert scan.request.reply.take(empty, TRANSACTION) == len(empty)
    with pytest.raises(BadReply, match="9 bytes"):
        scan.decode(empty)


def test_an_exception_is_the_detectors_refusal() -> None:
    (scan,) = HoneywellMidas().scans()
    refusal = struct.pack(">HHHBBB", TRANSACTION, 0, 3, 1, 0x83, 2)
    assert scan.request.reply.take(refusal, TRANSACTION) == len(refusal)
    with pytest.raises(DeviceFault, match="illegal data address"):
        scan.decode(refusal)


def test_nothing_can_be_set() -> None:
    driver, face, _, _ = pair()
    assert not any(channel.settable for channel in driver.channels.values())
    with pytest.raises(ValueError, match="only read"):
        driver.write("concentration", 0.0)
    inhibit = bytes.fromhex("00 01 00 00 00 0B 01 10 00 14 00 02 04 04 5E 36 26")
    assert face.receive(inhibit) == bytes.fromhex("00 01 00 00 00 03 01 90 01")


def test_the_simulator_is_silent_to_another_unit_and_refuses_other_registers() -> None:
    _, face, _, _ = pair()
    assert face.receive(HoneywellMidas(unit=2).scans()[0].request.frame) is None
    beyond = bytes.fromhex("00 01 00 00 00 06 01 03 00 0C 00 08")
    assert face.receive(beyond) == bytes.fromhex("00 01 00 00 00 03 01 83 02")


def test_it_says_its_cartridge() -> None:
    driver, face, _, _ = pair()
    query = driver.identify()
    identity: Any = query.decode(exchange(face, query.request))
    assert identity.details == {"gas_id": "1", "cartridge_id": "7"}
    assert driver.expects(identity) == ""
    bare: Any = query.decode(reply_of("00 01"))
    assert "cartridge" in driver.expects(bare)


@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from([3, 0x83]),
    st.sampled_from([1, 25]),
    st.binary(min_size=25, max_size=25),
    st.booleans(),
)
def test_any_reply_that_passes_its_rule_gives_numbers_or_a_named_error(
    function: int, size: int, data: bytes, in_form: bool
) -> None:
    (scan,) = HoneywellMidas().scans()
    body = data[:size]
    if in_form and size == 25:
        body = b"\x18" + body[1:13] + b"\x01" + body[14:]
    reply = struct.pack(">HHHBB", TRANSACTION, 0, 2 + len(body), 1, function) + body
    assert scan.request.reply.take(reply, TRANSACTION) == len(reply)
    try:
        values = scan.decode(reply)
    except (BadReply, DeviceFault):
        return
    assert all(isinstance(value, float) and math.isfinite(value) for value in values)
    assert len(values) == len(scan.channels)
