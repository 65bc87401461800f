"""Lines and messages for drivers: how a number is written, and read, and by how many ways."""

import json
import re

import pytest

from labharness.core.vocabulary import BadReply, DeviceFault, Nothing, Protocol, Request, Until
from labharness.instruments.driver import Driver
from labharness.instruments.driver.ascii_table import decimal, number
from labharness.instruments.driver.driver import shown, unproven_read
from labharness.instruments.driver.messages import ID_DIGITS, message_request, results
from labharness.instruments.driver.modbus import EXCEPTIONS


@pytest.mark.parametrize(
    ("value", "decimals", "are", "are_not"),
    [
        (1.5, 1, ["1.5", "+1.5", "01.50", "1.500"], ["-1.5", "1.51", "1.", "11.5", "1.6"]),
        (-1.5, 1, ["-1.5", "-01.50"], ["1.5", "+1.5", "--1.5"]),
        (0.0, 1, ["0.0", "-0.0", "+0.00", "00.0"], ["0", "0.1", ""]),
        (-0.04, 1, ["-0.0", "0.0", "+0.0"], ["-0.1"]),
        (0.04, 1, ["0.0", "-0.0"], ["0.1"]),
        (-0.06, 1, ["-0.1"], ["0.1", "+0.1"]),
        (7.0, 0, ["7", "+7", "07", "7.", "7.00"], ["7.1", "-7", "70"]),
        (-7.0, 0, ["-7", "-7.0"], ["7", "+7"]),
    ],
)
def test_a_number_is_the_same_however_an_instrument_writes_it(
    value: float, decimals: int, are: list[str], are_not: list[str]
) -> None:
    form = decimal(value, decimals)
    assert [text for text in are if not re.fullmatch(form, text.encode())] == []
    assert [text for text in are_not if re.fullmatch(form, text.encode())] == []


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1.0), ("-1.5", -1.5), ("+.5", 0.5), ("2.", 2.0), ("1e3", 1000.0)]
)
def test_a_plain_number_is_read(text: str, value: float) -> None:
    assert number(text, "flow") == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e999", "-1e999", "1_0", " 1", "1 ", "0x1"])
def test_what_is_no_finite_number_is_a_bad_reply(text: str) -> None:
    with pytest.raises(BadReply, match=r"^flow: "):
        number(text, "flow")


def test_a_message_leaves_a_place_for_its_id() -> None:
    request = message_request("mono_move", {"index": 0})
    body = json.loads(request.frame)
    assert body == {"id": 1_000_000_000, "command": "mono_move", "parameters": {"index": 0}}
    blank = request.transaction
    assert blank is not None
    assert request.frame[blank.offset : blank.offset + blank.size] == b"1000000000"
    assert (blank.size, blank.ascii, request.timeout_s) == (ID_DIGITS, True, 2.0)
    assert re.fullmatch(request.obeyed, b'{"errors": [], "results": {}}')
    assert not re.fullmatch(request.obeyed, b'{"errors": ["E;1;no"], "results": {}}')


def test_a_reply_holds_results_or_the_errors_of_the_instrument() -> None:
    read = results("mono_move")
    assert read(b'{"errors": [], "results": {"a": 1}}') == {"a": 1}
    for errors, says in (('["one", "two"]', "one; two"), ('"one"', "one")):
        with pytest.raises(DeviceFault, match=f"mono_move: the instrument answered {says}$"):
            read(f'{{"errors": {errors}, "results": {{}}}}'.encode())
    for body in (b"{}", b'{"results": []}', b'{"results": null}'):
        with pytest.raises(BadReply, match=r"^mono_move: the reply has no results$"):
            read(body)


def test_what_holds_for_any_driver_and_any_modbus() -> None:
    assert Driver.baud == 9600
    assert EXCEPTIONS == {
        1: "illegal function",
        2: "illegal data address",
        3: "illegal data value",
        4: "device failure",
        5: "acknowledge",
        6: "device busy",
    }


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (b"gt?\r\n", repr("gt?\r\n")),
        (b"x" * 61, repr("x" * 60)),
        (b"\x01\x03", "01 03"),
        ("µ".encode("latin-1"), "b5"),
        (b"\x00" * 61, " ".join(["00"] * 60)),
    ],
)
def test_a_frame_is_shown_as_text_where_it_is_text(frame: bytes, text: str) -> None:
    assert shown(Request(frame, Nothing(), 0.1)) == text


def test_a_frame_that_writes_is_no_read_whoever_says_so() -> None:
    coil = Request(bytes.fromhex("01050006ff006c3b"), Nothing(), 0.1)
    assert "write single coil" in unproven_read(coil, Protocol.MODBUS_RTU, ())
    assert unproven_read(Request(b"gt?\r", Until(b"\r"), 0.3), Protocol.TEXT, ()) == ""
