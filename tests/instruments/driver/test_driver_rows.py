"""A driver's table: what follows from its rows, and what is said of rows that are wrong."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from faced import rtu
from labharness.core.vocabulary import BadReply, DeviceFault, Nothing
from labharness.instruments.driver import (
    Ascii,
    AsciiDriver,
    Identity,
    Several,
    Wants,
    While,
    Who,
    among,
    number,
    of,
    scientific,
    text,
    whole,
    within,
)
from labharness.instruments.driver.messages import VALUE, Call, Json, JsonDriver
from labharness.instruments.driver.modbus import Coil, Holding, Input, ModbusDriver, ReadBlock

WARM = While("heat", (1.0,), "it is cold")
WHO = Who("*IDN?", model="(.*)")
MEASURED: dict[str, Any] = {"doc": "Measure it.", "source": "page 1"}
SET: dict[str, Any] = {"doc": "Control it.", "source": "page 1"}


class Oven(AsciiDriver):
    """An oven that a test makes, whose door says nothing."""

    who = WHO
    wants = Wants("model", "^oven", "{!r} is no oven")
    head = "#{number} "
    document = "the oven's manual, {query}"
    off = ()

    heat = Ascii("H?", sends="H{}", sets=(0.0, of("most_w")), decimals=1, unit="W", doc=SET["doc"])
    both = Several("T?", "([^ ]*) ([^ ]*)", every_s=5.0, only_while=WARM)
    inside = Ascii(both, **MEASURED)
    outside = Ascii(both, **MEASURED)
    spare = Ascii("S?", **MEASURED, fitted=of("has_spare"))
    name = Ascii("N?", reads=text, is_query=True, **MEASURED)
    profile = Ascii("P?", reads=lambda said, what: said.split(","), is_query=True, **MEASURED)

    def __init__(self, *, most_w: float = 10.0, has_spare: bool = False) -> None:
        self.most_w, self.has_spare, self.number = most_w, has_spare, 7
        super().__init__()


class Door(AsciiDriver):
    """A door that obeys and never answers."""

    who = WHO
    done = None
    off = ()

    shut = Ascii("", sends="D{}", sets={0: "open", 1: "shut"}, **SET)


def test_frames_scans_and_channels_follow_from_the_rows() -> None:
    oven = Oven(most_w=5.0)
    assert {each.name: (each.request.frame, each.period_s) for each in oven.scans()} == {
        "heat": (b"#7 H?\r", 1.0),
        "both": (b"#7 T?\r", 5.0),
    }
    heat = oven.channels["heat"]
    assert (heat.settable, heat.readback, heat.resolution) == (True, "heat", 0.1)
    assert heat.source == "the oven's manual, H?"
    assert oven.write("heat", 4.96)[0].frame == b"#7 H5.0\r"
    with pytest.raises(ValueError, match="heat: asked 6 W, allowed 0 to 5 W"):
        oven.write("heat", 6)
    both = oven.scans()[1]
    assert both.only_while == WARM
    assert (both.channels, both.decode(b"20 4.5\r")) == (("inside", "outside"), (20.0, 4.5))
    with pytest.raises(BadReply, match=r"both: .* is not in form"):
        both.decode(b"20\r")


def test_a_row_that_is_not_fitted_is_no_channel() -> None:
    assert "spare" not in Oven().channels
    assert [each.name for each in Oven(has_spare=True).scans()] == ["heat", "both", "spare"]


def test_a_text_and_an_array_are_asked_for_on_demand() -> None:
    name, profile = Oven().queries()
    assert (name.request.frame, name.decode(b"Anna\r")) == (b"#7 N?\r", "Anna")
    assert profile.decode(b"1,2,3\r") == ["1", "2", "3"]
    assert not {"name", "profile"} & set(Oven().channels)


def test_an_identity_is_held_against_what_is_wanted() -> None:
    oven = Oven()
    found: list[Any] = [oven.identify().decode(each) for each in (b"oven 3\r", b"lamp\r")]
    assert [oven.expects(each) for each in found] == ["", "'lamp' is no oven"]


def test_what_never_answers_is_written_without_a_reply() -> None:
    (request,) = Door().write("shut", 1)
    assert (request.frame, request.reply, request.obeyed) == (b"D1\r", Nothing(), b"")
    assert Door().shown("shut", 1) is None
    assert Door().channels["shut"].readback is None


@pytest.mark.promise(54)
def test_all_wrong_rows_are_named_at_once_when_the_class_is_made() -> None:
    with pytest.raises(TypeError) as said:

        class Wrong(AsciiDriver):
            who = WHO
            one = Ascii("A?", doc="It is measured.", source="page 1")
            two = Ascii("B?", doc="Measure it.")
            three = Ascii("C?", **MEASURED, readback="one")
            four = Ascii("D?", **SET, sets=(0.0, 1.0))
            five = Ascii("", **MEASURED)
            six = Ascii("E?", **SET, sends="E{}", sets=(0.0, of("no_such")))
            seven = Ascii("F?", **MEASURED, on_comm_loss="never mind")
            scans = Ascii("G?", **MEASURED)  # type: ignore[assignment]  # it is wrong
            pair = Several("H?", "(.) (.)")
            eight = Ascii(pair, **MEASURED)

    assert str(said.value).split("; ") == [
        "rows of Wrong are wrong: one: its doc is not a sentence that starts with Measure: "
        "'It is measured.'",
        "two: it does not say in which document it stands",
        "three: it has a read-back, and sets does not say what it may be set to",
        "four: a row that can be set sends its number in one place, not ''",
        "five: it can be neither read nor set",
        "six: sets is of 'no_such', which the driver does not have",
        "seven: on_comm_loss is hold, unknown or safe(<seconds>), not 'never mind'",
        "scans: every driver has something else of this name",
        "pair: its pattern has 2 groups for eight",
    ]


@pytest.mark.promise(54)
def test_a_register_in_two_blocks_or_across_the_end_of_one_is_wrong() -> None:
    with pytest.raises(TypeError) as said:

        class Wrong(ModbusDriver):
            document = "map, {address}"
            who = ReadBlock("identity", 0, 1)
            blocks = (ReadBlock("low", 0, 4), ReadBlock("high", 3, 4))
            twice = Holding(3, doc="Measure it.")
            across = Holding(6, size=2, doc="Measure it.")
            alone = Holding(9, doc="Measure it.")
            coil = Coil(3, doc="Measure it.")

    assert str(said.value) == (
        "rows of Wrong are wrong: twice: it has to stand in one block, not in parts of low and "
        "high; across: it has to stand in one block, not in parts of high; known: the driver does "
        "not define it: Return the identity in the registers of ``who``."
    )


def test_a_driver_that_does_not_say_how_its_identity_reads_is_wrong_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="Deaf are wrong: known: the driver does not define it"):

        class Deaf(JsonDriver):
            who = "info"
            time = Json("getTime", "time", **MEASURED)


class Board(ModbusDriver):
    """A board that a test makes."""

    document = "map, {address}"
    who = ReadBlock("identity", 100, 1)
    blocks = (ReadBlock("words", 0, 4),)
    off = ()

    checked = Holding(0, must=5.0, otherwise=", not five", hidden=True, doc="Measure it.")
    real = Holding(1, size=2, real=True, low_first=True, doc="Measure it.")
    part = Holding(3, bit=4, bits=2, doc="Measure it.")
    relay = Coil(0, sets={0: "off", 1: "on"}, doc="Control it.")
    contact = Input(0, every_s=None, doc="Measure it.")
    scale = Holding(9, step=0.1, must=of("wanted"), is_query=True, unit="V", doc="Measure it.")

    def known(self, words: Sequence[int]) -> Identity:
        return Identity("board", str(words[0]))

    def __init__(self, wanted: float = 1.5) -> None:
        self.wanted = wanted
        super().__init__(unit=1)


def test_rows_of_registers_coils_and_inputs_are_read_in_blocks_or_alone() -> None:
    board = Board()
    words, relay, contact = board.scans()
    assert words.request.frame[:6] == bytes([1, 3, 0, 0, 0, 4])
    assert words.channels == ("real", "part")
    assert words.decode(rtu(1, 3, 8, 0, 5, 0, 0, 0x42, 0xC9, 0, 0x35)) == (100.5, 3.0)
    with pytest.raises(DeviceFault, match="checked: the instrument answered 6, not five"):
        words.decode(rtu(1, 3, 8, 0, 6, 0, 0, 0x42, 0xC9, 0, 0x35))
    assert (board.channels["part"].shows, board.channels["relay"].shows) == ((0, 3), (0, 1))
    assert (relay.request.frame[1], contact.request.frame[1]) == (1, 2)
    assert relay.decode(rtu(1, 1, 1, 1)) == (1.0,)
    assert contact.period_s is None
    (scale,) = board.queries()
    assert scale.decode(rtu(1, 3, 2, 0, 15)) == 1.5
    with pytest.raises(DeviceFault, match=r"1\.6 V; the lab file says 1\.5 V"):
        scale.decode(rtu(1, 3, 2, 0, 16))


class Camera(JsonDriver):
    """A camera that a test makes."""

    who = "info"
    document = "manual, {command}"
    off = ()
    hints = MappingProxyType({"-2": " (too old?)"})

    time = Json(
        "getTime",
        "time",
        sets=(1.0, 100.0),
        whole=True,
        calls=(Call("setTime", {"time": VALUE, "mode": of("mode")}),),
        doc="Control it.",
    )

    def known(self, found: Mapping[str, Any]) -> Identity:
        return Identity(str(found))

    def __init__(self) -> None:
        self.mode = "fast"
        super().__init__()


def test_a_row_of_messages_says_its_calls_and_what_they_hold() -> None:
    (request,) = Camera().write("time", 5.0)
    sent = json.loads(request.frame)
    assert (sent["command"], sent["parameters"]) == ("setTime", {"time": 5, "mode": "fast"})
    assert Camera().scans()[0].decode(b'{"results": {"time": 7}}') == (7.0,)
    for refused in ('["-2"]', '"-2"'):
        with pytest.raises(DeviceFault, match=r"-2 \(too old\?\)$"):
            Camera().accept("time", f'{{"errors": {refused}}}'.encode())


def test_words_and_whole_numbers_are_read_strictly() -> None:
    assert among({"O": 0.0})("O", "state") == 0.0
    with pytest.raises(BadReply, match="state: 'X' is none of O"):
        among({"O": 0.0})("X", "state")
    with pytest.raises(DeviceFault, match="'X', which is odd"):
        among({"O": 0.0}, ", which is odd")("X", "state")
    assert whole(3)("3", "mode") == 3.0
    for said in ("4", "-1", "1.5"):
        with pytest.raises(BadReply, match="is not a whole number of 0 to 3"):
            whole(3)(said, "mode")
    assert number("1e3", "it") == 1000.0
    assert (scientific(-0.0015), scientific(0.0)) == (
        b"-1\\.500000E\\-03",
        b"[+-]?0\\.000000E\\+00",
    )


@pytest.mark.parametrize(
    ("value", "taken"), [(1, True), (3, True), (0, False), (4, False), (1.5, False)]
)
def test_a_setting_is_within_its_bounds_and_whole(value: float, taken: bool) -> None:
    if taken:
        within("ways", value, 1, 3, whole=True)
        return
    with pytest.raises(ValueError, match=r"ways .* is not within 1 to 3"):
        within("ways", value, 1, 3, whole=True)
