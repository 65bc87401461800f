"""The Alicat MC driver, its simulator, and the frames captured from a real unit."""

import math
import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faced import answer, exchange
from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.instruments.driver import Identity
from labharness_drivers.alicat_mc import AlicatMc
from labharness_simulators.alicat_mc import Simulator

SETTINGS: dict[str, Any] = {"unit": "A", "gas": "N2", "full_scale_sccm": 500.0}
CAPTURED = b"A +014.62 +021.89 +000.00 +000.00 +078.95     N2\r"  # MC-500SCCM-D, 10v20


def driver(**changes: object) -> AlicatMc:
    return AlicatMc(**(SETTINGS | changes))


def unit(**changes: object) -> tuple[Simulator, Any]:
    part: Any = SimpleNamespace(
        setpoint_sccm=0.0,
        flow_sccm=49.97,
        gas="N2",
        gas_temperature_c=23.0,
        pressure_psia=14.62,
        full_scale_sccm=500.0,
    )
    env: Any = SimpleNamespace(now=0)
    return Simulator(env, part, random.Random(1), **(SETTINGS | changes)), part


def decode(reply: bytes, **changes: object) -> tuple[float, ...]:
    return driver(**changes).scans()[0].decode(reply)


def test_a_captured_frame_decodes_to_its_five_values() -> None:
    scan = driver().scans()[0]
    assert scan.request.frame == b"A\r"
    assert scan.channels[3:5] == ("flow", "setpoint")
    assert scan.decode(CAPTURED) == (14.62, 21.89, 0.0, 0.0, 78.95, 0.0)


def test_a_frame_of_old_firmware_decodes_too() -> None:
    old = b"A +014.52 +021.50 +0000.1 +0000.2 0116.3      N2\r"  # 5v12: unsigned setpoint
    assert decode(old)[3:5] == (0.2, 116.3)


@pytest.mark.parametrize(
    ("tokens", "status"),
    [(b" HLD", 0.0), (b" HLD LCK", 0.0), (b" MOV", 1.0), (b" HLD OVR", 1.0), (b" POV TOV", 1.0)],
)
def test_only_error_tokens_raise_the_status(tokens: bytes, status: float) -> None:
    assert decode(CAPTURED[:-1] + tokens + b"\r")[5] == status


def test_another_gas_than_the_lab_files_is_a_fault_that_names_both() -> None:
    with pytest.raises(DeviceFault, match=r"N2.*Ar"):
        decode(CAPTURED, gas="Ar")


@pytest.mark.parametrize(
    "reply",
    [
        b"B" + CAPTURED[1:],
        CAPTURED.replace(b"+078.95 ", b""),
        CAPTURED.replace(b"+078.95", b"+078.95 +001.00"),
        CAPTURED.replace(b"+078.95", b"nan"),
        CAPTURED.replace(b"+078.95", b"+07 8.95"),
        CAPTURED[1:],
        b"\r",
    ],
)
def test_another_unit_or_a_wrong_column_is_a_bad_reply(reply: bytes) -> None:
    with pytest.raises(BadReply):
        decode(reply)


@pytest.mark.parametrize("reply", [b"?\r", b"A ?\r"])
def test_a_question_mark_is_the_units_refusal(reply: bytes) -> None:
    with pytest.raises(DeviceFault):
        decode(reply)
    with pytest.raises(DeviceFault):
        driver().accept("setpoint", reply)


def test_a_setpoint_reaches_the_flow_controller_and_reads_back() -> None:
    face, part = unit()
    (request,) = driver().write("setpoint", 4.54)
    assert request.frame == b"AS 4.54\r"
    driver().accept("setpoint", exchange(request, face))
    assert part.setpoint_sccm == 4.54
    scan = driver().scans()[0]
    assert scan.decode(exchange(scan.request, face))[3:] == (49.97, 4.54, 0.0)


@given(value=st.floats(0, 500), decimals=st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_every_setpoint_in_range_reads_back_within_the_resolution(
    value: float, decimals: int
) -> None:
    assume(value == 0 or value >= 10.0**-decimals)  # smaller is refused
    face, _ = unit(decimals=decimals)
    the_driver = driver(decimals=decimals)
    exchange(the_driver.write("setpoint", value)[0], face)
    scan = the_driver.scans()[0]
    back = scan.decode(exchange(scan.request, face))[4]
    assert abs(back - value) <= the_driver.channels["setpoint"].resolution


def test_an_analog_setpoint_source_ignores_the_setpoint_and_only_the_read_back_shows_it() -> None:
    face, part = unit()
    face.setpoint_source = "A"
    reply = exchange(driver().write("setpoint", 100.0)[0], face)
    driver().accept("setpoint", reply)
    assert decode(reply)[4] == 0.0
    assert part.setpoint_sccm == 0.0


def test_what_usual_clients_send_first_is_answered_as_a_captured_unit_did() -> None:
    face, _ = unit()
    face.receive(b"AS78.95\r")
    for line, said in [
        (b"AR122", b"A   122 = 37"),
        (b"AFPF 15", b"A 0 1 ---"),  # no barometer
        (b"A$$R122", b"A   122 = 37"),
        (b"AFPF 5", b"A +500.00 12 SCCM"),
        (b"ADCU 5", b"A 12 SCCM"),
        (b"ALS", b"A +078.95 +078.95 12 SCCM"),
        (b"ALS 25", b"A +025.00 +025.00 12 SCCM"),
        (b"ALV", b"A 37"),
        (b"ALSS", b"A S"),
        (b"ADV 2 2 3 4 5 37", b"+014.62 +023.00 +049.89 +049.97 +025.00"),
        (b"ADV 2 99", b"--"),
        (b"AGS 8", b"A 8 N2 Nitrogen"),
        (b"A$$W46=8", b"A   046 = 8"),
        (b"A$$R46", b"A   046 = 8"),
        (b"AVE", b"A   10v20.0-R24 Jan  9 2025,15:04:07"),
    ]:
        assert face.receive(line + b"\r") == said + b"\r", line
    lines = answer(face, b"A??D*\r").decode().split("\r")
    assert lines[0] == (
        "A D00 ID_ NAME______________________ TYPE_______ WIDTH NOTES___________________"
    )
    assert lines[6] == "A D06 037 Mass Flow Setpt            s decimal     7/2 012 02 SCCM"
    assert lines[21:] == ["A D21 702 *Status                    string          3 LCK", ""]
    assert answer(face, b"A??G*\r").decode().split("\r")[:2] == ["A G00      Air", "A G01       Ar"]


@pytest.mark.parametrize(
    "line",
    [
        *(b"ALV 36", b"AW122=36", b"AGS 99", b"ASR 10 4", b"AFPF 2", b"A@ B", b"ALS 501"),
        *(b"ADV", b"ADV 0 2", b"ADV 1", b"A$$w21=100", b"AGM mix 236 50 1 50 8", b"A64001"),
    ],
)
def test_what_is_not_simulated_or_out_of_range_is_a_question_mark(line: bytes) -> None:
    face, part = unit()
    assert face.receive(line + b"\r") == b"?\r"
    assert (part.setpoint_sccm, face.gas) == (0.0, "N2")


@pytest.mark.parametrize("closed", [b"AHC\r", b"AHPC\r", b"A$$HC\r"])
def test_a_held_valve_takes_a_setpoint_and_acts_on_it_when_the_hold_is_cancelled(
    closed: bytes,
) -> None:
    face, part = unit()
    face.receive(b"AS100\r")
    reply = answer(face, closed)
    assert decode(reply)[4:] == (100.0, 0.0)  # a hold is no error
    assert reply.endswith(b" HLD\r")
    assert part.setpoint_sccm == 0.0
    face.receive(b"AS50\r")
    assert part.setpoint_sccm == 0.0
    assert face.receive(b"AC\r") == face.receive(b"A\r")
    assert part.setpoint_sccm == 50.0
    face.receive(b"AHP\r")
    assert part.setpoint_sccm == 49.97  # what flowed


def test_a_locked_display_shows_in_the_frame() -> None:
    face, _ = unit()
    for lock, unlock in ((b"AL\r", b"AU\r"), (b"A$$L\r", b"A$$U\r")):
        locked, free = answer(face, lock), answer(face, unlock)
        assert locked == free.removesuffix(b"\r") + b" LCK\r"


def test_another_gas_that_was_selected_shows_in_the_frame() -> None:
    face, _ = unit()
    assert face.receive(b"AGS 1\r") == b"A 1 Ar Argon\r"
    with pytest.raises(DeviceFault, match=r"gas Ar.*N2"):
        decode(answer(face, b"A\r"))


def test_the_unit_refuses_above_its_own_full_scale_and_keeps_what_it_had() -> None:
    face, part = unit()
    assert face.receive(b"AS 500.01\r") == b"?\r"
    assert face.receive(b"A32000\r") is not None
    assert part.setpoint_sccm == 250.0


def test_another_letter_and_bytes_that_are_no_ascii_meet_silence() -> None:
    face, _ = unit()
    assert face.receive(b"B\r") is None
    assert face.receive(b"A\xff\r") is None
    assert face.receive(b"a\r") == face.receive(b"A\r")


def test_no_read_frame_tares_or_sets() -> None:
    face, part = unit()
    before = face.receive(b"A\r")
    the_driver = driver()
    reads = [scan.request for scan in the_driver.scans()] + [the_driver.identify().request]
    for request in reads:
        exchange(request, face)
    assert face.receive(b"A\r") == before
    assert part.setpoint_sccm == 0.0
    assert face.receive(b"AV\r") != before  # a tare while gas flows: what a poll must never be


def test_it_says_who_it_is_and_another_full_scale_is_noticed() -> None:
    query = driver().identify()
    face, _ = unit()
    identity = query.decode(exchange(query.request, face))
    assert isinstance(identity, Identity)
    assert (identity.model, identity.firmware) == ("MC-500SCCM-D", "10v20.0-R24")
    assert driver().expects(identity) == ""
    assert "500 sccm" in driver(full_scale_sccm=100.0).expects(identity)
    assert driver().expects(Identity("MC-0.5SLPM-D")) == ""
    assert "is not an MC" in driver().expects(Identity("BASIS"))
    with pytest.raises(BadReply):
        query.decode(b"A  M00 ALICAT SCIENTIFIC\r" * 10)


@given(st.binary(max_size=80).map(lambda noise: noise.replace(b"\r", b"") + b"\r"))
@settings(max_examples=100, deadline=None)
def test_noise_is_never_anything_but_a_bad_reply_or_a_fault(noise: bytes) -> None:
    scan = driver().scans()[0]
    assert scan.request.reply.take(noise, 0) == len(noise)
    with pytest.raises((BadReply, DeviceFault)):
        scan.decode(noise)


@given(st.lists(st.sampled_from(["A", "+1.0", "nan", "N2", "MOV", "?", "1e9"]), max_size=9))
@settings(max_examples=100, deadline=None)
def test_columns_in_any_order_give_floats_or_an_error(words: list[str]) -> None:
    try:
        values = decode(" ".join(words).encode() + b"\r")
    except (BadReply, DeviceFault):
        return
    assert all(math.isfinite(value) for value in values)


@pytest.mark.parametrize(
    "bad",
    [
        {"unit": "AB"},
        {"unit": "1"},
        {"gas": "argon gas"},
        {"full_scale_sccm": 0},
        {"full_scale_sccm": math.nan},
        {"decimals": 7},
    ],
)
def test_settings_that_no_unit_has_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(bad)))):
        driver(**bad)
