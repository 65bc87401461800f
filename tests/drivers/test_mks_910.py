"""The MKS 910 driver, its simulator, and the 900-series frame between them."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faced import exchange
from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.instruments.driver import Identity, Scan
from labharness_drivers.mks_910 import Mks910
from labharness_simulators.mks_910 import Simulator


def gauge(pressure_torr: float = 1.234e-3, address: int = 253) -> Simulator:
    part: Any = SimpleNamespace(pressure_torr=pressure_torr)
    env: Any = SimpleNamespace(now=0)
    return Simulator(env, part, random.Random(1), address=address)


def scan(name: str) -> Scan:
    return next(each for each in Mks910().scans() if each.name == name)


def test_the_pressure_query_is_the_manuals_and_its_reply_is_read_in_torr() -> None:
    assert scan("pressure").request.frame == b"@253PR4?;FF"
    assert scan("pressure").decode(b"@253ACK1.234E-3;FF") == (1.234e-3,)
    assert exchange(scan("pressure").request, gauge()) == b"@253ACK1.234E-3;FF"
    assert exchange(scan("pressure").request, gauge(760.0)) == b"@253ACK7.600E+2;FF"


@given(st.floats(1e-5, 1500))
@settings(max_examples=50, deadline=None)
def test_every_pressure_in_range_is_read_to_four_digits(pressure_torr: float) -> None:
    reply = exchange(scan("pressure").request, gauge(pressure_torr))
    assert scan("pressure").decode(reply)[0] == pytest.approx(pressure_torr, rel=5.1e-4)


@pytest.mark.parametrize("text", [b"", b"OVER", b"NAN", b"INF", b"1.2E", b"1_0", b" 1.0", b"0x1"])
def test_a_reading_that_is_no_number_is_a_device_fault(text: bytes) -> None:
    with pytest.raises(DeviceFault):
        scan("pressure").decode(b"@253ACK" + text + b";FF")


def test_a_nak_is_complete_in_form_and_a_device_fault() -> None:
    request = scan("pressure").request
    nak = b"@253NAK180;FF"
    assert request.reply.take(nak, 0) == len(nak)
    with pytest.raises(DeviceFault, match=r"NAK180 to PR4\? .*locked"):
        scan("pressure").decode(nak)


@pytest.mark.parametrize(
    "reply", [b"@252ACK1.000E+0;FF", b"?", b"ACK1.000E+0;FF", b"@253" + b"x" * 80]
)
def test_another_address_or_noise_never_becomes_a_reply(reply: bytes) -> None:
    with pytest.raises(BadReply):
        scan("pressure").request.reply.take(reply, 0)


@pytest.mark.parametrize("reply", [b"@254ACK1.0E+2;FF", b"@253ACK1.0E+2;F", b"@253ACK1.0E+2", b""])
def test_what_is_not_whole_or_not_its_own_is_never_decoded(reply: bytes) -> None:
    with pytest.raises(BadReply, match="is not a reply of @253"):
        scan("pressure").decode(reply)


def test_a_reply_without_its_end_is_waited_for() -> None:
    assert scan("pressure").request.reply.take(b"@253ACK1.0", 0) == 0


@pytest.mark.parametrize(("letter", "value"), [("O", 0.0), ("M", 1.0), ("Z", 1.0)])
def test_a_failed_sensor_shows_as_a_fault(letter: str, value: float) -> None:
    face = gauge()
    face.status = letter
    assert scan("status").decode(exchange(scan("status").request, face)) == (value,)


def test_an_unknown_status_letter_is_not_taken_for_ok() -> None:
    with pytest.raises(BadReply):
        scan("status").decode(b"@253ACKX;FF")


def test_a_transducer_that_speaks_millibar_is_a_fault_that_names_both_units() -> None:
    face = gauge()
    assert scan("unit").decode(exchange(scan("unit").request, face)) == (1.0,)
    assert face.receive(b"@253U!MBAR;FF") == b"@253ACKMBAR;FF"
    with pytest.raises(DeviceFault, match=r"MBAR.*Torr"):
        scan("unit").decode(exchange(scan("unit").request, face))


def test_what_usual_clients_send_first_is_answered() -> None:
    face = gauge()
    for query, said in [
        (b"MF?", b"MKS"),
        (b"MD?", b"910"),
        (b"SN?", b"0000001234"),
        (b"DT?", b"DUALTRANS"),
        (b"FV?", b"1.16"),
        (b"HV?", b"A"),
        (b"TIM?", b"8760"),
        (b"TEM?", b"2.50E+1"),
        (b"T?", b"O"),
    ]:
        assert face.receive(b"@253" + query + b";FF") == b"@253ACK" + said + b";FF", query
    for strange in (b"PR5?", b"SP1!1E-2", b"EN1!ON", b"AD!007", b"BR!19200", b"VAC!1E-5", b"UT!ME"):
        assert face.receive(b"@253" + strange + b";FF") == b"@253NAK160;FF", strange


def test_silence_for_other_addresses_and_nak_for_unknown_messages() -> None:
    face = gauge(address=7)
    assert face.receive(b"@253PR4?;FF") is None
    assert face.receive(b"PR4?;FF") is None
    assert face.receive(b"@007XX?;FF") == b"@007NAK160;FF"
    assert face.receive(b"@007PR4;FF") == b"@007NAK160;FF"
    assert face.receive(b"@254MD?;FF") == b"@007ACK910;FF"
    assert face.frame_length(b"@007PR4?;F") == 0
    assert face.frame_length(b"@007PR4?;FF@0") == len(b"@007PR4?;FF")


def test_what_it_clips_stays_within_its_range() -> None:
    assert gauge(1e-9).receive(b"@253PR4?;FF") == b"@253ACK1.000E-5;FF"
    assert gauge(5000.0).receive(b"@253PR4?;FF") == b"@253ACK1.500E+3;FF"


def test_it_says_who_it_is_and_another_model_is_noticed() -> None:
    query = Mks910().identify()
    assert query.request.frame == b"@253MD?;FF"
    identity = query.decode(exchange(query.request, gauge()))
    assert identity == Identity("910")
    assert Mks910().expects(Identity("910")) == ""
    assert "is not an MKS 910" in Mks910().expects(Identity("925"))


def test_nothing_can_be_set_and_every_read_frame_is_a_question() -> None:
    driver = Mks910(address=7)
    for channel in driver.channels:
        with pytest.raises(ValueError, match="cannot be set"):
            driver.write(channel, 1.0)
    frames = [each.request.frame for each in driver.scans()] + [driver.identify().request.frame]
    assert all(frame.startswith(b"@007") and frame.endswith(b"?;FF") for frame in frames)
