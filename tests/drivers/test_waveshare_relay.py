"""The Waveshare relay driver, its simulator, and the bytes of the maker's wiki."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faced import exchange
from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.faces.testing.pairs import framed
from labharness.instruments.driver import Identity
from labharness_drivers.waveshare_relay import WaveshareRelay
from labharness_simulators.waveshare_relay import Simulator


def pair() -> tuple[WaveshareRelay, Simulator, Any]:
    part: Any = SimpleNamespace(coils=[False] * 8, inputs=(True, False, True, True))
    env: Any = SimpleNamespace(now=0)
    face = Simulator(env, part, random.Random(1), unit=1, relays=["argon"], inputs=[])
    return WaveshareRelay(), face, part


def test_the_frames_are_the_wikis() -> None:
    driver = WaveshareRelay()
    relays, inputs = driver.scans()
    assert driver.write("relay_1", 1)[0].frame == bytes.fromhex("01 05 00 00 FF 00 8C 3A")
    assert relays.request.frame == bytes.fromhex("01 01 00 00 00 08 3D CC")
    assert inputs.request.frame == bytes.fromhex("01 02 00 00 00 08 79 CC")
    assert driver.identify().request.frame == bytes.fromhex("01 03 80 00 00 01 AD CA")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.booleans(), min_size=8, max_size=8))
def test_each_relay_goes_where_it_is_told_and_is_read_back(states: list[bool]) -> None:
    driver, face, part = pair()
    for number, state in enumerate(states, 1):
        (request,) = driver.write(f"relay_{number}", float(state))
        driver.accept(f"relay_{number}", exchange(request, face))
    scan = driver.scans()[0]
    assert part.coils == states
    assert scan.decode(exchange(scan.request, face)) == tuple(map(float, states))


def test_inputs_that_nobody_wired_read_zero() -> None:
    driver, face, _ = pair()
    scan = driver.scans()[1]
    assert scan.decode(exchange(scan.request, face)) == (1, 0, 1, 1, 0, 0, 0, 0)


def test_the_lab_file_names_relays_and_inputs_in_order() -> None:
    driver = WaveshareRelay(relays=["argon", "purge"], inputs=["lid_shut"])
    relays, inputs = driver.scans()
    assert relays.channels == ("argon", "purge")
    assert relays.decode(framed("01 01 01 FE")) == (0, 1)
    assert inputs.decode(framed("01 02 01 01")) == (1,)
    assert driver.write("purge", 1)[0].frame[2:4] == b"\0\1"
    assert driver.channels["argon"].readback == "argon"


def test_a_reply_that_names_another_coil_or_state_is_bad() -> None:
    (request,) = WaveshareRelay().write("relay_1", 1)
    for reply in (framed("01 05 00 01 FF 00"), framed("01 05 00 00 00 00")):
        with pytest.raises(BadReply, match="echoed"):
            request.reply.take(reply, 0)


def test_wrong_address_checksum_or_coil() -> None:
    _, face, part = pair()
    assert face.receive(framed("02 05 00 00 FF 00")) is None
    assert face.receive(bytes.fromhex("01 05 00 00 FF 00 8C 3B")) is None
    assert face.receive(framed("01 05 00 08 FF 00")) == framed("01 85 02")
    assert face.receive(framed("01 05 00 00 00 01")) == framed("01 85 03")
    assert not any(part.coils)
    with pytest.raises(DeviceFault, match="illegal data address"):
        WaveshareRelay().accept("relay_1", framed("01 85 02"))


def test_all_coils_toggle_broadcast_and_block_write_work_as_the_wiki_says() -> None:
    _, face, part = pair()
    assert face.receive(framed("01 05 00 02 55 00")) == framed("01 05 00 02 55 00")
    assert part.coils == [False, False, True] + [False] * 5
    face.receive(framed("01 05 00 FF FF 00"))
    assert all(part.coils)
    assert face.receive(framed("00 05 00 00 00 00")) is None
    assert part.coils == [False] + [True] * 7
    reply = face.receive(bytes.fromhex("01 0F 00 00 00 08 01 05 3E 96"))
    assert reply == framed("01 0F 00 00 00 08")
    assert part.coils == [True, False, True] + [False] * 5


def test_it_says_its_version() -> None:
    driver, face, _ = pair()
    query = driver.identify()
    identity: Any = query.decode(exchange(query.request, face))
    assert identity == Identity("Waveshare Modbus RTU Relay 8", "2.00")
    assert driver.expects(identity) == ""
    assert driver.expects(Identity("Waveshare Modbus RTU Relay 8", "0.00")) != ""


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1), st.binary(max_size=8))
def test_any_reply_that_passes_its_rule_gives_noughts_and_ones(index: int, data: bytes) -> None:
    scan = WaveshareRelay().scans()[index]
    reply = framed((bytes([1, index + 1]) + data).hex())
    try:
        complete = scan.request.reply.take(reply, 0)
    except BadReply:
        return
    if complete:
        assert set(scan.decode(reply)) <= {0.0, 1.0}
