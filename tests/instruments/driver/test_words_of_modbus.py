"""Numbers of two words: what is written is what was asked, in the order of words that is stated."""

import math
import re
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.faces.testing.pairs import exchange, read, write
from labharness.instruments.driver.modbus import Holding
from labharness.instruments.simulation import ModbusFace, WireRefusal
from small_modbus import Oven

NAMES = ("high", "low", "long", "long_low")


class Board(ModbusFace):
    """Registers 2160 to 2167, as the oven's manual numbers them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = dict.fromkeys(range(2160, 2168), 0)

    def read_registers(self, function: int, start: int, count: int) -> Sequence[int]:
        if start not in self.words:
            raise WireRefusal(2)
        return [self.words[start + at] for at in range(count)]

    def write_registers(self, function: int, start: int, words: Sequence[int]) -> None:
        for at, word in enumerate(words, start):
            self.words[at] = word


@pytest.mark.promise(42)
@pytest.mark.parametrize(
    ("channel", "value", "data"),
    [
        ("high", 100.5, "42 C9 00 00"),
        ("low", 100.5, "00 00 42 C9"),
        ("high", 1.001, "3F 80 20 C5"),  # HA026230, the IEEE region
        ("long", 100.5, "00 01 88 94"),
        ("long_low", 100.5, "88 94 00 01"),
    ],
)
def test_a_setpoint_of_two_words_goes_out_in_its_order(
    channel: str, value: float, data: str
) -> None:
    (request,) = Oven().write(channel, value)
    assert request.frame[1] == 16
    assert request.frame[7:-2] == bytes.fromhex(data)


@pytest.mark.promise(42)
@given(
    channel=st.sampled_from(NAMES),
    value=st.floats(0.001, 1200.0),
    other=st.floats(0.001, 1200.0),
)
def test_what_was_set_in_two_words_is_read_and_shown_and_nothing_else_is(
    channel: str, value: float, other: float
) -> None:
    oven, board = Oven(), Board()
    write(oven, board, channel, value)
    step = oven.channels[channel].resolution
    found = read(oven, board)[channel]
    assert abs(found - value) <= step
    assert found == oven.sent(channel, value)
    shown = oven.shown(channel, value)
    assert shown is not None
    reply = exchange(board, shown)
    assert re.fullmatch(shown.obeyed, reply, re.DOTALL)
    if oven.sent(channel, other) != found:
        says = oven.shown(channel, other)
        assert says is not None
        assert not re.fullmatch(says.obeyed, reply, re.DOTALL)


def test_the_step_of_a_real_number_is_that_of_its_largest_value() -> None:
    least = struct.unpack(">f", struct.pack(">I", 0x44960001))[0] - 1200.0  # 1200 is 44960000
    assert Oven().channels["high"].resolution == least


@pytest.mark.parametrize(
    ("value", "why"),
    [(1200.1, "allowed 0 to 1200 degC"), (1e-50, "would be written as 0"), (math.nan, "asked nan")],
)
def test_a_real_number_that_does_not_fit_is_refused(value: float, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Oven().write("high", value)


def test_a_real_number_that_is_too_large_and_a_fraction_of_a_whole_one_are_refused() -> None:
    row = Holding(1, size=2, real=True, low_first=False, doc="Control it.")
    with pytest.raises(ValueError, match="too large"):
        row.encode(1e39)
    with pytest.raises(ValueError, match=r"1\.5 does not fit register 7: whole numbers only"):
        Holding(7, doc="Control it.").encode(1.5)


def _wrong(row: object) -> str:
    with pytest.raises(TypeError) as said:
        type("Wrong", (Oven,), {"row": row})
    return str(said.value).partition(": row: ")[2]


def test_a_row_whose_words_nobody_can_tell_is_wrong_when_it_is_made() -> None:
    doc = "Control it."
    sets = (0.0, 1.0)
    order = "a real row takes size=2 and low_first, False (high word first) or True"
    assert _wrong(Holding(1, size=2, real=True, sets=sets, doc=doc)) == order
    assert _wrong(Holding(1, real=True, low_first=True, sets=sets, doc=doc)) == order
    stepped = Holding(1, size=2, real=True, low_first=True, step=0.1, sets=sets, doc=doc)
    assert _wrong(stepped) == "a real row has no step, signed or bit"
    free = Holding(1, size=2, real=True, low_first=True, sets=(-math.inf, math.inf), doc=doc)
    assert _wrong(free).startswith("sets of a real row are two numbers")
    assert _wrong(Holding(1, size=4, sets=sets, doc=doc)) == "size is 1 or 2 words, not 4"
    assert _wrong(Holding(1, bit=3, sets={0: "off", 1: "on"}, doc=doc)) == (
        "a bit of a register cannot be set: its other bits would be written too"
    )
